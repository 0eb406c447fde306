/*
 * What the steps of a job are, whatever its data, order, last batch, grid and policy: held on
 * random jobs over indexes in a folder. Every plan of a job passes the checker; from the plans
 * alone the rows are audited: which were used, how often, in which order, and that a job on another
 * grid by another policy uses the same.
 *
 * usage: test_jobs [ROUNDS]
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <skrull/planner.h>

#include "job/job.h"
#include "property/random_case.h"
#include "unit/job/job_folder.h"

#define MAX_DATA 3
#define MAX_ROWS 120
#define MAX_STEPS 200
#define MAX_BATCH 64
#define CEIL_DIV(a, b) (((a) + (b)-1) / (b))

struct row {
    uint32_t dataset, row, length;
};

struct random_job {
    uint64_t state, round;
    struct job_folder *folder;
    uint32_t lengths[MAX_DATA][MAX_ROWS], n_rows[MAX_DATA];
    /* What an epoch holds, in the file's order, after over-long rows were dropped or cut. */
    struct row kept[MAX_DATA * MAX_ROWS];
    uint32_t n_kept;
    struct row samples[MAX_STEPS * MAX_BATCH]; /* [n_samples] found in plans, by sample */
    uint64_t n_samples;
};

static struct random_rounds rounds;

static void fail_job(const struct random_job *random, const char *what)
{
    const struct skrull_job *spec = &random->folder->spec;

    print_message("# SKRULL_SEED=%" PRIu64 " SKRULL_ROUND=%" PRIu64 "\n", rounds.seed,
                  random->round);
    print_message("# %u data sets of %u, %u, %u rows, order %d, last_batch %d, global %u, epochs "
                  "%" PRIu64 ", steps %" PRIu64 ", seed %" PRIu64 "\n",
                  spec->n_data, random->n_rows[0], random->n_rows[1], random->n_rows[2],
                  (int)spec->order, (int)spec->last_batch, spec->batch.global, spec->epochs,
                  spec->steps, spec->seed);
    print_message("# dp %u, cp %u, bucket_tokens %u, align %u, policy %s\n", spec->parallel.dp,
                  spec->parallel.cp, spec->batch.bucket_tokens, spec->batch.align, spec->policy);
    fail_msg("%s", what);
}

static void choose_rows(struct random_job *random)
{
    struct skrull_job *spec = &random->folder->spec;

    spec->n_data = 1 + random_below(&random->state, MAX_DATA);
    for (uint32_t d = 0; d < spec->n_data; d++) {
        static const char *const names[] = {"a.txt", "b.txt", "c.txt"};
        uint32_t pairs[MAX_ROWS + 1][2] = {{0}};

        random->n_rows[d] = 1 + random_below(&random->state, MAX_ROWS);
        for (uint32_t i = 0; i < random->n_rows[d]; i++) {
            random->lengths[d][i] = random_magnitude(&random->state, 5000);
            pairs[i][0] = 1;
            pairs[i][1] = random->lengths[d][i];
        }
        job_folder_write(random->folder, names[d], (const uint32_t(*)[2])pairs);
        random->folder->data[d] = (struct skrull_dataset){
            .index = names[d], .over_length = 2 + random_below(&random->state, 2)};
    }
}

/* A grid, a bucket and a policy; all of them leave the rows as they are: 1,250 tokens on each of at
 * least four ranks hold the longest. */
static void choose_grid(struct random_job *random)
{
    static const uint32_t cps[] = {4, 5, 6, 7, 8, 12};
    struct skrull_job *spec = &random->folder->spec;
    uint32_t n_policies = 0;

    while (skrull_planner_policies()[n_policies]) {
        n_policies++;
    }
    spec->policy = skrull_planner_policies()[random_below(&random->state, n_policies)];
    spec->hardware.profile = random_below(&random->state, 2) ? "h100-nodes" : NULL;
    spec->parallel.tp = 1 + random_below(&random->state, 8);
    spec->parallel.pp = 1 + random_below(&random->state, 3);
    spec->parallel.dp = 1 + random_below(&random->state, 4);
    spec->parallel.cp = cps[random_below(&random->state, 6)];
    spec->batch.bucket_tokens = 1300 + random_below(&random->state, 3000);
    spec->batch.align = 1 + random_below(&random->state, 8);
    spec->batch.shard = 1 + random_below(&random->state, 2);
    spec->batch.equal_micro_batches = 1 + random_below(&random->state, 3);
    spec->batch.micro_batch_order = 1 + random_below(&random->state, 3);
    spec->batch.mix = 1 + random_below(&random->state, 2);
    spec->loss = 1 + random_below(&random->state, 3);
}

