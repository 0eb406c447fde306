/* Forward FLOPs of one layer for one sequence. To add a function: here, in flops.c and in
 * flops.def. */
#pragma once

#include <stdint.h>

#include <skrull/error.h>
#include <skrull/types.h>

/* A model's sizes. */
struct cost_shape {
    const char *name;
    double hidden, kv_hidden, layers, parameters;
};

typedef double (*flops_fn)(const struct cost_shape *shape, double length);

/* The function of a word; 0 means the default, paper. INVALID_ARGUMENT: unknown, or not built yet.
 */
int flops_find(enum skrull_flops flops, flops_fn *ret_fn, struct skrull_error *err);

/* The paper's equation 13: 20 h^2 S + 4 h h_kv S + 4 h S^2. */
double flops_paper(const struct cost_shape *shape, double length);
