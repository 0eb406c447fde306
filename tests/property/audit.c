/* What a plan holds, against its case. Parts are sorted by sample and first token, so that what
 * covers a sequence stands side by side. */
#include "property/audit.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct part {
    const struct skrull_segment *segment;
    uint32_t rank, micro_batch;
    uint32_t place; /* in its micro-batch */
};

struct audit {
    const struct random_case *random;
    const struct skrull_planner_options *options;
    const struct skrull_plan *plan;
    struct part *parts; /* [n_parts] */
    size_t n_parts;
    char *message;
};

static int fault(const struct audit *audit, const char *format, ...) SKRULL_PRINTF(2, 3);

static int fault(const struct audit *audit, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(audit->message, AUDIT_MESSAGE_SIZE, format, args);
    va_end(args);
    return 1;
}

static int compare_parts(const void *left, const void *right)
{
    const struct skrull_segment *a = ((const struct part *)left)->segment;
    const struct skrull_segment *b = ((const struct part *)right)->segment;

    if (a->sample != b->sample) {
        return a->sample < b->sample ? -1 : 1;
    }
    if (a->token_begin != b->token_begin) {
        return a->token_begin < b->token_begin ? -1 : 1;
    }
    return a->token_end < b->token_end ? -1 : a->token_end > b->token_end;
}

/* Tokens of one chunk: the sequence cut into equal ones, each a multiple of align. */
static uint64_t chunk_tokens(const struct audit *audit, uint32_t length, uint32_t group_size)
{
    const uint64_t n_chunks =
        group_size == 1
            ? 1
            : (audit->options->shard == SKRULL_SHARD_ZIGZAG ? 2 : 1) * (uint64_t)group_size;
    uint64_t chunk = audit->options->align;

    chunk *= (length + n_chunks * chunk - 1) / (n_chunks * chunk);
    return chunk;
}

