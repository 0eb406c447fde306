/* Plans as they come from outside: verified by their digests, and put together from parts. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/plan.h>

/*
 * Recomputes the digest of every rank that `plan` holds, and of the whole where it holds all ranks.
 * DATA_LOSS: one differs, or dp x cp is not a grid.
 */
int plan_verify_digests(const struct skrull_plan *plan, struct skrull_error *err);

/*
 * One plan of the ranks of all parts ([n_parts], at least 1), whose ranks ascend from part to part.
 * ABORTED: they are not parts of one plan. RESOURCE_EXHAUSTED: out of memory.
 */
int plan_merge(struct skrull_plan *const *parts, size_t n_parts, struct skrull_plan **ret_plan,
               struct skrull_error *err);
