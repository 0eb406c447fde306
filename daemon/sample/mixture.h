/* Which data set each sample of a weighted mixture is drawn from: blocks of 10,000 samples, all
 * alike. */
#pragma once

#include <stdint.h>

#include "sample/sample.h"

#define MIXTURE_BLOCK 10000
#define MIXTURE_MAX_DATASETS 65535 /* numbers of 16 bits in the table */

struct mixture {
    uint32_t *shares;               /* [n_datasets] samples of a block; owned */
    uint16_t turns[MIXTURE_BLOCK];  /* the data set of each place */
    uint16_t before[MIXTURE_BLOCK]; /* places of the same data set before it, in the block */
};

/*
 * Shares of a block by weight (finite, above 0): weight / sum to 1 / MIXTURE_BLOCK by largest
 * remainder, ties to the lower data set. Whole numbers only, so every machine gives the same: the
 * doubles' bits are taken as numbers below 2^63 in units of 2^-10 of the largest's last bit, which
 * is exact for weights down to a thousandth of the largest. 0, or -1: out of memory.
 */
int mixture_shares(const struct sample_rows *rows, uint32_t n_datasets, uint32_t *ret_shares);

/* A new mixture of 1 to MIXTURE_MAX_DATASETS data sets, freed by mixture_free; NULL: out of memory.
 * O(MIXTURE_BLOCK x n_datasets). */
struct mixture *mixture_new(const struct sample_rows *rows, uint32_t n_datasets);
void mixture_free(struct mixture *mixture);

/* Where a sample comes from: the draw-th (from 0) of the data set's endless order. */
struct mixture_draw {
    uint32_t dataset;
    uint64_t draw;
};
struct mixture_draw mixture_at(const struct mixture *mixture, uint64_t sample);
