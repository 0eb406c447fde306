/*
 * A short sorted list. Two placements of the same time are most likely the same one under other
 * names of ranks; only one is kept.
 */
#include "plan/joint/pool.h"

#include "arena.h"

int joint_pool_init(struct joint_pool *pool, const struct joint_problem *problem)
{
    *pool = (struct joint_pool){0};
    for (uint32_t i = 0; i < JOINT_POOL_SIZE; i++) {
        pool->entries[i].places =
            ARENA_ARRAY(problem->batch->scratch, struct joint_place, problem->n_sequences);
        if (!pool->entries[i].places) {
            return SKRULL_ERR_RESOURCE_EXHAUSTED;
        }
    }
    return 0;
}

/* Moves entry i to its place among those before it. */
static void sift(struct joint_pool *pool, uint32_t i)
{
    const struct joint_entry entry = pool->entries[i];

    for (; i > 0 && pool->entries[i - 1].total_ns > entry.total_ns; i--) {
        pool->entries[i] = pool->entries[i - 1];
    }
    pool->entries[i] = entry;
}

static bool holds(const struct joint_pool *pool, int64_t total_ns)
{
    for (uint32_t i = 0; i < pool->n; i++) {
        if (pool->entries[i].total_ns == total_ns) {
            return true;
        }
    }
    return false;
}

void joint_pool_offer(struct joint_pool *pool, const struct joint_state *state, int64_t clock_ns)
{
    const int64_t most_ns = joint_total_ns(state->problem, clock_ns, state->n_mb);
    uint32_t i = pool->n;

    if (holds(pool, most_ns)) {
        return;
    }
    if (pool->n == JOINT_POOL_SIZE) {
        i--;
        if (pool->entries[i].total_ns <= most_ns) {
            return;
        }
    } else {
        pool->n++;
    }
    pool->entries[i].total_ns =
        joint_total_ns(state->problem, clock_ns, joint_state_save(state, pool->entries[i].places));
    sift(pool, i);
}

void joint_pool_set(struct joint_pool *pool, uint32_t i, const struct joint_state *state,
                    int64_t clock_ns)
{
    pool->entries[i].total_ns =
        joint_total_ns(state->problem, clock_ns, joint_state_save(state, pool->entries[i].places));
}

void joint_pool_sort(struct joint_pool *pool)
{
    for (uint32_t i = 1; i < pool->n; i++) {
        sift(pool, i);
    }
}
