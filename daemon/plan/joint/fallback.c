/*
 * Next fit: needs no sums but one bucket a rank, so that it holds batches of any number of
 * micro-batches. Only used where nothing else found a placement.
 */
#include "plan/joint/fallback.h"

#include <string.h>

#include "arena.h"

struct next_fit {
    const struct joint_problem *problem;
    uint32_t *padded; /* [n_ranks] of the current micro-batch */
    uint8_t *kinds;   /* [n_ranks] level and 1 of what is in it */
};

static bool has_room(const struct next_fit *fit, uint32_t l, uint32_t first, uint32_t slot)
{
    const struct joint_problem *problem = fit->problem;

    for (uint32_t r = first; r < first + problem->levels[l].size; r++) {
        if (fit->padded[r] > problem->bucket - slot ||
            (problem->is_uniform && fit->kinds[r] != 0 && fit->kinds[r] != l + 1)) {
            return false;
        }
    }
    return true;
}

static bool place(struct next_fit *fit, uint32_t k, uint32_t l, struct placement *ret)
{
    const struct joint_level *level = &fit->problem->levels[l];
    const uint32_t slot = level->slots[k];

    for (uint32_t i = 0; i < level->n_nodes; i++) {
        const uint32_t first = i * level->size;

        if (!has_room(fit, l, first, slot)) {
            continue;
        }
        for (uint32_t r = first; r < first + level->size; r++) {
            fit->padded[r] += slot;
            fit->kinds[r] = (uint8_t)(l + 1);
        }
        ret->group_first = first;
        ret->group_size = level->size;
        return true;
    }
    return false;
}

int joint_fall_back(const struct joint_problem *problem, struct placement *placements)
{
    struct arena *arena = problem->batch->scratch;
    struct next_fit fit = {.problem = problem,
                           .padded = ARENA_ARRAY(arena, uint32_t, problem->n_ranks),
                           .kinds = ARENA_ARRAY(arena, uint8_t, problem->n_ranks)};
    uint32_t mb = 0;

    if (!fit.padded || !fit.kinds) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (uint32_t i = 0; i < problem->n_sequences; i++) {
        const uint32_t k = problem->order[i];
        uint32_t l = 0;

        while (problem->levels[l].slots[k] == JOINT_NONE) {
            l++;
        }
        if (!place(&fit, k, l, &placements[k])) {
            memset(fit.padded, 0, problem->n_ranks * sizeof(*fit.padded));
            memset(fit.kinds, 0, problem->n_ranks * sizeof(*fit.kinds));
            mb++;
            (void)place(&fit, k, l, &placements[k]);
        }
        placements[k].micro_batch = mb;
    }
    return 0;
}
