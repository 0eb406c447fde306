/* Holds what a plan says of its own time against the model. */
#pragma once

#include <skrull/planner.h>

/*
 * Times `plan` anew and compares: every estimate of a plan that has any must be exactly the
 * model's, the bound too (that it is no more than the iteration, plan_check has seen). Each
 * difference goes to `fault`, one line, PLAN_CHECK_MAX_FAULTS at most. The plan, which passed
 * plan_check, has the model's estimates afterwards. Returns 0, PLAN_CHECK_UNSOUND, or an error.
 */
int estimate_check(const struct skrull_planner_options *options,
                   const struct skrull_cost_model *cost, struct skrull_plan *plan,
                   void (*fault)(void *arg, const char *message), void *arg,
                   struct skrull_error *err);
