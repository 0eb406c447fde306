/* Micro-batch numbers without gaps. */
#pragma once

#include "plan/joint/problem.h"
#include "plan/policy.h"

/*
 * Numbers micro-batches anew where all ranks of a DP rank (with groups beyond one: of the job) have
 * no sequence in one: the order stays, the time too, and fewer dummies keep the numbering equal.
 * RESOURCE_EXHAUSTED: no scratch memory. O(sequences + DP ranks x micro-batches).
 */
int joint_compact(const struct joint_problem *problem, struct placement *placements);
