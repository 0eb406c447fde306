/* The evaluator's clocks over a state: all ranks, or only the block that a change can reach. */
#pragma once

#include "plan/joint/state.h"

/* Ranks [first, first + n_ranks) that no group in use crosses, and the highest level inside. */
struct joint_block {
    uint32_t first, n_ranks, level;
};

/* The largest group in use that holds `node`, at least the node itself. */
struct joint_block joint_block_of(const struct joint_state *state, uint32_t node);

/* Runs all ranks through all micro-batches into state->clocks. Returns the largest clock. */
int64_t joint_clock_all(struct joint_state *state);

/* The same by state->order, without keeping the clocks: trial_clocks are used. */
int64_t joint_clock_ordered(struct joint_state *state);

/* Runs a block from micro-batch `from_mb`, before which nothing has changed, into trial_clocks.
 * Returns its largest clock at the end. */
int64_t joint_clock_try(struct joint_state *state, struct joint_block block, uint32_t from_mb);

/* Makes the trial of a block its clocks. */
void joint_clock_keep(struct joint_state *state, struct joint_block block, uint32_t from_mb);

/* Rank with the largest clock at the end, the lowest of equals. */
uint32_t joint_clock_last(const struct joint_state *state);

/* Its clock. */
static inline int64_t joint_clock_of(const struct joint_state *state, uint32_t rank)
{
    return state->clocks[(size_t)state->n_mb * state->problem->n_ranks + rank];
}

/* Lets the groups of one level meet in a micro-batch: in `block`, on its row of clocks. */
void joint_clock_meet(const struct joint_state *state, uint32_t mb, uint32_t level,
                      struct joint_block block, int64_t *row);
