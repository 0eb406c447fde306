/* Moves of up to a few sequences at once: tried, timed, kept or undone. */
#pragma once

#include "plan/joint/clock.h"

#define JOINT_MOVES_MAX 2

struct joint_move {
    uint32_t k;
    struct joint_place place;
};

/* A change under trial. */
struct joint_change {
    struct joint_move moves[JOINT_MOVES_MAX], undo[JOINT_MOVES_MAX];
    uint32_t n_moves;
    struct joint_block blocks[2 * JOINT_MOVES_MAX]; /* disjoint: what may have another clock */
    uint32_t n_blocks, from_mb, n_mb_before;
};

/*
 * Makes the moves of `change` and times the blocks they touch. Returns the largest clock in these
 * at the end; JOINT_NO_TIME, and nothing is changed: no room, or some rank would be busy for
 * `limit_ns` or longer. All clocks of `state` must be up to date.
 */
int64_t joint_change_try(struct joint_state *state, struct joint_change *change, int64_t limit_ns);

/* Ends a trial that has a time: as it is, or as it was. */
void joint_change_keep(struct joint_state *state, const struct joint_change *change);
void joint_change_undo(struct joint_state *state, const struct joint_change *change);