/* A limit that some rows are above. */
static void limit_length(struct random_job *random)
{
    struct skrull_job *spec = &random->folder->spec;

    spec->parallel.dp = 1;
    spec->parallel.cp = 4;
    spec->batch.bucket_tokens = 500; /* 2,000 tokens */
    spec->batch.align = 1;
    spec->policy = "skrull";
}

static void keep_rows(struct random_job *random, uint32_t limit)
{
    const struct skrull_job *spec = &random->folder->spec;

    random->n_kept = 0;
    for (uint32_t d = 0; d < spec->n_data; d++) {
        for (uint32_t i = 0; i < random->n_rows[d]; i++) {
            uint32_t length = random->lengths[d][i];

            if (length > limit && spec->data[d].over_length == SKRULL_OVER_LENGTH_DROP) {
                continue;
            }
            length = length < limit ? length : limit;
            random->kept[random->n_kept++] = (struct row){.dataset = d, .row = i, .length = length};
        }
    }
}

/* One of the orders, last batches and lengths of a job that fit in MAX_STEPS. */
static void choose_steps(struct random_job *random)
{
    struct skrull_job *spec = &random->folder->spec;
    uint32_t most = MAX_BATCH < random->n_kept ? MAX_BATCH : random->n_kept;

    spec->order = 1 + random_below(&random->state, 3);
    spec->last_batch = 1 + random_below(&random->state, 3);
    if (spec->last_batch == SKRULL_LAST_BATCH_WRAP && random_below(&random->state, 4) == 0) {
        most = MAX_BATCH; /* several times around in one batch */
    }
    spec->batch.global = random_magnitude(&random->state, most);
    spec->seed = random_below(&random->state, 1000);
    spec->epochs = 0;
    spec->steps = 0;
    if (random_below(&random->state, 2)) {
        spec->steps = random_magnitude(&random->state, MAX_STEPS);
    } else {
        const uint32_t per_epoch = CEIL_DIV(random->n_kept, spec->batch.global);

        spec->epochs = 1 + random_below(&random->state, 4);
        if (per_epoch * spec->epochs > MAX_STEPS) {
            spec->epochs = 1;
        }
        if (per_epoch > MAX_STEPS) {
            spec->batch.global = CEIL_DIV(random->n_kept, MAX_STEPS);
        }
    }
}

struct first_fault {
    char message[160];
};

static void keep_first(void *arg, const char *message)
{
    struct first_fault *fault = arg;

    if (!fault->message[0]) {
        strncat(fault->message, message, sizeof(fault->message) - 1);
    }
}

/* Notes the rows of one step, each where its first token is. Returns how many. */
static uint64_t read_step(struct random_job *random, const struct job *job, uint64_t step)
{
    struct first_fault fault = {{0}};
    struct skrull_plan *plan = NULL;
    struct skrull_error err = {0};
    uint64_t n = 0;

    if (job_plan(job, step, &plan, NULL, &err)) {
        fail_job(random, err.message);
    }
    if (job_check_plan(job, plan, keep_first, &fault, &err)) {
        fail_job(random, fault.message[0] ? fault.message : err.message);
    }
    for (size_t i = 0; i < plan->n_segments; i++) {
        const struct skrull_segment *segment = &plan->segments[i];

        if (segment->token_begin > 0 || segment->token_end == 0) {
            continue;
        }
        if (segment->sample >= MAX_STEPS * MAX_BATCH ||
            segment->sample / job_spec(job)->batch.global != step) {
            fail_job(random, "a sample that is not of its step");
        }
        random->samples[segment->sample] = (struct row){.dataset = segment->dataset,
                                                        .row = (uint32_t)segment->index,
                                                        .length = segment->sequence_length};
        n++;
    }
    if (plan->totals.sequences != n) {
        fail_job(random, "the totals of a step are wrong");
    }
    skrull_plan_free(plan);
    return n;
}

static uint32_t position_of(const struct random_job *random, const struct row *row)
{
    for (uint32_t i = 0; i < random->n_kept; i++) {
        if (random->kept[i].dataset == row->dataset && random->kept[i].row == row->row) {
            if (random->kept[i].length != row->length) {
                fail_job(random, "a row has another length than its index");
            }
            return i;
        }
    }
    fail_job(random, "a row that was dropped, or never was");
    return 0;
}

