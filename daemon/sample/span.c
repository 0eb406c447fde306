/*
 * Step arithmetic. A span begins somewhere in an epoch: what is left of that epoch is its head,
 * whole epochs follow. No batch crosses epochs: the end of one is dropped, kept short, or filled up
 * from the epoch's own beginning. Pure.
 */
#include "sample/span.h"

#include <inttypes.h>

#include "ckd.h"

static uint64_t steps_of(const struct span *span, uint64_t n_sequences)
{
    uint64_t whole = n_sequences / span->batch;

    return whole + (span->last_batch != SKRULL_LAST_BATCH_DROP && n_sequences % span->batch != 0);
}

static int no_step(const struct span *span, struct skrull_error *err)
{
    return skrull_error_because(
        err, SKRULL_ERR_INVALID_ARGUMENT, SKRULL_REASON_TOO_FEW_SEQUENCES, span->n_sequences,
        "no step: %" PRIu64 " sequences are fewer than batch.global %" PRIu32
        " and the last, partial batch is dropped; lower batch.global or add "
        "data",
        span->n_sequences, span->batch);
}

int span_init(const struct span *before, uint64_t first_step, uint32_t batch, uint64_t n_sequences,
              enum skrull_last_batch last_batch, struct span *ret_span, struct skrull_error *err)
{
    struct span span = {
        .first_step = first_step,
        .batch = batch,
        .n_sequences = n_sequences,
        .last_batch = last_batch,
    };

    if (before) {
        struct span_batch begin = span_at(before, first_step);

        span.first_epoch = begin.epoch;
        span.first_place = begin.place;
        if (span_samples(before, first_step, &span.first_sample) < 0) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "step %" PRIu64 ": more than 2^64 samples precede it",
                                    first_step);
        }
    }
    if (n_sequences > 0) {
        span.epoch_steps = steps_of(&span, n_sequences);
        span.head_steps = steps_of(&span, n_sequences - span.first_place);
        if (span.epoch_steps == 0) {
            return no_step(&span, err);
        }
    }
    *ret_span = span;
    return 0;
}

struct span_batch span_at(const struct span *span, uint64_t step)
{
    uint64_t s = step - span->first_step, left;
    struct span_batch batch = {
        .epoch = span->first_epoch,
        .place = span->first_place,
        .first_sample = span->first_sample + s * span->batch,
        .n = span->batch,
    };

    if (span->n_sequences > 0 && s >= span->head_steps) {
        s -= span->head_steps;
        batch.epoch += 1 + s / span->epoch_steps;
        batch.place = 0;
        s %= span->epoch_steps;
    }
    batch.place += s * span->batch;
    left = span->n_sequences - batch.place;
    if (span->last_batch == SKRULL_LAST_BATCH_KEEP && span->n_sequences > 0 && left < batch.n) {
        batch.n = (uint32_t)left;
    }
    return batch;
}

int span_end_of_epochs(const struct span *span, uint64_t epochs, uint64_t *ret_step)
{
    uint64_t steps = span->first_step;

    if (epochs > span->first_epoch) {
        uint64_t whole = epochs - span->first_epoch - 1, later;

        if (ckd_mul(&later, whole, span->epoch_steps) || ckd_add(&steps, steps, span->head_steps) ||
            ckd_add(&steps, steps, later)) {
            return -1;
        }
    }
    *ret_step = steps;
    return 0;
}

int span_samples(const struct span *span, uint64_t steps, uint64_t *ret_samples)
{
    uint64_t samples;

    if (ckd_mul(&samples, steps - span->first_step, (uint64_t)span->batch) ||
        ckd_add(&samples, samples, span->first_sample)) {
        return -1;
    }
    *ret_samples = samples;
    return 0;
}
