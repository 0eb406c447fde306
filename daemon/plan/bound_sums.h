/* A batch as its lower bounds see it: sums over the shortest sequences, for every group size. */
#pragma once

#include <stdbool.h>

#include "cost/cost.h"
#include "plan/bound.h"

__extension__ typedef __int128 wide;

/* Of one group size. Places are by ascending length. */
struct bound_level {
    uint32_t size;
    uint32_t n_fit;            /* the shortest, whose slots are within the bucket */
    struct cost_links links;   /* of its groups */
    struct cost_line exchange; /* a floor of the exchange of any of its groups */
    int64_t *least_ns;         /* [n] computation on a member of this sequence or of a longer one */
    int64_t
        *work_ns; /* [n + 1] sums of the least size x computation, of this size and larger ones */
};

struct bound_sums {
    uint32_t n; /* sequences that fit at some size */
    uint32_t n_ranks, bucket, n_levels;
    struct bound_level levels[DEGREES_MAX];
    const uint32_t *lengths; /* [n] ascending */
    int64_t *tokens;         /* [n + 1] sums of lengths */
    int64_t *hidden_ns;      /* [n + 1] sums of the exchange that each can hide if it is local */
    int64_t fixed_ns;
    wide hidden_base_ns, hidden_slope_q20; /* see most_hidden() */
    wide least_work_ns, alone_ns;          /* of fitting sizes: total work; the longest lone time */
    wide micro_batches_ns;                 /* fixed cost of all ranks, at least */
    bool is_saturated;                     /* times so long that the floor may not hold */
};

/* `input`: lengths ascend. Returns 0, or RESOURCE_EXHAUSTED. */
int bound_sums_init(struct bound_sums *sums, const struct bound_input *input,
                    struct arena *scratch);
