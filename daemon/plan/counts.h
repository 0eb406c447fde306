/* How many micro-batches a rank runs. */
#pragma once

#include <stdint.h>

#include <skrull/planner.h>

#include "plan/policy.h"

/* What the counts of `options` (completed, but not yet trusted) say against one another, against
 * equal counts and against the size of a plan. INVALID_ARGUMENT names the key. */
int counts_check_options(const struct skrull_planner_options *options, struct skrull_error *err);

/* The highest micro-batch of the placements, and 1. */
uint32_t counts_most(const struct placement *placements, uint32_t n);

/* With equal counts: of every rank, where placements use `most`. Dummies fill up to the exact
 * count, or to the least that is enough, at least the minimum and a multiple. */
uint32_t counts_equal(const struct skrull_planner_options *options, uint32_t most);
