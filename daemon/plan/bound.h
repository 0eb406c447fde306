/* What no plan of a batch can beat. */
#pragma once

#include <skrull/planner.h>

#include "plan/degrees.h"

struct arena;

/* The batch whose plans are bounded; all borrowed. */
struct bound_input {
    const struct skrull_planner_options *options; /* completed */
    const struct degrees *degrees;                /* sizes that a plan may use */
    const struct skrull_cost_model *cost;
    uint32_t *lengths; /* [n] */
    uint32_t n;
};

/*
 * The best proved lower bound on the modelled time of any plan, in whole ns: the largest of
 *   (total work + fixed x total tokens / bucket) / ranks and total work / ranks + fixed,
 *   fixed + the least time of any one sequence alone, exchange included,
 *   fixed x ceil(total tokens / (bucket x ranks)),
 * over the sizes at which a sequence fits the bucket, and what bound_refute.h refutes. Sorts the
 * lengths; leaves out those that fit nowhere. RESOURCE_EXHAUSTED: no scratch memory.
 * O(sizes x (n + log n x log time)).
 */
int bound_of_lengths(struct bound_input *input, struct arena *scratch, int64_t *ret_bound_ns,
                     struct skrull_error *err);

/* The same of a whole plan's sequences; the plan has been evaluated or passed plan_check. */
int bound_of_plan(const struct skrull_planner_options *options, const struct degrees *degrees,
                  const struct skrull_cost_model *cost, const struct skrull_plan *plan,
                  struct arena *scratch, int64_t *ret_bound_ns, struct skrull_error *err);
