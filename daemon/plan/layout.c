/*
 * Placements become a plan by counting: micro-batches of each rank, segments of each micro-batch,
 * and then each segment is written to its place. Sequences are visited by group size, the largest
 * first, and by ascending sample within it, which is the order that the contract wants in every
 * micro-batch.
 */
#include "plan/layout.h"

#include "arena.h"
#include "ckd.h"
#include "plan/counts.h"
#include "plan/options.h"
#include "plan/weights.h"

struct layout {
    const struct batch *batch;
    const struct placement *placements;
    struct skrull_plan *plan;
    struct arena *arena;
    uint32_t *order; /* [n_sequences]: larger groups first, then ascending sample */
    struct weights weights;
};

static int out_of_memory(const struct batch *batch, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                            "out of memory for a plan of %u sequences", batch->n_sequences);
}

/* The largest group size below `limit`, 0: none. */
static uint32_t next_size(const struct layout *layout, uint32_t limit)
{
    uint32_t size = 0;

    for (uint32_t k = 0; k < layout->batch->n_sequences; k++) {
        const uint32_t candidate = layout->placements[k].group_size;

        if (candidate < limit && candidate > size) {
            size = candidate;
        }
    }
    return size;
}

/* One pass a group size; a chain of sizes has few. */
static int order_sequences(struct layout *layout, struct skrull_error *err)
{
    const uint32_t n = layout->batch->n_sequences;
    uint32_t done = 0, size = UINT32_MAX;

    layout->order = ARENA_ARRAY(layout->batch->scratch, uint32_t, n);
    if (!layout->order) {
        return out_of_memory(layout->batch, err);
    }
    while ((size = next_size(layout, size)) > 0) {
        for (uint32_t k = 0; k < n; k++) {
            if (layout->placements[k].group_size == size) {
                layout->order[done++] = k;
            }
        }
    }
    return 0;
}

/* Bytes of the plan's arrays against the limit. */
static int check_size(const struct layout *layout, uint64_t n_segments, uint64_t n_micro_batches,
                      struct skrull_error *err)
{
    const uint64_t segments_max = PLANNER_MAX_BYTES / sizeof(struct skrull_segment);
    const uint64_t micro_batches_max = PLANNER_MAX_BYTES / sizeof(struct skrull_micro_batch);

    if (n_segments > segments_max || n_micro_batches > micro_batches_max ||
        n_segments * sizeof(struct skrull_segment) +
                n_micro_batches * sizeof(struct skrull_micro_batch) >
            PLANNER_MAX_BYTES - (PLANNER_MAX_BYTES >> 3)) {
        return skrull_error_set(
            err, SKRULL_ERR_RESOURCE_EXHAUSTED,
            "the plan has %llu segments and %llu micro-batches on %zu ranks, more than the %llu "
            "MiB "
            "that a plan may take: lower batch.global, or use a policy that shards less",
            (unsigned long long)n_segments, (unsigned long long)n_micro_batches,
            layout->plan->n_ranks, (unsigned long long)(PLANNER_MAX_BYTES >> 20));
    }
    return 0;
}

/* Number of micro-batches of each rank: up to its last that holds a sequence, or the same on all.
 */
static uint64_t count_micro_batches(const struct layout *layout)
{
    struct skrull_rank *ranks = layout->plan->ranks;
    const size_t n_ranks = layout->plan->n_ranks;
    const struct skrull_planner_options *options = &layout->batch->options;
    const uint32_t equal =
        counts_equal(options, counts_most(layout->placements, layout->batch->n_sequences));
    uint64_t total = 0;

    for (uint32_t k = 0; k < layout->batch->n_sequences; k++) {
        const struct placement *at = &layout->placements[k];
        const uint32_t count = at->micro_batch + 1;

        for (uint32_t r = at->group_first; r < at->group_first + at->group_size; r++) {
            if (ranks[r].n_micro_batches < count) {
                ranks[r].n_micro_batches = count;
            }
        }
    }
    for (size_t r = 0; r < n_ranks; r++) {
        if (options->equal_micro_batches) {
            ranks[r].n_micro_batches = equal;
        }
        ranks[r].first_micro_batch = total;
        total += ranks[r].n_micro_batches;
    }
    return total;
}

static uint64_t count_segments(const struct layout *layout)
{
    const enum skrull_shard shard = layout->batch->options.shard;
    uint64_t total = 0;

    for (uint32_t k = 0; k < layout->batch->n_sequences; k++) {
        const uint32_t size = layout->placements[k].group_size;

        total += (uint64_t)size * skrull_slot_segments(size, shard);
    }
    return total;
}

static struct skrull_micro_batch *micro_batch_at(const struct layout *layout, uint32_t rank,
                                                 uint32_t micro_batch)
{
    return &layout->plan->micro_batches[layout->plan->ranks[rank].first_micro_batch + micro_batch];
}

