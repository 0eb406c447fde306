/*
 * 2 SAMPLER: (seed, step) -> rows. Pure, random access: a keyed permutation (Feistel network with
 * cycle walking) of the kept rows, so an order needs no memory; beside it one bit a row where rows
 * are dropped (and 1/64 bit for finding them), 4 bytes a sequence for `sorted` (12 while it is
 * made), and 40 KB for a mixture.
 */
#pragma once

#include <stdint.h>

#include <skrull/error.h>
#include <skrull/types.h>

/* The kept rows of one data set: all of them, or those whose bit is set. */
struct sample_rows {
    uint64_t count;          /* rows in the index */
    uint64_t n_kept;         /* rows kept */
    const uint64_t *kept;    /* bit r of word r / 64: row r is kept; NULL: all are. Borrowed */
    double weight;           /* in a mixture; 0: none. All data sets have one, or none has */
    const uint32_t *lengths; /* [count] tokens: for SORTED, read by sampler_new only */
    uint64_t limit;          /* longer rows count as so long: for SORTED */
};

/* From `first_step` on, batches of this size: a job that changes its batch has several spans. */
struct sample_span {
    uint64_t first_step;
    uint32_t batch; /* sequences in a global batch */
};

struct sampler_options {
    uint64_t seed;
    enum skrull_order order;
    enum skrull_last_batch last_batch; /* without weights: with them, no epoch ends */
    uint64_t epochs;                   /* one of these is 0; with weights, epochs is */
    uint64_t steps;
    const struct sample_span *spans; /* [n_spans >= 1] ascending, the first from step 0 */
    uint32_t n_spans;
    const struct sample_rows *rows; /* [n_datasets], in this order; the bitmaps stay borrowed */
    uint32_t n_datasets;
};

struct sample_row {
    uint32_t dataset;
    uint64_t row;
};

/* What a step is, beside its rows. */
struct sample_batch {
    uint64_t epoch;        /* with weights always 0 */
    uint64_t first_sample; /* number of the first: samples of all earlier steps at full size */
    uint32_t n_rows;       /* fewer than the batch in the last step of an epoch with KEEP */
};

struct sampler;

/* A new sampler, freed by sampler_free. INVALID_ARGUMENT: no step at all (fewer sequences than a
 * batch, with both numbers), more than 2^64 samples, or options that contradict each other. */
int sampler_new(const struct sampler_options *options, struct sampler **ret_sampler,
                struct skrull_error *err);
void sampler_free(struct sampler *sampler);

/* Steps of the whole job, samples of all of them, and sequences in an epoch. */
uint64_t sampler_steps(const struct sampler *sampler);
uint64_t sampler_samples(const struct sampler *sampler);
uint64_t sampler_epoch_sequences(const struct sampler *sampler);

/* Sequences of a step at most, at least 1: the batch of its span. */
uint32_t sampler_batch_size(const struct sampler *sampler, uint64_t step);

/* The rows of a step: fills ret_rows[sampler_batch_size]. OUT_OF_RANGE: no such step. O(batch);
 * thread-safe. */
int sampler_step(const struct sampler *sampler, uint64_t step, struct sample_row *ret_rows,
                 struct sample_batch *ret_batch, struct skrull_error *err);
