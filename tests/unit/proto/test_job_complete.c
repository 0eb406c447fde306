/* job_complete.c: defaults and the rules that tie fields together, on the struct. */
#include "job_fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static struct skrull_job small_job(struct skrull_dataset *data)
{
    struct skrull_job job = {.name = "tiny",
                             .model.preset = "qwen2.5-0.5b",
                             .parallel = {.dp = 4, .cp = 8},
                             .batch = {.global = 256, .bucket_tokens = 26624},
                             .n_data = 1,
                             .data = data};

    *data = (struct skrull_dataset){.index = "a.txt"};
    return job;
}

static void refuse(struct skrull_job *job, const char *message)
{
    struct skrull_error err = {0};

    assert_int_equal(job_complete(job, &err), SKRULL_ERR_INVALID_ARGUMENT);
    print_message("# %s\n", err.message);
    assert_int_equal(strncmp(err.message, message, strlen(message)), 0);
}

static void accept(struct skrull_job *job)
{
    struct skrull_error err = {0};

    assert_int_equal(job_complete(job, &err), 0);
}

static void test_job_complete__defaults(void **state)
{
    struct skrull_dataset data;
    struct skrull_job job = small_job(&data);

    (void)state;
    accept(&job);
    assert_int_equal(job.model.flops, SKRULL_FLOPS_PAPER);
    assert_int_equal(job.training.zero_stage, SKRULL_ZERO_STAGE_2);
    assert_int_equal(job.training.recompute, SKRULL_RECOMPUTE_SELECTIVE);
    assert_int_equal(job.training.lora_rank, 0);
    assert_string_equal(job.hardware.profile, "paper-h100");
    assert_int_equal(job.parallel.tp, 1);
    assert_int_equal(job.parallel.pp, 1);
    assert_int_equal(job.parallel.cp_mode, SKRULL_CP_MODE_FIXED);
    assert_int_equal(job.parallel.min_degree, 1);
    assert_int_equal(job.parallel.max_degree, 0);
    assert_int_equal(job.parallel.ranks_per_node, 0);
    assert_string_equal(job.parallel.order, "tp-cp-ep-dp-pp");
    assert_int_equal(job.batch.align, 1);
    assert_int_equal(job.batch.shard, SKRULL_SHARD_ZIGZAG);
    assert_int_equal(job.batch.equal_micro_batches, SKRULL_EQUAL_AUTO);
    assert_int_equal(job.batch.micro_batch_multiple, 1);
    assert_int_equal(job.batch.micro_batch_min, 1);
    assert_int_equal(job.batch.micro_batches, 0);
    assert_int_equal(job.batch.micro_batch_order, SKRULL_MICRO_BATCH_ORDER_AS_PLANNED);
    assert_int_equal(job.batch.mix, SKRULL_MIX_ANY);
    assert_string_equal(data.format, "auto");
    assert_int_equal(data.over_length, SKRULL_OVER_LENGTH_REJECT);
    assert_null(data.column);
    assert_int_equal(data.unit, SKRULL_UNIT_SEQUENCE);
    assert_int_equal(job.seed, 0);
    assert_int_equal(job.order, SKRULL_ORDER_SHUFFLE);
    assert_int_equal(job.epochs, 1);
    assert_int_equal(job.steps, 0);
    assert_int_equal(job.last_batch, SKRULL_LAST_BATCH_DROP);
    assert_int_equal(job.loss, SKRULL_LOSS_TOKEN_MEAN);
    assert_string_equal(job.effort, "default");
    assert_string_equal(job.policy, "joint");
    assert_null(job.model.config);
}

static void test_job_complete__twice_is_harmless(void **state)
{
    struct skrull_dataset data, data_before;
    struct skrull_job job = small_job(&data), before;

    (void)state;
    job.steps = 9;
    job.uid = "output only";
    job.revision = 3;
    job.info.longest = 4;
    accept(&job);
    memcpy(&before, &job, sizeof(job));
    memcpy(&data_before, &data, sizeof(data));
    accept(&job);
    assert_memory_equal(&job, &before, sizeof(job));
    assert_memory_equal(&data, &data_before, sizeof(data));
    assert_int_equal(job.epochs, 0);
    assert_int_equal(job.steps, 9);
    assert_string_equal(job.uid, "output only");
    assert_int_equal(job.info.longest, 4);
}

