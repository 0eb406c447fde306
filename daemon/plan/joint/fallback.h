/* A placement that always exists. */
#pragma once

#include "plan/joint/problem.h"
#include "plan/policy.h"

/* Places every sequence of an open problem: each, longest first, in the current micro-batch if one
 * of the groups of its smallest fitting size has room, else in a new one. RESOURCE_EXHAUSTED: no
 * scratch memory. O(sequences x ranks). */
int joint_fall_back(const struct joint_problem *problem, struct placement *placements);
