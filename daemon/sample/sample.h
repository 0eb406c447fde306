/*
 * 2 SAMPLER: (seed, epoch, step) -> rows. Pure, random access, O(1) memory beside one bit a row
 * where rows are dropped (and 1/64 bit for finding them): a keyed permutation (Feistel network with
 * cycle walking) of the kept rows.
 */
#pragma once

#include <stdint.h>

#include <skrull/error.h>
#include <skrull/types.h>

/* The kept rows of one data set: all of them, or those whose bit is set. */
struct sample_rows {
    uint64_t count;       /* rows in the index */
    uint64_t n_kept;      /* rows kept */
    const uint64_t *kept; /* bit r of word r / 64: row r is kept; NULL: all are. Borrowed */
};

struct sampler_options {
    uint64_t seed;
    enum skrull_order order;
    uint32_t batch;  /* sequences in a global batch */
    uint64_t epochs; /* one of these is 0 */
    uint64_t steps;
    const struct sample_rows *rows; /* [n_datasets], concatenated in this order; copied */
    uint32_t n_datasets;
};

struct sample_row {
    uint32_t dataset;
    uint64_t row;
};

struct sampler;

/* A new sampler, freed by sampler_free. INVALID_ARGUMENT: no step at all (fewer sequences than a
 * batch), with both numbers. */
int sampler_new(const struct sampler_options *options, struct sampler **ret_sampler,
                struct skrull_error *err);
void sampler_free(struct sampler *sampler);

/* Steps of the whole job, and sequences in an epoch. */
uint64_t sampler_steps(const struct sampler *sampler);
uint64_t sampler_epoch_sequences(const struct sampler *sampler);

/* The rows of a step: fills ret_rows[batch] and the epoch. Its first sample is step x batch.
 * OUT_OF_RANGE: no such step. O(batch); thread-safe. */
int sampler_step(const struct sampler *sampler, uint64_t step, struct sample_row *ret_rows,
                 uint64_t *ret_epoch, struct skrull_error *err);