static void test_job_complete__required(void **state)
{
    struct skrull_dataset data;
    struct skrull_job job = {0};

    (void)state;
    refuse(&job, "name: is required");
    job.name = "";
    refuse(&job, "name: is required");
#define WITHOUT(member, nothing, message)                                                          \
    job = small_job(&data);                                                                        \
    member = nothing;                                                                              \
    refuse(&job, message)
    WITHOUT(job.model.preset, NULL, "model.preset: is required (or model.config)");
    WITHOUT(job.model.preset, "", "model.preset: is required (or model.config)");
    WITHOUT(job.parallel.dp, 0, "parallel.dp: is required");
    WITHOUT(job.parallel.cp, 0, "parallel.cp: is required");
    WITHOUT(job.batch.global, 0, "batch.global: is required");
    WITHOUT(job.batch.bucket_tokens, 0, "batch.bucket_tokens: is required");
    WITHOUT(job.n_data, 0, "data: is required");
    WITHOUT(data.index, NULL, "data[0].index: is required");
    WITHOUT(data.index, "", "data[0].index: is required");
#undef WITHOUT
}

static void test_job_complete__later(void **state)
{
    struct skrull_dataset data;
    struct skrull_job job;

    (void)state;
#define WITH(member, value, message)                                                               \
    job = small_job(&data);                                                                        \
    member = value;                                                                                \
    refuse(&job, message)
    WITH(job.model.config, "{}", "model.config: {} is not built yet");
    WITH(job.model.flops, SKRULL_FLOPS_EXACT, "model.flops: exact is not built yet");
#undef WITH
}

static void test_job_complete__weights(void **state)
{
    struct skrull_dataset data[3];
    struct skrull_job job = small_job(data);

    (void)state;
    data[1] = data[2] = data[0];
    job.n_data = 3;
    job.steps = 10;
    data[0].weight = 0.5;
    data[1].weight = 1e-9;
    refuse(&job, "data[2].weight: is missing or 0, data[0] has one");
    data[2].weight = 7;
    accept(&job);
    assert_int_equal(job.epochs, 0);
    data[0].weight = 0;
    refuse(&job, "data[0].weight: is missing or 0, data[1] has one");
    data[0].weight = 1;
    job.steps = 0;
    refuse(&job, "steps: is required for a mixture");
    job.epochs = 1;
    refuse(&job, "epochs: a mixture (data[0].weight) has none, give steps");
    job.steps = 10;
    refuse(&job, "epochs: a mixture (data[0].weight) has none, give steps");
    data[2].weight = -1;
    refuse(&job, "data[2].weight: -1 is out of range");
}

static void test_job_complete__word_without_a_name(void **state)
{
    struct skrull_dataset data;
    struct skrull_job job = small_job(&data);
    const int numbers[] = {-1, 4, INT32_MAX, INT32_MIN};

    (void)state;
    for (size_t i = 0; i < COUNT(numbers); i++) {
        job = small_job(&data);
        memcpy(&job.order, &numbers[i], sizeof(numbers[i]));
        refuse(&job, "order: the enum has no such number, 0 to 3 are allowed");
    }
    job = small_job(&data);
    memcpy(&data.unit, &numbers[1], sizeof(numbers[1]));
    refuse(&job, "data[0].unit: the enum has no such number, 0 to 2 are allowed");
}

static void test_job_complete__name(void **state)
{
    static const char *const good[] = {
        "a",    "0",   "a-b",
        "a--b", "0-9", "x123456789012345678901234567890123456789012345678901234567890z1"};
    static const char *const bad[] = {"-a", "a-", "-", "A", "a_b", "a.b", "a b", "a/b", "\u00e9"};
    struct skrull_dataset data;
    struct skrull_job job;

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        job = small_job(&data);
        job.name = good[i];
        accept(&job);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        job = small_job(&data);
        job.name = bad[i];
        refuse(&job, "name: ");
    }
    job = small_job(&data);
    job.name = "x123456789012345678901234567890123456789012345678901234567890z12";
    refuse(&job, "name: 64 bytes are too long, at most 63 are allowed");
    job.name = "a\xff";
    refuse(&job, "name: UTF-8 text");
}

