/* How long to wait before the next attempt: exponential, with jitter, so that a fleet does not
 * return at one instant. Time and randomness are parameters. */
#pragma once

#include <stdint.h>

#define BACKOFF_FIRST_NS ((int64_t)100 * 1000 * 1000)
#define BACKOFF_LAST_NS ((int64_t)3000 * 1000 * 1000)

struct backoff {
    uint64_t random;  /* state of the generator */
    int64_t delay_ns; /* of the next attempt, before jitter; 0: the first */
};

/* `seed` should differ between processes and streams. */
void backoff_init(struct backoff *backoff, uint64_t seed);

/* Nanoseconds to wait now: 100 ms, then 1.6 times longer each time up to 3 s, each -20 % to +20 %.
 */
int64_t backoff_next_ns(struct backoff *backoff);

/* Something worked: begin anew. */
void backoff_reset(struct backoff *backoff);
