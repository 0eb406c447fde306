/*
 * Trials. Only blocks around the old and the new places of the moved sequences can have other
 * clocks, and only from the first micro-batch that is touched.
 */
#include "plan/joint/change.h"

#include <string.h>

static bool contains(const struct joint_block *outer, const struct joint_block *inner)
{
    return inner->first >= outer->first &&
           inner->first - outer->first + inner->n_ranks <= outer->n_ranks;
}

/* Blocks are nested or disjoint: a new one replaces those inside it. */
static void add_block(struct joint_change *change, struct joint_block block)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < change->n_blocks; i++) {
        if (contains(&change->blocks[i], &block)) {
            return;
        }
    }
    for (uint32_t i = 0; i < change->n_blocks; i++) {
        if (!contains(&block, &change->blocks[i])) {
            change->blocks[n++] = change->blocks[i];
        }
    }
    change->blocks[n++] = block;
    change->n_blocks = n;
}

static void take_out(struct joint_state *state, struct joint_change *change)
{
    change->n_blocks = 0;
    change->from_mb = UINT32_MAX;
    change->n_mb_before = state->n_mb;
    for (uint32_t i = 0; i < change->n_moves; i++) {
        const uint32_t k = change->moves[i].k;
        const struct joint_place old = state->links[k].place;

        change->undo[i] = (struct joint_move){.k = k, .place = old};
        change->from_mb = old.mb < change->from_mb ? old.mb : change->from_mb;
        add_block(change, joint_block_of(state, old.node));
    }
    for (uint32_t i = 0; i < change->n_moves; i++) {
        joint_state_remove(state, change->moves[i].k);
    }
}

static void put_back(struct joint_state *state, const struct joint_change *change)
{
    for (uint32_t i = 0; i < change->n_moves; i++) {
        joint_state_add(state, change->undo[i].k, change->undo[i].place);
    }
    state->n_mb = change->n_mb_before;
}

/* False: no room, and what was put in has been taken out again. */
static bool put_in(struct joint_state *state, struct joint_change *change)
{
    for (uint32_t i = 0; i < change->n_moves; i++) {
        const struct joint_move *move = &change->moves[i];

        if (!joint_state_has_room(state, move->k, move->place)) {
            while (i > 0) {
                joint_state_remove(state, change->moves[--i].k);
            }
            return false;
        }
        joint_state_add(state, move->k, move->place);
        change->from_mb = move->place.mb < change->from_mb ? move->place.mb : change->from_mb;
    }
    return true;
}

/* A rank's own work alone already takes too long. */
static bool is_too_busy(const struct joint_state *state, const struct joint_change *change,
                        int64_t limit_ns)
{
    const struct joint_problem *problem = state->problem;

    for (uint32_t i = 0; i < change->n_moves; i++) {
        const uint32_t node = change->moves[i].place.node;
        const uint32_t first = joint_first_rank(problem, node);
        const uint32_t size = problem->levels[problem->node_levels[node]].size;

        for (uint32_t r = first; r < first + size; r++) {
            if (state->busy_ns[r] >= limit_ns) {
                return true;
            }
        }
    }
    return false;
}

/* A micro-batch was opened: where no block changes, clocks stand still in it. */
static void extend_clocks(struct joint_state *state, uint32_t n_mb_before)
{
    const size_t n_ranks = state->problem->n_ranks;

    for (uint32_t mb = n_mb_before; mb < state->n_mb; mb++) {
        memcpy(&state->clocks[(mb + 1) * n_ranks], &state->clocks[mb * n_ranks],
               n_ranks * sizeof(*state->clocks));
    }
}

int64_t joint_change_try(struct joint_state *state, struct joint_change *change, int64_t limit_ns)
{
    int64_t last_ns = 0;

    take_out(state, change);
    if (!put_in(state, change)) {
        put_back(state, change);
        return JOINT_NO_TIME;
    }
    if (is_too_busy(state, change, limit_ns)) {
        joint_change_undo(state, change);
        return JOINT_NO_TIME;
    }
    for (uint32_t i = 0; i < change->n_moves; i++) {
        add_block(change, joint_block_of(state, change->moves[i].place.node));
    }
    extend_clocks(state, change->n_mb_before);
    for (uint32_t i = 0; i < change->n_blocks; i++) {
        const int64_t block_ns = joint_clock_try(state, change->blocks[i], change->from_mb);

        last_ns = block_ns > last_ns ? block_ns : last_ns;
    }
    return last_ns;
}

void joint_change_keep(struct joint_state *state, const struct joint_change *change)
{
    for (uint32_t i = 0; i < change->n_blocks; i++) {
        joint_clock_keep(state, change->blocks[i], change->from_mb);
    }
}

void joint_change_undo(struct joint_state *state, const struct joint_change *change)
{
    for (uint32_t i = 0; i < change->n_moves; i++) {
        joint_state_remove(state, change->moves[i].k);
    }
    put_back(state, change);
}