static void test_job_complete__grid(void **state)
{
    static const struct {
        uint32_t dp, cp, tp, pp, min_degree, max_degree;
        const char *message;
    } rows[] = {
        {1, 1, 0, 0, 0, 0, ""},
        {65536, 1, 0, 0, 0, 0, ""},
        {256, 256, 0, 0, 0, 0, ""},
        {256, 257, 0, 0, 0, 0, "parallel.dp: dp x cp is 65792, at most 65536 are allowed"},
        {65536, 65536, 0, 0, 0, 0, "parallel.dp: dp x cp is 4294967296, at most 65536"},
        {65537, 1, 0, 0, 0, 0, "parallel.dp: 65537 is out of range, 1 to 65536 are allowed"},
        {65536, 1, 32767, 1, 0, 0, ""},
        {65536, 1, 32768, 1, 0, 0,
         "parallel.tp: dp x cp x tp x pp is too large, at most 2147483647"},
        {65536, 1, 65536, 65536, 0, 0, "parallel.tp: dp x cp x tp x pp is too large"},
        {1, 1, 65536, 65536, 0, 0, "parallel.tp: dp x cp x tp x pp is too large"},
        {4, 8, 0, 0, 32, 0, ""},
        {4, 8, 0, 0, 33, 0, "parallel.min_degree: 33 is more than dp x cp = 32"},
        {4, 8, 0, 0, 8, 8, ""},
        {4, 8, 0, 0, 8, 7, "parallel.max_degree: 7 is less than min_degree = 8"},
        {4, 8, 0, 0, 1, 65536, ""},
    };
    struct skrull_dataset data;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct skrull_job job = small_job(&data);

        print_message("# row %zu\n", i);
        job.parallel.dp = rows[i].dp;
        job.parallel.cp = rows[i].cp;
        job.parallel.tp = rows[i].tp;
        job.parallel.pp = rows[i].pp;
        job.parallel.min_degree = rows[i].min_degree;
        job.parallel.max_degree = rows[i].max_degree;
        if (*rows[i].message) {
            refuse(&job, rows[i].message);
        } else {
            accept(&job);
        }
    }
}

static void test_job_complete__bucket_and_align(void **state)
{
    static const struct {
        uint32_t bucket, align, cp;
        enum skrull_shard shard;
        const char *message;
    } rows[] = {
        {2, 1, 2, 0, ""},
        {1, 1, 2, 0, "batch.bucket_tokens: 1 is less than 2 x align = 2"},
        {1, 1, 1, 0, ""},
        {1, 1, 2, SKRULL_SHARD_CONTIGUOUS, ""},
        {256, 128, 8, SKRULL_SHARD_ZIGZAG, ""},
        {255, 128, 8, SKRULL_SHARD_ZIGZAG, "batch.bucket_tokens: 255 is less than 2 x align = 256"},
        {128, 128, 8, SKRULL_SHARD_CONTIGUOUS, ""},
        {127, 128, 8, SKRULL_SHARD_CONTIGUOUS, "batch.bucket_tokens: 127 is less than align = 128"},
        {128, 128, 1, SKRULL_SHARD_ZIGZAG, ""},
        {127, 128, 1, SKRULL_SHARD_ZIGZAG, "batch.bucket_tokens: 127 is less than align = 128"},
        {131071, 65536, 2, 0, "batch.bucket_tokens: 131071 is less than 2 x align = 131072"},
    };
    struct skrull_dataset data;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct skrull_job job = small_job(&data);

        print_message("# row %zu\n", i);
        job.batch.bucket_tokens = rows[i].bucket;
        job.batch.align = rows[i].align;
        job.batch.shard = rows[i].shard;
        job.parallel.cp = rows[i].cp;
        if (*rows[i].message) {
            refuse(&job, rows[i].message);
        } else {
            accept(&job);
        }
    }
}

