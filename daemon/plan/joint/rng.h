/* Random choices of the search: splitmix64 (Steele et al., 2014). The same everywhere. */
#pragma once

#include <stdint.h>

struct joint_rng {
    uint64_t state;
};

static inline uint64_t joint_rng_next(struct joint_rng *rng)
{
    uint64_t z = rng->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* 0 to n - 1. */
static inline uint32_t joint_rng_below(struct joint_rng *rng, uint32_t n)
{
    return (uint32_t)((joint_rng_next(rng) >> 32) * n >> 32);
}
