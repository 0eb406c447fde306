/* Opening jobs, and the plans they give. */
#include "job/job.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/job/job_folder.h"

/* 20 short ones, 8 at the limit, 4 over it. */
static const uint32_t mixed[][2] = {{20, 100}, {8, FOLDER_LIMIT}, {3, 4001}, {1, 9000}, {0, 0}};
/* 64 of the limit and below. */
static const uint32_t fitting[][2] = {{40, 90},  {10, 700}, {10, 1800},
                                      {3, 3500}, {1, 4000}, {0, 0}};

static void assert_info(const struct job *job, struct skrull_job_info expected)
{
    const struct skrull_job_info *info = &job_spec(job)->info;

    assert_int_equal(info->sequences, expected.sequences);
    assert_int_equal(info->tokens, expected.tokens);
    assert_int_equal(info->dropped, expected.dropped);
    assert_int_equal(info->truncated, expected.truncated);
    assert_int_equal(info->steps, expected.steps);
    assert_int_equal(info->longest, expected.longest);
    assert_int_equal(info->bucket_tokens, job_spec(job)->batch.bucket_tokens);
    assert_int_equal(info->n_indexes, job_spec(job)->n_data);
}

static void test_job_open__over_length_rejected(void **state)
{
    struct job_folder *folder = *state;

    job_folder_write(folder, "a.txt", mixed);
    job_folder_expect_refused(folder, SKRULL_ERR_INVALID_ARGUMENT, "4 of the 32 sequences");
    job_folder_expect_refused(folder, SKRULL_ERR_INVALID_ARGUMENT, "longer than 4000 tokens");
    job_folder_expect_refused(folder, SKRULL_ERR_INVALID_ARGUMENT, "the longest has 9000");
    job_folder_expect_refused(folder, SKRULL_ERR_INVALID_ARGUMENT, "truncate or drop");
    job_folder_expect_refused(folder, SKRULL_ERR_INVALID_ARGUMENT, "larger batch.bucket_tokens");
}

static void test_job_open__over_length_dropped(void **state)
{
    struct job_folder *folder = *state;
    struct job *job;

    job_folder_write(folder, "a.txt", mixed);
    folder->data[0].over_length = SKRULL_OVER_LENGTH_DROP;
    job = job_folder_open(folder);
    assert_info(job, (struct skrull_job_info){.sequences = 28,
                                              .tokens = 20 * 100 + 8 * 4000,
                                              .dropped = 4,
                                              .steps = 3,
                                              .longest = 4000});
    assert_int_equal(job_spec(job)->info.indexes[0].count, 32); /* the index as it is */
    assert_int_equal(job_spec(job)->info.indexes[0].tokens, 20 * 100 + 8 * 4000 + 3 * 4001 + 9000);
    job_unref(job);
}

static void test_job_open__over_length_truncated(void **state)
{
    struct job_folder *folder = *state;
    struct job *job;

    job_folder_write(folder, "a.txt", mixed);
    folder->data[0].over_length = SKRULL_OVER_LENGTH_TRUNCATE;
    job = job_folder_open(folder);
    assert_info(job, (struct skrull_job_info){.sequences = 32,
                                              .tokens = 20 * 100 + 12 * 4000,
                                              .truncated = 4,
                                              .steps = 4,
                                              .longest = 4000});
    job_unref(job);
}

static void test_job_open__all_dropped(void **state)
{
    static const uint32_t long_ones[][2] = {{9, 5000}, {0, 0}};
    struct job_folder *folder = *state;

    job_folder_write(folder, "a.txt", long_ones);
    folder->data[0].over_length = SKRULL_OVER_LENGTH_DROP;
    job_folder_expect_refused(folder, SKRULL_ERR_INVALID_ARGUMENT, "9 over-long sequences were");
}

static void test_job_open__too_few_sequences(void **state)
{
    static const uint32_t seven[][2] = {{7, 10}, {0, 0}};
    struct job_folder *folder = *state;

    job_folder_write(folder, "a.txt", seven);
    job_folder_expect_refused(folder, SKRULL_ERR_INVALID_ARGUMENT, "7 sequences");
    job_folder_expect_refused(folder, SKRULL_ERR_INVALID_ARGUMENT, "8");
}

