/*
 * The two clocks of the daemon. clock_gettime cannot fail for these ids on Linux, so neither can
 * the functions. Thread-safe.
 */
#include "base/clock.h"

#include <assert.h>
#include <time.h>

static int64_t now_ns(clockid_t id)
{
    struct timespec now;
    int status = clock_gettime(id, &now);

    assert(status == 0);
    (void)status;
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t clock_monotonic_ns(void)
{
    return now_ns(CLOCK_MONOTONIC);
}

int64_t clock_real_ns(void)
{
    return now_ns(CLOCK_REALTIME);
}
