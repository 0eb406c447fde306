/*
 * Traces a clock back: in each micro-batch, from the last one, through each group that the rank met
 * in, to the member that made it wait; whatever ran on that member is on the path. Local work that
 * the exchange outlasts is not, for less of it would change nothing.
 */
#include "plan/joint/trace.h"

#include <string.h>

#include "arena.h"

int joint_trace_init(struct joint_trace *trace, const struct joint_problem *problem)
{
    trace->rows = ARENA_ARRAY(problem->batch->scratch, int64_t,
                              ((size_t)problem->n_levels + 1) * problem->n_ranks);
    return trace->rows ? 0 : SKRULL_ERR_RESOURCE_EXHAUSTED;
}

/* Rows of clocks in a micro-batch: row l before the groups of level l meet. */
static void run_levels(struct joint_trace *trace, const struct joint_state *state, uint32_t mb,
                       struct joint_block block)
{
    const struct joint_problem *problem = state->problem;
    const size_t n_ranks = problem->n_ranks;
    const int64_t *clocks = &state->clocks[mb * n_ranks], *own_ns = &state->own_ns[mb * n_ranks];

    for (size_t r = block.first; r < (size_t)block.first + block.n_ranks; r++) {
        trace->rows[r] = clocks[r] + own_ns[r];
    }
    for (uint32_t l = 0; l <= block.level; l++) {
        int64_t *row = &trace->rows[(l + 1) * n_ranks];

        memcpy(row + block.first, row - n_ranks + block.first, block.n_ranks * sizeof(*row));
        if (problem->levels[l].size > 1) {
            joint_clock_meet(state, mb, l, block, row);
        }
    }
}

struct found {
    uint32_t *sequences;
    uint32_t n, max;
};

static void add_sequences(const struct joint_state *state, uint32_t node, uint32_t mb,
                          struct found *found)
{
    for (uint32_t k = state->heads[node]; k != JOINT_NONE && found->n < found->max;
         k = state->links[k].next) {
        if (state->links[k].place.mb == mb) {
            found->sequences[found->n++] = k;
        }
    }
}

/* Member of a group that is ready last, `rank` of equals. */
static uint32_t last_member(const int64_t *row, uint32_t first, uint32_t size, uint32_t rank)
{
    for (uint32_t r = first; r < first + size; r++) {
        rank = row[r] > row[rank] ? r : rank;
    }
    return rank;
}

/* Traces one micro-batch; returns the rank whose start the path goes through. */
static uint32_t trace_back(struct joint_trace *trace, const struct joint_state *state, uint32_t mb,
                           struct joint_block block, uint32_t rank, struct found *found)
{
    const struct joint_problem *problem = state->problem;
    const struct joint_bucket *bucket;

    for (uint32_t l = block.level + 1; l > 0; l--) {
        const struct joint_level *level = &problem->levels[l - 1];
        const uint32_t i = rank / level->size, node = level->first_node + i;

        if (level->size > 1 && joint_cell_at(state, mb, node)->tokens > 0) {
            rank = last_member(&trace->rows[(size_t)(l - 1) * problem->n_ranks], i * level->size,
                               level->size, rank);
            add_sequences(state, node, mb, found);
        }
    }
    bucket = joint_bucket_at(state, mb, rank);
    if (problem->has_local && bucket->local_ns >= bucket->exchange_ns) {
        add_sequences(state, rank, mb, found);
    }
    return rank;
}

uint32_t joint_trace_run(struct joint_trace *trace, const struct joint_state *state, uint32_t rank,
                         uint32_t *ret_sequences, uint32_t max)
{
    const struct joint_problem *problem = state->problem;
    const uint32_t leaf = problem->levels[0].first_node + rank / problem->levels[0].size;
    const struct joint_block block = joint_block_of(state, leaf);
    struct found found = {.sequences = ret_sequences, .max = max};

    for (uint32_t mb = state->n_mb; mb > 0; mb--) {
        run_levels(trace, state, mb - 1, block);
        rank = trace_back(trace, state, mb - 1, block, rank, &found);
    }
    return found.n;
}
