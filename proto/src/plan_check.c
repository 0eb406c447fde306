/*
 * Judges a plan. One pass over the ranks holds every segment against the shape that the contract
 * gives its member, and notes one `part` for each sequence and rank; the parts sorted by sample
 * then show whether each sequence is there once, on every member of one group. Together these prove
 * coverage (right chunks, all members) and that members agree (all members, each in ascending
 * order), so neither is searched for on its own. Time: n log n in the segments. Nothing the plan
 * says is trusted, not even its own offsets. Any thread.
 */
#include "plan_check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "arena.h"
#include "ckd.h"
#include "plan_check_state.h"
#include "plan_digest.h"

void plan_check_report(struct plan_check_state *check, const char *format, ...)
{
    char message[256];
    va_list args;

    if (check->n_faults++ < PLAN_CHECK_MAX_FAULTS && check->fault) {
        va_start(args, format);
        (void)vsnprintf(message, sizeof(message), format, args);
        va_end(args);
        check->fault(check->arg, message);
    }
}

/* Whether [first, first + count) lies in an array of `size`. */
static bool is_within(size_t first, size_t count, size_t size)
{
    return first <= size && count <= size - first;
}

/* Micro-batches and segments that all ranks name together; micro-batches of no rank do not count.
 */
static void check_shares(struct plan_check_state *check)
{
    const struct skrull_plan *plan = check->plan;
    uint64_t n_micro_batches = 0, n_segments = 0;

    for (size_t i = 0; i < plan->n_ranks && n_micro_batches <= plan->n_micro_batches; i++) {
        const struct skrull_rank *rank = &plan->ranks[i];

        n_micro_batches += rank->n_micro_batches;
        for (uint32_t j = 0; j < rank->n_micro_batches && n_segments <= plan->n_segments; j++) {
            n_segments += plan->micro_batches[rank->first_micro_batch + j].n_segments;
        }
    }
    if (n_micro_batches > plan->n_micro_batches) {
        plan_check_report(check, "ranks share micro-batches: they name more than the plan's %zu",
                          plan->n_micro_batches);
    } else if (n_segments > plan->n_segments) {
        plan_check_report(check,
                          "micro-batches share segments: ranks name more than the plan's %zu",
                          plan->n_segments);
    }
}

/* The plan's own offsets, so that the rest may follow them. Sums are bounded too: slices that
 * overlap could stand for more work, and more parts, than the plan has segments. */
static void check_shape(struct plan_check_state *check)
{
    const struct skrull_plan *plan = check->plan;

    for (size_t i = 0; i < plan->n_ranks; i++) {
        if (!is_within(plan->ranks[i].first_micro_batch, plan->ranks[i].n_micro_batches,
                       plan->n_micro_batches)) {
            plan_check_report(check, "ranks[%zu]: its micro-batches are outside the plan", i);
        }
    }
    for (size_t i = 0; i < plan->n_micro_batches; i++) {
        if (!is_within(plan->micro_batches[i].first_segment, plan->micro_batches[i].n_segments,
                       plan->n_segments)) {
            plan_check_report(check, "micro_batches[%zu]: its segments are outside the plan", i);
        }
    }
    if (check->n_faults == 0) {
        check_shares(check);
    }
}

/* The grid: every rank once, in order. */
static void check_ranks(struct plan_check_state *check)
{
    const struct skrull_plan *plan = check->plan;
    const struct plan_check_rules *rules = check->rules;
    uint64_t n_ranks = (uint64_t)rules->dp * rules->cp;

    if (plan->dp != rules->dp || plan->cp != rules->cp) {
        plan_check_report(check, "dp %u cp %u, the job has dp %u cp %u", plan->dp, plan->cp,
                          rules->dp, rules->cp);
    }
    if (plan->n_ranks != n_ranks) {
        plan_check_report(check, "%zu ranks, the job has %" PRIu64, plan->n_ranks, n_ranks);
    }
    for (size_t i = 0; i < plan->n_ranks; i++) {
        if (plan->ranks[i].data_rank != i) {
            plan_check_report(check, "ranks[%zu] is data rank %u, expected each once, ascending", i,
                              plan->ranks[i].data_rank);
        }
    }
}

