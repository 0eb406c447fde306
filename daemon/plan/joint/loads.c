/*
 * Keys of nested groups, and on request a tournament tree a level (Knuth, The Art of Computer
 * Programming 3, 5.4.1) that is replayed for the run of groups that a change covers.
 */
#include "plan/joint/loads.h"

#include <string.h>

#include "arena.h"

static int init_trees(struct joint_loads *loads, struct arena *arena)
{
    const struct joint_problem *problem = loads->problem;

    loads->winners = ARENA_ARRAY(arena, uint32_t *, problem->n_levels);
    loads->n_leaves = ARENA_ARRAY(arena, uint32_t, problem->n_levels);
    if (!loads->winners || !loads->n_leaves) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (uint32_t l = 0; l < problem->n_levels; l++) {
        uint32_t n_leaves = 1;

        while (n_leaves < problem->levels[l].n_nodes) {
            n_leaves *= 2;
        }
        loads->n_leaves[l] = n_leaves;
        loads->winners[l] = ARENA_ARRAY(arena, uint32_t, 2 * (size_t)n_leaves);
        if (!loads->winners[l]) {
            return SKRULL_ERR_RESOURCE_EXHAUSTED;
        }
    }
    return 0;
}

int joint_loads_init(struct joint_loads *loads, const struct joint_problem *problem, bool has_trees)
{
    struct arena *arena = problem->batch->scratch;

    *loads = (struct joint_loads){.problem = problem,
                                  .keys_ns = ARENA_ARRAY(arena, int64_t, problem->n_nodes),
                                  .ranks_ns = ARENA_ARRAY(arena, int64_t, problem->n_ranks)};
    if (!loads->keys_ns || !loads->ranks_ns || (has_trees && init_trees(loads, arena))) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    joint_loads_clear(loads);
    return 0;
}

void joint_loads_clear(struct joint_loads *loads)
{
    const struct joint_problem *problem = loads->problem;

    memset(loads->keys_ns, 0, problem->n_nodes * sizeof(*loads->keys_ns));
    memset(loads->ranks_ns, 0, problem->n_ranks * sizeof(*loads->ranks_ns));
    for (uint32_t l = 0; loads->winners && l < problem->n_levels; l++) {
        uint32_t *winners = loads->winners[l];

        for (uint32_t i = 0; i < loads->n_leaves[l]; i++) {
            winners[loads->n_leaves[l] + i] = i;
        }
        for (uint32_t i = loads->n_leaves[l] - 1; i > 0; i--) {
            winners[i] = winners[2 * i]; /* all equal: the lowest */
        }
    }
}

/* Replays the matches of leaves [first, last] of a level. */
static void replay(struct joint_loads *loads, uint32_t l, uint32_t first, uint32_t last)
{
    const struct joint_level *level = &loads->problem->levels[l];
    const int64_t *keys_ns = &loads->keys_ns[level->first_node];
    uint32_t *winners = loads->winners[l];
    uint32_t low = loads->n_leaves[l] + first, high = loads->n_leaves[l] + last;

    while (low > 1) {
        low /= 2;
        high /= 2;
        for (uint32_t i = low; i <= high; i++) {
            const uint32_t a = winners[2 * i], b = winners[2 * i + 1];

            winners[i] = b < level->n_nodes && keys_ns[b] < keys_ns[a] ? b : a;
        }
    }
}

/* Keys of the groups of level l inside the ranks of `node`, from those of the level below. */
static void update_inside(struct joint_loads *loads, uint32_t l, uint32_t first, uint32_t n)
{
    const struct joint_problem *problem = loads->problem;
    const struct joint_level *level = &problem->levels[l];
    const uint32_t per = l > 0 ? level->fanout : level->size;
    const int64_t *below =
        l > 0 ? &loads->keys_ns[problem->levels[l - 1].first_node] : loads->ranks_ns;

    for (uint32_t i = first; i < first + n; i++) {
        int64_t most_ns = 0;

        for (uint32_t j = i * per; j < (i + 1) * per; j++) {
            most_ns = below[j] > most_ns ? below[j] : most_ns;
        }
        loads->keys_ns[level->first_node + i] = most_ns;
    }
    if (loads->winners) {
        replay(loads, l, first, first + n - 1);
    }
}

void joint_loads_update(struct joint_loads *loads, uint32_t node)
{
    const struct joint_problem *problem = loads->problem;
    const uint32_t top = problem->node_levels[node], first = joint_first_rank(problem, node);
    int64_t key_ns;

    for (uint32_t l = 0; l <= top; l++) {
        const uint32_t size = problem->levels[l].size;

        update_inside(loads, l, first / size, problem->levels[top].size / size);
    }
    key_ns = loads->keys_ns[node];
    for (uint32_t above = problem->parents[node]; above != JOINT_NONE;
         above = problem->parents[above]) {
        const uint32_t l = problem->node_levels[above];
        const uint32_t i = above - problem->levels[l].first_node;

        if (loads->keys_ns[above] >= key_ns) {
            break; /* nor do those around it change */
        }
        loads->keys_ns[above] = key_ns;
        if (loads->winners) {
            replay(loads, l, i, i);
        }
    }
}

uint32_t joint_loads_least(const struct joint_loads *loads, uint32_t level)
{
    return loads->problem->levels[level].first_node + loads->winners[level][1];
}
