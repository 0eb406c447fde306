/* Reported faults (plan/reports.h) that are the job's or the sampler's: what an epoch holds, and
 * what a step is, whoever asks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "job/job.h"
#include "unit/job/job_folder.h"

#define MAX_ROWS 64

static struct skrull_plan *plan_step(const struct job *job, uint64_t step)
{
    struct skrull_plan *plan = NULL;
    struct skrull_error err = {0};

    if (job_plan(job, step, &plan, NULL, &err)) {
        fail_msg("%s", err.message);
    }
    return plan;
}

/* Marks the rows of a step: each sequence once, as its first segment has it. */
static void count_rows(const struct job *job, uint64_t step, uint32_t counts[MAX_ROWS])
{
    struct skrull_plan *plan = plan_step(job, step);

    for (size_t i = 0; i < plan->n_segments; i++) {
        const struct skrull_segment *segment = &plan->segments[i];

        assert_true(segment->index < MAX_ROWS);
        counts[segment->index] += segment->token_begin == 0 && segment->token_end > 0;
    }
    skrull_plan_free(plan);
}

/* Counts how often each row is used in all steps of the job. */
static void audit(const struct job *job, uint32_t counts[MAX_ROWS])
{
    memset(counts, 0, MAX_ROWS * sizeof(counts[0]));
    for (uint64_t step = 0; step < job_spec(job)->info.steps; step++) {
        count_rows(job, step, counts);
    }
}

static void write_lengths(const struct job_folder *folder, const uint32_t *lengths, size_t n)
{
    uint32_t pairs[MAX_ROWS + 1][2] = {{0}};

    assert_true(n <= MAX_ROWS);
    for (size_t i = 0; i < n; i++) {
        pairs[i][0] = 1;
        pairs[i][1] = lengths[i];
    }
    job_folder_write(folder, "a.txt", (const uint32_t(*)[2])pairs);
}

/* [1, 2, 3, 4, 5] under 100 tokens lost its last sample; ten samples lost the tenth. */
static void test_R25__every_sample_of_an_epoch_is_used_once(void **state)
{
    static const uint32_t lengths[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    static const struct {
        uint32_t n, batch, bucket;
    } rows[] = {{5, 5, 100}, {5, 1, 100}, {10, 10, 10}, {10, 5, 10}, {10, 2, 10}, {10, 1, 10}};
    struct job_folder *folder = *state;
    uint32_t counts[MAX_ROWS];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (uint64_t seed = 0; seed < 5; seed++) {
            struct job *job;

            write_lengths(folder, lengths, rows[i].n);
            folder->spec.parallel.dp = 2;
            folder->spec.parallel.cp = 1;
            folder->spec.batch.global = rows[i].batch;
            folder->spec.batch.bucket_tokens = rows[i].bucket;
            folder->spec.seed = seed;
            folder->spec.epochs = 3;
            job = job_folder_open(folder);
            audit(job, counts);
            for (uint32_t row = 0; row < rows[i].n; row++) {
                assert_int_equal(counts[row], 3);
            }
            job_unref(job);
        }
    }
}

/* Where the batch does not divide them, the rest is a batch of its own if the job keeps it. */
static void test_R25__the_rest_of_an_epoch_is_used_where_it_is_kept(void **state)
{
    static const uint32_t lengths[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    static const struct {
        uint32_t n, batch;
        uint64_t steps;
    } rows[] = {{5, 2, 3}, {5, 4, 2}, {10, 4, 3}, {10, 3, 4}};
    struct job_folder *folder = *state;
    uint32_t counts[MAX_ROWS];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct job *job;

        write_lengths(folder, lengths, rows[i].n);
        folder->spec.parallel.dp = 2;
        folder->spec.parallel.cp = 1;
        folder->spec.batch.global = rows[i].batch;
        folder->spec.batch.bucket_tokens = 100;
        folder->spec.last_batch = SKRULL_LAST_BATCH_KEEP;
        job = job_folder_open(folder);
        assert_int_equal(job_spec(job)->info.steps, rows[i].steps);
        audit(job, counts);
        for (uint32_t row = 0; row < rows[i].n; row++) {
            assert_int_equal(counts[row], 1);
        }
        job_unref(job);
    }
}

