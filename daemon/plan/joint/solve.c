/*
 * joint: DP rank, micro-batch, degree and ranks of every sequence, decided together under the
 * evaluator's clock. The search runs over all sizes that the job allows. Where these are more than
 * 1 and CP it runs over the two as well, unless their bound says that no such plan is better: so an
 * elastic plan is never slower than the fixed one, save where micro_batch_order is not as planned:
 * it permutes those of a DP rank in fixed mode, those of the job in elastic.
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
#include "plan/joint/baselines.h"
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

/* Replaces `result` by what is better. */
static void take_better(const struct joint_problem *problem, const struct joint_result *found,
                        struct joint_result *result)
{
    if (found->total_ns < result->total_ns) {
        result->total_ns = found->total_ns;
        memcpy(result->placements, found->placements,
               problem->n_sequences * sizeof(*found->placements));
    }
}

/* Searches; replaces `result` by what is better. */
static int search_problem(const struct joint_problem *problem, int64_t bound_ns, uint64_t steps,
                          struct joint_result *result)
{
    struct joint_search search;
    struct joint_judge judge;
    int rc = joint_judge_init(&judge, problem);

    rc = rc ? rc : joint_search_init(&search, problem, &judge, bound_ns, steps);
    if (!rc && result->total_ns < JOINT_NO_TIME) {
        rc = offer(&search, result);
    }
    if (rc) {
        return rc;
    }
    joint_search_run(&search);
    take_better(problem, &judge.best, result);
    return judge.rc;
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
    if (!rc) {
        take_better(whole, &fixed, result);
    }
    return rc;
}

/* Sizes beyond fixed mode's two get half the steps, as fixed mode is searched as well. */
static uint64_t steps_of(const struct batch *batch)
{
    const uint64_t effort = batch->options.effort;

    return batch->degrees.n > 2 ? effort - effort / 2 : effort;
}

/* Replaces `result` by what is better. `ret_has_start`: there is a plan without any search. */
static int solve(const struct batch *batch, struct joint_result *result, bool *ret_has_start,
                 struct skrull_error *err)
{
    const uint32_t n = batch->n_sequences;
    struct joint_result baseline = {.placements = ARENA_ARRAY(batch->scratch, struct placement, n),
                                    .total_ns = JOINT_NO_TIME};
    struct joint_problem problem;
    int64_t bound_ns;
    int rc = baseline.placements ? 0 : SKRULL_ERR_RESOURCE_EXHAUSTED;

    rc = rc ? rc : joint_problem_init(&problem, batch, &batch->degrees);
    rc = rc ? rc : joint_baselines(&problem, &baseline);
    rc = rc ? rc : bound_problem(batch, &batch->degrees, &bound_ns, err);
    if (rc) {
        return rc;
    }
    take_better(&problem, &baseline, result);
    rc = search_problem(&problem, bound_ns, steps_of(batch), result);
    rc = rc ? rc : search_fixed(&problem, &baseline, result, err);
    *ret_has_start = baseline.total_ns < JOINT_NO_TIME;
    return rc;
}

/* Searches without an exact count may happen upon plans that keep it. */
static int solve_uncounted(const struct batch *batch, bool is_equal, struct joint_result *result,
                           struct skrull_error *err)
{
    struct batch uncounted = *batch;
    struct joint_result found = {
        .placements = ARENA_ARRAY(batch->scratch, struct placement, batch->n_sequences),
        .total_ns = JOINT_NO_TIME};
    struct joint_problem problem;
    bool has_start;
    int rc = found.placements ? 0 : SKRULL_ERR_RESOURCE_EXHAUSTED;

    uncounted.options.micro_batches = 0;
    uncounted.options.equal_micro_batches = is_equal;
    rc = rc ? rc : solve(&uncounted, &found, &has_start, err);
    rc = rc ? rc : joint_problem_init(&problem, batch, &batch->degrees);
    rc = rc ? rc : joint_judge_placements(&problem, found.placements, &found.total_ns);
    if (!rc) {
        take_better(&problem, &found, result);
    }
    return rc;
}

static int fall_back(const struct batch *batch, struct placement *placements)
{
    struct joint_problem problem;
    const int rc = joint_problem_init(&problem, batch, &batch->degrees);

    return rc ? rc : joint_fall_back(&problem, placements);
}

/* Whether an exact count has a start does not depend on effort; where it has none, all searches are
 * made whatever the first one finds, lest more effort in that one end in a slower plan. */
int joint_solve(const struct batch *batch, struct placement *placements, struct skrull_error *err)
{
    struct joint_result result = {.placements = placements, .total_ns = JOINT_NO_TIME};
    bool has_start = false;
    int rc = solve(batch, &result, &has_start, err);

    for (int is_equal = 0; !rc && !has_start && is_equal < 2 && batch->options.micro_batches > 0;
         is_equal++) {
        rc = solve_uncounted(batch, is_equal != 0, &result, err);
    }
    if (!rc && result.total_ns == JOINT_NO_TIME) {
        rc = fall_back(batch, placements);
    }
    if (rc) {
        return skrull_error_set(err, rc, "out of memory to plan %u sequences", batch->n_sequences);
    }
    return 0;
}