/* Gives each micro-batch its run of segments; n_segments is counted again as they are written. */
static void open_micro_batches(const struct layout *layout)
{
    struct skrull_plan *plan = layout->plan;
    size_t first = 0;

    for (uint32_t k = 0; k < layout->batch->n_sequences; k++) {
        const struct placement *at = &layout->placements[k];
        const uint32_t pieces = skrull_slot_segments(at->group_size, layout->batch->options.shard);

        for (uint32_t r = at->group_first; r < at->group_first + at->group_size; r++) {
            micro_batch_at(layout, r, at->micro_batch)->n_segments += pieces;
        }
    }
    for (size_t m = 0; m < plan->n_micro_batches; m++) {
        plan->micro_batches[m].first_segment = first;
        plan->micro_batches[m].dummy = plan->micro_batches[m].n_segments == 0;
        first += plan->micro_batches[m].n_segments;
        plan->micro_batches[m].n_segments = 0;
    }
}

/* Writes what one member holds of a sequence. */
static void write_member(const struct layout *layout, uint32_t k, uint32_t member,
                         const struct skrull_segment *pattern)
{
    const struct skrull_planner_options *options = &layout->batch->options;
    const struct placement *at = &layout->placements[k];
    const uint32_t pieces = skrull_slot_segments(at->group_size, options->shard);
    struct skrull_micro_batch *micro_batch =
        micro_batch_at(layout, at->group_first + member, at->micro_batch);
    struct skrull_segment *segments =
        &layout->plan->segments[micro_batch->first_segment + micro_batch->n_segments];

    for (uint32_t i = 0; i < pieces; i++) {
        segments[i] = *pattern;
    }
    skrull_slot_cut(pattern->sequence_length, at->group_size, member, options->align,
                    options->shard, segments);
    for (uint32_t i = 0; i < pieces; i++) {
        micro_batch->tokens += segments[i].token_end - segments[i].token_begin;
        micro_batch->padded_tokens += segments[i].padded_tokens;
    }
    micro_batch->n_segments += pieces;
}

static void write_segments(const struct layout *layout)
{
    for (uint32_t i = 0; i < layout->batch->n_sequences; i++) {
        const uint32_t k = layout->order[i];
        const struct skrull_sequence *sequence = &layout->batch->sequences[k];
        const struct placement *at = &layout->placements[k];
        const struct skrull_segment pattern = {
            .sample = sequence->sample,
            .index = sequence->index,
            .dataset = sequence->dataset,
            .sequence_length = sequence->length,
            .group_first = at->group_first,
            .group_size = at->group_size,
            .loss_weight = weights_of(&layout->weights, sequence->loss_tokens),
        };

        for (uint32_t member = 0; member < at->group_size; member++) {
            write_member(layout, k, member, &pattern);
        }
    }
}

static int new_plan(struct layout *layout, struct skrull_error *err)
{
    const struct skrull_planner_options *options = &layout->batch->options;
    struct skrull_plan *plan = ARENA_NEW(layout->arena, struct skrull_plan);

    if (!plan) {
        return out_of_memory(layout->batch, err);
    }
    layout->plan = plan;
    plan->arena = layout->arena;
    plan->dp = options->dp;
    plan->cp = options->cp;
    plan->n_ranks = (size_t)options->dp * options->cp;
    plan->ranks = ARENA_ARRAY(layout->arena, struct skrull_rank, plan->n_ranks);
    if (!plan->ranks) {
        return out_of_memory(layout->batch, err);
    }
    for (size_t r = 0; r < plan->n_ranks; r++) {
        plan->ranks[r].data_rank = (uint32_t)r;
    }
    return 0;
}

static int new_arrays(struct layout *layout, struct skrull_error *err)
{
    struct skrull_plan *plan = layout->plan;
    const uint64_t n_micro_batches = count_micro_batches(layout);
    const uint64_t n_segments = count_segments(layout);
    const int rc = check_size(layout, n_segments, n_micro_batches, err);

    if (rc) {
        return rc;
    }
    plan->n_micro_batches = n_micro_batches;
    plan->n_segments = n_segments;
    plan->micro_batches =
        ARENA_ARRAY(layout->arena, struct skrull_micro_batch, plan->n_micro_batches);
    plan->segments = ARENA_ARRAY(layout->arena, struct skrull_segment, plan->n_segments);
    if (!plan->micro_batches || !plan->segments) {
        return out_of_memory(layout->batch, err);
    }
    return 0;
}

int layout_plan(const struct batch *batch, const struct placement *placements, struct arena *arena,
                struct skrull_plan **ret_plan, struct skrull_error *err)
{
    struct layout layout = {.batch = batch, .placements = placements, .arena = arena};
    int rc;

    rc = order_sequences(&layout, err);
    rc = rc ? rc : new_plan(&layout, err);
    rc = rc ? rc : new_arrays(&layout, err);
    if (rc) {
        return rc;
    }
    weights_init(&layout.weights, batch, &layout.plan->totals);
    open_micro_batches(&layout);
    write_segments(&layout);
    *ret_plan = layout.plan;
    return 0;
}