/* No pass over the epoch: the last step first is what it is after all others. */
static void test_R28__any_step_is_planned_on_its_own(void **state)
{
    static const uint32_t pairs[][2] = {{40, 90}, {16, 700}, {8, 3500}, {0, 0}};
    struct job_folder *folder = *state;
    uint8_t first[SKRULL_DIGEST_SIZE];
    struct skrull_plan *plan;
    struct job *job;

    job_folder_write(folder, "a.txt", pairs);
    job = job_folder_open(folder);
    assert_int_equal(job_spec(job)->info.steps, 8);
    plan = plan_step(job, 7);
    memcpy(first, plan->digest, sizeof(first));
    skrull_plan_free(plan);
    for (uint64_t step = 0; step < 7; step++) {
        skrull_plan_free(plan_step(job, step));
    }
    plan = plan_step(job, 7);
    assert_memory_equal(plan->digest, first, sizeof(first));
    skrull_plan_free(plan);
    job_unref(job);
}

/* 16 samples: one worker takes 0 to 3 and stops, two go on with 4 to 7. */
static void test_R29__two_workers_resume_where_one_stopped(void **state)
{
    static const uint32_t pairs[][2] = {{16, 100}, {0, 0}};
    struct job_folder *folder = *state;
    uint32_t counts[MAX_ROWS] = {0};
    struct job *job;

    job_folder_write(folder, "a.txt", pairs);
    folder->spec.batch.global = 4;
    folder->spec.order = SKRULL_ORDER_SEQUENTIAL;
    folder->spec.parallel.dp = 1;
    job = job_folder_open(folder);
    count_rows(job, 0, counts);
    job_unref(job);
    folder->spec.parallel.dp = 2;
    job = job_folder_open(folder);
    count_rows(job, 1, counts);
    job_unref(job);
    for (uint32_t row = 0; row < 16; row++) {
        assert_int_equal(counts[row], row < 8);
    }
}

/* The rows of each step, shuffled, are those of any other grid, bucket and policy. */
static void test_R29__a_step_holds_the_same_rows_on_any_grid(void **state)
{
    static const uint32_t grids[][2] = {{1, 1}, {2, 4}, {3, 5}, {8, 1}, {1, 7}};
    static const uint32_t pairs[][2] = {{30, 90}, {20, 300}, {10, 700}, {0, 0}};
    struct job_folder *folder = *state;
    uint32_t wanted[10][MAX_ROWS] = {{0}}, got[10][MAX_ROWS];

    job_folder_write(folder, "a.txt", pairs);
    for (size_t i = 0; i < sizeof(grids) / sizeof(grids[0]); i++) {
        struct job *job;

        folder->spec.batch.global = 6;
        folder->spec.seed = 99;
        folder->spec.parallel.dp = grids[i][0];
        folder->spec.parallel.cp = grids[i][1];
        job = job_folder_open(folder);
        assert_int_equal(job_spec(job)->info.steps, 10);
        memset(got, 0, sizeof(got));
        for (uint64_t step = 0; step < 10; step++) {
            count_rows(job, step, got[step]);
        }
        if (i == 0) {
            memcpy(wanted, got, sizeof(got));
        }
        assert_memory_equal(got, wanted, sizeof(got));
        job_unref(job);
    }
}

/* A limit of 4,096 on one rank, answers of up to 8,192: each choice is stated and counted. */
static void test_R6__over_long_is_a_choice_of_the_job(void **state)
{
    static const uint32_t pairs[][2] = {{8, 400}, {4, 4096}, {3, 4097}, {1, 8592}, {0, 0}};
    struct job_folder *folder = *state;
    struct job *job;

    job_folder_write(folder, "a.txt", pairs);
    folder->spec.parallel.dp = 1;
    folder->spec.parallel.cp = 1;
    folder->spec.batch.bucket_tokens = 4096;
    folder->spec.batch.global = 4;
    job_folder_expect_refused(folder, SKRULL_ERR_INVALID_ARGUMENT, "longer than 4096 tokens");
    folder->data[0].over_length = SKRULL_OVER_LENGTH_DROP;
    job = job_folder_open(folder);
    assert_int_equal(job_spec(job)->info.dropped, 4);
    assert_int_equal(job_spec(job)->info.sequences, 12);
    job_unref(job);
    folder->data[0].over_length = SKRULL_OVER_LENGTH_TRUNCATE;
    job = job_folder_open(folder);
    assert_int_equal(job_spec(job)->info.truncated, 4);
    assert_int_equal(job_spec(job)->info.longest, 4096);
    job_unref(job);
}

