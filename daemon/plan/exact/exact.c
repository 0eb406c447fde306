/*
 * From policy joint's plan to the optimum: programs that ask for anything faster, until none is.
 *
 * How many micro-batches need to be looked at, where ranks may have different numbers of them: take
 * a plan without gaps that is faster than T, and number its micro-batches by the longest chain of
 * them in which each shares a rank with the next. Where ranks share a micro-batch through groups,
 * the largest group in it holds them all, as groups are nested, and all leave it at the same clock.
 * So along a chain a clock runs on, each time by the fixed cost and the least that another sequence
 * can take: as many as the quickest sequences allow within T. With equal counts every number is a
 * program of its own, as long as its fixed cost alone is less than T.
 */
#include "plan/exact/exact.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arena.h"
#include "cost/cost.h"
#include "plan/bound.h"
#include "plan/counts.h"
#include "plan/exact/program.h"
#include "plan/joint/solve.h"
#include "plan/joint/timing.h"

#define SCRATCH_MAX_BYTES ((size_t)1 << 30)
#define PRECISION 1000000 /* what is not faster by a part of this is not looked for */

struct exact {
    struct batch batch;
    struct joint_problem problem;
    struct exact_result result;
    double end_s;
    struct placement *placements;
    uint32_t (*places)[2];
};

static double now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int bound_batch(struct exact *exact, struct skrull_error *err)
{
    const struct batch *batch = &exact->batch;
    struct bound_input input = {.options = &batch->options,
                                .degrees = &batch->degrees,
                                .cost = batch->cost,
                                .lengths =
                                    ARENA_ARRAY(batch->scratch, uint32_t, batch->n_sequences),
                                .n = batch->n_sequences};

    if (!input.lengths) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (uint32_t k = 0; k < batch->n_sequences; k++) {
        input.lengths[k] = batch->sequences[k].length;
    }
    return bound_of_lengths(&input, batch->scratch, &exact->result.bound_ns, err);
}

static int begin(struct exact *exact, const struct skrull_planner_input *input,
                 struct arena *scratch, struct skrull_error *err)
{
    struct skrull_planner_input searched = *input;
    int rc;

    searched.options.policy = "joint";
    searched.options.effort = SKRULL_EFFORT_HIGH;
    searched.options.micro_batch_order = SKRULL_MICRO_BATCH_ORDER_AS_PLANNED;
    rc = batch_init(&exact->batch, &searched, scratch, err);
    if (rc) {
        return rc;
    }
    exact->placements = ARENA_ARRAY(scratch, struct placement, exact->batch.n_sequences);
    exact->places = arena_alloc(scratch, exact->batch.n_sequences, sizeof(*exact->places));
    if (!exact->placements || !exact->places) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    rc = joint_problem_init(&exact->problem, &exact->batch, &exact->batch.degrees);
    rc = rc ? rc : joint_solve(&exact->batch, exact->placements, err);
    rc = rc ? rc
            : joint_time_placements(&exact->problem, exact->placements, &exact->result.joint_ns);
    exact->result.best_ns = exact->result.joint_ns;
    return rc ? rc : bound_batch(exact, err);
}

/* Times what a program has found; the best is kept. */
static int take(struct exact *exact)
{
    int64_t ns;
    int rc;

    for (uint32_t k = 0; k < exact->batch.n_sequences; k++) {
        const struct joint_level *level =
            &exact->problem.levels[exact->problem.node_levels[exact->places[k][1]]];

        exact->placements[k] = (struct placement){
            .micro_batch = exact->places[k][0],
            .group_first = joint_first_rank(&exact->problem, exact->places[k][1]),
            .group_size = level->size};
    }
    rc = joint_time_placements(&exact->problem, exact->placements, &ns);
    if (!rc && ns < exact->result.best_ns) {
        exact->result.best_ns = ns;
    }
    return rc;
}

/* What is faster than the best by less than this is not told from it. */
static int64_t wanted_ns(const struct exact *exact)
{
    return exact->result.best_ns - 1 - exact->result.best_ns / PRECISION;
}

/* Solves with at most `n_mb` micro-batches, whose count alone costs `shared_ns`. */
static int run_program(struct exact *exact, uint32_t n_mb, int64_t shared_ns,
                       struct skrull_error *err)
{
    const struct exact_program program = {
        .problem = &exact->problem,
        .n_mb = n_mb,
        .floor_ns = exact->result.bound_ns > shared_ns ? exact->result.bound_ns - shared_ns : 0,
        .cap_ns = wanted_ns(exact) - shared_ns,
        .max_seconds = exact->end_s - now_s()};
    const uint64_t n_columns = exact_program_columns(&program);
    struct exact_answer answer = {0};
    int rc;

