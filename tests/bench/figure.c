/* One line a figure, in columns: for people, and for scripts that look for FAILED. */
#include "bench/figure.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

double figure_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/* Three or four digits that count, whatever the size. */
static const char *text_of(double value, char ret_text[32])
{
    (void)snprintf(ret_text, 32, value < 1 ? "%.3f" : value < 100 ? "%.2f" : "%.0f", value);
    return ret_text;
}

bool figure_print(const struct figure *figure, double *values, size_t n)
{
    char median[32], limit[64] = "", number[32], least[32], most[32];
    double p50;
    bool is_within;

    qsort(values, n, sizeof(*values), compare);
    p50 = values[n / 2];
    is_within = figure->is_floor ? p50 >= figure->limit : p50 <= figure->limit;
    is_within |= figure->limit <= 0;
    if (figure->limit > 0) {
        (void)snprintf(limit, sizeof(limit), "%s %s", figure->is_floor ? "at least" : "limit",
                       text_of(figure->limit, number));
    }
    printf("%-6s %9s %-7s %-14s  %s (%s to %s, %zu runs)\n", is_within ? "ok" : "FAILED",
           text_of(p50, median), figure->unit, limit, figure->what, text_of(values[0], least),
           text_of(values[n - 1], most), n);
    (void)fflush(stdout);
    return is_within;
}
