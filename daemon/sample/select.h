/* The k-th set bit of a bitmap, by a directory of counts: one u64 per 4,096 rows (1/64 bit a row).
 */
#pragma once

#include <stdint.h>

struct bit_select {
    const uint64_t *words; /* borrowed */
    uint64_t n_bits;
    uint64_t n_set;
    uint64_t *before; /* [n_blocks] set bits before each block; owned */
    uint64_t n_blocks;
};

/* Bits at and past n_bits must be 0 in the last word. 0, or -1: out of memory. O(n_bits / 64). */
int bit_select_init(struct bit_select *select, const uint64_t *words, uint64_t n_bits);
void bit_select_deinit(struct bit_select *select);

/* The place of set bit k < n_set, from 0. O(log(n_bits)). Thread-safe. */
uint64_t bit_select_at(const struct bit_select *select, uint64_t k);