static void test_job_complete__dimension_order(void **state)
{
    static const char *const good[] = {"tp-cp-ep-dp-pp", "pp-dp-ep-cp-tp", "dp-tp-pp-cp-ep"};
    static const char *const bad[] = {"tp-cp-dp-pp",    "tp-cp-ep-dp-dp",    "tp-cp-ep-dp-xx",
                                      "tp_cp_ep_dp_pp", "tp-cp-ep-dp-pp-tp", "TP-CP-EP-DP-PP",
                                      "tpcp-ep-dp--pp", "-tp-cp-ep-dp-p",    "tp"};
    struct skrull_dataset data;
    struct skrull_job job;

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        job = small_job(&data);
        job.parallel.order = good[i];
        accept(&job);
        assert_string_equal(job.parallel.order, good[i]);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        job = small_job(&data);
        job.parallel.order = bad[i];
        refuse(&job, "parallel.order: ");
    }
}

static void test_job_complete__data_sets(void **state)
{
    static struct skrull_dataset data[JOB_MAX_DATA + 1];
    struct skrull_job job = small_job(data);

    (void)state;
    for (size_t i = 0; i < COUNT(data); i++) {
        data[i].index = "a";
    }
    job.n_data = JOB_MAX_DATA + 1;
    refuse(&job, "data: 1025 data sets are too many, at most 1024 are allowed");
    job.n_data = JOB_MAX_DATA;
    accept(&job);
    assert_string_equal(data[JOB_MAX_DATA - 1].format, "auto");
    data[1000].unit = (enum skrull_unit)3;
    refuse(&job, "data[1000].unit: the enum has no such number, 0 to 2 are allowed");
}