static void test_job_open__steps(void **state)
{
    static const struct {
        uint32_t n_sequences, batch;
        uint64_t epochs, steps, expected;
    } cases[] = {
        {64, 8, 0, 0, 8}, {71, 8, 1, 0, 8},     {72, 8, 3, 0, 27}, {8, 8, 5, 0, 5},
        {9, 9, 0, 7, 7},  {20, 8, 0, 100, 100}, {20, 1, 2, 0, 40},
    };
    struct job_folder *folder = *state;
    struct job *job;
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const uint32_t pairs[][2] = {{cases[i].n_sequences, 50}, {0, 0}};

        job_folder_write(folder, "a.txt", pairs);
        folder->spec.batch.global = cases[i].batch;
        folder->spec.epochs = cases[i].epochs;
        folder->spec.steps = cases[i].steps;
        job = job_folder_open(folder);
        if (job_spec(job)->info.steps != cases[i].expected) {
            fail_msg("row %zu: %llu steps", i, (unsigned long long)job_spec(job)->info.steps);
        }
        job_unref(job);
    }
}

static void test_job_open__refused(void **state)
{
    struct job_folder *folder = *state;

    job_folder_expect_refused(folder, SKRULL_ERR_NOT_FOUND, "a.txt");
    folder->data[0].index = "/etc/hostname";
    job_folder_expect_refused(folder, SKRULL_ERR_PERMISSION_DENIED, "/etc/hostname");
    folder->data[0].index = "a.txt";
    folder->roots.n_paths = 0;
    job_folder_expect_refused(folder, SKRULL_ERR_PERMISSION_DENIED, "data[0].index");
    /* What can be said without the index is said without it. */
    folder->spec.policy = "magic";
    job_folder_expect_refused(folder, SKRULL_ERR_INVALID_ARGUMENT, "unknown policy magic");
    folder->spec.policy = "skrull";
    folder->spec.model.preset = "gpt-17";
    job_folder_expect_refused(folder, SKRULL_ERR_INVALID_ARGUMENT, "gpt-17");
}

/* Certain at creation: `uniform` runs one sequence a micro-batch. Of others each step must tell. */
static void test_job_open__too_few_micro_batches(void **state)
{
    static const uint32_t long_ones[][2] = {{64, FOLDER_LIMIT}, {0, 0}};
    struct job_folder *folder = *state;
    struct skrull_error err = {0};
    struct skrull_plan *plan = NULL;
    struct job *job;

    job_folder_write(folder, "a.txt", long_ones);
    folder->spec.batch.micro_batches = 3;
    folder->spec.policy = "uniform";
    job_folder_expect_refused(folder, SKRULL_ERR_INVALID_ARGUMENT,
                              "batch.micro_batches: 3 are too few for policy uniform, which needs "
                              "4 for 8 sequences on dp 2");
    folder->spec.policy = "skrull";
    job = job_folder_open(folder);
    assert_int_equal(job_plan(job, 5, &plan, NULL, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "3 are too few for step 5, which needs 4"));
    assert_null(plan);
    job_unref(job);
    folder->spec.batch.micro_batches = 4;
    folder->spec.policy = "uniform";
    job = job_folder_open(folder);
    assert_int_equal(job_plan(job, 5, &plan, NULL, NULL), 0);
    skrull_plan_free(plan);
    job_unref(job);
}

static void test_job_open__policy_decides_the_limit(void **state)
{
    static const uint32_t pairs[][2] = {{8, 4001}, {0, 0}};
    struct job_folder *folder = *state;

    job_folder_write(folder, "a.txt", pairs);
    folder->spec.parallel.cp_mode = SKRULL_CP_MODE_ELASTIC;
    folder->spec.policy = "skrull"; /* uses 1 and CP anyway */
    job_folder_expect_refused(folder, SKRULL_ERR_INVALID_ARGUMENT, "longer than 4000 tokens");
    folder->spec.batch.shard = SKRULL_SHARD_CONTIGUOUS;
    folder->spec.batch.align = 128; /* 7 x 128 x 4 */
    job_folder_expect_refused(folder, SKRULL_ERR_INVALID_ARGUMENT, "longer than 3584 tokens");
    folder->spec.policy = "joint"; /* also both DP ranks together */
    job_unref(job_folder_open(folder));
}

