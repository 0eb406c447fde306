/*
 * The paper's heuristics and static context parallelism as starts. They cost little, and the best
 * of them bounds the result from above.
 */
#include "plan/joint/baselines.h"

#include <string.h>

#include "arena.h"
#include "plan/gds.h"
#include "plan/joint/fallback.h"
#include "plan/joint/timing.h"

/* Keeps the better of the two. */
static int compete(const struct joint_problem *problem, const struct placement *placements,
                   struct joint_result *best)
{
    int64_t total_ns;
    const int rc = joint_judge_placements(problem, placements, &total_ns);

    if (!rc && total_ns < best->total_ns) {
        best->total_ns = total_ns;
        memcpy(best->placements, placements, problem->n_sequences * sizeof(*placements));
    }
    return rc;
}

/* Can policies of two sizes hold the batch? */
static void look(const struct batch *batch, bool *ret_dacp, bool *ret_uniform)
{
    *ret_dacp = *ret_uniform = true;
    for (uint32_t k = 0; k < batch->n_sequences; k++) {
        const bool fits_local = batch->items[k].local_slot != SLOT_NONE;
        const bool fits_shard = batch->items[k].shard_slot != SLOT_NONE;

        *ret_dacp &= fits_local || fits_shard;
        *ret_uniform &= batch->has_shard ? fits_shard : fits_local;
    }
}

int joint_baselines(const struct joint_problem *problem, struct joint_result *best)
{
    const struct batch *batch = problem->batch;
    struct placement *placements =
        ARENA_ARRAY(batch->scratch, struct placement, problem->n_sequences);
    bool has_dacp, has_uniform;
    int rc = placements ? 0 : SKRULL_ERR_RESOURCE_EXHAUSTED;

    look(batch, &has_dacp, &has_uniform);
    if (!rc && has_uniform) {
        rc = policy_uniform_place(batch, placements, NULL);
        rc = rc ? rc : compete(problem, placements, best);
    }
    if (!rc && has_dacp) {
        rc = gds_place(batch, DACP_MOST_ROOM, placements, NULL);
        rc = rc ? rc : compete(problem, placements, best);
        rc = rc ? rc : gds_place(batch, DACP_LEAST_LOADED_FIRST, placements, NULL);
        rc = rc ? rc : compete(problem, placements, best);
    }
    if (!rc && best->total_ns == JOINT_NO_TIME) { /* without a start, more steps could be worse */
        rc = joint_fall_back(problem, placements);
        rc = rc ? rc : compete(problem, placements, best);
    }
    return rc;
}
