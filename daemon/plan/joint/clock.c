/*
 * The evaluator of model.md on sums: in a micro-batch a rank's clock advances by own_ns; then the
 * groups meet, smaller ones first, each starting when its last member is ready. With equal counts
 * every rank pays `fixed` for every micro-batch; that shifts all clocks alike and is left out here.
 */
#include "plan/joint/clock.h"

#include <string.h>

struct joint_block joint_block_of(const struct joint_state *state, uint32_t node)
{
    const struct joint_problem *problem = state->problem;
    uint32_t top = node, level;

    for (uint32_t above = problem->parents[node]; above != JOINT_NONE;
         above = problem->parents[above]) {
        if (state->users[above] > 0) {
            top = above;
        }
    }
    level = problem->node_levels[top];
    return (struct joint_block){.first = joint_first_rank(problem, top),
                                .n_ranks = problem->levels[level].size,
                                .level = level};
}

void joint_clock_meet(const struct joint_state *state, uint32_t mb, uint32_t level,
                      struct joint_block block, int64_t *row)
{
    const struct joint_problem *problem = state->problem;
    const uint32_t size = problem->levels[level].size;
    const struct joint_cell *cell =
        joint_cell_at(state, mb, problem->levels[level].first_node + block.first / size);
    int64_t *members = &row[block.first], *const end = members + block.n_ranks;

    for (; members < end; members += size, cell++) {
        int64_t clock_ns = 0;

        if (cell->tokens == 0) {
            continue;
        }
        for (uint32_t i = 0; i < size; i++) {
            clock_ns = members[i] > clock_ns ? members[i] : clock_ns;
        }
        clock_ns += cell->work_ns;
        for (uint32_t i = 0; i < size; i++) {
            members[i] = clock_ns;
        }
    }
}

/* From the clocks before a micro-batch, those after it; the two rows may be one. */
static void run_micro_batch(const struct joint_state *state, struct joint_block block, uint32_t mb,
                            const int64_t *from, int64_t *row)
{
    const struct joint_problem *problem = state->problem;
    const size_t end = (size_t)block.first + block.n_ranks;
    const int64_t *own_ns = &state->own_ns[(size_t)mb * problem->n_ranks];
    const uint32_t *level_counts = &state->level_counts[(size_t)mb * problem->n_levels];

    for (size_t r = block.first; r < end; r++) {
        row[r] = from[r] + own_ns[r];
    }
    for (uint32_t l = problem->has_local ? 1 : 0; l <= block.level; l++) {
        if (level_counts[l] > 0) {
            joint_clock_meet(state, mb, l, block, row);
        }
    }
}

/* Runs micro-batches from `from_mb` on; `from` is the row of clocks before it, the rows after it go
 * to `rows` at their places. */
static int64_t run(const struct joint_state *state, struct joint_block block, uint32_t from_mb,
                   const int64_t *from, int64_t *rows)
{
    const struct joint_problem *problem = state->problem;
    const size_t n_ranks = problem->n_ranks, end = (size_t)block.first + block.n_ranks;
    int64_t last_ns = 0;

    for (uint32_t mb = from_mb; mb < state->n_mb; mb++) {
        int64_t *row = &rows[(mb + 1) * n_ranks];

        run_micro_batch(state, block, mb, from, row);
        from = row;
    }
    for (size_t r = block.first; r < end; r++) {
        last_ns = from[r] > last_ns ? from[r] : last_ns;
    }
    return last_ns;
}

int64_t joint_clock_all(struct joint_state *state)
{
    const struct joint_problem *problem = state->problem;
    const struct joint_block all = {.n_ranks = problem->n_ranks, .level = problem->n_levels - 1};

    return run(state, all, 0, state->clocks, state->clocks);
}

int64_t joint_clock_ordered(struct joint_state *state)
{
    const struct joint_problem *problem = state->problem;
    const struct joint_block all = {.n_ranks = problem->n_ranks, .level = problem->n_levels - 1};
    const size_t n_ranks = problem->n_ranks;
    int64_t *row = state->trial_clocks, last_ns = 0;

    memset(row, 0, n_ranks * sizeof(*row));
    for (uint32_t i = 0; i < state->n_mb; i++) {
        run_micro_batch(state, all, state->order[i], row, row);
    }
    for (size_t r = 0; r < n_ranks; r++) {
        last_ns = row[r] > last_ns ? row[r] : last_ns;
    }
    return last_ns;
}

int64_t joint_clock_try(struct joint_state *state, struct joint_block block, uint32_t from_mb)
{
    return run(state, block, from_mb, &state->clocks[(size_t)from_mb * state->problem->n_ranks],
               state->trial_clocks);
}

void joint_clock_keep(struct joint_state *state, struct joint_block block, uint32_t from_mb)
{
    const size_t n_ranks = state->problem->n_ranks;

    for (uint32_t mb = from_mb; mb < state->n_mb; mb++) {
        const size_t at = (mb + 1) * n_ranks + block.first;

        memcpy(&state->clocks[at], &state->trial_clocks[at],
               block.n_ranks * sizeof(*state->clocks));
    }
}

uint32_t joint_clock_last(const struct joint_state *state)
{
    const int64_t *row = &state->clocks[(size_t)state->n_mb * state->problem->n_ranks];
    uint32_t last = 0;

    for (uint32_t r = 1; r < state->problem->n_ranks; r++) {
        last = row[r] > row[last] ? r : last;
    }
    return last;
}