static void test_job_open__own_copy_of_the_spec(void **state)
{
    struct job_folder *folder = *state;
    char name[] = "job";
    struct job *job;

    job_folder_write(folder, "a.txt", fitting);
    folder->spec.name = name;
    job = job_folder_open(folder);
    name[0] = 'X';
    folder->data[0].index = "b.txt";
    assert_string_equal(job_spec(job)->name, "job");
    assert_string_equal(job_spec(job)->data[0].index, "a.txt");
    assert_string_equal(job_spec(job)->uid, "0123456789abcdef0123456789abcdef");
    assert_int_equal(job_spec(job)->revision, 1);
    job_unref(job);
}

static void test_job_open__with_its_own_info(void **state)
{
    struct job_folder *folder = *state;
    struct job *job, *again = NULL;

    job_folder_write(folder, "a.txt", fitting);
    job = job_folder_open(folder);
    assert_int_equal(job_open(job_spec(job), &folder->roots, &again, NULL), 0);
    assert_int_equal(job_spec(again)->info.indexes[0].payload_hash,
                     job_spec(job)->info.indexes[0].payload_hash);
    job_unref(again);
    job_unref(job);
}

static void test_job_open__with_other_info(void **state)
{
    struct job_folder *folder = *state;
    struct skrull_index_info *index, two[2];
    struct skrull_job_info good;
    struct job *job;

    job_folder_write(folder, "a.txt", fitting);
    job = job_folder_open(folder);
    index = &job_spec(job)->info.indexes[0];
    good = job_spec(job)->info;
    folder->spec.info = good;
    index->count++;
    job_folder_expect_refused(folder, SKRULL_ERR_FAILED_PRECONDITION, "64 rows");
    index->count--;
    index->tokens++;
    job_folder_expect_refused(folder, SKRULL_ERR_FAILED_PRECONDITION, "tokens");
    index->tokens--;
    index->payload_hash ^= 1;
    job_folder_expect_refused(folder, SKRULL_ERR_FAILED_PRECONDITION, "payload hash");
    index->payload_hash ^= 1;
    folder->spec.info.dropped++;
    job_folder_expect_refused(folder, SKRULL_ERR_FAILED_PRECONDITION, "info.dropped");
    folder->spec.info = good;
    folder->spec.info.steps++;
    job_folder_expect_refused(folder, SKRULL_ERR_FAILED_PRECONDITION, "info.steps");
    folder->spec.info = good;
    two[0] = two[1] = *index;
    folder->spec.info.indexes = two;
    folder->spec.info.n_indexes = 2;
    job_folder_expect_refused(folder, SKRULL_ERR_INVALID_ARGUMENT, "info.indexes");
    job_unref(job);
}

/* Fails the test at the first fault. */
static void no_fault(void *arg, const char *message)
{
    fail_msg("%s: %s", (const char *)arg, message);
}

/* Every plan of the job, checked; the digests go to `ret_digests` ([steps][16]). */
static void plan_all(const struct job *job, uint8_t (*ret_digests)[SKRULL_DIGEST_SIZE])
{
    struct skrull_error err = {0};
    struct skrull_plan *plan = NULL;
    uint64_t step;
    int64_t planning_ns;
    char label[64];

    for (step = 0; step < job_spec(job)->info.steps; step++) {
        planning_ns = -1;
        if (job_plan(job, step, &plan, &planning_ns, &err)) {
            fail_msg("%s", err.message);
        }
        (void)snprintf(label, sizeof(label), "%s step %llu", job_spec(job)->policy,
                       (unsigned long long)step);
        assert_int_equal(job_check_plan(job, plan, no_fault, label, &err), 0);
        assert_true(planning_ns >= 0);
        assert_int_equal(plan->step, step);
        assert_string_equal(plan->job, "job");
        assert_string_equal(plan->uid, job_spec(job)->uid);
        assert_int_equal(plan->revision, 1);
        memcpy(ret_digests[step], plan->digest, SKRULL_DIGEST_SIZE);
        skrull_plan_free(plan);
    }
}

