/*
 * The batch of a plan as a whole: each sequence once, on every member of its group, as the index
 * has it, with the weight that the job's loss gives. Parts are sorted by sample, so that each is a
 * run.
 */
#include "plan_check_state.h"

#include <inttypes.h>
#include <stdlib.h>

static int compare_parts(const void *a, const void *b)
{
    const struct plan_check_part *x = a, *y = b;

    if (x->segment->sample != y->segment->sample) {
        return x->segment->sample < y->segment->sample ? -1 : 1;
    }
    if (x->rank != y->rank) {
        return x->rank < y->rank ? -1 : 1;
    }
    return (x->micro_batch > y->micro_batch) - (x->micro_batch < y->micro_batch);
}

/* All parts of one sample ([n], by rank): one sequence, one micro-batch, each member of its group
 * once. */
static void check_sample(struct plan_check_state *check, const struct plan_check_part *parts,
                         size_t n)
{
    const struct skrull_segment *first = parts[0].segment;

    for (size_t i = 1; i < n; i++) {
        if (parts[i].rank == parts[i - 1].rank) {
            plan_check_report(check, "sample %" PRIu64 ": twice on rank %u", first->sample,
                              parts[i].rank);
            return;
        }
        if (!plan_check_same_sequence(first, parts[i].segment)) {
            plan_check_report(check,
                              "sample %" PRIu64
                              ": ranks %u and %u disagree on its row, length, group or loss weight",
                              first->sample, parts[0].rank, parts[i].rank);
            return;
        }
        if (parts[i].micro_batch != parts[0].micro_batch) {
            plan_check_report(check,
                              "sample %" PRIu64 ": in micro-batch %u on rank %u, %u on rank %u",
                              first->sample, parts[0].micro_batch, parts[0].rank,
                              parts[i].micro_batch, parts[i].rank);
            return;
        }
    }
    if (n != first->group_size) {
        plan_check_report(check,
                          "sample %" PRIu64 ": on %zu ranks of its group of %u, tokens are missing",
                          first->sample, n, first->group_size);
    }
}

/* What the parts add up to. */
struct batch {
    uint64_t n_sequences, tokens, loss_tokens, n_scored;
};

/* Holds a sequence against the index; its loss tokens, all of it where there is no index to ask. */
static uint64_t check_row(struct plan_check_state *check, const struct skrull_segment *segment)
{
    struct plan_check_sequence row = {.length = segment->sequence_length,
                                      .loss_tokens = segment->sequence_length};

    if (check->rules->lookup) {
        check->rules->lookup(check->rules->arg, segment->dataset, segment->index, &row);
    }
    if (row.length == 0) {
        plan_check_report(check, "sample %" PRIu64 ": data set %u has no row %" PRIu64,
                          segment->sample, segment->dataset, segment->index);
    } else if (row.length != segment->sequence_length) {
        plan_check_report(check, "sample %" PRIu64 ": %u tokens, the index says %" PRIu64,
                          segment->sample, segment->sequence_length, row.length);
    }
    return row.loss_tokens < row.length ? row.loss_tokens : row.length;
}

/* The weight that the contract gives: one division, the product before it in 64 bits. */
static double wanted_weight(const struct plan_check_state *check, const struct batch *batch,
                            uint64_t loss_tokens)
{
    uint64_t product;

    if (loss_tokens == 0 || check->rules->loss == SKRULL_LOSS_NONE) {
        return 0.0;
    }
    if (check->rules->loss == SKRULL_LOSS_SEQUENCE_MEAN) {
        product = batch->n_scored * loss_tokens;
    } else {
        product = batch->loss_tokens;
    }
    return 1.0 / (double)product;
}

/* Without an index any sequence may lack loss tokens and so have weight 0; else token_mean takes
 * the plan's own total, and of sequence_mean nothing can be said but that it is a weight. */
