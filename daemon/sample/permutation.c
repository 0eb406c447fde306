/*
 * An alternating Feistel network on the bits of the index, made to fit n by cycle walking: the
 * network permutes the least power of two that holds n; a value outside [0, n) is sent through
 * again until it is inside (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002). The
 * domain is less than twice n, so two passes are enough on average. Halves differ by a bit at most,
 * and each round changes one half by a function of the other; the function is the 64-bit finaliser
 * of SplitMix64 (Steele, Lea, Flood, 2014) over half and round key. No secrecy is meant, only that
 * orders look unrelated.
 *
 * Small domains need more rounds: with 8, the places of 5 are uneven (chi-square 65 standard
 * deviations off over 200,000 seeds), with 16 those of no n from 2 to 64 are. Past 2^16 8 are
 * plenty. Thread-safe.
 */
#include "sample/permutation.h"

#include <assert.h>

/* SplitMix64's output function: a bijection on 64 bits in which each input bit moves each output
 * bit. */
static uint64_t mix64(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Bits that hold n - 1, at least 2: each half of the network needs one. */
static uint32_t domain_bits(uint64_t n)
{
    uint64_t last = n - 1;

    return last < 4 ? 2 : 64 - (uint32_t)__builtin_clzll(last);
}

void permutation_init(struct permutation *perm, uint64_t n, uint64_t seed, uint64_t stream)
{
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    const uint32_t bits = domain_bits(n);
    uint64_t state;

    assert(n >= 1);
    perm->n = n;
    perm->left_bits = bits / 2;
    perm->right_bits = bits - bits / 2;
    perm->n_rounds = bits <= 16 ? PERMUTATION_MAX_ROUNDS : PERMUTATION_MAX_ROUNDS / 2;
    /* Mixed in turn: neighbouring seeds and streams share no round key. */
    state = mix64(mix64(seed + golden) + stream * golden + 1);
    for (uint32_t i = 0; i < perm->n_rounds; i++) {
        state += golden;
        perm->keys[i] = mix64(state);
    }
}

/* One pass through the network: a bijection on the domain. */
static uint64_t pass(const struct permutation *perm, uint64_t x)
{
    const uint64_t left_mask = (UINT64_C(1) << perm->left_bits) - 1;
    const uint64_t right_mask = (UINT64_C(1) << perm->right_bits) - 1;
    uint64_t left = x >> perm->right_bits, right = x & right_mask;

    for (uint32_t i = 0; i < perm->n_rounds; i += 2) {
        left ^= (mix64(right ^ perm->keys[i]) >> 32) & left_mask;
        right ^= (mix64(left ^ perm->keys[i + 1]) >> 32) & right_mask;
    }
    return left << perm->right_bits | right;
}

uint64_t permutation_at(const struct permutation *perm, uint64_t i)
{
    assert(i < perm->n);
    do {
        i = pass(perm, i);
    } while (i >= perm->n);
    return i;
}
