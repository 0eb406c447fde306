/*
 * Judges any plan against the rules of the contract and a job's limits, knowing nothing of
 * policies.
 */
#pragma once

#include <stddef.h>

#include <skrull/plan.h>

/* A sequence as the index has it, for a plan to be held against. */
struct plan_check_sequence {
    uint64_t length; /* after truncation; 0: no such row */
    uint64_t loss_tokens;
};

/* The limits; also how to look a sequence up. */
struct plan_check_rules {
    uint32_t dp, cp;
    const uint32_t *degrees; /* [n_degrees] allowed group sizes, ascending */
    size_t n_degrees;
    uint32_t bucket_tokens, align;
    enum skrull_shard shard;
    enum skrull_loss loss;
    bool equal_micro_batches;
    uint32_t micro_batches; /* exact count of every rank, which makes counts equal; 0: free */
    uint32_t micro_batch_multiple, micro_batch_min; /* with equal counts; 0 or 1: any */
    enum skrull_mix mix;
    uint64_t n_sequences; /* expected in the batch, 0: not checked */
    /* Fills the sequence of (dataset, row); NULL: lengths are not checked against the index. */
    void (*lookup)(void *arg, uint32_t dataset, uint64_t row, struct plan_check_sequence *ret);
    void *arg;
};

/* Called once a fault, at most `PLAN_CHECK_MAX_FAULTS` times; message is one line. */
typedef void (*plan_check_fault)(void *arg, const char *message);
#define PLAN_CHECK_MAX_FAULTS 50

/*
 * Checks a whole plan (all dp x cp ranks): exactly once, capacity, groups, order, padding, dummies,
 * weights, totals, sums and both digests. Returns 0: sound; PLAN_CHECK_UNSOUND: faults were
 * reported; RESOURCE_EXHAUSTED: out of memory; INTERNAL: the hash library failed. Never crashes,
 * whatever the plan says, as long as its arrays are as long as it says. n log n in the segments.
 *
 * Without `lookup` a weight is held against the plan's own totals (token_mean), or must only be one
 * that could be (sequence_mean). What a plan that is not of dp x cp ranks holds is not looked at.
 */
#define PLAN_CHECK_UNSOUND 1
int plan_check(const struct skrull_plan *plan, const struct plan_check_rules *rules,
               plan_check_fault fault, void *arg);
