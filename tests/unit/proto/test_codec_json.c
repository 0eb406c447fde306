/* codec_json.c and codec_json_decode.c: canonical proto3 JSON, out and in. */
#include "codec_json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arena.h"
#include "codec_job.h"
#include "job_file.h"
#include "skrull/v1/planner.pb-c.h"
#include "text.h"

#define ARENA_BYTES ((size_t)1 << 22)
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

#define PLAN (&skrull__v1__plan__descriptor)
#define JOB (&skrull__v1__job__descriptor)
#define STREAM (&skrull__v1__stream_plans_response__descriptor)
#define STATS (&skrull__v1__index_stats__descriptor)
#define REQUEST (&skrull__v1__plan_batch_request__descriptor)

/* Decodes and encodes again on one line; the caller frees. */
static char *again(const ProtobufCMessageDescriptor *descriptor, const char *text)
{
    struct arena *arena = arena_new(ARENA_BYTES);
    struct skrull_error err = {0};
    ProtobufCMessage *message;
    char *back, clip[TEXT_CLIP_SIZE];

    assert_non_null(arena);
    print_message("# %s\n", text_clip(text, clip));
    if (codec_json_decode(arena, descriptor, text, strlen(text), &message, &err)) {
        print_message("# %s\n", err.message);
        fail();
    }
    back = codec_json_encode(message, false);
    assert_non_null(back);
    arena_free(arena);
    return back;
}