/* Which chunk must member `member` hold as its `i`-th? */
static uint64_t chunk_of_member(const struct audit *audit, const struct skrull_segment *segment,
                                uint32_t member, uint32_t i)
{
    return i == 0 || audit->options->shard == SKRULL_SHARD_CONTIGUOUS
               ? member
               : 2 * (uint64_t)segment->group_size - 1 - member;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A segment's tokens and slot; `i`: which of the sequence's segments on this rank. */
static int audit_segment(const struct audit *audit, const struct part *part, uint32_t i)
{
    const struct skrull_segment *segment = part->segment;
    const uint32_t n_ranks = (uint32_t)audit->plan->n_ranks;
    uint64_t chunk, begin;

    if (segment->group_size == 0 || n_ranks % segment->group_size ||
        segment->group_first % segment->group_size ||
        part->rank / segment->group_size != segment->group_first / segment->group_size) {
        return fault(audit, "rank %u: sample %" PRIu64 " in group %u of %u", part->rank,
                     segment->sample, segment->group_first, segment->group_size);
    }
    chunk = chunk_tokens(audit, segment->sequence_length, segment->group_size);
    begin = chunk * chunk_of_member(audit, segment, part->rank - segment->group_first, i);
    if (segment->padded_tokens != chunk ||
        segment->token_begin != least(begin, segment->sequence_length) ||
        segment->token_end != least(begin + chunk, segment->sequence_length)) {
        return fault(audit, "rank %u: sample %" PRIu64 " tokens %u to %u, padded %u", part->rank,
                     segment->sample, segment->token_begin, segment->token_end,
                     segment->padded_tokens);
    }
    return 0;
}

/* Larger groups first, then ascending samples. */
static bool is_ordered(const struct skrull_segment *a, const struct skrull_segment *b)
{
    return a->group_size > b->group_size ||
           (a->group_size == b->group_size && a->sample <= b->sample);
}

static int audit_micro_batch(struct audit *audit, uint32_t rank, uint32_t m)
{
    const struct skrull_micro_batch *micro_batch =
        &audit->plan->micro_batches[audit->plan->ranks[rank].first_micro_batch + m];
    uint64_t tokens = 0, padded_tokens = 0;
    uint32_t i_of_sequence = 0;

    if (micro_batch->dummy != (micro_batch->n_segments == 0)) {
        return fault(audit, "rank %u micro-batch %u: dummy %d with %u segments", rank, m,
                     micro_batch->dummy, micro_batch->n_segments);
    }
    for (uint32_t i = 0; i < micro_batch->n_segments; i++) {
        const struct skrull_segment *segment =
            &audit->plan->segments[micro_batch->first_segment + i];
        const struct part part = {.segment = segment, .rank = rank, .micro_batch = m, .place = i};

        i_of_sequence = i > 0 && segment->sample == segment[-1].sample ? i_of_sequence + 1 : 0;
        if (audit_segment(audit, &part, i_of_sequence)) {
            return 1;
        }
        if (i > 0 && !is_ordered(&segment[-1], segment)) {
            return fault(audit, "rank %u micro-batch %u: out of order at %u", rank, m, i);
        }
        if (i > 0 && audit->options->mix == SKRULL_MIX_UNIFORM &&
            segment->group_size != segment[-1].group_size) {
            return fault(audit, "rank %u micro-batch %u: two group sizes", rank, m);
        }
        tokens += segment->token_end - segment->token_begin;
        padded_tokens += segment->padded_tokens;
        audit->parts[audit->n_parts++] = part;
    }
    if (padded_tokens > audit->options->bucket_tokens) {
        return fault(audit, "rank %u micro-batch %u: %" PRIu64 " padded tokens", rank, m,
                     padded_tokens);
    }
    if (tokens != micro_batch->tokens || padded_tokens != micro_batch->padded_tokens) {
        return fault(audit, "rank %u micro-batch %u: its sums are wrong", rank, m);
    }
    return 0;
}

/* Equal counts, and those that the trainer fixes. */
static int audit_count(const struct audit *audit, const struct skrull_rank *row)
{
    const struct skrull_planner_options *options = audit->options;
    const uint32_t n = row->n_micro_batches;

    if (n != audit->plan->ranks[0].n_micro_batches) {
        return fault(audit, "rank %u has %u micro-batches, rank 0 has %u", row->data_rank, n,
                     audit->plan->ranks[0].n_micro_batches);
    }
    if ((options->micro_batches && n != options->micro_batches) || n < options->micro_batch_min ||
        (options->micro_batch_multiple && n % options->micro_batch_multiple)) {
        return fault(audit, "rank %u has %u micro-batches", row->data_rank, n);
    }
    return 0;
}

static int audit_rank(struct audit *audit, uint32_t rank)
{
    const struct skrull_rank *row = &audit->plan->ranks[rank];

    if (row->data_rank != rank) {
        return fault(audit, "ranks[%u] is data rank %u", rank, row->data_rank);
    }
    for (uint32_t m = 0; m < row->n_micro_batches; m++) {
        if (audit_micro_batch(audit, rank, m)) {
            return 1;
        }
    }
    if (random_case_is_equal(audit->random)) {
        return audit_count(audit, row);
    }
    if (row->n_micro_batches > 0 &&
        audit->plan->micro_batches[row->first_micro_batch + row->n_micro_batches - 1].dummy) {
        return fault(audit, "rank %u ends with a dummy", rank);
    }
    return 0;
}

/* Has any rank work in micro-batch `m`? */
static bool is_used(const struct skrull_plan *plan, uint32_t m)
{
    for (size_t r = 0; r < plan->n_ranks; r++) {
        if (m < plan->ranks[r].n_micro_batches &&
            !plan->micro_batches[plan->ranks[r].first_micro_batch + m].dummy) {
            return true;
        }
    }
    return false;
}

/* Micro-batches of dummies alone only fill up to what was asked for. */
static int audit_fill(const struct audit *audit)
{
    const struct skrull_planner_options *options = audit->options;
    const uint32_t multiple = options->micro_batch_multiple ? options->micro_batch_multiple : 1;
    uint32_t most = 0, n_unused = 0;

    for (size_t r = 0; r < audit->plan->n_ranks; r++) {
        const uint32_t n = audit->plan->ranks[r].n_micro_batches;

        most = n > most ? n : most;
    }
    for (uint32_t m = 0; m < most; m++) {
        n_unused += !is_used(audit->plan, m);
    }
    if (options->micro_batches == 0 && n_unused >= multiple &&
        most - multiple >= options->micro_batch_min) {
        return fault(audit, "%u of %u micro-batches have no sequence", n_unused, most);
    }
    return 0;
}

/* The parts [first, end) of one sequence: each token once, all members, one micro-batch. */
static int audit_sequence(const struct audit *audit, const struct skrull_sequence *sequence,
                          size_t first, size_t end)
{
    const struct part *parts = audit->parts;
    const struct skrull_segment *one = parts[first].segment;
    const uint32_t per_member =
        one->group_size > 1 && audit->options->shard == SKRULL_SHARD_ZIGZAG ? 2 : 1;
    uint32_t covered = 0;

    for (size_t i = first; i < end; i++) {
        const struct skrull_segment *segment = parts[i].segment;

        if (segment->token_begin != covered || segment->token_end < covered) {
            return fault(audit, "sample %" PRIu64 ": tokens from %u are not there once",
                         one->sample, covered);
        }
        covered = segment->token_end;
        if (segment->index != sequence->index || segment->dataset != sequence->dataset ||
            segment->sequence_length != sequence->length ||
            segment->group_first != one->group_first || segment->group_size != one->group_size ||
            parts[i].micro_batch != parts[first].micro_batch ||
            segment->loss_weight < one->loss_weight || segment->loss_weight > one->loss_weight) {
            return fault(audit, "sample %" PRIu64 ": its segments disagree", one->sample);
        }
    }
    if (covered != sequence->length || end - first != (size_t)one->group_size * per_member) {
        return fault(audit, "sample %" PRIu64 ": %u of %u tokens in %zu segments", one->sample,
                     covered, sequence->length, end - first);
    }
    return 0;
}

/* Every sequence of the batch, in its order, and nothing else. */
static int audit_batch(const struct audit *audit)
{
    const struct skrull_planner_input *input = &audit->random->input;
    size_t first = 0, end;

    qsort(audit->parts, audit->n_parts, sizeof(audit->parts[0]), compare_parts);
    for (size_t k = 0; k < input->n_sequences; k++, first = end) {
        end = first;
        while (end < audit->n_parts &&
               audit->parts[end].segment->sample == input->sequences[k].sample) {
            end++;
        }
        if (end == first) {
            return fault(audit, "sample %" PRIu64 " is missing", input->sequences[k].sample);
        }
        if (audit_sequence(audit, &input->sequences[k], first, end)) {
            return 1;
        }
    }
    return first == audit->n_parts ? 0 : fault(audit, "a sample that is not of the batch");
}

/* The weights of all loss tokens sum up to 1 (or 0, where there is nothing to weigh), and are even
 * as the mode says. */
static int audit_weights(const struct audit *audit)
{
    const struct skrull_planner_input *input = &audit->random->input;
    uint64_t tokens = 0, loss_tokens = 0, n_scored = 0;
    long double sum = 0, wanted;
    size_t first = 0;

    for (size_t k = 0; k < input->n_sequences; k++) {
        tokens += input->sequences[k].length;
        loss_tokens += input->sequences[k].loss_tokens;
        n_scored += input->sequences[k].loss_tokens > 0;
    }
    for (size_t k = 0; k < input->n_sequences; k++) {
        const struct skrull_sequence *sequence = &input->sequences[k];
        const long double weight = (long double)audit->parts[first].segment->loss_weight;
        const long double share = weight * sequence->loss_tokens;

        wanted = 0;
        if (audit->options->loss != SKRULL_LOSS_NONE && sequence->loss_tokens > 0) {
            wanted = audit->options->loss == SKRULL_LOSS_TOKEN_MEAN
                         ? (long double)sequence->loss_tokens / (long double)loss_tokens
                         : 1.0L / (long double)n_scored;
        }
        if (share < wanted * (1 - 1e-12L) || share > wanted * (1 + 1e-12L) || weight < 0 ||
            (sequence->loss_tokens == 0 && weight > 0)) {
            return fault(audit, "sample %" PRIu64 " weighs %.17Lg", sequence->sample, weight);
        }
        sum += share;
        while (first < audit->n_parts && audit->parts[first].segment->sample == sequence->sample) {
            first++;
        }
    }
    wanted = audit->options->loss == SKRULL_LOSS_NONE || loss_tokens == 0 ? 0 : 1;
    if (sum < wanted - 1e-9L || sum > wanted + 1e-9L) {
        return fault(audit, "the weights sum up to %.17Lg", sum);
    }
    if (audit->plan->totals.sequences != input->n_sequences ||
        audit->plan->totals.tokens != tokens || audit->plan->totals.loss_tokens != loss_tokens) {
        return fault(audit, "the totals are wrong");
    }
    return 0;
}

int audit_plan(const struct random_case *random, const struct skrull_plan *plan,
               char ret_message[AUDIT_MESSAGE_SIZE])
{
    struct audit audit = {.random = random,
                          .options = &random->input.options,
                          .plan = plan,
                          .parts = calloc(plan->n_segments + 1, sizeof(*audit.parts)),
                          .message = ret_message};
    int result = 0;

    assert_non_null(audit.parts);
    if (plan->n_ranks != (size_t)audit.options->dp * audit.options->cp ||
        plan->step != random->input.step || plan->epoch != random->input.epoch) {
        result = fault(&audit, "the head is wrong");
    }
    for (uint32_t rank = 0; result == 0 && rank < plan->n_ranks; rank++) {
        result = audit_rank(&audit, rank);
    }
    if (result == 0 && audit.n_parts != plan->n_segments) {
        result = fault(&audit, "%zu segments are of no rank", plan->n_segments - audit.n_parts);
    }
    result = result ? result : audit_fill(&audit);
    result = result ? result : audit_batch(&audit);
    result = result ? result : audit_weights(&audit);
    free(audit.parts);
    return result;
}
