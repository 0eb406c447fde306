/* The evaluator over bare placements, whatever made them. */
#pragma once

#include "plan/joint/problem.h"
#include "plan/policy.h"

/*
 * Iteration time of placements ([n_sequences]) whose sizes are levels of `problem`, as
 * evaluate_plan would give it. RESOURCE_EXHAUSTED: no scratch memory. O(segments + sequences x log
 * sequences).
 */
int joint_time_placements(const struct joint_problem *problem, const struct placement *placements,
                          int64_t *ret_ns);

/* The same after the order of micro-batches that the job asks for. JOINT_NO_TIME: they are more
 * than an exact count allows. */
int joint_judge_placements(const struct joint_problem *problem, const struct placement *placements,
                           int64_t *ret_ns);

/* The level of a group size; n_levels: none. */
uint32_t joint_level_of(const struct joint_problem *problem, uint32_t size);
