/*
 * From a planner's input to a batch: every check on what a caller may hand in, and every cost
 * computed once, so that policies only add and compare integers.
 */
#include "plan/batch.h"

#include "arena.h"
#include "cost/cost.h"
#include "plan/options.h"
#include "plan/policy.h"

static int check_sequence(const struct skrull_planner_input *input, size_t i,
                          struct skrull_error *err)
{
    const struct skrull_sequence *sequence = &input->sequences[i];

    if (sequence->length == 0 || sequence->loss_tokens > sequence->length) {
        return skrull_error_set(
            err, SKRULL_ERR_INVALID_ARGUMENT,
            "sample %llu: length %u, loss tokens %u: at least 1 token and at most as many loss "
            "tokens are allowed",
            (unsigned long long)sequence->sample, sequence->length, sequence->loss_tokens);
    }
    if (i > 0 && sequence->sample <= sequence[-1].sample) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "sample %llu follows sample %llu: samples of a batch must ascend",
                                (unsigned long long)sequence->sample,
                                (unsigned long long)sequence[-1].sample);
    }
    return 0;
}

static int refuse_long(const struct batch *batch, const struct skrull_sequence *sequence,
                       struct skrull_error *err)
{
    const uint64_t limit = skrull_planner_longest(&batch->options);

    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "sample %llu (row %llu of data set %u) has %u tokens, at most %llu fit "
                            "(bucket_tokens %u, cp "
                            "%u, align %u): raise batch.bucket_tokens or parallel.cp, or set "
                            "over_length to truncate or "
                            "drop",
                            (unsigned long long)sequence->sample,
                            (unsigned long long)sequence->index, sequence->dataset,
                            sequence->length, (unsigned long long)limit,
                            batch->options.bucket_tokens, batch->options.cp, batch->options.align);
}

/* A slot as the policies want it. */
static int64_t slot_of(const struct batch *batch, uint32_t length, uint32_t degree)
{
    const struct skrull_planner_options *options = &batch->options;
    const uint64_t slot = skrull_slot_tokens(length, degree, options->align, options->shard);

    return slot > options->bucket_tokens ? SLOT_NONE : (int64_t)slot;
}

static void fill_item(const struct batch *batch, uint32_t length, struct batch_item *item)
{
    const uint32_t cp = batch->options.cp;

    *item = (struct batch_item){.local_slot = SLOT_NONE, .shard_slot = SLOT_NONE};
    item->local_ns = cost_comp_ns(batch->cost, length, 1);
    if (batch->has_local) {
        item->local_slot = slot_of(batch, length, 1);
    }
    if (batch->has_shard) {
        item->shard_ns = cost_comp_ns(batch->cost, length, cp);
        item->shard_slot = slot_of(batch, length, cp);
    }
}

/* Is there a group size at which the sequence fits? */
static bool fits(const struct batch *batch, uint32_t length, const struct batch_item *item)
{
    bool fits_some = item->local_slot != SLOT_NONE || item->shard_slot != SLOT_NONE;

    for (size_t i = batch->degrees.n; i > 0 && !fits_some; i--) {
        fits_some = slot_of(batch, length, batch->degrees.sizes[i - 1]) != SLOT_NONE;
    }
    return fits_some;
}

/* The most time that a sequence can add to any clock: all of it, alone in its micro-batch. */
static int64_t most_ns(const struct batch *batch, uint32_t length, const struct batch_item *item)
{
    const int64_t comp = item->local_ns > item->shard_ns ? item->local_ns : item->shard_ns;

    return comp + cost_exchange_ns(batch->cost, COST_ACROSS, length) + cost_fixed_ns(batch->cost);
}

static int fill_items(struct batch *batch, struct skrull_error *err)
{
    struct batch_item *items = ARENA_ARRAY(batch->scratch, struct batch_item, batch->n_sequences);
    int64_t total_ns = 0;

    if (!items) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "out of memory for a batch of %u sequences", batch->n_sequences);
    }
    for (uint32_t i = 0; i < batch->n_sequences; i++) {
        const uint32_t length = batch->sequences[i].length;

        fill_item(batch, length, &items[i]);
        if (!fits(batch, length, &items[i])) {
            return refuse_long(batch, &batch->sequences[i], err);
        }
        total_ns += most_ns(batch, length, &items[i]); /* at most 2^62 and three times 2^53 */
        if (total_ns > PLANNER_MAX_NS) {
            return skrull_error_set(
                err, SKRULL_ERR_INVALID_ARGUMENT,
                "the batch's modelled time could pass 2^62 ns at sample %llu of "
                "%u tokens: lower batch.global or set over_length to truncate",
                (unsigned long long)batch->sequences[i].sample, length);
        }
    }
    batch->items = items;
    return 0;
}

static int set_degrees(struct batch *batch, struct skrull_error *err)
{
    const uint32_t cp = batch->options.cp;
    const int rc = policy_degrees(&batch->options, &batch->degrees, err);

    if (rc) {
        return rc;
    }
    batch->has_local = batch->degrees.sizes[0] == 1;
    for (size_t i = 0; i < batch->degrees.n; i++) {
        batch->has_shard |= batch->degrees.sizes[i] == cp && cp > 1;
    }
    return 0;
}

int batch_init(struct batch *batch, const struct skrull_planner_input *input, struct arena *scratch,
               struct skrull_error *err)
{
    int rc;

    if (input->n_sequences == 0 || input->n_sequences > PLANNER_MAX_SEQUENCES) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "a batch of %zu sequences: 1 to %u are allowed", input->n_sequences,
                                PLANNER_MAX_SEQUENCES);
    }
    for (size_t i = 0; i < input->n_sequences; i++) {
        rc = check_sequence(input, i, err);
        if (rc) {
            return rc;
        }
    }
    *batch = (struct batch){.cost = input->cost,
                            .sequences = input->sequences,
                            .n_sequences = (uint32_t)input->n_sequences,
                            .scratch = scratch};
    rc = options_complete(&input->options, &batch->options, err);
    rc = rc ? rc : set_degrees(batch, err);
    return rc ? rc : fill_items(batch, err);
}
