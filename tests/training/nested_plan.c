/*
 * Sequences go to groups by a fixed rule: the longest to all eight ranks, the others by sample to
 * either half, to pairs and to single ranks, and to one of two micro-batches. So a rank waits for
 * three groups in one micro-batch, and its neighbours for different ones.
 */
#include "nested_plan.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

#define N_RANKS 8
#define N_MICRO_BATCHES 2

struct place {
    uint32_t size, first, micro_batch;
};

static struct place place_of(const struct skrull_sequence *sequence)
{
    uint32_t kind = (uint32_t)(sequence->sample % 3);
    uint32_t size = sequence->length > 60 ? 8 : kind == 0 ? 4 : kind == 1 ? 2 : 1;
    uint32_t group = (uint32_t)(sequence->sample / 6 % (N_RANKS / size));

    return (struct place){size, group * size, (uint32_t)(sequence->sample / 2 % 2)};
}

/* What rank `rank` holds in a micro-batch, of groups of `size`. */
static void add_size(struct skrull_plan *plan, struct skrull_micro_batch *micro_batch,
                     uint32_t rank, const struct place *like, double weight,
                     const struct skrull_sequence *sequence, uint32_t align,
                     enum skrull_shard shard)
{
    struct skrull_segment *segment = &plan->segments[plan->n_segments];
    uint32_t n = skrull_slot_segments(like->size, shard);

    skrull_slot_cut(sequence->length, like->size, rank - like->first, align, shard, segment);
    for (uint32_t i = 0; i < n; i++) {
        segment[i].sample = sequence->sample;
        segment[i].index = sequence->index;
        segment[i].sequence_length = sequence->length;
        segment[i].group_first = like->first;
        segment[i].group_size = like->size;
        segment[i].loss_weight = weight;
        micro_batch->tokens += segment[i].token_end - segment[i].token_begin;
        micro_batch->padded_tokens += segment[i].padded_tokens;
    }
    plan->n_segments += n;
    micro_batch->n_segments += n;
}

struct batch {
    const struct skrull_sequence *sequences;
    size_t n_sequences;
    uint32_t align;
    enum skrull_shard shard;
};

static void add_micro_batch(struct skrull_plan *plan, uint32_t rank, uint32_t i,
                            const struct batch *batch)
{
    struct skrull_micro_batch *micro_batch = &plan->micro_batches[plan->n_micro_batches++];

    micro_batch->first_segment = plan->n_segments;
    for (uint32_t size = N_RANKS; size > 0; size /= 2) {
        for (size_t s = 0; s < batch->n_sequences; s++) {
            const struct place place = place_of(&batch->sequences[s]);

            if (place.size == size && place.micro_batch == i && rank >= place.first &&
                rank < place.first + size) {
                add_size(plan, micro_batch, rank, &place, 1.0 / (double)plan->totals.tokens,
                         &batch->sequences[s], batch->align, batch->shard);
            }
        }
    }
    micro_batch->dummy = micro_batch->n_segments == 0;
}

/* Group sizes above 1 in a micro-batch. */
static uint32_t count_groups(const struct skrull_plan *plan, size_t i)
{
    const struct skrull_micro_batch *micro_batch = &plan->micro_batches[i];
    uint32_t n = 0, last = 1;

    for (uint32_t s = 0; s < micro_batch->n_segments; s++) {
        uint32_t size = plan->segments[micro_batch->first_segment + s].group_size;

        n += size > 1 && size != last;
        last = size;
    }
    return n;
}

uint32_t nested_plan_groups(const struct skrull_plan *plan)
{
    uint32_t most = 0;

    for (size_t i = 0; i < plan->n_micro_batches; i++) {
        most = count_groups(plan, i) > most ? count_groups(plan, i) : most;
    }
    return most;
}

struct skrull_plan *nested_plan_new(const struct skrull_sequence *sequences, size_t n_sequences,
                                    uint64_t step, uint32_t align, enum skrull_shard shard)
{
    const struct batch batch = {sequences, n_sequences, align, shard};
    struct skrull_plan *plan = calloc(1, sizeof(*plan));

    assert_non_null(plan);
    *plan = (struct skrull_plan){.step = step, .dp = 2, .cp = 4, .n_ranks = N_RANKS};
    plan->ranks = calloc(N_RANKS, sizeof(plan->ranks[0]));
    plan->micro_batches = calloc((size_t)N_RANKS * N_MICRO_BATCHES, sizeof(plan->micro_batches[0]));
    plan->segments = calloc(n_sequences * N_RANKS * 2, sizeof(plan->segments[0]));
    assert_true(plan->ranks && plan->micro_batches && plan->segments);
    for (size_t s = 0; s < n_sequences; s++) {
        plan->totals.tokens += sequences[s].length;
    }
    for (uint32_t r = 0; r < N_RANKS; r++) {
        plan->ranks[r] = (struct skrull_rank){.data_rank = r,
                                              .n_micro_batches = N_MICRO_BATCHES,
                                              .first_micro_batch = plan->n_micro_batches};
        for (uint32_t i = 0; i < N_MICRO_BATCHES; i++) {
            add_micro_batch(plan, r, i, &batch);
        }
    }
    return plan;
}

void nested_plan_free(struct skrull_plan *plan)
{
    free(plan->ranks);
    free(plan->micro_batches);
    free(plan->segments);
    free(plan);
}
