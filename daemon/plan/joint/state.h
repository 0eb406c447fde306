/*
 * A partial or whole placement with the sums that make a change cheap: what each group does in each
 * micro-batch, what each rank then needs, and every rank's clock before each micro-batch.
 */
#pragma once

#include "plan/joint/problem.h"

/* Where a sequence is. */
struct joint_place {
    uint32_t mb, node;
};

/* A group of several ranks in a micro-batch. */
struct joint_cell {
    int64_t work_ns;     /* computation on each member */
    int64_t exchange_ns; /* of all its sequences together */
    uint64_t tokens;     /* their lengths; 0: the group is not used there */
};

/* A rank in a micro-batch. */
struct joint_bucket {
    int64_t local_ns;    /* computation of its local sequences */
    int64_t exchange_ns; /* of its groups */
    uint32_t padded;     /* tokens */
    uint32_t count;      /* sequences */
    uint32_t kind;       /* level of the last sequence put there and 1; 0: empty */
};

/* A sequence where it is, in the list of its group's. */
struct joint_link {
    int64_t local_ns; /* computation on one rank */
    uint32_t next, previous;
    struct joint_place place; /* node JOINT_NONE: not placed */
};

struct joint_state {
    const struct joint_problem *problem;
    uint32_t n_mb;   /* micro-batches in use; some below may have become empty */
    uint32_t max_mb; /* what memory is there for */

    struct joint_cell *cells;     /* [max_mb][n_nodes - first_group] */
    struct joint_bucket *buckets; /* [max_mb][n_ranks] */
    int64_t *own_ns;        /* [max_mb][n_ranks] what a rank does before its groups meet: fixed +
                               max(local work, exchange); 0 where it has no work */
    uint32_t *level_counts; /* [max_mb][n_levels] sequences */

    /* [n_ranks] */
    int64_t *load_ns; /* fixed + all computation: exchange and waits left out */
    int64_t *busy_ns; /* own_ns + computation of groups: only waits left out */
    uint32_t *tops;   /* above the last micro-batch that the rank has used since it was cleared */

    /* Sequences of a group, of all micro-batches: doubly linked lists */
    uint32_t *users, *heads;  /* [n_nodes] how many; first or JOINT_NONE */
    struct joint_link *links; /* [n_sequences] */
    uint32_t *order;   /* [max_mb] micro-batch that runs i-th: i, save while orders are tried */
    uint32_t *numbers; /* [max_mb] scratch of joint_state_save */

    /* [max_mb + 1][n_ranks] clocks before each micro-batch; row n_mb: at the end. clock.h */
    int64_t *clocks, *trial_clocks;
};

/* Memory for micro-batches below `max_mb`, all empty. Returns 0, or RESOURCE_EXHAUSTED. */
int joint_state_init(struct joint_state *state, const struct joint_problem *problem,
                     uint32_t max_mb);

/* Micro-batches run by number again. */
void joint_state_reset_order(struct joint_state *state);

/* Takes out everything. */
void joint_state_clear(struct joint_state *state);

/* Replaces everything by `places` ([n_sequences], micro-batches below max_mb). */
void joint_state_load(struct joint_state *state, const struct joint_place *places);

/* Copies the places ([n_sequences]), numbered anew where micro-batches are empty on all ranks.
 * Every sequence must be placed. Returns how many micro-batches are left. */
uint32_t joint_state_save(const struct joint_state *state, struct joint_place *ret_places);

/* Is there room for sequence k in the buckets of a group in a micro-batch below max_mb? */
bool joint_state_has_room(const struct joint_state *state, uint32_t k, struct joint_place place);

/* Puts in sequence k, which is not placed; takes it out. Clocks stay as they are. O(group size). */
void joint_state_add(struct joint_state *state, uint32_t k, struct joint_place place);
void joint_state_remove(struct joint_state *state, uint32_t k);

static inline struct joint_bucket *joint_bucket_at(const struct joint_state *state, uint32_t mb,
                                                   uint32_t rank)
{
    return &state->buckets[(size_t)mb * state->problem->n_ranks + rank];
}

/* `node`: a group of several ranks. */
static inline struct joint_cell *joint_cell_at(const struct joint_state *state, uint32_t mb,
                                               uint32_t node)
{
    const struct joint_problem *problem = state->problem;

    return &state->cells[(size_t)mb * (problem->n_nodes - problem->first_group) + node -
                         problem->first_group];
}