static void test_job_plan__sound_by_every_policy(void **state)
{
    static const struct {
        const char *policy;
        uint32_t align;
        enum skrull_shard shard;
        enum skrull_equal equal;
        enum skrull_loss loss;
    } cases[] = {
        {"skrull", 1, SKRULL_SHARD_ZIGZAG, SKRULL_EQUAL_FALSE, SKRULL_LOSS_TOKEN_MEAN},
        {"skrull", 8, SKRULL_SHARD_CONTIGUOUS, SKRULL_EQUAL_TRUE, SKRULL_LOSS_SEQUENCE_MEAN},
        {"round_robin", 1, SKRULL_SHARD_ZIGZAG, SKRULL_EQUAL_TRUE, SKRULL_LOSS_NONE},
        {"round_robin", 16, SKRULL_SHARD_CONTIGUOUS, SKRULL_EQUAL_FALSE, SKRULL_LOSS_TOKEN_MEAN},
        {"uniform", 1, SKRULL_SHARD_ZIGZAG, SKRULL_EQUAL_FALSE, SKRULL_LOSS_TOKEN_MEAN},
        {"uniform", 8, SKRULL_SHARD_ZIGZAG, SKRULL_EQUAL_TRUE, SKRULL_LOSS_TOKEN_MEAN},
    };
    uint8_t digests[64][SKRULL_DIGEST_SIZE], again[64][SKRULL_DIGEST_SIZE];
    struct job_folder *folder = *state;
    struct job *job;
    size_t i;

    job_folder_write(folder, "a.txt", fitting);
    folder->data[0].over_length = SKRULL_OVER_LENGTH_DROP;
    folder->spec.epochs = 2;
    for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        folder->spec.policy = cases[i].policy;
        folder->spec.batch.align = cases[i].align;
        folder->spec.batch.shard = cases[i].shard;
        folder->spec.batch.equal_micro_batches = cases[i].equal;
        folder->spec.loss = cases[i].loss;
        job = job_folder_open(folder);
        plan_all(job, digests);
        job_unref(job);
        job = job_folder_open(folder); /* opened anew: the same plans */
        plan_all(job, again);
        assert_memory_equal(again, digests, job_spec(job)->info.steps * SKRULL_DIGEST_SIZE);
        assert_memory_not_equal(digests[0], digests[1], SKRULL_DIGEST_SIZE);
        job_unref(job);
    }
}

/* A plan is the same whichever policy a job names itself. */
static void test_job_plan_by__another_policy(void **state)
{
    struct job_folder *folder = *state;
    struct skrull_plan *by = NULL, *plan = NULL;
    struct job *job;

    job_folder_write(folder, "a.txt", fitting);
    job = job_folder_open(folder);
    assert_int_equal(job_plan_by(job, 3, "uniform", &by, NULL, NULL), 0);
    job_unref(job);
    folder->spec.policy = "uniform";
    job = job_folder_open(folder);
    assert_int_equal(job_plan(job, 3, &plan, NULL, NULL), 0);
    assert_string_equal(by->policy, "uniform");
    assert_memory_equal(by->digest, plan->digest, SKRULL_DIGEST_SIZE);
    assert_int_equal(job_plan_by(job, 3, "magic", &by, NULL, NULL), SKRULL_ERR_INVALID_ARGUMENT);
    skrull_plan_free(by);
    skrull_plan_free(plan);
    job_unref(job);
}

static void test_job_plan__past_the_last_step(void **state)
{
    struct job_folder *folder = *state;
    struct skrull_error err = {0};
    struct skrull_plan *plan = NULL;
    struct job *job;

    job_folder_write(folder, "a.txt", fitting);
    job = job_folder_open(folder);
    assert_int_equal(job_plan(job, 8, &plan, NULL, &err), SKRULL_ERR_OUT_OF_RANGE);
    assert_non_null(strstr(err.message, "8"));
    assert_int_equal(job_plan(job, UINT64_MAX, &plan, NULL, &err), SKRULL_ERR_OUT_OF_RANGE);
    assert_null(plan);
    job_unref(job);
}