    if (program.cap_ns < program.floor_ns) {
        return 0; /* nothing in between */
    }
    if (n_columns > EXACT_MAX_COLUMNS) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%u sequences on %u ranks in up to %u micro-batches: a program of "
                                "%llu columns, at most %d are solved: lower batch.global or the "
                                "grid",
                                exact->batch.n_sequences, exact->problem.n_ranks, n_mb,
                                (unsigned long long)n_columns, EXACT_MAX_COLUMNS);
    }
    if (program.max_seconds <= 0) {
        exact->result.is_proved = false;
        return 0;
    }
    exact->result.n_programs++;
    exact->result.n_columns =
        n_columns > exact->result.n_columns ? (uint32_t)n_columns : exact->result.n_columns;
    rc = exact_program_solve(&program, exact->places, &answer);
    exact->result.is_proved &= answer.is_proved;
    return !rc && answer.is_found ? take(exact) : rc;
}

static uint32_t at_most(uint64_t a, uint32_t b)
{
    return a < b ? (uint32_t)a : b;
}

/* The least that a sequence computes on a rank, at any size. */
static int64_t least_ns(const struct joint_problem *problem, uint32_t k)
{
    int64_t least = INT64_MAX;

    for (uint32_t l = 0; l < problem->n_levels; l++) {
        const struct joint_level *level = &problem->levels[l];

        if (level->slots[k] != JOINT_NONE && level->comp_ns[k] < least) {
            least = level->comp_ns[k];
        }
    }
    return least;
}

static int compare_ns(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return a < b ? -1 : a > b;
}

/* How long a chain of micro-batches may be. */
static int count_chain(const struct exact *exact, uint32_t *ret_count)
{
    const uint32_t n = exact->batch.n_sequences;
    int64_t *times_ns = ARENA_ARRAY(exact->batch.scratch, int64_t, n), sum_ns = 0;
    uint32_t count = 0;

    if (!times_ns) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (uint32_t k = 0; k < n; k++) {
        times_ns[k] = least_ns(&exact->problem, k) + exact->problem.fixed_ns;
    }
    qsort(times_ns, n, sizeof(*times_ns), compare_ns);
    while (count < n && sum_ns + times_ns[count] <= wanted_ns(exact)) {
        sum_ns += times_ns[count++];
    }
    *ret_count = count;
    return 0;
}

static int run_unequal(struct exact *exact, struct skrull_error *err)
{
    uint32_t count = 0;
    const int rc = count_chain(exact, &count);

    return rc || count == 0 ? rc : run_program(exact, count, 0, err);
}

/* Of each total that dummies may fill up to, as many micro-batches as it allows. */
static int run_equal(struct exact *exact, struct skrull_error *err)
{
    const struct skrull_planner_options *options = &exact->batch.options;
    const uint32_t n = exact->batch.n_sequences;
    int rc = 0;

    for (uint32_t count = 1; !rc && count <= n;) {
        const uint32_t total = counts_equal(options, count);
        const int64_t shared_ns = exact->problem.shared_ns * total;

        if (shared_ns >= exact->result.best_ns ||
            (options->micro_batches > 0 && count > options->micro_batches)) {
            break;
        }
        rc = run_program(exact, at_most(total, n), shared_ns, err);
        count = total + 1;
    }
    return rc;
}

static int solve(struct exact *exact, const struct skrull_planner_input *input,
                 struct arena *scratch, struct skrull_error *err)
{
    int rc = begin(exact, input, scratch, err);

    if (rc) {
        return rc;
    }
    exact->result.is_proved = true;
    rc = exact->problem.is_equal ? run_equal(exact, err) : run_unequal(exact, err);
    if (!rc && exact->result.is_proved) {
        exact->result.bound_ns = exact->result.best_ns;
    }
    return rc;
}

int exact_solve(const struct skrull_planner_input *input, double max_seconds,
                struct exact_result *ret_result, struct skrull_error *err)
{
    struct arena *scratch = arena_new(SCRATCH_MAX_BYTES);
    struct exact exact = {.end_s = now_s() + max_seconds};
    int rc = SKRULL_ERR_RESOURCE_EXHAUSTED;

    if (scratch) {
        rc = solve(&exact, input, scratch, err);
    }
    arena_free(scratch);
    if (rc == SKRULL_ERR_RESOURCE_EXHAUSTED) {
        return skrull_error_set(err, rc, "out of memory for a batch of %zu sequences",
                                input->n_sequences);
    }
    if (!rc) {
        *ret_result = exact.result;
    }
    return rc;
}