/* The order within an epoch: [n] positions as the plans have them. */
static void audit_order(const struct random_job *random, const uint32_t *positions, uint32_t n)
{
    for (uint32_t i = 1; i < n && i < random->n_kept; i++) {
        const uint32_t a = random->kept[positions[i - 1]].length;
        const uint32_t b = random->kept[positions[i]].length;

        if (random->folder->spec.order == SKRULL_ORDER_SEQUENTIAL &&
            positions[i] != positions[i - 1] + 1) {
            fail_job(random, "a sequential epoch is out of order");
        }
        if (random->folder->spec.order == SKRULL_ORDER_SORTED &&
            (a > b || (a == b && positions[i - 1] > positions[i]))) {
            fail_job(random, "a sorted epoch is out of order");
        }
    }
}

/* One epoch of [n] samples: each row once, but for those that a last batch drops or repeats. */
static void audit_epoch(const struct random_job *random, const struct row *samples, uint32_t n)
{
    uint32_t positions[MAX_DATA * MAX_ROWS + MAX_BATCH], counts[MAX_DATA * MAX_ROWS] = {0};

    for (uint32_t i = 0; i < n; i++) {
        positions[i] = position_of(random, &samples[i]);
        counts[positions[i]]++;
        if (i >= random->n_kept && positions[i] != positions[i % random->n_kept]) {
            fail_job(random, "a wrapped batch does not begin again from the first");
        }
        if (i < random->n_kept && counts[positions[i]] > 1) {
            fail_job(random, "a row twice in an epoch");
        }
    }
    audit_order(random, positions, n);
}

static uint64_t steps_of_epoch(const struct random_job *random)
{
    const struct skrull_job *spec = &random->folder->spec;

    return spec->last_batch == SKRULL_LAST_BATCH_DROP
               ? random->n_kept / spec->batch.global
               : CEIL_DIV(random->n_kept, spec->batch.global);
}

/* All steps, in any order, then epoch by epoch. */
static void audit_job(struct random_job *random, const struct job *job)
{
    const struct skrull_job *spec = &random->folder->spec;
    const uint64_t per_epoch = steps_of_epoch(random), steps = job_spec(job)->info.steps;
    uint64_t first = 0;

    if (steps != (spec->steps ? spec->steps : spec->epochs * per_epoch) ||
        job_spec(job)->info.sequences != random->n_kept) {
        fail_job(random, "the job has another number of steps or sequences");
    }
    for (uint64_t i = 0; i < steps; i++) {
        const uint64_t step = steps - 1 - i; /* no step needs those before it */
        const uint64_t n = read_step(random, job, step);
        const bool is_last = step % per_epoch == per_epoch - 1;
        const uint64_t rest = random->n_kept - (per_epoch - 1) * spec->batch.global;
        const bool is_short = is_last && spec->last_batch == SKRULL_LAST_BATCH_KEEP;

        if (n != (is_short ? rest : spec->batch.global)) {
            fail_job(random, "a step has another number of sequences");
        }
    }
    for (uint64_t step = 0; step < steps; step += per_epoch) {
        const uint64_t n_steps = steps - step < per_epoch ? steps - step : per_epoch;
        uint64_t n = n_steps * spec->batch.global;

        if (spec->last_batch == SKRULL_LAST_BATCH_KEEP && n > random->n_kept) {
            n = random->n_kept;
        }
        audit_epoch(random, &random->samples[first], (uint32_t)n);
        first = (step + n_steps) * spec->batch.global;
    }
}

static struct random_job *random_job_new(uint64_t round)
{
    struct random_job *random = calloc(1, sizeof(*random));
    void *folder = NULL;

    assert_non_null(random);
    random->round = round;
    random->state = rounds.seed * 1000003 + round;
    (void)random_below(&random->state, 2);
    assert_int_equal(job_folder_setup(&folder), 0);
    random->folder = folder;
    choose_rows(random);
    return random;
}

static void random_job_free(struct random_job *random)
{
    void *folder = random->folder;

    assert_int_equal(job_folder_teardown(&folder), 0);
    free(random);
}

/* Opens the job; other settings than the last time may need other defaults. */
static struct job *open_job(struct random_job *random)
{
    struct skrull_error err = {0};
    struct job *job = NULL;

