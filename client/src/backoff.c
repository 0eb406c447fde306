/*
 * Exponential backoff with jitter, the figures of gRPC's connection-backoff protocol (factor 1.6,
 * jitter 0.2) from a shorter first step: workers wait for a daemon that restarts in well under a
 * second. Randomness is splitmix64 (Steele, Lea, Flood 2014) from the caller's seed. One thread a
 * struct.
 */
#include "backoff.h"

void backoff_init(struct backoff *backoff, uint64_t seed)
{
    backoff->random = seed;
    backoff->delay_ns = 0;
}

static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t backoff_next_ns(struct backoff *backoff)
{
    int64_t delay = backoff->delay_ns ? backoff->delay_ns : BACKOFF_FIRST_NS;
    int64_t spread = delay / 5;
    int64_t jitter = (int64_t)(random_next(&backoff->random) % (uint64_t)(2 * spread + 1)) - spread;

    backoff->delay_ns = delay / 5 * 8 < BACKOFF_LAST_NS ? delay / 5 * 8 : BACKOFF_LAST_NS;
    return delay + jitter;
}

void backoff_reset(struct backoff *backoff)
{
    backoff->delay_ns = 0;
}
