/* Steps that share a batch size: where each of them begins in the endless order of epochs. Whole
 * numbers only. */
#pragma once

#include <stdint.h>

#include <skrull/error.h>
#include <skrull/types.h>

struct span {
    uint64_t first_step;
    uint64_t first_sample;
    uint64_t first_epoch, first_place; /* where first_step begins */
    uint64_t head_steps;               /* what is left of first_epoch */
    uint64_t epoch_steps;              /* of every later epoch; 0: one epoch without an end */
    uint64_t n_sequences;              /* in an epoch; 0: one epoch without an end */
    uint32_t batch;
    enum skrull_last_batch last_batch;
};

/* Where one step begins, and its size. */
struct span_batch {
    uint64_t epoch, place; /* WRAP: places past the epoch's end are meant modulo its size */
    uint64_t first_sample;
    uint32_t n;
};

/*
 * The span of batches of `batch` from `first_step` on, after the span `before` (NULL: the first,
 * from step 0). An epoch has n_sequences, or (0) no end. INVALID_ARGUMENT: an epoch has no step,
 * or more than 2^64 samples precede.
 */
int span_init(const struct span *before, uint64_t first_step, uint32_t batch, uint64_t n_sequences,
              enum skrull_last_batch last_batch, struct span *ret_span, struct skrull_error *err);

/* A step of this span, step >= first_step. */
struct span_batch span_at(const struct span *span, uint64_t step);

/* The step that follows the last one of `epochs` epochs (first_step, where these were over before).
 * -1: past 2^64. */
int span_end_of_epochs(const struct span *span, uint64_t epochs, uint64_t *ret_step);

/* Samples of all steps below `steps` >= first_step. -1: past 2^64. */
int span_samples(const struct span *span, uint64_t steps, uint64_t *ret_samples);
