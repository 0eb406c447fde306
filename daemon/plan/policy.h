/*
 * A policy places each sequence of a batch: in which micro-batch, on which group of ranks. All else
 * (segments, padding, dummies, weights, digests, times) follows from the placements, the same way
 * for every policy.
 *
 * To add one: policy_NAME.c with policy_NAME_place, and one line in policies.def. Policies share
 * helpers, never each other.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/planner.h>

#include "plan/batch.h"

/* Where one sequence goes. Groups are aligned: group_first is a multiple of group_size. */
struct placement {
    uint32_t micro_batch; /* counted per rank from 0; the same on all members of the group */
    uint32_t group_first;
    uint32_t group_size; /* one of the allowed sizes */
};

/*
 * Fills placements[n_sequences]. No micro-batch of a rank may hold more padded tokens than the
 * bucket. Every sequence of the batch fits at one of the policy's group sizes at least. Pure: the
 * same batch gives the same placements; scratch memory only from batch->scratch.
 * RESOURCE_EXHAUSTED: out of it.
 */
typedef int (*policy_place_fn)(const struct batch *batch, struct placement *placements,
                               struct skrull_error *err);

/* Which of the job's group sizes a policy uses. */
enum policy_sizes {
    POLICY_SIZES_TWO, /* 1 and cp, in both modes */
    POLICY_SIZES_ALL, /* every one that the job allows */
};

struct policy {
    const char *name;
    const char *summary;
    enum policy_sizes sizes;
    policy_place_fn place; /* NULL: a name still to come */
};

/* The policy of a name; NULL or "" means the default, joint. INVALID_ARGUMENT:
 * "policy: unknown policy NAME" or "policy: NAME is not built yet". */
int policy_find(const char *name, const struct policy **ret_policy, struct skrull_error *err);

/* The group sizes that the policy of `options` (completed) uses. INVALID_ARGUMENT: the policy, or
 * no size is left. */
int policy_degrees(const struct skrull_planner_options *options, struct degrees *ret_degrees,
                   struct skrull_error *err);

/* One of each in policies.def. */
#define POLICY(name, sizes, summary)                                                               \
    int policy_##name##_place(const struct batch *batch, struct placement *placements,             \
                              struct skrull_error *err);
#define PLANNED(name)
#include "plan/policies.def"
#undef POLICY
#undef PLANNED
