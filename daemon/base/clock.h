/* Time in nanoseconds. Stages never read it: it is handed to them. */
#pragma once

#include <stdint.h>

/* Since an arbitrary start; never falls. For durations and timers. Thread-safe. */
int64_t clock_monotonic_ns(void);

/* Since 1970, UTC. For people: log lines, stored dates. Thread-safe. */
int64_t clock_real_ns(void);
