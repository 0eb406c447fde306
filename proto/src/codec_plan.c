/*
 * Plans to messages. Each kind of message lies in one array, so that a rank costs a handful of
 * allocations whatever its segments. Any thread, one arena each.
 */
#include "codec_plan.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "skrull/v1/plan.pb-c.h"

#include "arena.h"
#include "codec_wire.h"

static int no_memory(struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "plan: out of memory");
}

/* Fills the head of either message; the strings and `totals` are borrowed. */
#define SET_HEAD(message, plan, digest_hex, totals_message)                                        \
    do {                                                                                           \
        (message)->job = codec_wire_borrow((plan)->job);                                           \
        (message)->uid = codec_wire_borrow((plan)->uid);                                           \
        (message)->policy = codec_wire_borrow((plan)->policy);                                     \
        (message)->digest = (digest_hex);                                                          \
        (message)->revision = (plan)->revision;                                                    \
        (message)->planner_version = (plan)->planner_version;                                      \
        (message)->dp = (plan)->dp;                                                                \
        (message)->cp = (plan)->cp;                                                                \
        (message)->step = (plan)->step;                                                            \
        (message)->epoch = (plan)->epoch;                                                          \
        (message)->totals = (totals_message);                                                      \
    } while (0)

static void encode_estimate(const struct skrull_estimate *estimate, Skrull__V1__Estimate *ret)
{
    skrull__v1__estimate__init(ret);
    ret->iteration_ns = estimate->iteration_ns;
    ret->bound_ns = estimate->bound_ns;
    ret->comp_ns = estimate->comp_ns;
    ret->comm_ns = estimate->comm_ns;
    ret->idle_ns = estimate->idle_ns;
}

static Skrull__V1__Totals *encode_totals(struct arena *arena, const struct skrull_totals *totals)
{
    Skrull__V1__Totals *message = ARENA_NEW(arena, Skrull__V1__Totals);

    if (message) {
        skrull__v1__totals__init(message);
        message->sequences = totals->sequences;
        message->tokens = totals->tokens;
        message->loss_tokens = totals->loss_tokens;
    }
    return message;
}

static char *encode_digest(struct arena *arena, const uint8_t digest[SKRULL_DIGEST_SIZE])
{
    char *hex = ARENA_ARRAY(arena, char, SKRULL_DIGEST_HEX_SIZE);

    if (hex) {
        skrull_digest_to_hex(digest, hex);
    }
    return hex;
}

static void encode_segment(const struct skrull_segment *segment, Skrull__V1__Segment *ret)
{
    skrull__v1__segment__init(ret);
    ret->sample = segment->sample;
    ret->dataset = segment->dataset;
    ret->index = segment->index;
    ret->sequence_length = segment->sequence_length;
    ret->token_begin = segment->token_begin;
    ret->token_end = segment->token_end;
    ret->padded_tokens = segment->padded_tokens;
    ret->group_first = segment->group_first;
    ret->group_size = segment->group_size;
    ret->loss_weight = segment->loss_weight;
}

/* Room for a rank's messages, with the pointers that protobuf-c wants. */
struct rank_messages {
    Skrull__V1__MicroBatch *micro_batches, **micro_batch_list;
    Skrull__V1__Estimate *estimates; /* of the micro-batches, then of the rank */
    Skrull__V1__Segment *segments, **segment_list;
};

static bool rank_messages_init(struct rank_messages *room, struct arena *arena,
                               size_t n_micro_batches, size_t n_segments)
{
    room->micro_batches = ARENA_ARRAY(arena, Skrull__V1__MicroBatch, n_micro_batches);
    room->micro_batch_list = ARENA_ARRAY(arena, Skrull__V1__MicroBatch *, n_micro_batches);
    room->estimates = ARENA_ARRAY(arena, Skrull__V1__Estimate, n_micro_batches + 1);
    room->segments = ARENA_ARRAY(arena, Skrull__V1__Segment, n_segments);
    room->segment_list = ARENA_ARRAY(arena, Skrull__V1__Segment *, n_segments);
    return room->micro_batches && room->micro_batch_list && room->estimates && room->segments &&
           room->segment_list;
}

/* Fills the room with the micro-batches of a rank. */
static void encode_micro_batches(const struct skrull_plan *plan, const struct skrull_rank *rank,
                                 struct rank_messages *room)
{
    size_t n_segments = 0;

    for (uint32_t i = 0; i < rank->n_micro_batches; i++) {
        const struct skrull_micro_batch *from = &plan->micro_batches[rank->first_micro_batch + i];
        Skrull__V1__MicroBatch *to = &room->micro_batches[i];

        skrull__v1__micro_batch__init(to);
        encode_estimate(&from->estimate, &room->estimates[i]);
        to->segments = room->segment_list + n_segments;
        to->n_segments = from->n_segments;
        to->tokens = from->tokens;
        to->padded_tokens = from->padded_tokens;
        to->dummy = from->dummy;
        to->estimate = &room->estimates[i];
        for (uint32_t j = 0; j < from->n_segments; j++, n_segments++) {
            encode_segment(&plan->segments[from->first_segment + j], &room->segments[n_segments]);
            room->segment_list[n_segments] = &room->segments[n_segments];
        }
        room->micro_batch_list[i] = to;
    }
}

