/* Jobs of several revisions: the same samples in the same order, whatever else changes. */
#include "job/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arena.h"
#include "job/revise.h"
#include "plan_check.h"
#include "unit/job/job_folder.h"

#define MAX_SAMPLES 1024
#define MAX_STEPS 64

static const uint32_t lengths[][2] = {{61, 90},  {20, 700}, {15, 1800}, {7, 3500},
                                      {1, 4000}, {4, 6000}, {0, 0}};
#define N_SEQUENCES 104 /* of those that are kept */

/* What a job's plans say. */
struct record {
    uint64_t steps, n_samples;
    bool is_seen[MAX_SAMPLES];
    uint64_t rows[MAX_SAMPLES]; /* by sample */
    uint32_t lengths[MAX_SAMPLES];
    uint8_t digests[MAX_STEPS][SKRULL_DIGEST_SIZE];
    uint32_t ranks[MAX_STEPS], revisions[MAX_STEPS];
    uint64_t epochs[MAX_STEPS];
};

static void no_fault(void *arg, const char *message)
{
    (void)arg;
    fail_msg("%s", message);
}

/* All plans from `from_step` on; each is sound, and each sample has one row. */
static void record_from(const struct job *job, uint64_t from_step, struct record *record)
{
    memset(record, 0, sizeof(*record));
    record->steps = job_spec(job)->info.steps;
    assert_true(record->steps <= MAX_STEPS);
    for (uint64_t step = from_step; step < record->steps; step++) {
        struct skrull_error err = {0};
        struct skrull_plan *plan = NULL;

        if (job_plan(job, step, &plan, NULL, &err)) {
            fail_msg("step %u: %s", (unsigned)step, err.message);
        }
        assert_int_equal(job_check_plan(job, plan, no_fault, NULL, NULL), 0);
        memcpy(record->digests[step], plan->digest, SKRULL_DIGEST_SIZE);
        record->ranks[step] = (uint32_t)plan->n_ranks;
        record->revisions[step] = plan->revision;
        record->epochs[step] = plan->epoch;
        for (size_t i = 0; i < plan->n_segments; i++) {
            const struct skrull_segment *segment = &plan->segments[i];

            assert_true(segment->sample < MAX_SAMPLES);
            if (record->is_seen[segment->sample]) {
                assert_int_equal(record->rows[segment->sample], segment->index);
                continue;
            }
            record->is_seen[segment->sample] = true;
            record->n_samples++;
            record->rows[segment->sample] = segment->index;
            record->lengths[segment->sample] = segment->sequence_length;
        }
        skrull_plan_free(plan);
    }
}

static struct job *open_job(struct job_folder *folder)
{
    job_folder_write(folder, "a.txt", lengths);
    folder->data[0].over_length = SKRULL_OVER_LENGTH_DROP;
    return job_folder_open(folder);
}

/* A revision from `from_step` on by what is set in `update`; unrefs the old one. */
static struct job *revise(struct job *old, const struct skrull_job *update, uint64_t from_step)
{
    const struct revise_request request = {.job = update, .floor = from_step};
    struct arena *arena = arena_new(1 << 20);
    struct skrull_error err = {0};
    struct skrull_job *spec = NULL;
    struct job *job = NULL;

    if (revise_spec(arena, job_spec(old), &request, &spec, &err) ||
        job_revise(old, spec, &job, &err)) {
        fail_msg("%s", err.message);
    }
    arena_free(arena);
    job_unref(old);
    return job;
}

