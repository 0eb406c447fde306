/* The batch as the joint solver sees it: costs and slots at every size, and the tree of groups. */
#pragma once

#include <stdbool.h>

#include "cost/cost.h"
#include "plan/batch.h"

#define JOINT_NONE UINT32_MAX
#define JOINT_NO_TIME INT64_MAX

/* Groups of one size. Level 0 is the smallest; sizes divide one another, so groups are nested. */
struct joint_level {
    uint32_t size;          /* ranks of a group */
    uint32_t fanout;        /* groups of the level below in one of this level; level 0: 1 */
    uint32_t n_nodes;       /* groups: ranks / size */
    uint32_t first_node;    /* number of the first; those of a level follow one another by rank */
    enum cost_link link;    /* the cheapest of the groups' */
    const int64_t *comp_ns; /* [n_sequences] computation on each member */
    const uint32_t *slots;  /* [n_sequences] padded tokens on each member; JOINT_NONE: above C */
};

struct joint_problem {
    const struct batch *batch;
    const uint32_t *lengths; /* [n_sequences] */
    const uint32_t *order;   /* [n_sequences] longest first, ties by place in the batch */
    uint32_t n_sequences, n_ranks, n_nodes, bucket;
    uint32_t n_levels;
    bool has_local;               /* level 0 is of single ranks */
    uint32_t first_group;         /* number of the first group of several ranks */
    bool is_equal;                /* all ranks run the same number of micro-batches */
    bool is_uniform;              /* one group size in a rank's micro-batch */
    uint32_t least_micro_batches; /* that any plan has */
    int64_t fixed_ns;  /* what opening a micro-batch costs its rank: with equal counts 0, as ... */
    int64_t shared_ns; /* ... all ranks then pay this for each, whoever uses it; else 0 */
    struct joint_level levels[DEGREES_MAX];
    uint32_t *parents;    /* [n_nodes] group of the next level around it; JOINT_NONE at the top */
    uint8_t *node_levels; /* [n_nodes] */
    uint8_t *node_links;  /* [n_nodes] enum cost_link of the group */
    bool is_even;         /* groups of a size are all alike: of one link */
};

/* Costs of `batch` (borrowed, as is its scratch memory) at the sizes in `degrees`. Returns 0, or
 * RESOURCE_EXHAUSTED. O(sizes x sequences + ranks). */
int joint_problem_init(struct joint_problem *problem, const struct batch *batch,
                       const struct degrees *degrees);

/* The same batch at fewer sizes, all of them levels of `whole`: costs are shared. */
int joint_problem_narrow(struct joint_problem *problem, const struct joint_problem *whole,
                         const struct degrees *degrees);

/* Does every sequence fit at some level? */
bool joint_problem_is_open(const struct joint_problem *problem);

/* First rank of a group. */
static inline uint32_t joint_first_rank(const struct joint_problem *problem, uint32_t node)
{
    const struct joint_level *level = &problem->levels[problem->node_levels[node]];

    return (node - level->first_node) * level->size;
}

/* Iteration time, where the last clock says `clock_ns` after `n_mb` micro-batches: with equal
 * counts what all ranks pay is added. JOINT_NO_TIME: more micro-batches than an exact count allows.
 */
int64_t joint_total_ns(const struct joint_problem *problem, int64_t clock_ns, uint32_t n_mb);

/* Exchange of a group for `tokens` in all. */
int64_t joint_exchange_ns(const struct joint_problem *problem, uint32_t node, uint64_t tokens);
