/*
 * Messages to plans. Counts first and allocates the flat arrays once. Any thread, one arena each.
 */
#include "codec_plan.h"

#include <stdbool.h>
#include <string.h>

#include "skrull/v1/plan.pb-c.h"

#include "arena.h"
#include "codec_wire.h"

#define MAX_NAME 63

static int no_memory(struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "plan: out of memory");
}

/* What Plan and RankPlan say alike. */
struct head {
    const char *job, *uid, *policy, *digest;
    uint32_t revision, planner_version, dp, cp;
    uint64_t step, epoch;
    const Skrull__V1__Totals *totals; /* nullable */
};

/* The head of either message. */
#define HEAD_OF(message)                                                                           \
    ((struct head){.job = (message)->job,                                                          \
                   .uid = (message)->uid,                                                          \
                   .policy = (message)->policy,                                                    \
                   .digest = (message)->digest,                                                    \
                   .revision = (message)->revision,                                                \
                   .planner_version = (message)->planner_version,                                  \
                   .dp = (message)->dp,                                                            \
                   .cp = (message)->cp,                                                            \
                   .step = (message)->step,                                                        \
                   .epoch = (message)->epoch,                                                      \
                   .totals = (message)->totals})

static struct skrull_estimate decode_estimate(const Skrull__V1__Estimate *message)
{
    if (!message) {
        return (struct skrull_estimate){0};
    }
    return (struct skrull_estimate){.iteration_ns = message->iteration_ns,
                                    .bound_ns = message->bound_ns,
                                    .comp_ns = message->comp_ns,
                                    .comm_ns = message->comm_ns,
                                    .idle_ns = message->idle_ns};
}

static struct skrull_totals decode_totals(const Skrull__V1__Totals *message)
{
    if (!message) {
        return (struct skrull_totals){0};
    }
    return (struct skrull_totals){.sequences = message->sequences,
                                  .tokens = message->tokens,
                                  .loss_tokens = message->loss_tokens};
}

static int decode_digest(const char *name, const char *hex, uint8_t ret_digest[SKRULL_DIGEST_SIZE],
                         struct skrull_error *err)
{
    if (skrull_digest_from_hex(hex, ret_digest)) {
        return skrull_error_set(err, SKRULL_ERR_DATA_LOSS, "%s: not 32 lower-case hex digits",
                                name);
    }
    return 0;
}

static struct skrull_segment decode_segment(const Skrull__V1__Segment *message)
{
    return (struct skrull_segment){.sample = message->sample,
                                   .index = message->index,
                                   .dataset = message->dataset,
                                   .sequence_length = message->sequence_length,
                                   .token_begin = message->token_begin,
                                   .token_end = message->token_end,
                                   .padded_tokens = message->padded_tokens,
                                   .group_first = message->group_first,
                                   .group_size = message->group_size,
                                   .loss_weight = message->loss_weight};
}

static int copy_text(struct arena *arena, const char *field, const char *text, size_t max_len,
                     const char **ret_copy, struct skrull_error *err)
{
    int r;

    r = codec_wire_check_text(field, text, max_len, err);
    if (r) {
        return r;
    }
    *ret_copy = arena_strdup(arena, text);
    return *ret_copy ? 0 : no_memory(err);
}

static int decode_head(const struct head *head, struct skrull_plan *plan, struct skrull_error *err)
{
    int r;

    plan->revision = head->revision;
    plan->planner_version = head->planner_version;
    plan->dp = head->dp;
    plan->cp = head->cp;
    plan->step = head->step;
    plan->epoch = head->epoch;
    plan->totals = decode_totals(head->totals);
    r = copy_text(plan->arena, "job", head->job, MAX_NAME, &plan->job, err);
    if (!r) {
        r = copy_text(plan->arena, "uid", head->uid, SKRULL_UID_HEX_SIZE - 1, &plan->uid, err);
    }
    if (!r) {
        r = copy_text(plan->arena, "policy", head->policy, MAX_NAME, &plan->policy, err);
    }
    return r ? r : decode_digest("digest", head->digest, plan->digest, err);
}

/* The first field in which a rank's head is not its plan's, or NULL. */
static const char *head_difference(const struct head *rank, const struct head *plan)
{
    struct skrull_totals a = decode_totals(rank->totals), b = decode_totals(plan->totals);
    const struct {
        const char *name;
        bool is_different;
    } fields[] = {
        {"job", strcmp(rank->job, plan->job) != 0},
        {"uid", strcmp(rank->uid, plan->uid) != 0},
        {"policy", strcmp(rank->policy, plan->policy) != 0},
        {"digest", strcmp(rank->digest, plan->digest) != 0},
        {"revision", rank->revision != plan->revision},
        {"planner_version", rank->planner_version != plan->planner_version},
        {"dp", rank->dp != plan->dp},
        {"cp", rank->cp != plan->cp},
        {"step", rank->step != plan->step},
        {"epoch", rank->epoch != plan->epoch},
        {"totals",
         a.sequences != b.sequences || a.tokens != b.tokens || a.loss_tokens != b.loss_tokens},
    };

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (fields[i].is_different) {
            return fields[i].name;
        }
    }
    return NULL;
}

