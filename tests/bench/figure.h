/* Figures of the benches: medians of several runs, held against their limits. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct figure {
    const char *what, *unit;
    double limit;  /* of the median; 0: none */
    bool is_floor; /* the limit is what it must reach, else what it must not exceed */
};

/* Prints a line: ok or FAILED, median, limit, what, and the range of the runs. Sorts `values`.
 * Returns whether the median is within its limit. */
bool figure_print(const struct figure *figure, double *values, size_t n);

/* Monotonic. */
double figure_now_ms(void);
