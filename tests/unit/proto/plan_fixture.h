/*
 * A small plan written down by hand, for the tests of everything that takes one: dp 2, cp 2,
 * zigzag, align 4, bucket 64, groups of 1, 2 and 4, unequal counts with one dummy inside. Its
 * digests were computed by a program of another language from the layout that <skrull/plan.h>
 * states.
 */
#pragma once

#include <stddef.h>
#include <string.h>

#include <skrull/plan.h>

#include "arena.h"
#include "plan_check.h"

#define FIXTURE_DIGEST "4a288df2edfc01b39ef520128ba1bbe6"
#define FIXTURE_RANK_DIGESTS                                                                       \
    {                                                                                              \
        "e1abf9a974e10cf2a33506c83c2066a9", "a808ea7dc649c6371e35e84d49956523",                    \
            "cb4e0b6ef9a20424dec1b92aed4316ea", "fe438a9b3d032d505dceff28a845544a"                 \
    }

/* The index: row is sample - 10 in data set 1. */
static const struct plan_check_sequence fixture_rows[] = {
    {37, 37}, {30, 30}, {21, 0}, {5, 2}, {9, 9}, {7, 7}, {3, 3}, {12, 12},
};
#define FIXTURE_LOSS_TOKENS 100
#define FIXTURE_SAMPLE 10

static inline void fixture_lookup(void *arg, uint32_t dataset, uint64_t row,
                                  struct plan_check_sequence *ret)
{
    (void)arg;
    *ret = (struct plan_check_sequence){0};
    if (dataset == 1 && row < sizeof(fixture_rows) / sizeof(fixture_rows[0])) {
        *ret = fixture_rows[row];
    }
}

/* sample, token_begin, token_end, padded_tokens, group_first, group_size of every segment. */
static const uint32_t fixture_segments[][6] = {
    /* rank 0, micro-batch 0 */
    {10, 0, 8, 8, 0, 4},
    {10, 37, 37, 8, 0, 4},
    {12, 0, 8, 8, 0, 2},
    {12, 21, 21, 8, 0, 2},
    {13, 0, 5, 8, 0, 1},
    /* rank 0, micro-batch 1 */
    {15, 0, 7, 8, 0, 1},
    /* rank 1 */
    {10, 8, 16, 8, 0, 4},
    {10, 37, 37, 8, 0, 4},
    {12, 8, 16, 8, 0, 2},
    {12, 16, 21, 8, 0, 2},
    {14, 0, 9, 12, 1, 1},
    /* rank 2, micro-batch 0 */
    {10, 16, 24, 8, 0, 4},
    {10, 37, 37, 8, 0, 4},
    {11, 0, 8, 8, 2, 2},
    {11, 24, 30, 8, 2, 2},
    /* rank 2, micro-batch 1 */
    {17, 0, 12, 12, 2, 1},
    /* rank 2, micro-batch 2 */
    {16, 0, 3, 4, 2, 2},
    {16, 3, 3, 4, 2, 2},
    /* rank 3, micro-batch 0; 1 is a dummy */
    {10, 24, 32, 8, 0, 4},
    {10, 32, 37, 8, 0, 4},
    {11, 8, 16, 8, 2, 2},
    {11, 16, 24, 8, 2, 2},
    /* rank 3, micro-batch 2 */
    {16, 3, 3, 4, 2, 2},
    {16, 3, 3, 4, 2, 2},
};
#define FIXTURE_SEGMENTS (sizeof(fixture_segments) / sizeof(fixture_segments[0]))
static const uint32_t fixture_micro_batches[] = {5, 1, 5, 4, 1, 2, 4, 0, 2}; /* segments */
#define FIXTURE_MICRO_BATCHES (sizeof(fixture_micro_batches) / sizeof(fixture_micro_batches[0]))
static const uint32_t fixture_ranks[] = {2, 1, 3, 3}; /* micro-batches */
#define FIXTURE_RANKS (sizeof(fixture_ranks) / sizeof(fixture_ranks[0]))

