/* The best placements so far, of different times: where descents start. */
#pragma once

#include "plan/joint/state.h"

#define JOINT_POOL_SIZE 4

struct joint_entry {
    struct joint_place *places; /* [n_sequences] */
    int64_t total_ns;           /* iteration time */
};

struct joint_pool {
    struct joint_entry entries[JOINT_POOL_SIZE]; /* ascending time */
    uint32_t n;
};

/* Returns 0, or RESOURCE_EXHAUSTED. */
int joint_pool_init(struct joint_pool *pool, const struct joint_problem *problem);

/* Takes what `state` holds, all of it placed and its largest clock `clock_ns`, if it is among the
 * best and of another time than those. */
void joint_pool_offer(struct joint_pool *pool, const struct joint_state *state, int64_t clock_ns);

/* Replaces entry i by what `state` holds, out of order; puts all in order. */
void joint_pool_set(struct joint_pool *pool, uint32_t i, const struct joint_state *state,
                    int64_t clock_ns);
void joint_pool_sort(struct joint_pool *pool);