/* Rows in order, over the border of two data sets, each with its own way with long ones. */
static void test_job_plan__several_data_sets(void **state)
{
    static const uint32_t first[][2] = {{2, 10}, {1, 5000}, {2, 11}, {0, 0}};
    static const uint32_t second[][2] = {{1, 12}, {1, 6000}, {3, 13}, {0, 0}};
    static const struct {
        uint32_t dataset, length;
        uint64_t row;
    } expected[] = {{0, 10, 0}, {0, 10, 1},   {0, 11, 3}, {0, 11, 4},
                    {1, 12, 0}, {1, 4000, 1}, {1, 13, 2}, {1, 13, 3}};
    struct job_folder *folder = *state;
    struct skrull_plan *plan = NULL;
    const struct skrull_segment *segment;
    struct job *job;
    size_t i;

    job_folder_write(folder, "a.txt", first);
    job_folder_write(folder, "b.txt", second);
    folder->data[0].over_length = SKRULL_OVER_LENGTH_DROP;
    folder->data[1] =
        (struct skrull_dataset){.index = "b.txt", .over_length = SKRULL_OVER_LENGTH_TRUNCATE};
    folder->spec.n_data = 2;
    folder->spec.order = SKRULL_ORDER_SEQUENTIAL;
    folder->spec.epochs = 2;
    job = job_folder_open(folder);
    assert_info(job, (struct skrull_job_info){.sequences = 9,
                                              .tokens = 20 + 22 + 12 + 4000 + 39,
                                              .dropped = 1,
                                              .truncated = 1,
                                              .steps = 2,
                                              .longest = 4000});
    assert_int_equal(job_plan(job, 1, &plan, NULL, NULL), 0);
    assert_int_equal(plan->epoch, 1);
    assert_int_equal(plan->totals.sequences, 8);
    assert_int_equal(plan->totals.tokens, 20 + 22 + 12 + 4000 + 26);
    for (i = 0; i < plan->n_segments; i++) {
        segment = &plan->segments[i];
        assert_in_range(segment->sample, 8, 15);
        assert_int_equal(segment->dataset, expected[segment->sample - 8].dataset);
        assert_int_equal(segment->index, expected[segment->sample - 8].row);
        assert_int_equal(segment->sequence_length, expected[segment->sample - 8].length);
    }
    assert_int_equal(job_check_plan(job, plan, no_fault, NULL, NULL), 0);
    skrull_plan_free(plan);
    job_unref(job);
}

/* What the sampler can give, down to plans of fewer sequences than a batch. */
static void test_job_plan__every_order_and_last_batch(void **state)
{
    static const uint32_t first[][2] = {{30, 90}, {3, 5000}, {7, 700}, {0, 0}};
    static const uint32_t second[][2] = {{8, 1800}, {5, 20}, {0, 0}};
    static const struct {
        enum skrull_order order;
        enum skrull_last_batch last_batch;
        double weights[2];
        uint32_t global;
        uint64_t epochs, steps, expected; /* of 50 kept sequences */
    } cases[] = {
        {SKRULL_ORDER_SORTED, SKRULL_LAST_BATCH_DROP, {0, 0}, 8, 1, 0, 6},
        {SKRULL_ORDER_SHUFFLE, SKRULL_LAST_BATCH_KEEP, {0, 0}, 8, 2, 0, 14},
        {SKRULL_ORDER_SHUFFLE, SKRULL_LAST_BATCH_KEEP, {0, 0}, 49, 1, 0, 2}, /* one of one */
        {SKRULL_ORDER_SEQUENTIAL, SKRULL_LAST_BATCH_KEEP, {0, 0}, 60, 2, 0, 2},
        {SKRULL_ORDER_SORTED, SKRULL_LAST_BATCH_WRAP, {0, 0}, 8, 2, 0, 14},
        {SKRULL_ORDER_SHUFFLE, SKRULL_LAST_BATCH_WRAP, {0, 0}, 120, 2, 0, 2},
        {SKRULL_ORDER_SHUFFLE, SKRULL_LAST_BATCH_DROP, {3, 1}, 16, 0, 9, 9},
        {SKRULL_ORDER_SORTED, SKRULL_LAST_BATCH_DROP, {1, 2}, 100, 0, 3, 3},
    };
    uint8_t digests[16][SKRULL_DIGEST_SIZE];
    struct job_folder *folder = *state;
    struct job *job;
    size_t i;

    job_folder_write(folder, "a.txt", first);
    job_folder_write(folder, "b.txt", second);
    folder->data[1] = (struct skrull_dataset){.index = "b.txt"};
    folder->data[0].over_length = SKRULL_OVER_LENGTH_DROP;
    folder->spec.n_data = 2;
    for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        folder->spec.order = cases[i].order;
        folder->spec.last_batch = cases[i].last_batch;
        folder->data[0].weight = cases[i].weights[0];
        folder->data[1].weight = cases[i].weights[1];
        folder->spec.batch.global = cases[i].global;
        folder->spec.epochs = cases[i].epochs;
        folder->spec.steps = cases[i].steps;
        job = job_folder_open(folder);
        assert_int_equal(job_spec(job)->info.sequences, 50);
        assert_int_equal(job_spec(job)->info.steps, cases[i].expected);
        plan_all(job, digests);
        job_unref(job);
    }
}

