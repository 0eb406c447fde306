/* What no plan of a batch can beat. */
#pragma once

#include <skrull/planner.h>

#include "plan/degrees.h"

/*
 * The lower bound of model.md, from the sequences of a whole plan: the largest of
 *   (total work + fixed x total tokens / bucket) / ranks and total work / ranks + fixed,
 *   fixed + the least time of any one sequence alone, exchange included,
 *   fixed x ceil(total tokens / (bucket x ranks)),
 * over the allowed sizes at which a sequence fits the bucket. Rounded down. `options` are
 * completed; the plan has been evaluated or passed plan_check.
 */
int64_t bound_of_plan(const struct skrull_planner_options *options, const struct degrees *degrees,
                      const struct skrull_cost_model *cost, const struct skrull_plan *plan);
