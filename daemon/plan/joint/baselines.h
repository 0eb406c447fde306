/* What the other policies of two sizes would do: starts, and the level below which joint never
 * falls. */
#pragma once

#include "plan/joint/problem.h"
#include "plan/policy.h"

/* A placement of the whole batch and its iteration time. */
struct joint_result {
    struct placement *placements; /* [n_sequences] */
    int64_t total_ns;             /* JOINT_NO_TIME: none yet */
};

/* Replaces `best` by the best of uniform, round_robin and skrull that can hold the batch and is
 * better; where none can, by the fall-back. RESOURCE_EXHAUSTED: no scratch memory. */
int joint_baselines(const struct joint_problem *problem, struct joint_result *best);