static bool is_weight_possible(const struct plan_check_state *check, double weight)
{
    const uint64_t loss_tokens = check->plan->totals.loss_tokens;

    if (plan_check_same_bits(weight, 0.0)) {
        return true;
    }
    switch (check->rules->loss) {
    case SKRULL_LOSS_NONE:
        return false;
    case SKRULL_LOSS_SEQUENCE_MEAN:
        return weight > 0.0 && weight <= 1.0;
    case SKRULL_LOSS_TOKEN_MEAN:
    default:
        return loss_tokens > 0 && plan_check_same_bits(weight, 1.0 / (double)loss_tokens);
    }
}

static void check_weight(struct plan_check_state *check, const struct batch *batch,
                         const struct skrull_segment *segment, uint64_t loss_tokens)
{
    double wanted;

    if (!check->rules->lookup) {
        if (!is_weight_possible(check, segment->loss_weight)) {
            plan_check_report(
                check, "sample %" PRIu64 ": loss weight %.17g is none that the job's loss gives",
                segment->sample, segment->loss_weight);
        }
        return;
    }
    wanted = wanted_weight(check, batch, loss_tokens);
    if (!plan_check_same_bits(segment->loss_weight, wanted)) {
        plan_check_report(check, "sample %" PRIu64 ": loss weight %.17g, expected %.17g",
                          segment->sample, segment->loss_weight, wanted);
    }
}

static void check_totals(struct plan_check_state *check, const struct batch *batch)
{
    const struct skrull_totals *totals = &check->plan->totals;
    uint64_t n_wanted = check->rules->n_sequences;

    if (n_wanted != 0 && batch->n_sequences != n_wanted) {
        plan_check_report(check, "%" PRIu64 " sequences, the batch has %" PRIu64,
                          batch->n_sequences, n_wanted);
    }
    if (totals->sequences != batch->n_sequences || totals->tokens != batch->tokens) {
        plan_check_report(check,
                          "totals: %" PRIu64 " sequences, %" PRIu64
                          " tokens; the plan holds %" PRIu64 " and %" PRIu64,
                          totals->sequences, totals->tokens, batch->n_sequences, batch->tokens);
    }
    if (check->rules->lookup ? totals->loss_tokens != batch->loss_tokens
                             : totals->loss_tokens > batch->tokens) {
        plan_check_report(check, "totals: %" PRIu64 " loss tokens, the plan holds %" PRIu64,
                          totals->loss_tokens,
                          check->rules->lookup ? batch->loss_tokens : batch->tokens);
    }
}

/* Runs of one sample in the sorted parts. */
static size_t run_length(const struct plan_check_state *check, size_t begin)
{
    size_t n = 1;

    while (begin + n < check->n_parts &&
           check->parts[begin + n].segment->sample == check->parts[begin].segment->sample) {
        n++;
    }
    return n;
}

void plan_check_batch(struct plan_check_state *check, uint64_t *loss_tokens)
{
    struct batch batch = {0};
    size_t i_sequence = 0;

    if (check->n_parts > 0) {
        qsort(check->parts, check->n_parts, sizeof(*check->parts), compare_parts);
    }
    for (size_t i = 0, n; i < check->n_parts; i += n) {
        const struct skrull_segment *segment = check->parts[i].segment;

        n = run_length(check, i);
        check_sample(check, &check->parts[i], n);
        loss_tokens[i_sequence] = check_row(check, segment);
        batch.tokens += segment->sequence_length;
        batch.loss_tokens += loss_tokens[i_sequence];
        batch.n_scored += loss_tokens[i_sequence] > 0;
        i_sequence++;
    }
    batch.n_sequences = i_sequence;
    i_sequence = 0;
    for (size_t i = 0, n; i < check->n_parts; i += n) {
        n = run_length(check, i);
        check_weight(check, &batch, check->parts[i].segment, loss_tokens[i_sequence++]);
    }
    check_totals(check, &batch);
}