/* Sums of the micro-batches as the segments have them. */
static inline void fixture_add_up(struct skrull_plan *plan)
{
    for (size_t i = 0; i < plan->n_micro_batches; i++) {
        struct skrull_micro_batch *micro_batch = &plan->micro_batches[i];

        micro_batch->tokens = 0;
        micro_batch->padded_tokens = 0;
        for (uint32_t j = 0; j < micro_batch->n_segments; j++) {
            const struct skrull_segment *segment = &plan->segments[micro_batch->first_segment + j];

            micro_batch->tokens += segment->token_end - segment->token_begin;
            micro_batch->padded_tokens += segment->padded_tokens;
        }
    }
}

static inline void fixture_fill_segments(struct skrull_plan *plan)
{
    for (size_t i = 0; i < FIXTURE_SEGMENTS; i++) {
        const uint32_t *from = fixture_segments[i];
        const struct plan_check_sequence *row = &fixture_rows[from[0] - FIXTURE_SAMPLE];

        plan->segments[i] = (struct skrull_segment){
            .sample = from[0],
            .index = from[0] - FIXTURE_SAMPLE,
            .dataset = 1,
            .sequence_length = (uint32_t)row->length,
            .token_begin = from[1],
            .token_end = from[2],
            .padded_tokens = from[3],
            .group_first = from[4],
            .group_size = from[5],
            .loss_weight = row->loss_tokens ? 1.0 / FIXTURE_LOSS_TOKENS : 0.0};
    }
}

/* The plan, with its digests; free it with skrull_plan_free. It has room for two segments more. */
static inline struct skrull_plan *fixture_new(void)
{
    static const char *const digests[] = FIXTURE_RANK_DIGESTS;
    struct arena *arena = arena_new(1 << 20);
    struct skrull_plan *plan = ARENA_NEW(arena, struct skrull_plan);
    size_t n = 0;

    *plan = (struct skrull_plan){.job = "fixture",
                                 .uid = "000102030405060708090a0b0c0d0e0f",
                                 .policy = "by-hand",
                                 .revision = 3,
                                 .step = 0x123456789a,
                                 .epoch = 7,
                                 .dp = 2,
                                 .cp = 2,
                                 .totals = {8, 124, FIXTURE_LOSS_TOKENS},
                                 .estimate = {1000, 900, 400, 300, 300},
                                 .n_ranks = FIXTURE_RANKS,
                                 .n_micro_batches = FIXTURE_MICRO_BATCHES,
                                 .n_segments = FIXTURE_SEGMENTS,
                                 .arena = arena};
    plan->ranks = ARENA_ARRAY(arena, struct skrull_rank, FIXTURE_RANKS);
    plan->micro_batches = ARENA_ARRAY(arena, struct skrull_micro_batch, FIXTURE_MICRO_BATCHES);
    plan->segments = ARENA_ARRAY(arena, struct skrull_segment, FIXTURE_SEGMENTS + 2);
    fixture_fill_segments(plan);
    for (size_t i = 0; i < FIXTURE_MICRO_BATCHES; n += fixture_micro_batches[i++]) {
        plan->micro_batches[i] = (struct skrull_micro_batch){.first_segment = n,
                                                             .n_segments = fixture_micro_batches[i],
                                                             .dummy = fixture_micro_batches[i] == 0,
                                                             .estimate = {(int64_t)i, 0, 1, 2, -3}};
    }
    n = 0;
    for (uint32_t i = 0; i < FIXTURE_RANKS; n += fixture_ranks[i++]) {
        plan->ranks[i] = (struct skrull_rank){.data_rank = i,
                                              .n_micro_batches = fixture_ranks[i],
                                              .first_micro_batch = n,
                                              .estimate = {1000, 0, 10 * (int64_t)i, 5, 6}};
        (void)skrull_digest_from_hex(digests[i], plan->ranks[i].digest);
    }
    (void)skrull_digest_from_hex(FIXTURE_DIGEST, plan->digest);
    fixture_add_up(plan);
    return plan;
}

/* The rules that the plan keeps. */
static inline struct plan_check_rules fixture_rules(void)
{
    static const uint32_t degrees[] = {1, 2, 4};

    return (struct plan_check_rules){.dp = 2,
                                     .cp = 2,
                                     .degrees = degrees,
                                     .n_degrees = 3,
                                     .bucket_tokens = 64,
                                     .align = 4,
                                     .shard = SKRULL_SHARD_ZIGZAG,
                                     .loss = SKRULL_LOSS_TOKEN_MEAN,
                                     .n_sequences = 8,
                                     .lookup = fixture_lookup};
}
