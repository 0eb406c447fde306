/* Times a plan, whoever made it. */
#pragma once

#include <skrull/planner.h>

struct arena;

/*
 * Fills every estimate of a whole plan but the bound, from the plan's structure alone. `options`
 * are completed (only equal_micro_batches is used: are dummies run?). INVALID_ARGUMENT: the time
 * passes 2^62 ns, or the plan is not whole or its groups do not hold together (plan_check says
 * more). Linear in segments and in ranks x micro-batches.
 */
int evaluate_plan(const struct skrull_planner_options *options,
                  const struct skrull_cost_model *cost, bool barrier, struct skrull_plan *plan,
                  struct arena *scratch, struct skrull_error *err);