/* A plan with room for all that `ranks` hold, and nothing in it yet; NULL: out of memory. */
static struct skrull_plan *plan_new(Skrull__V1__RankPlan *const *ranks, size_t n_ranks)
{
    struct arena *arena = arena_new(SIZE_MAX);
    struct skrull_plan *plan = arena ? ARENA_NEW(arena, struct skrull_plan) : NULL;
    size_t n_micro_batches = 0, n_segments = 0;

    if (!plan) {
        arena_free(arena);
        return NULL;
    }
    for (size_t i = 0; i < n_ranks; i++) {
        n_micro_batches += ranks[i]->n_micro_batches;
        for (size_t j = 0; j < ranks[i]->n_micro_batches; j++) {
            n_segments += ranks[i]->micro_batches[j]->n_segments;
        }
    }
    plan->arena = arena;
    plan->ranks = ARENA_ARRAY(arena, struct skrull_rank, n_ranks);
    plan->micro_batches = ARENA_ARRAY(arena, struct skrull_micro_batch, n_micro_batches);
    plan->segments = ARENA_ARRAY(arena, struct skrull_segment, n_segments);
    if (!plan->ranks || !plan->micro_batches || !plan->segments) {
        arena_free(arena);
        return NULL;
    }
    return plan;
}

static int decode_micro_batch(const Skrull__V1__MicroBatch *message, struct skrull_plan *plan,
                              struct skrull_error *err)
{
    int r;

    r = codec_wire_check_count("segments", message->n_segments, UINT32_MAX, err);
    if (r) {
        return r;
    }
    plan->micro_batches[plan->n_micro_batches++] =
        (struct skrull_micro_batch){.first_segment = plan->n_segments,
                                    .n_segments = (uint32_t)message->n_segments,
                                    .dummy = message->dummy,
                                    .tokens = message->tokens,
                                    .padded_tokens = message->padded_tokens,
                                    .estimate = decode_estimate(message->estimate)};
    for (size_t i = 0; i < message->n_segments; i++) {
        plan->segments[plan->n_segments++] = decode_segment(message->segments[i]);
    }
    return 0;
}

/* Adds a rank to a plan that has room for it. */
static int decode_rank(const Skrull__V1__RankPlan *message, struct skrull_plan *plan,
                       struct skrull_error *err)
{
    struct skrull_rank *rank = &plan->ranks[plan->n_ranks];
    int r;

    r = codec_wire_check_count("micro_batches", message->n_micro_batches, UINT32_MAX, err);
    if (r) {
        return r;
    }
    *rank = (struct skrull_rank){.data_rank = message->data_rank,
                                 .n_micro_batches = (uint32_t)message->n_micro_batches,
                                 .first_micro_batch = plan->n_micro_batches,
                                 .estimate = decode_estimate(message->estimate)};
    r = decode_digest("rank_digest", message->rank_digest, rank->digest, err);
    for (size_t i = 0; !r && i < message->n_micro_batches; i++) {
        r = decode_micro_batch(message->micro_batches[i], plan, err);
    }
    plan->n_ranks++;
    return r;
}

int codec_plan_decode(const Skrull__V1__Plan *message, struct skrull_plan **ret_plan,
                      struct skrull_error *err)
{
    struct skrull_plan *plan = plan_new(message->ranks, message->n_ranks);
    const struct head head = HEAD_OF(message);
    int r;

    if (!plan) {
        return no_memory(err);
    }
    plan->estimate = decode_estimate(message->estimate);
    r = decode_head(&head, plan, err);
    for (size_t i = 0; !r && i < message->n_ranks; i++) {
        const struct head rank_head = HEAD_OF(message->ranks[i]);
        const char *difference = head_difference(&rank_head, &head);

        if (difference) {
            r = skrull_error_set(err, SKRULL_ERR_DATA_LOSS, "ranks[%zu].%s is not the plan's", i,
                                 difference);
        } else {
            r = decode_rank(message->ranks[i], plan, err);
        }
    }
    if (r) {
        skrull_plan_free(plan);
        return r;
    }
    *ret_plan = plan;
    return 0;
}

int codec_rank_plan_decode(const Skrull__V1__RankPlan *message, struct skrull_plan **ret_plan,
                           struct skrull_error *err)
{
    Skrull__V1__RankPlan *const ranks[] = {(Skrull__V1__RankPlan *)(uintptr_t)message};
    struct skrull_plan *plan = plan_new(ranks, 1);
    const struct head head = HEAD_OF(message);
    int r;

    if (!plan) {
        return no_memory(err);
    }
    r = decode_head(&head, plan, err);
    if (!r) {
        r = decode_rank(message, plan, err);
    }
    if (r) {
        skrull_plan_free(plan);
        return r;
    }
    *ret_plan = plan;
    return 0;
}