/* The short batch has its own totals: loss weights are by its tokens. */
static void test_job_plan__a_short_batch(void **state)
{
    static const uint32_t pairs[][2] = {{10, 100}, {1, 300}, {0, 0}};
    struct job_folder *folder = *state;
    struct skrull_plan *plan = NULL;
    struct job *job;
    size_t i;

    job_folder_write(folder, "a.txt", pairs);
    folder->spec.order = SKRULL_ORDER_SORTED;
    folder->spec.last_batch = SKRULL_LAST_BATCH_KEEP;
    folder->spec.epochs = 2;
    job = job_folder_open(folder);
    assert_int_equal(job_plan(job, 3, &plan, NULL, NULL), 0);
    assert_int_equal(plan->epoch, 1);
    assert_int_equal(plan->totals.sequences, 3);
    assert_int_equal(plan->totals.tokens, 500);
    for (i = 0; i < plan->n_segments; i++) {
        assert_in_range(plan->segments[i].sample, 24, 26); /* step x 8 + place */
        assert_true(plan->segments[i].loss_weight > 0.0019999 &&
                    plan->segments[i].loss_weight < 0.0020001);
    }
    skrull_plan_free(plan);
    job_unref(job);
}

struct planner_thread {
    const struct job *job;
    uint8_t digests[8][SKRULL_DIGEST_SIZE];
    bool has_failed;
};

static void *plan_on_thread(void *arg)
{
    struct planner_thread *self = arg;
    struct skrull_plan *plan;
    uint64_t step, round;

    for (round = 0; round < 5; round++) {
        for (step = 0; step < 8; step++) {
            plan = NULL;
            self->has_failed |= job_plan(self->job, step, &plan, NULL, NULL) != 0;
            if (plan) {
                memcpy(self->digests[step], plan->digest, SKRULL_DIGEST_SIZE);
            }
            skrull_plan_free(plan);
        }
    }
    return NULL;
}

static void test_job_plan__on_many_threads(void **state)
{
    struct job_folder *folder = *state;
    struct planner_thread threads[4];
    uint8_t digests[8][SKRULL_DIGEST_SIZE];
    pthread_t ids[4];
    struct job *job;
    size_t i;

    job_folder_write(folder, "a.txt", fitting);
    job = job_folder_open(folder);
    plan_all(job, digests);
    for (i = 0; i < 4; i++) {
        threads[i] = (struct planner_thread){.job = job_ref(job)};
        assert_int_equal(pthread_create(&ids[i], NULL, plan_on_thread, &threads[i]), 0);
    }
    for (i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(ids[i], NULL), 0);
        assert_false(threads[i].has_failed);
        assert_memory_equal(threads[i].digests, digests, sizeof(digests));
        job_unref(job);
    }
    job_unref(job);
}

static void test_job_unref__null(void **state)
{
    (void)state;
    job_unref(NULL);
}

#define WITH_FOLDER(test)                                                                          \
    cmocka_unit_test_setup_teardown(test, job_folder_setup, job_folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_job_open__over_length_rejected),
        WITH_FOLDER(test_job_open__over_length_dropped),
        WITH_FOLDER(test_job_open__over_length_truncated),
        WITH_FOLDER(test_job_open__all_dropped),
        WITH_FOLDER(test_job_open__too_few_sequences),
        WITH_FOLDER(test_job_open__steps),
        WITH_FOLDER(test_job_open__refused),
        WITH_FOLDER(test_job_open__too_few_micro_batches),
        WITH_FOLDER(test_job_open__policy_decides_the_limit),
        WITH_FOLDER(test_job_open__own_copy_of_the_spec),
        WITH_FOLDER(test_job_open__with_its_own_info),
        WITH_FOLDER(test_job_open__with_other_info),
        WITH_FOLDER(test_job_plan__sound_by_every_policy),
        WITH_FOLDER(test_job_plan_by__another_policy),
        WITH_FOLDER(test_job_plan__past_the_last_step),
        WITH_FOLDER(test_job_plan__several_data_sets),
        WITH_FOLDER(test_job_plan__every_order_and_last_batch),
        WITH_FOLDER(test_job_plan__a_short_batch),
        WITH_FOLDER(test_job_plan__on_many_threads),
        cmocka_unit_test(test_job_unref__null),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