/* Counts against one another, and against equal counts. */
static void test_job_complete__micro_batch_counts(void **state)
{
    static const struct {
        enum skrull_zero_stage zero_stage;
        uint32_t pp;
        enum skrull_equal equal;
        uint32_t exact, multiple, min;
        const char *message; /* NULL: fine */
    } rows[] = {
        {SKRULL_ZERO_STAGE_2, 1, SKRULL_EQUAL_AUTO, 0, 65536, 16777216, NULL},
        {SKRULL_ZERO_STAGE_1, 2, SKRULL_EQUAL_AUTO, 0, 4, 3, NULL},
        {SKRULL_ZERO_STAGE_1, 1, SKRULL_EQUAL_AUTO, 0, 1, 1, NULL},
        {SKRULL_ZERO_STAGE_1, 1, SKRULL_EQUAL_AUTO, 0, 4, 1,
         "batch.micro_batch_multiple: 4 needs equal counts, batch.equal_micro_batches is auto, "
         "which is false by training.zero_stage and parallel.pp"},
        {SKRULL_ZERO_STAGE_1, 1, SKRULL_EQUAL_AUTO, 0, 1, 4,
         "batch.micro_batch_min: 4 needs equal counts"},
        {SKRULL_ZERO_STAGE_2, 1, SKRULL_EQUAL_FALSE, 0, 2, 2,
         "batch.micro_batch_multiple: 2 needs equal counts, batch.equal_micro_batches is false: "
         "set that to true, or this to 1"},
        {SKRULL_ZERO_STAGE_2, 1, SKRULL_EQUAL_FALSE, 8, 1, 1, NULL},
        {SKRULL_ZERO_STAGE_2, 1, SKRULL_EQUAL_FALSE, 8, 4, 8, NULL}, /* equal by the exact count */
        {SKRULL_ZERO_STAGE_2, 1, SKRULL_EQUAL_TRUE, 16777216, 65536, 16777216, NULL},
        {SKRULL_ZERO_STAGE_2, 1, SKRULL_EQUAL_TRUE, 9, 4, 1,
         "batch.micro_batches: 9 is no multiple of batch.micro_batch_multiple = 4"},
        {SKRULL_ZERO_STAGE_2, 1, SKRULL_EQUAL_TRUE, 8, 4, 9,
         "batch.micro_batches: 8 is less than batch.micro_batch_min = 9"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct skrull_dataset data;
        struct skrull_job job = small_job(&data);

        print_message("# row %zu\n", i);
        job.training.zero_stage = rows[i].zero_stage;
        job.parallel.pp = rows[i].pp;
        job.batch.equal_micro_batches = rows[i].equal;
        job.batch.micro_batches = rows[i].exact;
        job.batch.micro_batch_multiple = rows[i].multiple;
        job.batch.micro_batch_min = rows[i].min;
        if (rows[i].message) {
            refuse(&job, rows[i].message);
        } else {
            accept(&job);
        }
    }
}

static void test_job_complete__length_and_effort(void **state)
{
    static const char *const good[] = {"low", "default", "high", "1", "1000000000"};
    static const char *const bad[] = {"0", "1000000001", "01", "-1", "1e3", "Low", "x"};
    struct skrull_dataset data;
    struct skrull_job job = small_job(&data);

    (void)state;
    job.epochs = 1;
    job.steps = 1;
    refuse(&job, "steps: epochs is given too");
    job = small_job(&data);
    job.seed = UINT64_MAX;
    refuse(&job,
           "seed: 18446744073709551615 is out of range, 0 to 9223372036854775807 are allowed");
    for (size_t i = 0; i < COUNT(good); i++) {
        job = small_job(&data);
        job.effort = good[i];
        accept(&job);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        job = small_job(&data);
        job.effort = bad[i];
        refuse(&job, "effort: ");
    }
}

static void test_job_is_equal_micro_batches__table(void **state)
{
    static const struct {
        enum skrull_equal equal;
        enum skrull_zero_stage zero_stage;
        uint32_t pp;
        bool is_equal;
    } rows[] = {
        {SKRULL_EQUAL_AUTO, SKRULL_ZERO_STAGE_0, 1, false},
        {SKRULL_EQUAL_AUTO, SKRULL_ZERO_STAGE_1, 1, false},
        {SKRULL_EQUAL_AUTO, SKRULL_ZERO_STAGE_2, 1, true},
        {SKRULL_EQUAL_AUTO, SKRULL_ZERO_STAGE_3, 1, true},
        {SKRULL_EQUAL_AUTO, SKRULL_ZERO_STAGE_0, 2, true},
        {SKRULL_EQUAL_AUTO, SKRULL_ZERO_STAGE_1, 4, true},
        {SKRULL_EQUAL_TRUE, SKRULL_ZERO_STAGE_0, 1, true},
        {SKRULL_EQUAL_FALSE, SKRULL_ZERO_STAGE_3, 8, false},
        {0, 0, 0, true}, /* the defaults: auto, 2 */
    };
    struct skrull_dataset data;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct skrull_job job = small_job(&data);

        job.batch.equal_micro_batches = rows[i].equal;
        job.training.zero_stage = rows[i].zero_stage;
        job.parallel.pp = rows[i].pp;
        accept(&job);
        print_message("# row %zu\n", i);
        assert_int_equal(job_is_equal_micro_batches(&job), rows[i].is_equal);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_job_complete__defaults),
        cmocka_unit_test(test_job_complete__twice_is_harmless),
        cmocka_unit_test(test_job_complete__required),
        cmocka_unit_test(test_job_complete__later),
        cmocka_unit_test(test_job_complete__weights),
        cmocka_unit_test(test_job_complete__word_without_a_name),
        cmocka_unit_test(test_job_complete__name),
        cmocka_unit_test(test_job_complete__grid),
        cmocka_unit_test(test_job_complete__bucket_and_align),
        cmocka_unit_test(test_job_complete__dimension_order),
        cmocka_unit_test(test_job_complete__data_sets),
        cmocka_unit_test(test_job_complete__micro_batch_counts),
        cmocka_unit_test(test_job_complete__length_and_effort),
        cmocka_unit_test(test_job_is_equal_micro_batches__table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
