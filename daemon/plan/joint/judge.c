/*
 * Searches put micro-batches in an order of their own choice; a job may ask for another, which is
 * put on at the end and then decides how long its ranks wait. So where it does, every best
 * placement on a search's way is timed as it will be run, and the best of these times counts. A
 * search with more steps goes further along the same way: it sees all of them and others, and is
 * never worse.
 */
#include "plan/joint/judge.h"

#include "arena.h"
#include "plan/joint/compact.h"
#include "plan/joint/timing.h"

#define TRIAL_MAX_BYTES ((size_t)1 << 32)

int joint_judge_init(struct joint_judge *judge, const struct joint_problem *problem)
{
    const struct batch *batch = problem->batch;
    const enum skrull_micro_batch_order order = batch->options.micro_batch_order;

    *judge = (struct joint_judge){
        .problem = problem,
        .best = {.placements = ARENA_ARRAY(batch->scratch, struct placement, batch->n_sequences),
                 .total_ns = JOINT_NO_TIME},
        .trial = ARENA_ARRAY(batch->scratch, struct placement, batch->n_sequences),
        .is_reordered = order != SKRULL_MICRO_BATCH_ORDER_AS_PLANNED};
    return judge->best.placements && judge->trial ? 0 : SKRULL_ERR_RESOURCE_EXHAUSTED;
}

static void fill_trial(struct joint_judge *judge, const struct joint_place *places)
{
    const struct joint_problem *problem = judge->problem;

    for (uint32_t k = 0; k < problem->n_sequences; k++) {
        const uint32_t l = problem->node_levels[places[k].node];

        judge->trial[k] =
            (struct placement){.micro_batch = places[k].mb,
                               .group_first = joint_first_rank(problem, places[k].node),
                               .group_size = problem->levels[l].size};
    }
}

/* Memory of a trial is given back: there may be hundreds. */
static int time_trial(const struct joint_judge *judge, int64_t *ret_ns)
{
    struct joint_problem problem = *judge->problem;
    struct batch batch = *problem.batch;
    int rc;

    batch.scratch = arena_new(TRIAL_MAX_BYTES);
    if (!batch.scratch) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    problem.batch = &batch;
    rc = joint_compact(&problem, judge->trial);
    rc = rc ? rc : joint_judge_placements(&problem, judge->trial, ret_ns);
    arena_free(batch.scratch);
    return rc;
}

void joint_judge_take(struct joint_judge *judge, const struct joint_place *places)
{
    struct placement *trial = judge->trial;
    int64_t total_ns = JOINT_NO_TIME;

    fill_trial(judge, places);
    judge->rc = judge->rc ? judge->rc : time_trial(judge, &total_ns);
    if (!judge->rc && total_ns < judge->best.total_ns) {
        judge->trial = judge->best.placements;
        judge->best = (struct joint_result){.placements = trial, .total_ns = total_ns};
    }
}
