/*
 * A keyed permutation of [0, n): any place of the order in O(1), no table. The same on every
 * machine: whole numbers of fixed width only.
 */
#pragma once

#include <stdint.h>

#define PERMUTATION_MAX_ROUNDS 16

struct permutation {
    uint64_t n;
    uint32_t left_bits,
        right_bits; /* of the domain, the least power of two that holds n (at least 4) */
    uint32_t n_rounds;
    uint64_t keys[PERMUTATION_MAX_ROUNDS]; /* [n_rounds] */
};

/* The permutation of [0, n) by (seed, stream): a stream is an epoch, say. n >= 1. */
void permutation_init(struct permutation *perm, uint64_t n, uint64_t seed, uint64_t stream);

/* Where place i < n leads; each of [0, n) exactly once. Thread-safe; expected time O(1). */
uint64_t permutation_at(const struct permutation *perm, uint64_t i);
