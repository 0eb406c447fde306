/* From placements to the flat plan: segments, padding, dummies, loss weights, totals. */
#pragma once

#include "plan/policy.h"

struct arena;

/*
 * Lays out the plan of a batch in `arena` (the plan's own): all arrays, weights and totals, but no
 * digests, estimates or head (job, uid, policy, revision, step, epoch). Ranks' micro-batches follow
 * one another by data rank, segments by micro-batch. RESOURCE_EXHAUSTED: above PLANNER_MAX_BYTES,
 * or out of memory. Linear in the number of segments and micro-batches.
 */
int layout_plan(const struct batch *batch, const struct placement *placements, struct arena *arena,
                struct skrull_plan **ret_plan, struct skrull_error *err);
