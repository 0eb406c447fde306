/* The order in which micro-batches are run. */
#pragma once

#include "plan/policy.h"

/*
 * Renumbers the micro-batches of `placements` ([n_sequences]) as batch.micro_batch_order asks, on
 * all ranks of a DP rank alike, with elastic groups on all ranks of the job. The key is the time
 * that a micro-batch takes alone, of its slowest rank. largest_first: descending; heavy_middle:
 * descending, the first in the middle, then alternately right and left of it; ties keep their
 * order.
 *
 * With equal counts the dummies that fill up are ordered too, as the lightest, so that the middle
 * is the same on all ranks; else numbers without a sequence are left out. as_planned changes
 * nothing. RESOURCE_EXHAUSTED: out of scratch memory. O(placed segments + sequences x log
 * sequences).
 */
int order_micro_batches(const struct batch *batch, struct placement *placements,
                        struct skrull_error *err);
