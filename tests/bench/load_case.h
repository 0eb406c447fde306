/* What the cases of load_client share. */
#pragma once

#include "bench/figure.h"
#include "bench/load_stream.h"

struct options {
    const char *target, *job;
    uint64_t streams, ranks, runs, seconds, limits, pid;
};

/* A value a run; for free. */
double *load_values(uint64_t n);

/* The median of options->runs values; whether it is within its limit. */
bool load_print(const struct options *options, const char *what, const char *unit, double limit,
                double *values);

/* Opens all streams, round the ranks; counts begin at 0. */
void load_open_all(struct load *load, const struct options *options, uint64_t from_step,
                   uint32_t window);

bool load_fanout(const struct options *options);
