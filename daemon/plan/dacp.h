/* DACP: one micro-batch of one DP rank over its CP ranks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/batch.h"
#include "plan/least.h"
#include "plan/policy.h"

/* Which rank a local sequence is tried on. */
enum dacp_rule {
    DACP_LEAST_LOADED_FIRST, /* the least-loaded rank, else the one with most room */
    DACP_MOST_ROOM,          /* only the one with most room */
};

/* Local sequences of a rank by length, as a stack of runs of equal length: the longest run is on
 * top, and within a run the lowest sample comes first. All are places in the batch; DACP_NONE:
 * none. */
struct dacp_stack {
    uint32_t *tops;  /* [n_ranks] first of the top run */
    uint32_t *nexts; /* [n_sequences] next of the run */
    uint32_t *lasts; /* [n_sequences] of a run's first: its last */
    uint32_t *below; /* [n_sequences] of a run's first: first of the run below */
};

#define DACP_NONE UINT32_MAX

/* Memory of DACP, used again for each micro-batch. */
struct dacp {
    const struct batch *batch;
    enum dacp_rule rule;
    uint32_t n_ranks;
    struct least load;     /* ns of local sequences; shards weigh on all ranks alike */
    struct least taken;    /* padded tokens of local sequences: least is most room */
    struct least untaken;  /* the same, negative: least is least room */
    int64_t shared_tokens; /* padded tokens of shards, the same on every rank */
    struct dacp_stack locals;
};

/* Memory for any micro-batch of `batch` (borrowed). Returns 0, or RESOURCE_EXHAUSTED. */
int dacp_init(struct dacp *dacp, const struct batch *batch, enum dacp_rule rule);

/* Sequences of a micro-batch: every `stride`-th place of `order` from `first` below `end`, which
 * ascend by length, ties by sample. */
struct dacp_deal {
    const uint32_t *order;
    size_t first, end, stride;
};

/*
 * Places the sequences of a micro-batch on ranks 0 to cp - 1: fills group_first and group_size of
 * their placements. False: it fails, and placements are partly written. O(log cp) a placement;
 * there are at most two a sequence.
 */
bool dacp_place(struct dacp *dacp, const struct dacp_deal *deal, struct placement *placements);
