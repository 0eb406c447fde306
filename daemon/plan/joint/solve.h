/* The joint solver, whole: the best of its search, of fixed mode's, and of the other policies. */
#pragma once

#include "plan/policy.h"

/* As policy_place_fn. */
int joint_solve(const struct batch *batch, struct placement *placements, struct skrull_error *err);