/* `digest` and `totals` of the whole plan are shared by all its ranks. */
static int encode_rank(struct arena *arena, const struct skrull_plan *plan,
                       const struct skrull_rank *rank, char *digest, Skrull__V1__Totals *totals,
                       Skrull__V1__RankPlan **ret_message)
{
    Skrull__V1__RankPlan *message = ARENA_NEW(arena, Skrull__V1__RankPlan);
    char *rank_digest = encode_digest(arena, rank->digest);
    struct rank_messages room;
    size_t n_segments = 0;

    for (uint32_t i = 0; i < rank->n_micro_batches; i++) {
        n_segments += plan->micro_batches[rank->first_micro_batch + i].n_segments;
    }
    if (!message || !rank_digest || !digest || !totals ||
        !rank_messages_init(&room, arena, rank->n_micro_batches, n_segments)) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    skrull__v1__rank_plan__init(message);
    SET_HEAD(message, plan, digest, totals);
    message->data_rank = rank->data_rank;
    message->rank_digest = rank_digest;
    encode_micro_batches(plan, rank, &room);
    message->micro_batches = room.micro_batch_list;
    message->n_micro_batches = rank->n_micro_batches;
    message->estimate = &room.estimates[rank->n_micro_batches];
    encode_estimate(&rank->estimate, message->estimate);
    *ret_message = message;
    return 0;
}

int codec_rank_plan_encode(struct arena *arena, const struct skrull_plan *plan, size_t i_rank,
                           Skrull__V1__RankPlan **ret_message, struct skrull_error *err)
{
    char *digest = encode_digest(arena, plan->digest);
    Skrull__V1__Totals *totals = encode_totals(arena, &plan->totals);

    if (encode_rank(arena, plan, &plan->ranks[i_rank], digest, totals, ret_message)) {
        return no_memory(err);
    }
    return 0;
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Ascending copy of the ranks asked for; NULL: out of memory. */
static uint32_t *sorted_ranks(struct arena *arena, const uint32_t *ranks, size_t n_ranks)
{
    uint32_t *sorted = ARENA_ARRAY(arena, uint32_t, n_ranks);

    if (sorted && n_ranks > 0) {
        memcpy(sorted, ranks, n_ranks * sizeof(*ranks));
        qsort(sorted, n_ranks, sizeof(*sorted), compare_u32);
    }
    return sorted;
}

/* Encodes the ranks of the plan that are in `wanted` ([n_wanted], ascending), all where it is
 * empty. */
static int encode_ranks(struct arena *arena, const struct skrull_plan *plan, const uint32_t *wanted,
                        size_t n_wanted, Skrull__V1__Plan *message)
{
    size_t i_wanted = 0;
    int r;

    for (size_t i = 0; i < plan->n_ranks; i++) {
        const struct skrull_rank *rank = &plan->ranks[i];

        while (i_wanted < n_wanted && wanted[i_wanted] < rank->data_rank) {
            i_wanted++;
        }
        if (n_wanted > 0 && (i_wanted == n_wanted || wanted[i_wanted] != rank->data_rank)) {
            continue;
        }
        r = encode_rank(arena, plan, rank, message->digest, message->totals,
                        &message->ranks[message->n_ranks]);
        if (r) {
            return r;
        }
        message->n_ranks++;
    }
    return 0;
}

int codec_plan_encode(struct arena *arena, const struct skrull_plan *plan, const uint32_t *ranks,
                      size_t n_ranks, Skrull__V1__Plan **ret_message, struct skrull_error *err)
{
    Skrull__V1__Plan *message = ARENA_NEW(arena, Skrull__V1__Plan);
    Skrull__V1__Estimate *estimate = ARENA_NEW(arena, Skrull__V1__Estimate);
    Skrull__V1__RankPlan **list = ARENA_ARRAY(arena, Skrull__V1__RankPlan *, plan->n_ranks);
    Skrull__V1__Totals *totals = encode_totals(arena, &plan->totals);
    char *digest = encode_digest(arena, plan->digest);
    uint32_t *wanted = sorted_ranks(arena, ranks, n_ranks);

    if (!message || !estimate || !list || !wanted) {
        return no_memory(err);
    }
    skrull__v1__plan__init(message);
    SET_HEAD(message, plan, digest, totals);
    encode_estimate(&plan->estimate, estimate);
    message->estimate = estimate;
    message->ranks = list;
    if (!digest || !totals || encode_ranks(arena, plan, wanted, n_ranks, message)) {
        return no_memory(err);
    }
    *ret_message = message;
    return 0;
}
