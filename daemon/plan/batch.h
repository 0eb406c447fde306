/* What a policy sees: the batch with every cost and every slot computed once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skrull/planner.h>

#include "plan/degrees.h"

struct arena;

#define SLOT_NONE INT64_MAX

/* One sequence at the group sizes 1 and cp. */
struct batch_item {
    int64_t local_ns;   /* computation on one rank */
    int64_t shard_ns;   /* computation on each of the cp ranks */
    int64_t local_slot; /* padded tokens on one rank; SLOT_NONE: not allowed, or above the bucket */
    int64_t shard_slot; /* padded tokens on each of the cp ranks; SLOT_NONE likewise */
};

struct batch {
    struct skrull_planner_options options; /* completed */
    const struct skrull_cost_model *cost;
    const struct skrull_sequence *sequences; /* [n_sequences], ascending sample */
    const struct batch_item *items;          /* [n_sequences] */
    uint32_t n_sequences;
    struct degrees degrees;    /* group sizes that the policy may use */
    bool has_local, has_shard; /* 1 and cp are among them; of cp 1 only the first */
    struct arena *scratch;     /* freed when the plan is done */
};

/*
 * Checks the input of a plan and computes the items. INVALID_ARGUMENT: options, a sequence that is
 * malformed or fits at no group size (names sample, length, limit and remedy), or a batch whose
 * time could pass PLANNER_MAX_NS. `scratch` is borrowed.
 */
int batch_init(struct batch *batch, const struct skrull_planner_input *input, struct arena *scratch,
               struct skrull_error *err);