static void test_R44__long_samples_do_not_vanish_silently(void **state)
{
    static const uint32_t pairs[][2] = {{12, 100}, {3, 5000}, {1, 7777}, {0, 0}};
    struct job_folder *folder = *state;
    struct job *job;

    job_folder_write(folder, "a.txt", pairs);
    job_folder_expect_refused(folder, SKRULL_ERR_INVALID_ARGUMENT, "4 of the 16 sequences");
    job_folder_expect_refused(folder, SKRULL_ERR_INVALID_ARGUMENT, "7777");
    folder->data[0].over_length = SKRULL_OVER_LENGTH_DROP;
    job = job_folder_open(folder);
    assert_int_equal(job_spec(job)->info.dropped, 4);
    job_unref(job);
}

/* Who wants the last batch full says so, and only then are samples used twice: as few as fill it.
 */
static void test_R44__the_tail_repeats_where_it_is_wrapped(void **state)
{
    static const uint32_t pairs[][2] = {{10, 100}, {0, 0}};
    struct job_folder *folder = *state;
    uint32_t counts[MAX_ROWS], twice = 0;
    struct job *job;

    job_folder_write(folder, "a.txt", pairs);
    folder->spec.batch.global = 4;
    folder->spec.last_batch = SKRULL_LAST_BATCH_WRAP;
    job = job_folder_open(folder);
    assert_int_equal(job_spec(job)->info.steps, 3);
    audit(job, counts);
    for (uint32_t row = 0; row < 10; row++) {
        assert_in_range(counts[row], 1, 2);
        twice += counts[row] == 2;
    }
    assert_int_equal(twice, 2);
    job_unref(job);
}

/* Ten samples in batches of four: two steps an epoch, and no sample twice to fill up a third. */
static void test_R44__the_tail_of_an_epoch_repeats_nothing(void **state)
{
    static const uint32_t pairs[][2] = {{10, 100}, {0, 0}};
    struct job_folder *folder = *state;
    uint32_t counts[MAX_ROWS];
    struct job *job;

    job_folder_write(folder, "a.txt", pairs);
    folder->spec.batch.global = 4;
    folder->spec.epochs = 2;
    job = job_folder_open(folder);
    assert_int_equal(job_spec(job)->info.steps, 4);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        uint32_t used = 0;

        memset(counts, 0, sizeof(counts));
        count_rows(job, 2 * epoch, counts);
        count_rows(job, 2 * epoch + 1, counts);
        for (uint32_t row = 0; row < 10; row++) {
            assert_in_range(counts[row], 0, 1);
            used += counts[row];
        }
        assert_int_equal(used, 8);
    }
    job_unref(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_R25__every_sample_of_an_epoch_is_used_once,
                                        job_folder_setup, job_folder_teardown),
        cmocka_unit_test_setup_teardown(test_R25__the_rest_of_an_epoch_is_used_where_it_is_kept,
                                        job_folder_setup, job_folder_teardown),
        cmocka_unit_test_setup_teardown(test_R44__the_tail_repeats_where_it_is_wrapped,
                                        job_folder_setup, job_folder_teardown),
        cmocka_unit_test_setup_teardown(test_R28__any_step_is_planned_on_its_own, job_folder_setup,
                                        job_folder_teardown),
        cmocka_unit_test_setup_teardown(test_R29__two_workers_resume_where_one_stopped,
                                        job_folder_setup, job_folder_teardown),
        cmocka_unit_test_setup_teardown(test_R29__a_step_holds_the_same_rows_on_any_grid,
                                        job_folder_setup, job_folder_teardown),
        cmocka_unit_test_setup_teardown(test_R6__over_long_is_a_choice_of_the_job, job_folder_setup,
                                        job_folder_teardown),
        cmocka_unit_test_setup_teardown(test_R44__long_samples_do_not_vanish_silently,
                                        job_folder_setup, job_folder_teardown),
        cmocka_unit_test_setup_teardown(test_R44__the_tail_of_an_epoch_repeats_nothing,
                                        job_folder_setup, job_folder_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
