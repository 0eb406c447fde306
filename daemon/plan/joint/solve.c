/*
 * joint: DP rank, micro-batch, degree and ranks of every sequence, decided together under the
 * evaluator's clock. The search runs over all sizes that the job allows. Where these are more than
 * 1 and CP it runs over the two as well, unless their bound says that no such plan is better: so an
 * elastic plan is never slower than the fixed one.
 *
 * Why elastic plans cannot deadlock: groups are aligned blocks of sizes that divide one another, so
 * any two are nested or disjoint. Every rank visits its micro-batches in order and in each its
 * groups by ascending size. Suppose some ranks wait for ever, and take among the groups waited for
 * those of the earliest micro-batch, and of these one of the least size, g. All members of g have
 * that group to run in that micro-batch. A member that is not there yet waits for a group of an
 * earlier micro-batch, or for a smaller one of the same: both contradict the choice of g. So all
 * members are there, and g runs.
 */
#include "plan/joint/solve.h"

#include <string.h>

#include "arena.h"
#include "plan/bound.h"
#include "plan/counts.h"
#include "plan/joint/baselines.h"
#include "plan/joint/compact.h"
#include "plan/joint/fallback.h"
#include "plan/joint/search.h"
#include "plan/joint/timing.h"

static int bound_problem(const struct batch *batch, const struct degrees *degrees,
                         int64_t *ret_bound_ns, struct skrull_error *err)
{
    struct bound_input input = {.options = &batch->options,
                                .degrees = degrees,
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
    return bound_of_lengths(&input, batch->scratch, ret_bound_ns, err);
}

/* Offers placements to a search that has memory for their micro-batches. */
static int offer(struct joint_search *search, const struct joint_result *result)
{
    const struct joint_problem *problem = search->problem;
    struct joint_place *places =
        ARENA_ARRAY(problem->batch->scratch, struct joint_place, problem->n_sequences);

    if (!places) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (uint32_t k = 0; k < problem->n_sequences; k++) {
        const struct placement *at = &result->placements[k];
        const uint32_t l = joint_level_of(problem, at->group_size);

        if (l == problem->n_levels || at->micro_batch >= search->state.max_mb) {
            return 0;
        }
        places[k] = (struct joint_place){.mb = at->micro_batch,
                                         .node = problem->levels[l].first_node +
                                                 at->group_first / at->group_size};
    }
    joint_search_offer(search, places);
    return 0;
}

/* Fills placements from a search's best. */
static void write_placements(const struct joint_search *search, struct placement *placements)
{
    const struct joint_problem *problem = search->problem;

    for (uint32_t k = 0; k < problem->n_sequences; k++) {
        const struct joint_place *at = &search->best.places[k];

        placements[k] =
            (struct placement){.micro_batch = at->mb,
                               .group_first = joint_first_rank(problem, at->node),
                               .group_size = problem->levels[problem->node_levels[at->node]].size};
    }
}

/* Searches; replaces `result` by what is better. */
static int search_problem(const struct joint_problem *problem, int64_t bound_ns, uint64_t steps,
                          struct joint_result *result)
{
    struct joint_search search;
    struct joint_result found = {
        .placements = ARENA_ARRAY(problem->batch->scratch, struct placement, problem->n_sequences)};
    int rc = joint_search_init(&search, problem, bound_ns, steps);

    if (!rc && result->total_ns < JOINT_NO_TIME) {
        rc = offer(&search, result);
    }
    if (rc || !found.placements) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    joint_search_run(&search);
    if (search.best.total_ns == JOINT_NO_TIME) {
        return 0;
    }
    write_placements(&search, found.placements);
    rc = joint_compact(problem, found.placements);
    rc = rc ? rc : joint_judge_placements(problem, found.placements, &found.total_ns);
    if (!rc && found.total_ns < result->total_ns) {
        result->total_ns = found.total_ns;
        memcpy(result->placements, found.placements,
               problem->n_sequences * sizeof(*found.placements));
    }
    return rc;
}

/* Fixed mode's sizes, where they are fewer and can hold the batch. */
static int search_fixed(const struct joint_problem *whole, const struct joint_result *baseline,
                        struct joint_result *result, struct skrull_error *err)
{
    const struct batch *batch = whole->batch;
    struct joint_result fixed = *baseline;
    struct joint_problem problem;
    struct degrees degrees;
    int64_t bound_ns;
    int rc;

    if (degrees_of_policy(&batch->options, &degrees, NULL) || degrees.n >= batch->degrees.n) {
        return 0;
    }
    rc = joint_problem_narrow(&problem, whole, &degrees);
    if (rc || !joint_problem_is_open(&problem)) {
        return rc;
    }
    rc = bound_problem(batch, &degrees, &bound_ns, err);
    if (rc || result->total_ns <= bound_ns) {
        return rc;
    }
    rc = search_problem(&problem, bound_ns, batch->options.effort, &fixed);
    if (!rc && fixed.total_ns < result->total_ns) {
        *result = fixed;
    }
    return rc;
}

/* Sizes beyond fixed mode's two get half the steps, as fixed mode is searched as well. */
static uint64_t steps_of(const struct batch *batch)
{
    const uint64_t effort = batch->options.effort;

    return batch->degrees.n > 2 ? effort - effort / 2 : effort;
}

/* `ret_found`: false: nothing was found, which leaves `placements` undefined. */
static int solve(const struct batch *batch, struct placement *placements, bool *ret_found,
                 struct skrull_error *err)
{
    const uint32_t n = batch->n_sequences;
    struct joint_result baseline = {.placements = placements, .total_ns = JOINT_NO_TIME}, result;
    struct joint_problem problem;
    int64_t bound_ns;
    int rc;

    rc = joint_problem_init(&problem, batch, &batch->degrees);
    rc = rc ? rc : joint_baselines(&problem, &baseline);
    rc = rc ? rc : bound_problem(batch, &batch->degrees, &bound_ns, err);
    if (rc) {
        return rc;
    }
    result = baseline;
    result.placements = ARENA_ARRAY(batch->scratch, struct placement, n);
    if (!result.placements) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    memcpy(result.placements, placements, n * sizeof(*placements));
    rc = search_problem(&problem, bound_ns, steps_of(batch), &result);
    rc = rc ? rc : search_fixed(&problem, &baseline, &result, err);
    if (rc) {
        return rc;
    }
    *ret_found = result.total_ns < JOINT_NO_TIME;
    memmove(placements, result.placements, n * sizeof(*placements));
    return 0;
}

/* Searches without an exact count may happen upon plans that keep it. */
static int solve_uncounted(const struct batch *batch, bool is_equal, struct placement *placements,
                           bool *ret_found, struct skrull_error *err)
{
    struct batch uncounted = *batch;
    int rc;

    uncounted.options.micro_batches = 0;
    uncounted.options.equal_micro_batches = is_equal;
    rc = solve(&uncounted, placements, ret_found, err);
    if (!rc && counts_most(placements, batch->n_sequences) > batch->options.micro_batches) {
        *ret_found = false;
    }
    return rc;
}

static int fall_back(const struct batch *batch, struct placement *placements)
{
    struct joint_problem problem;
    const int rc = joint_problem_init(&problem, batch, &batch->degrees);

    return rc ? rc : joint_fall_back(&problem, placements);
}

int joint_solve(const struct batch *batch, struct placement *placements, struct skrull_error *err)
{
    bool is_found = false;
    int rc = solve(batch, placements, &is_found, err);

    for (int is_equal = 0; !rc && !is_found && is_equal < 2 && batch->options.micro_batches > 0;
         is_equal++) {
        rc = solve_uncounted(batch, is_equal != 0, placements, &is_found, err);
    }
    if (!rc && !is_found) {
        rc = fall_back(batch, placements);
    }
    if (rc) {
        return skrull_error_set(err, rc, "out of memory to plan %u sequences", batch->n_sequences);
    }
    return 0;
}