/* Whether the group of a segment is one that the rank may belong to. */
static bool is_group_allowed(const struct plan_check_state *check,
                             const struct skrull_segment *segment, uint32_t rank)
{
    const struct plan_check_rules *rules = check->rules;
    uint64_t end = (uint64_t)segment->group_first + segment->group_size;

    for (size_t i = 0; i < rules->n_degrees; i++) {
        if (rules->degrees[i] == segment->group_size) {
            return segment->group_size > 0 && segment->group_first % segment->group_size == 0 &&
                   segment->group_first <= rank && rank < end && end <= check->plan->n_ranks;
        }
    }
    return false;
}

bool plan_check_same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

bool plan_check_same_sequence(const struct skrull_segment *a, const struct skrull_segment *b)
{
    return a->sample == b->sample && a->dataset == b->dataset && a->index == b->index &&
           a->sequence_length == b->sequence_length && a->group_first == b->group_first &&
           a->group_size == b->group_size && plan_check_same_bits(a->loss_weight, b->loss_weight);
}

/* Where a fault is. */
struct place {
    uint32_t rank, micro_batch;
};

/* Holds the segments of one sequence in a micro-batch ([n], n at least 1) against what the member
 * must hold. */
static void check_cut(struct plan_check_state *check, struct place place,
                      const struct skrull_segment *segments, uint32_t n)
{
    const struct plan_check_rules *rules = check->rules;
    const struct skrull_segment *first = &segments[0];
    uint32_t n_wanted = skrull_slot_segments(first->group_size, rules->shard);
    struct skrull_segment wanted[2];

    if (n != n_wanted) {
        plan_check_report(check,
                          "rank %u micro-batch %u: sample %" PRIu64 " in %u segments, expected %u",
                          place.rank, place.micro_batch, first->sample, n, n_wanted);
        return;
    }
    if (first->sequence_length == 0 ||
        skrull_slot_tokens(first->sequence_length, first->group_size, rules->align, rules->shard) >
            UINT32_MAX) {
        plan_check_report(
            check, "rank %u micro-batch %u: sample %" PRIu64 " has %u tokens, which no slot holds",
            place.rank, place.micro_batch, first->sample, first->sequence_length);
        return;
    }
    skrull_slot_cut(first->sequence_length, first->group_size, place.rank - first->group_first,
                    rules->align, rules->shard, wanted);
    for (uint32_t i = 0; i < n; i++) {
        if (!plan_check_same_sequence(first, &segments[i])) {
            plan_check_report(check,
                              "rank %u micro-batch %u: the segments of sample %" PRIu64
                              " disagree on its row, length, group or loss weight",
                              place.rank, place.micro_batch, first->sample);
        }
        if (segments[i].token_begin != wanted[i].token_begin ||
            segments[i].token_end != wanted[i].token_end ||
            segments[i].padded_tokens != wanted[i].padded_tokens) {
            plan_check_report(check,
                              "rank %u micro-batch %u: sample %" PRIu64
                              " as tokens %u to %u, padded %u; expected %u to %u, padded %u",
                              place.rank, place.micro_batch, first->sample, segments[i].token_begin,
                              segments[i].token_end, segments[i].padded_tokens,
                              wanted[i].token_begin, wanted[i].token_end, wanted[i].padded_tokens);
        }
    }
}

/*
 * Whether `b` may not stand after `a`: larger groups first, then ascending samples.
 *
 * Workers that go through the micro-batches in order, and through the groups of each from the
 * smallest to the largest, cannot deadlock on a plan that passes. Its groups are aligned, of sizes
 * that divide one another (is_group_allowed), hence nested or disjoint; what a group shares is in
 * one micro-batch on all members (check_sample); and by this order a rank has in each micro-batch
 * one run of each size, the same group's. Of all groups that are waited for, take the earliest
 * micro-batch's smallest. A member that is not there waits in an earlier micro-batch or in a
 * smaller group: neither is waited for. So all are there.
 */
static bool is_out_of_order(const struct skrull_segment *a, const struct skrull_segment *b)
{
    if (a->group_size != b->group_size) {
        return a->group_size < b->group_size;
    }
    return a->sample > b->sample;
}