    if (job_open(job_folder_spec(random->folder), &random->folder->roots, &job, &err)) {
        fail_job(random, err.message);
    }
    return job;
}

static void test_jobs__use_each_row_as_often_as_they_should(void **state)
{
    (void)state;
    for (uint64_t round = rounds.first; round < rounds.end; round++) {
        struct random_job *random = random_job_new(round);
        const bool is_limited = random_below(&random->state, 2);
        struct job *job;

        choose_grid(random);
        if (is_limited) {
            limit_length(random);
        }
        keep_rows(random, is_limited ? 2000 : UINT32_MAX);
        if (random->n_kept > 0) {
            choose_steps(random);
            job = open_job(random);
            audit_job(random, job);
            job_unref(job);
        }
        random_job_free(random);
    }
}

/* What a step is does not depend on who computes it. */
static void test_jobs__use_the_same_rows_on_any_grid(void **state)
{
    (void)state;
    for (uint64_t round = rounds.first; round < rounds.end; round += 2) {
        struct random_job *random = random_job_new(round);
        struct row *samples = malloc(sizeof(random->samples));
        struct job *job;

        assert_non_null(samples);
        choose_grid(random);
        keep_rows(random, UINT32_MAX);
        choose_steps(random);
        for (int i = 0; i < 3; i++) {
            job = open_job(random);
            memset(random->samples, 0, sizeof(random->samples));
            for (uint64_t step = 0; step < job_spec(job)->info.steps; step++) {
                (void)read_step(random, job, step);
            }
            job_unref(job);
            if (i == 0) {
                memcpy(samples, random->samples, sizeof(random->samples));
            } else if (memcmp(samples, random->samples, sizeof(random->samples)) != 0) {
                fail_job(random, "another grid or policy has other rows");
            }
            choose_grid(random);
        }
        free(samples);
        random_job_free(random);
    }
}

/* Weights share out samples; each data set's rows take turns, none comes again before all came. */
static void audit_mixture(const struct random_job *random, uint64_t n)
{
    const struct skrull_job *spec = &random->folder->spec;
    uint32_t counts[MAX_DATA][MAX_ROWS] = {{0}}, drawn[MAX_DATA] = {0};
    double sum = 0;

    for (uint64_t i = 0; i < n; i++) {
        const struct row *row = &random->samples[i];

        (void)position_of(random, row);
        counts[row->dataset][row->row]++;
        drawn[row->dataset]++;
        if (counts[row->dataset][row->row] >
            CEIL_DIV(drawn[row->dataset], random->n_rows[row->dataset])) {
            fail_job(random, "a row of a mixture comes again before all others came");
        }
    }
    for (uint32_t d = 0; d < spec->n_data; d++) {
        sum += spec->data[d].weight;
    }
    for (uint32_t d = 0; d < spec->n_data; d++) {
        const double wanted = spec->data[d].weight / sum * (double)n;

        if (drawn[d] > wanted + spec->n_data + 1 || drawn[d] + spec->n_data + 1 < wanted) {
            fail_job(random, "the shares of a mixture are not spread evenly");
        }
    }
}

static void test_jobs__mix_by_weight(void **state)
{
    (void)state;
    for (uint64_t round = rounds.first; round < rounds.end; round += 4) {
        struct random_job *random = random_job_new(round);
        struct skrull_job *spec = &random->folder->spec;
        struct job *job;
        uint64_t n = 0;

        choose_grid(random);
        keep_rows(random, UINT32_MAX);
        choose_steps(random);
        spec->last_batch = SKRULL_LAST_BATCH_DROP;
        spec->epochs = 0;
        spec->steps = 20 + random_below(&random->state, 40);
        for (uint32_t d = 0; d < spec->n_data; d++) {
            random->folder->data[d].weight = 1 + random_below(&random->state, 9);
        }
        job = open_job(random);
        for (uint64_t step = 0; step < spec->steps; step++) {
            n += read_step(random, job, step);
        }
        if (n != spec->steps * spec->batch.global) {
            fail_job(random, "a mixture has steps that are not full");
        }
        audit_mixture(random, n);
        job_unref(job);
        random_job_free(random);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs__use_each_row_as_often_as_they_should),
        cmocka_unit_test(test_jobs__use_the_same_rows_on_any_grid),
        cmocka_unit_test(test_jobs__mix_by_weight),
    };

    rounds = random_rounds_get(argc > 1 ? strtoull(argv[1], NULL, 10) : 100);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
