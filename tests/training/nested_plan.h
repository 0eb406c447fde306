/* A plan that no policy makes yet: groups of 8, 4, 2 and 1 ranks in one micro-batch. */
#pragma once

#include <skrull/planner.h>

/* Eight ranks, two micro-batches each, of which some are dummies. Freed by nested_plan_free. */
struct skrull_plan *nested_plan_new(const struct skrull_sequence *sequences, size_t n_sequences,
                                    uint64_t step, uint32_t align, enum skrull_shard shard);
/* Distributed groups that one rank has in one micro-batch, at most. */
uint32_t nested_plan_groups(const struct skrull_plan *plan);
void nested_plan_free(struct skrull_plan *plan);