static void test_codec_json__there_and_back(void **state)
{
    static const struct {
        const ProtobufCMessageDescriptor *descriptor;
        const char *text, *back; /* back NULL: the same */
    } rows[] = {
        {PLAN, "{}", NULL},
        {PLAN, "{\"job\":\"a\",\"revision\":4294967295,\"step\":\"18446744073709551615\"}", NULL},
        {PLAN, "{\"planner_version\":1}", "{\"plannerVersion\":1}"},
        {PLAN, "{\"step\":7,\"dp\":\"4\"}", "{\"step\":\"7\",\"dp\":4}"},
        {PLAN, "{\"dp\":-0,\"step\":\"-0\"}", "{}"},
        {PLAN, "{\"dp\":0,\"job\":\"\",\"step\":\"0\",\"ranks\":[]}", "{}"},
        {PLAN, "{\"dp\":null,\"ranks\":null,\"totals\":null,\"job\":null}", "{}"},
        {PLAN, "{\"totals\":{}}", NULL},
        {PLAN,
         "{\"estimate\":{\"iterationNs\":\"-9223372036854775808\",\"boundNs\":"
         "\"9223372036854775807\"}}",
         NULL},
        {PLAN, "{\"estimate\":{\"compNs\":-5}}", "{\"estimate\":{\"compNs\":\"-5\"}}"},
        {PLAN,
         "{\"ranks\":[{},{\"microBatches\":[{\"segments\":[{\"lossWeight\":0.1},{}],\"dummy\":true}"
         "]}]}",
         NULL},
        {PLAN, " {\n\t\"dp\" : 1 }\r\n", "{\"dp\":1}"},
        {PLAN, "{\"cp\":2,\"dp\":1}", "{\"dp\":1,\"cp\":2}"},
        {JOB, "{\"order\":\"ORDER_SHUFFLE\",\"lastBatch\":1,\"loss\":\"LOSS_UNSPECIFIED\"}",
         "{\"order\":\"ORDER_SHUFFLE\",\"lastBatch\":\"LAST_BATCH_DROP\"}"},
        {JOB, "{\"info\":{\"indexes\":[{\"payloadHash\":\"18446744073709551615\"}]}}", NULL},
        {JOB, "{\"name\":\"\\u00e9\\n\\u0001\\u007f\\\"\\\\\\/\\ud83d\\ude00\"}",
         "{\"name\":\"\u00e9\\n\\u0001\x7f\\\"\\\\/\U0001F600\"}"},
        {JOB, "{\"name\":\"\\b\\f\\r\\t\"}", NULL},
        {STREAM, "{\"heartbeat\":{}}", NULL},
        {STREAM, "{\"plan\":{\"dataRank\":3}}", NULL},
        {STREAM, "{\"end\":{\"reason\":\"END_REASON_DRAINING\",\"nextStep\":\"9\"}}", NULL},
        {STREAM, "{\"end\":null,\"heartbeat\":{}}", "{\"heartbeat\":{}}"},
        {STREAM, "{}", NULL},
        {REQUEST, "{\"lengths\":[1,\"2\",0,4294967295]}", "{\"lengths\":[1,2,0,4294967295]}"},
        {STATS, "{\"mean\":1.5}", NULL},
        {STATS, "{\"mean\":3}", NULL},
        {STATS, "{\"mean\":\"2.5e1\"}", "{\"mean\":25}"},
        {STATS, "{\"mean\":\"NaN\"}", NULL},
        {STATS, "{\"mean\":\"Infinity\"}", NULL},
        {STATS, "{\"mean\":\"-Infinity\"}", NULL},
        {STATS, "{\"mean\":0.0}", "{}"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char *back = again(rows[i].descriptor, rows[i].text);

        assert_string_equal(back, rows[i].back ? rows[i].back : rows[i].text);
        free(back);
    }
}

static void test_codec_json_decode__faults(void **state)
{
    static const struct {
        const ProtobufCMessageDescriptor *descriptor;
        const char *text, *message;
    } rows[] = {
        {PLAN, "", "line "},
        {PLAN, "{", "line 1: not JSON: "},
        {PLAN, "{}\n{}", "line 2: not JSON: "},
        {PLAN, "{\n\"dp\":1,\n}", "line 3: not JSON: "},
        {PLAN, "{\"dp\":01}", "line 1: not JSON: "},
        {PLAN, "{'dp':1}", "line 1: not JSON: "},
        {PLAN, "{\"job\":\"\xff\"}", "line 1: not JSON: "},
        {PLAN, "{\"job\":\"\\u0000\"}", "line 1: not JSON: "},
        {PLAN, "{\"job\":\"\\ud800\"}", "line 1: not JSON: "},
        {PLAN, "{\"dp\":1,\n\"dp\":1}", "line 2: not JSON: duplicate object key"},
        {PLAN, "{\"dp\":18446744073709551616}", "line 1: not JSON: too big integer"},
        {PLAN, "[]", "the document: an object is allowed only"},
        {PLAN, "null", "line 1: not JSON: "},
        {PLAN, "{\"dpp\":1}", "dpp: unknown name"},
        {PLAN, "{\"Dp\":1}", "Dp: unknown name"},
        {PLAN, "{\"\":1}", "the document: unknown name"},
        {PLAN, "{\"a\\nb\":1}", "a?b: unknown name"},
        {PLAN, "{\"planner_version\":1,\"plannerVersion\":1}", "plannerVersion: is given twice"},
        {PLAN, "{\"planner_version\":null,\"plannerVersion\":1}", "plannerVersion: is given twice"},
        {PLAN, "{\"ranks\":[{},{},{},{\"microBatches\":[{\"segmnts\":[]}]}]}",
         "ranks[3].microBatches[0].segmnts: unknown name"},
        {PLAN, "{\"ranks\":{}}", "ranks: a list is allowed only"},
        {PLAN, "{\"ranks\":[null]}", "ranks[0]: an object is allowed only"},
        {PLAN, "{\"ranks\":[[]]}", "ranks[0]: an object is allowed only"},
        {PLAN, "{\"totals\":[]}", "totals: an object is allowed only"},
        {PLAN, "{\"totals\":1}", "totals: an object is allowed only"},
        {PLAN, "{\"job\":1}", "job: a string is allowed only"},
        {PLAN, "{\"job\":[\"a\"]}", "job: a string is allowed only"},
        {PLAN, "{\"dp\":-1}", "dp: a whole number, 0 to 4294967295, is allowed only"},
        {PLAN, "{\"dp\":4294967296}", "dp: a whole number, 0 to 4294967295, is allowed only"},
        {PLAN, "{\"dp\":\"4294967296\"}", "dp: a whole number"},
        {PLAN, "{\"dp\":\"18446744073709551617\"}", "dp: a whole number"},
        {PLAN, "{\"dp\":1.0}", "dp: a whole number"},
        {PLAN, "{\"dp\":1e3}", "dp: a whole number"},
        {PLAN, "{\"dp\":true}", "dp: a whole number"},
        {PLAN, "{\"dp\":\"\"}", "dp: a whole number"},
        {PLAN, "{\"dp\":\" 1\"}", "dp: a whole number"},
        {PLAN, "{\"dp\":\"1 \"}", "dp: a whole number"},
        {PLAN, "{\"dp\":\"+1\"}", "dp: a whole number"},
        {PLAN, "{\"dp\":\"01\"}", "dp: a whole number"},
        {PLAN, "{\"dp\":\"0x1\"}", "dp: a whole number"},
        {PLAN, "{\"step\":\"18446744073709551616\"}",
         "step: a whole number, 0 to 18446744073709551615, is allowed only"},
        {PLAN, "{\"step\":\"-1\"}", "step: a whole number"},
        {PLAN, "{\"estimate\":{\"idleNs\":\"9223372036854775808\"}}",
         "estimate.idleNs: a whole number, -9223372036854775808 to 9223372036854775807, is"},
        {PLAN, "{\"estimate\":{\"idleNs\":\"-9223372036854775809\"}}", "estimate.idleNs: a whole"},
        {PLAN, "{\"ranks\":[{\"micro_batches\":[{},{\"dummy\":1}]}]}",
         "ranks[0].micro_batches[1].dummy: true or false is allowed only"},
        {PLAN, "{\"ranks\":[{\"microBatches\":[{\"dummy\":\"true\"}]}]}",
         "ranks[0].microBatches[0]"},
        {JOB, "{\"order\":\"shuffle\"}",
         "order: a name or number of the enum Order is allowed only"},
        {JOB, "{\"order\":4}", "order: a name or number"},
        {JOB, "{\"order\":-1}", "order: a name or number"},
        {JOB, "{\"order\":4294967297}", "order: a name or number"},
        {JOB, "{\"order\":\"1\"}", "order: a name or number"},
        {JOB, "{\"order\":1.0}", "order: a name or number"},
        {STREAM, "{\"heartbeat\":{},\"end\":{}}", "end: another member of the same oneof"},
        {REQUEST, "{\"lengths\":[1,-1]}", "lengths[1]: a whole number"},
        {REQUEST, "{\"lengths\":1}", "lengths: a list is allowed only"},
        {STATS, "{\"mean\":\"\"}", "mean: a number is allowed only"},
        {STATS, "{\"mean\":\"0x1\"}", "mean: a number is allowed only"},
        {STATS, "{\"mean\":\"nan\"}", "mean: a number is allowed only"},
        {STATS, "{\"mean\":\"1.\"}", "mean: a number is allowed only"},
        {STATS, "{\"mean\":\"1e999\"}", "mean: a number is allowed only"},
        {STATS, "{\"mean\":true}", "mean: a number is allowed only"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena *arena = arena_new(ARENA_BYTES);
        struct skrull_error err = {0};
        ProtobufCMessage *message = NULL;
        char clip[TEXT_CLIP_SIZE];

        print_message("# %s\n", text_clip(rows[i].text, clip));
        assert_int_equal(codec_json_decode(arena, rows[i].descriptor, rows[i].text,
                                           strlen(rows[i].text), &message, &err),
                         SKRULL_ERR_INVALID_ARGUMENT);
        print_message("# -> %s\n", err.message);
        assert_int_equal(strncmp(err.message, rows[i].message, strlen(rows[i].message)), 0);
        assert_true(text_is_plain(err.message));
        assert_null(message);
        arena_free(arena);
    }
}

static void test_codec_json_encode__doubles_are_shortest(void **state)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {0.1, "0.1"},
        {1.0 / 3, "0.3333333333333333"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1e22, "1e+22"},
        {5e-324, "4.94065645841247e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {3.0517578125e-05, "3.0517578125e-05"},
        {123456789, "123456789"},
        {-2.5, "-2.5"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        Skrull__V1__Segment segment;
        char *text, expected[64];

        skrull__v1__segment__init(&segment);
        segment.loss_weight = rows[i].value;
        text = codec_json_encode(&segment.base, false);
        (void)snprintf(expected, sizeof(expected), "{\"lossWeight\":%s}", rows[i].text);
        assert_string_equal(text, expected);
        free(text);
    }
}

static void test_codec_json_encode__every_double_comes_back(void **state)
{
    uint64_t bits = 88172645463325252U;

    (void)state;
    for (size_t i = 0; i < 2000; i++) {
        Skrull__V1__Segment segment;
        struct arena *arena = arena_new(ARENA_BYTES);
        ProtobufCMessage *back;
        char *text;

        skrull__v1__segment__init(&segment);
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        memcpy(&segment.loss_weight, &bits, sizeof(bits));
        if (isnan(segment.loss_weight)) {
            segment.loss_weight = 1;
        }
        text = codec_json_encode(&segment.base, false);
        assert_non_null(text);
        assert_int_equal(codec_json_decode(arena, &skrull__v1__segment__descriptor, text,
                                           strlen(text), &back, NULL),
                         0);
        assert_memory_equal(&((Skrull__V1__Segment *)back)->loss_weight, &segment.loss_weight,
                            sizeof(double));
        free(text);
        arena_free(arena);
    }
}

static void test_codec_json_encode__pretty(void **state)
{
    Skrull__V1__Plan plan;
    Skrull__V1__RankPlan first, second;
    Skrull__V1__RankPlan *ranks[] = {&first, &second};
    char job[] = "a", *text;

    (void)state;
    skrull__v1__plan__init(&plan);
    skrull__v1__rank_plan__init(&first);
    skrull__v1__rank_plan__init(&second);
    plan.job = job;
    plan.n_ranks = 2;
    plan.ranks = ranks;
    second.data_rank = 1;
    text = codec_json_encode(&plan.base, true);
    assert_string_equal(text, "{\n  \"job\": \"a\",\n  \"ranks\": [\n    {},\n    {\n"
                              "      \"dataRank\": 1\n    }\n  ]\n}");
    free(text);
}

static void test_codec_json_encode__odd_values(void **state)
{
    Skrull__V1__Job job;
    char name[] = "a\xff\x80z";
    const int order = 77;
    char *text;

    (void)state;
    skrull__v1__job__init(&job);
    job.name = name;
    memcpy(&job.order, &order, sizeof(order));
    text = codec_json_encode(&job.base, false);
    assert_string_equal(text, "{\"name\":\"a\\ufffd\\ufffdz\",\"order\":77}");
    free(text);
}

static void test_codec_json_decode__deep_nesting(void **state)
{
    const size_t len = 1 << 20;
    char *text = malloc(len + 16);
    struct arena *arena = arena_new(ARENA_BYTES);
    struct skrull_error err = {0};
    ProtobufCMessage *message;

    (void)state;
    assert_non_null(text);
    memcpy(text, "{\"ranks\":", 9);
    memset(text + 9, '[', len);
    assert_int_equal(codec_json_decode(arena, PLAN, text, len + 9, &message, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(strncmp(err.message, "line 1: not JSON: ", 18), 0);
    free(text);
    arena_free(arena);
}

/* With every budget it either works or says that memory is short. */
static void test_codec_json_decode__without_memory(void **state)
{
    static const char text[] =
        "{\"job\":\"a\",\"ranks\":[{\"microBatches\":[{\"segments\":[{\"sample\":\"1\"},{}]}]}]}";
    struct skrull_error err = {0};
    ProtobufCMessage *message;
    size_t budget = 0;
    int rc;

    (void)state;
    do {
        struct arena *arena = arena_new(budget);

        rc = codec_json_decode(arena, PLAN, text, sizeof(text) - 1, &message, &err);
        assert_true(rc == 0 || rc == SKRULL_ERR_RESOURCE_EXHAUSTED);
        arena_free(arena);
        budget += 16;
    } while (rc && budget < ARENA_BYTES);
    assert_int_equal(rc, 0);
    assert_true(budget > 400);
}

/* Any change of a good document is read or refused, and what is read can be written. */
static void test_codec_json_decode__mutations(void **state)
{
    static const char good[] = "{\"job\":\"a\",\"uid\":\"0f\",\"step\":\"5\",\"dp\":4,\"ranks\":[{"
                               "\"dataRank\":1,\"microBatches\":"
                               "[{\"segments\":[{\"sample\":\"12\",\"lossWeight\":0.25}],\"dummy\":"
                               "false}]}],\"estimate\":{}}";
    static const char bytes[] = "{}[]\",:0189.-e\\u tn\x80\xff";
    uint32_t seed = 77;
    size_t n_good = 0;

    (void)state;
    for (size_t i = 0; i < 5000; i++) {
        struct arena *arena = arena_new(ARENA_BYTES);
        struct skrull_error err = {0};
        ProtobufCMessage *message;
        char text[sizeof(good)], *back;
        int rc;

        memcpy(text, good, sizeof(good));
        for (size_t n = i % 3 + 1; n > 0; n--) {
            seed = seed * 1664525 + 1013904223;
            text[(seed >> 8) % (sizeof(good) - 1)] = bytes[(seed >> 4) % (sizeof(bytes) - 1)];
        }
        rc = codec_json_decode(arena, PLAN, text, sizeof(good) - 1, &message, &err);
        if (rc) {
            assert_int_equal(rc, SKRULL_ERR_INVALID_ARGUMENT);
            assert_true(err.message[0] && text_is_plain(err.message));
        } else {
            n_good++;
            back = codec_json_encode(message, true);
            assert_non_null(back);
            free(back);
        }
        arena_free(arena);
    }
    print_message("# %zu of 5000 are good\n", n_good);
    assert_true(n_good > 50 && n_good < 4950);
}

/* `job get -o json` is given to `job create`: a whole job is read back by the job file reader. */
static void test_codec_json_encode__is_a_job_file(void **state)
{
    static const char file[] =
        "name: a\nmodel: {preset: m}\nparallel: {dp: 2, cp: 4, cp_mode: elastic}\n"
        "batch: {global: 16, bucket_tokens: 4096, align: 128, equal_micro_batches: false}\n"
        "data: [{index: a.txt}, {index: \"b \\u00e9\", over_length: drop}]\n"
        "training: {zero_stage: 3}\nseed: 9223372036854775807\nsteps: 12\nloss: none\n";
    struct arena *arena = arena_new(ARENA_BYTES);
    struct skrull_index_info indexes[2] = {{1, 2, 3}, {4, 5, 6}};
    struct skrull_error err = {0};
    struct skrull_job *job, *back;
    Skrull__V1__Job *message, *again_message;
    char *text, *again_text;

    (void)state;
    assert_int_equal(job_file_parse(arena, file, sizeof(file) - 1, &job, &err), 0);
    job->uid = "0123456789abcdef0123456789abcdef";
    job->revision = 2;
    job->info = (struct skrull_job_info){.sequences = 7, .n_indexes = 2, .indexes = indexes};
    assert_int_equal(codec_job_encode(arena, job, &message, &err), 0);
    text = codec_json_encode(&message->base, true);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"uid\": \"0123456789abcdef0123456789abcdef\""));
    assert_int_equal(job_file_parse(arena, text, strlen(text), &back, &err), 0);
    assert_null(back->uid);
    assert_int_equal(back->info.n_indexes, 0);
    job->uid = NULL;
    job->revision = 0;
    job->info = (struct skrull_job_info){0};
    assert_int_equal(codec_job_encode(arena, job, &message, &err), 0);
    assert_int_equal(codec_job_encode(arena, back, &again_message, &err), 0);
    free(text);
    text = codec_json_encode(&message->base, false);
    again_text = codec_json_encode(&again_message->base, false);
    assert_string_equal(text, again_text);
    free(text);
    free(again_text);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codec_json__there_and_back),
        cmocka_unit_test(test_codec_json_decode__faults),
        cmocka_unit_test(test_codec_json_encode__doubles_are_shortest),
        cmocka_unit_test(test_codec_json_encode__every_double_comes_back),
        cmocka_unit_test(test_codec_json_encode__pretty),
        cmocka_unit_test(test_codec_json_encode__odd_values),
        cmocka_unit_test(test_codec_json_decode__deep_nesting),
        cmocka_unit_test(test_codec_json_decode__without_memory),
        cmocka_unit_test(test_codec_json_decode__mutations),
        cmocka_unit_test(test_codec_json_encode__is_a_job_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