/* The sequences of one micro-batch, each a run of segments. */
static void check_sequences(struct plan_check_state *check, struct place place,
                            const struct skrull_segment *segments, uint32_t n_segments)
{
    uint32_t n_run;

    for (uint32_t i = 0; i < n_segments; i += n_run) {
        const struct skrull_segment *first = &segments[i];

        n_run = 1;
        while (n_run < n_segments - i && segments[i + n_run].sample == first->sample) {
            n_run++;
        }
        if (i > 0 && is_out_of_order(&segments[i - 1], first)) {
            plan_check_report(check,
                              "rank %u micro-batch %u: sample %" PRIu64
                              " out of order (larger groups first, then ascending samples)",
                              place.rank, place.micro_batch, first->sample);
        }
        if (!is_group_allowed(check, first, place.rank)) {
            plan_check_report(
                check,
                "rank %u micro-batch %u: sample %" PRIu64
                " in the group of %u ranks from %u, which the job does not allow there",
                place.rank, place.micro_batch, first->sample, first->group_size,
                first->group_first);
            continue;
        }
        check_cut(check, place, first, n_run);
        check->parts[check->n_parts++] = (struct plan_check_part){
            .segment = first, .rank = place.rank, .micro_batch = place.micro_batch};
    }
}

/* mix: uniform is one group size in a rank's micro-batch. */
static void check_mix(struct plan_check_state *check, struct place place,
                      const struct skrull_segment *segments, uint32_t n_segments)
{
    for (uint32_t i = 1; i < n_segments && check->rules->mix == SKRULL_MIX_UNIFORM; i++) {
        if (segments[i].group_size != segments[0].group_size) {
            plan_check_report(check,
                              "rank %u micro-batch %u: groups of %u and of %u ranks, the job's mix "
                              "is uniform",
                              place.rank, place.micro_batch, segments[0].group_size,
                              segments[i].group_size);
            return;
        }
    }
}

static void check_micro_batch(struct plan_check_state *check, struct place place,
                              const struct skrull_micro_batch *micro_batch)
{
    const struct skrull_segment *segments = check->plan->segments + micro_batch->first_segment;
    uint64_t tokens = 0, padded_tokens = 0;

    if (micro_batch->dummy != (micro_batch->n_segments == 0)) {
        plan_check_report(
            check,
            "rank %u micro-batch %u: dummy must be set where it holds no sequence, and only there",
            place.rank, place.micro_batch);
    }
    for (uint32_t i = 0; i < micro_batch->n_segments; i++) {
        if (segments[i].token_begin < segments[i].token_end) {
            tokens += segments[i].token_end - segments[i].token_begin;
        }
        padded_tokens += segments[i].padded_tokens;
    }
    if (micro_batch->tokens != tokens || micro_batch->padded_tokens != padded_tokens) {
        plan_check_report(check,
                          "rank %u micro-batch %u: says %" PRIu64 " tokens, padded %" PRIu64
                          "; holds %" PRIu64 ", padded %" PRIu64,
                          place.rank, place.micro_batch, micro_batch->tokens,
                          micro_batch->padded_tokens, tokens, padded_tokens);
    }
    if (padded_tokens > check->rules->bucket_tokens) {
        plan_check_report(
            check, "rank %u micro-batch %u: %" PRIu64 " padded tokens, the bucket has %u",
            place.rank, place.micro_batch, padded_tokens, check->rules->bucket_tokens);
    }
    check_mix(check, place, segments, micro_batch->n_segments);
    check_sequences(check, place, segments, micro_batch->n_segments);
}

/* Counts that the trainer fixes; each rank is held against them, so that all are equal by it. */
static void check_count(struct plan_check_state *check, const struct skrull_rank *rank)
{
    const struct plan_check_rules *rules = check->rules;
    const uint32_t n = rank->n_micro_batches;

    if (rules->micro_batches > 0 && n != rules->micro_batches) {
        plan_check_report(check, "rank %u: %u micro-batches, the job wants %u", rank->data_rank, n,
                          rules->micro_batches);
    }
    if (rules->micro_batch_multiple > 1 && n % rules->micro_batch_multiple != 0) {
        plan_check_report(check, "rank %u: %u micro-batches, the job wants a multiple of %u",
                          rank->data_rank, n, rules->micro_batch_multiple);
    }
    if (n < rules->micro_batch_min) {
        plan_check_report(check, "rank %u: %u micro-batches, the job wants at least %u",
                          rank->data_rank, n, rules->micro_batch_min);
    }
}

