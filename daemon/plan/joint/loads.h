/* How late each group is while sequences are placed one by one: keys that only grow. */
#pragma once

#include "plan/joint/problem.h"

struct joint_loads {
    const struct joint_problem *problem;
    int64_t *keys_ns;   /* [n_nodes] largest of the group's members */
    int64_t *ranks_ns;  /* [n_ranks] */
    uint32_t **winners; /* [n_levels] tournament over a level's groups; NULL: they are scanned */
    uint32_t *n_leaves; /* [n_levels] */
};

/* Keys of 0; `has_trees`: joint_loads_least is O(1) and an addition costs a path more. Returns 0,
 * or RESOURCE_EXHAUSTED. */
int joint_loads_init(struct joint_loads *loads, const struct joint_problem *problem,
                     bool has_trees);
void joint_loads_clear(struct joint_loads *loads);

/* Adds to one rank, without telling the groups; then joint_loads_update for all that changed. */
static inline void joint_loads_add(struct joint_loads *loads, uint32_t rank, int64_t ns)
{
    loads->ranks_ns[rank] += ns;
}

/* Brings all groups around and inside `node` up to date. O(size + levels). */
void joint_loads_update(struct joint_loads *loads, uint32_t node);

/* The group of a level with the least key, the lowest of equals. Needs trees. */
uint32_t joint_loads_least(const struct joint_loads *loads, uint32_t level);