static void refuse(struct job *old, const struct skrull_job *update, uint64_t from_step,
                   const char *says)
{
    const struct revise_request request = {.job = update, .floor = from_step};
    struct arena *arena = arena_new(1 << 20);
    struct skrull_error err = {0};
    struct skrull_job *spec = NULL;
    struct job *job = NULL;

    assert_int_equal(revise_spec(arena, job_spec(old), &request, &spec, &err), 0);
    assert_int_equal(job_revise(old, spec, &job, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_null(job);
    if (!strstr(err.message, says)) {
        fail_msg("expected '%s', got: %s", says, err.message);
    }
    arena_free(arena);
}

/* All revisions of a job as a store holds them, opened anew. */
static struct job *reopen(const struct job *job, const struct job_roots *roots)
{
    const struct skrull_job *specs[8];
    struct skrull_error err = {0};
    struct job *again = NULL;
    uint64_t first_step;

    assert_true(job_n_revisions(job) <= 8);
    for (uint32_t i = 0; i < job_n_revisions(job); i++) {
        specs[i] = job_revision_at(job, i, &first_step);
    }
    if (job_open_all(specs, job_n_revisions(job), roots, &again, &err)) {
        fail_msg("%s", err.message);
    }
    return again;
}

/* The list of samples is the same: (row, length) by sample, epochs by step where batches are. */
static void assert_same_samples(const struct record *a, const struct record *b, uint64_t n)
{
    assert_true(a->n_samples >= n && b->n_samples >= n);
    for (uint64_t i = 0; i < n; i++) {
        assert_true(a->is_seen[i] && b->is_seen[i]);
        assert_int_equal(a->rows[i], b->rows[i]);
        assert_int_equal(a->lengths[i], b->lengths[i]);
    }
}

static struct record before, after, again;

static void test_job_revise__other_ranks_same_samples(void **state)
{
    static const struct {
        uint32_t dp, cp;
        enum skrull_cp_mode mode;
    } grids[] = {{4, 4, SKRULL_CP_MODE_FIXED},
                 {1, 8, SKRULL_CP_MODE_FIXED},
                 {3, 4, SKRULL_CP_MODE_FIXED},
                 {1, 5, SKRULL_CP_MODE_FIXED}};
    struct job_folder *folder = *state;
    struct job *job;
    uint64_t x = 5;

    folder->spec.epochs = 2;
    job = open_job(folder);
    record_from(job, 0, &before);
    assert_int_equal(before.steps, 26);
    assert_int_equal(before.n_samples, 208);
    for (size_t i = 0; i < sizeof(grids) / sizeof(grids[0]); i++, x += 5) {
        const struct skrull_job update = {
            .parallel = {.dp = grids[i].dp, .cp = grids[i].cp, .cp_mode = grids[i].mode},
            .policy = i % 2 ? "skrull" : "uniform"};

        job = revise(job, &update, x);
        assert_int_equal(job_spec(job)->info.steps, 26);
    }
    record_from(job, 0, &after);
    assert_same_samples(&before, &after, 208);
    assert_memory_equal(before.epochs, after.epochs, sizeof(before.epochs));
    for (uint64_t step = 0; step < 26; step++) {
        const uint64_t i = step / 5; /* which grid, from 1; 0 is the first one */

        assert_int_equal(after.revisions[step], (i < 4 ? i : 4) + 1);
        assert_int_equal(after.ranks[step],
                         i == 0 ? 8
                                : grids[(i < 4 ? i : 4) - 1].dp * grids[(i < 4 ? i : 4) - 1].cp);
        /* What was given out stays as it was. */
        assert_true(step >= 5 ||
                    memcmp(before.digests[step], after.digests[step], SKRULL_DIGEST_SIZE) == 0);
    }
    job_unref(job);
}

/* Each sample once and in order also where the batch changes, in the middle of an epoch. */
static void test_job_revise__another_batch(void **state)
{
    static const uint32_t batches[] = {5, 13, 16, 2};
    struct job_folder *folder = *state;
    struct job *plain, *job;
    uint64_t x = 3;

    folder->spec.batch.global = 1;
    folder->spec.epochs = 2;
    plain = open_job(folder);
    folder->spec.batch.global = 4;
    folder->spec.last_batch = SKRULL_LAST_BATCH_DROP;
    job = job_folder_open(folder);
    for (size_t i = 0; i < 4; i++, x += 3) {
        job = revise(job, &(struct skrull_job){.batch.global = batches[i]}, x);
    }
    record_from(job, 0, &after); /* 3 x 4, 3 x 5, 3 x 13 and 3 x 16 lie 114 > 104 */
    for (uint64_t sample = 0; sample < 12 + 15 + 39 + 32;
         sample++) { /* until the epoch's last 16 */
        struct skrull_plan *plan = NULL;

        assert_true(after.is_seen[sample]);
        assert_int_equal(job_plan(plain, sample, &plan, NULL, NULL), 0);
        assert_int_equal(plan->segments[0].index, after.rows[sample]);
        skrull_plan_free(plan);
    }
    assert_int_equal(after.epochs[10], 0); /* 98 of the first */
    assert_int_equal(after.epochs[11], 1); /* the 6 that are left give no batch of 16 */
    assert_int_equal(after.n_samples, 12 + 15 + 39 + 48 + (after.steps - 12) * 2);
    assert_int_equal(after.steps, 12 + (104 - 16) / 2);
    job_unref(plain);
    job_unref(job);
}

/* A restart reads all revisions, a client the newest only. */
static void test_job_open_all__gives_the_same_plans(void **state)
{
    struct job_folder *folder = *state;
    struct skrull_error err = {0};
    struct skrull_plan *plan = NULL;
    struct job *job, *other = NULL;

    folder->spec.epochs = 2;
    folder->spec.last_batch = SKRULL_LAST_BATCH_KEEP;
    job = open_job(folder);
    job = revise(job, &(struct skrull_job){.parallel.dp = 3, .batch.global = 10}, 4);
    job = revise(job, &(struct skrull_job){.parallel.dp = 1, .batch.bucket_tokens = 1500}, 9);
    job = revise(job, &(struct skrull_job){.parallel.dp = 5}, 9); /* the one before never held */
    record_from(job, 0, &before);
    other = reopen(job, &folder->roots);
    record_from(other, 0, &again);
    assert_memory_equal(&before, &again, sizeof(before));
    assert_int_equal(again.revisions[8], 2);
    assert_int_equal(again.revisions[9], 4);
    job_unref(other);
    assert_int_equal(job_open(job_spec(job), &folder->roots, &other, &err), 0);
    record_from(other, 9, &again);
    for (uint64_t step = 9; step < before.steps; step++) {
        assert_memory_equal(before.digests[step], again.digests[step], SKRULL_DIGEST_SIZE);
    }
    assert_int_equal(job_plan(other, 8, &plan, NULL, &err), SKRULL_ERR_FAILED_PRECONDITION);
    assert_non_null(strstr(err.message, "step 8 is of a revision before 4"));
    assert_null(job_spec_at(other, 8));
    job_unref(other);
    job_unref(job);
}

static void test_job_spec_at__and_its_end(void **state)
{
    struct job_folder *folder = *state;
    struct job *job;
    uint64_t first_step = 99;

    job = open_job(folder);
    assert_int_equal(job_spec_end(job, 0), 13);
    job = revise(job, &(struct skrull_job){.parallel.dp = 3}, 4);
    job = revise(job, &(struct skrull_job){.parallel.dp = 4}, 9);
    job = revise(job, &(struct skrull_job){.parallel.dp = 5}, 9);
    assert_int_equal(job_n_revisions(job), 4);
    assert_int_equal(job_revision_at(job, 2, &first_step)->parallel.dp, 4);
    assert_int_equal(first_step, 9);
    assert_int_equal(job_spec_at(job, 3)->parallel.dp, 2);
    assert_int_equal(job_spec_end(job, 3), 4);
    assert_int_equal(job_spec_at(job, 4)->parallel.dp, 3);
    assert_int_equal(job_spec_end(job, 4), 9);
    assert_int_equal(job_spec_at(job, 9)->parallel.dp, 5);
    assert_int_equal(job_spec_end(job, 9), 13);
    assert_int_equal(job_spec_at(job, 13)->parallel.dp, 5);
    assert_int_equal(job_spec_end(job, 13), 13);
    job = revise(job, &(struct skrull_job){.parallel.dp = 6}, 13); /* for when steps are raised */
    assert_int_equal(job_spec_at(job, 12)->parallel.dp, 5);
    assert_int_equal(job_spec_end(job, 12), 13);
    job_unref(job);
}

static void test_job_revise__more_or_fewer_steps(void **state)
{
    struct job_folder *folder = *state;
    struct job *job;

    folder->spec.epochs = 2;
    job = open_job(folder);
    record_from(job, 0, &before);
    job = revise(job, &(struct skrull_job){.epochs = 3}, 10);
    assert_int_equal(job_spec(job)->info.steps, 39);
    job = revise(job, &(struct skrull_job){.steps = 12}, 10);
    assert_int_equal(job_spec(job)->info.steps, 12);
    job = revise(job, &(struct skrull_job){.steps = 26}, 12);
    record_from(job, 0, &after);
    assert_int_equal(after.steps, 26);
    assert_memory_equal(before.digests, after.digests, sizeof(before.digests));
    job_unref(job);
}

static void test_job_revise__the_limit_of_creation_stays(void **state)
{
    struct job_folder *folder = *state;
    struct job *job, *other;

    job_folder_write(folder, "a.txt", lengths);
    folder->data[0].over_length = SKRULL_OVER_LENGTH_TRUNCATE;
    job = job_folder_open(folder);
    assert_int_equal(job_spec(job)->info.limit, FOLDER_LIMIT);
    assert_int_equal(job_spec(job)->info.truncated, 4);
    refuse(job, &(struct skrull_job){.batch.bucket_tokens = 999}, 5,
           "the longest sequence kept has 4000 tokens, but 999 with cp 4 and policy joint hold at "
           "most 3992");
    refuse(job, &(struct skrull_job){.parallel.cp = 3}, 5, "choose a larger batch.bucket_tokens");
    job = revise(job, &(struct skrull_job){.batch.bucket_tokens = 3000}, 5);
    assert_int_equal(job_spec(job)->info.limit, FOLDER_LIMIT);
    assert_int_equal(job_spec(job)->info.truncated, 4); /* 6,000 would fit now */
    assert_int_equal(job_spec(job)->info.longest, FOLDER_LIMIT);
    assert_int_equal(job_spec(job)->info.bucket_tokens, 3000);
    other = reopen(job, &folder->roots);
    assert_int_equal(job_spec(other)->info.truncated, 4);
    record_from(other, 0, &before);
    job_unref(other);
    job_unref(job);
}

static void test_job_revise__settings_that_contradict(void **state)
{
    struct job_folder *folder = *state;
    struct job *job = open_job(folder);

    refuse(job, &(struct skrull_job){.policy = "magic"}, 5, "unknown policy magic");
    refuse(job, &(struct skrull_job){.model.preset = "gpt-17"}, 5, "gpt-17");
    refuse(job, &(struct skrull_job){.batch.global = 200}, 5, "104 sequences are fewer than");
    job_unref(job);
}

static void test_job_revise__an_index_that_changed(void **state)
{
    static const uint32_t others[][2] = {{10, 50}, {0, 0}};
    struct job_folder *folder = *state;
    struct job *job = open_job(folder), *next = NULL;
    struct arena *arena = arena_new(1 << 20);
    struct skrull_job *spec;
    const struct skrull_job update = {.parallel.dp = 3};
    const struct revise_request request = {.job = &update, .floor = 5};

    assert_int_equal(revise_spec(arena, job_spec(job), &request, &spec, NULL), 0);
    job_folder_write(folder, "a.txt", others);
    assert_int_equal(job_revise(job, spec, &next, NULL), SKRULL_ERR_FAILED_PRECONDITION);
    assert_null(next);
    arena_free(arena);
    job_unref(job);
}

/* Lists of revisions that no daemon made. */
static void test_job_open_all__refuses(void **state)
{
    struct job_folder *folder = *state;
    struct job *job = open_job(folder), *other = NULL;
    const struct skrull_job *specs[2];
    struct skrull_revision_info list[2], good[2];
    struct skrull_job bad;
    uint64_t first_step;

    job = revise(job, &(struct skrull_job){.parallel.dp = 3}, 4);
    specs[0] = job_revision_at(job, 0, &first_step);
    bad = *job_spec(job);
    specs[1] = &bad;
    memcpy(good, bad.info.revisions, sizeof(good));
    bad.info.revisions = list;
    for (int i = 0; i < 9; i++) {
        memcpy(list, good, sizeof(list));
        bad.info.n_revisions = 2;
        list[0].first_step = i == 0 ? 5 : 0;
        list[0].revision = i == 1 ? 2 : 1;
        list[0].global = i == 2 ? 0 : i == 3 ? 7 : 8;
        list[1].first_step = 4;
        list[1].global = i == 4 ? 9 : 8;
        list[1].revision = i == 5 ? 3 : 2;
        bad.info.n_revisions = i == 6 ? 1 : i == 7 ? 0 : 2;
        bad.revision = i == 8 ? 3 : 2;
        print_message("# case %d\n", i);
        assert_int_equal(job_open_all(specs, 2, &folder->roots, &other, NULL),
                         SKRULL_ERR_INVALID_ARGUMENT);
        assert_null(other);
    }
    job_unref(job);
}

#define WITH_FOLDER(test)                                                                          \
    cmocka_unit_test_setup_teardown(test, job_folder_setup, job_folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_job_revise__other_ranks_same_samples),
        WITH_FOLDER(test_job_revise__another_batch),
        WITH_FOLDER(test_job_open_all__gives_the_same_plans),
        WITH_FOLDER(test_job_spec_at__and_its_end),
        WITH_FOLDER(test_job_revise__more_or_fewer_steps),
        WITH_FOLDER(test_job_revise__the_limit_of_creation_stays),
        WITH_FOLDER(test_job_revise__settings_that_contradict),
        WITH_FOLDER(test_job_revise__an_index_that_changed),
        WITH_FOLDER(test_job_open_all__refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