static void check_rank(struct plan_check_state *check, const struct skrull_rank *rank)
{
    const struct skrull_plan *plan = check->plan;
    const struct skrull_micro_batch *micro_batches = plan->micro_batches + rank->first_micro_batch;
    uint32_t n = rank->n_micro_batches;

    if (check->rules->equal_micro_batches || check->rules->micro_batches > 0) {
        check_count(check, rank);
        if (n != plan->ranks[0].n_micro_batches) {
            plan_check_report(
                check, "rank %u: %u micro-batches, rank 0 has %u, the job wants equal counts",
                rank->data_rank, n, plan->ranks[0].n_micro_batches);
        }
    } else if (n > 0 && micro_batches[n - 1].n_segments == 0) {
        plan_check_report(check, "rank %u: ends with an empty micro-batch", rank->data_rank);
    }
    for (uint32_t i = 0; i < n; i++) {
        check_micro_batch(check, (struct place){.rank = rank->data_rank, .micro_batch = i},
                          &micro_batches[i]);
    }
}

/* Digests of the content, in a copy of the ranks ([n_ranks]). */
static int check_digests(struct plan_check_state *check, struct skrull_rank *ranks)
{
    const struct skrull_plan *plan = check->plan;
    struct skrull_plan copy = *plan;
    char said[SKRULL_DIGEST_HEX_SIZE], found[SKRULL_DIGEST_HEX_SIZE];
    int r;

    if (plan->n_ranks > 0) {
        memcpy(ranks, plan->ranks, plan->n_ranks * sizeof(*ranks));
    }
    copy.ranks = ranks;
    r = plan_digest_all(&copy);
    if (r) {
        return r;
    }
    for (size_t i = 0; i < plan->n_ranks; i++) {
        if (memcmp(plan->ranks[i].digest, ranks[i].digest, SKRULL_DIGEST_SIZE) != 0) {
            skrull_digest_to_hex(plan->ranks[i].digest, said);
            skrull_digest_to_hex(ranks[i].digest, found);
            plan_check_report(check, "rank %u: rank digest %s, the content has %s",
                              plan->ranks[i].data_rank, said, found);
        }
    }
    if (memcmp(plan->digest, copy.digest, SKRULL_DIGEST_SIZE) != 0) {
        skrull_digest_to_hex(plan->digest, said);
        skrull_digest_to_hex(copy.digest, found);
        plan_check_report(check, "digest %s, the content has %s", said, found);
    }
    return 0;
}

/* All but the shape, which is sound. */
static int check_content(struct plan_check_state *check)
{
    const struct skrull_plan *plan = check->plan;
    struct skrull_rank *ranks = ARENA_ARRAY(check->arena, struct skrull_rank, plan->n_ranks);
    uint64_t *loss_tokens = ARENA_ARRAY(check->arena, uint64_t, plan->n_segments);

    check->parts = ARENA_ARRAY(check->arena, struct plan_check_part, plan->n_segments);
    if (!ranks || !loss_tokens || !check->parts) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    check_ranks(check);
    if (check->n_faults == 0) { /* what follows takes ranks by their place */
        for (size_t i = 0; i < plan->n_ranks; i++) {
            check_rank(check, &plan->ranks[i]);
        }
        plan_check_batch(check, loss_tokens);
    }
    if (plan->estimate.bound_ns > plan->estimate.iteration_ns) {
        plan_check_report(check, "estimate: the bound is above the time");
    }
    return check_digests(check, ranks);
}

int plan_check(const struct skrull_plan *plan, const struct plan_check_rules *rules,
               plan_check_fault fault, void *arg)
{
    struct plan_check_state check = {.plan = plan, .rules = rules, .fault = fault, .arg = arg};
    int r = 0;

    check_shape(&check);
    if (check.n_faults == 0) {
        check.arena = arena_new(SIZE_MAX);
        r = check.arena ? check_content(&check) : SKRULL_ERR_RESOURCE_EXHAUSTED;
        arena_free(check.arena);
    }
    if (r) {
        return r;
    }
    return check.n_faults > 0 ? PLAN_CHECK_UNSOUND : 0;
}
