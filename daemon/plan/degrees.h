/* Allowed group sizes of a job. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/planner.h>

#define DEGREES_MAX 64 /* each size is at least twice the one before, and they are 32 bits */

struct degrees {
    uint32_t sizes[DEGREES_MAX]; /* [n], ascending, each divides the next */
    size_t n;
};

/*
 * Group sizes that a plan may use. Fixed: 1 and cp; elastic: the chain 1, then times the prime
 * factors of cp ascending, then of dp. min_degree and max_degree drop the smaller and the larger,
 * ranks_per_node those that do not divide it. INVALID_ARGUMENT: none is left. `options` are
 * completed.
 */
int degrees_of_job(const struct skrull_planner_options *options, struct degrees *ret_degrees,
                   struct skrull_error *err);

/* Those of them that policies of two sizes use: 1 and cp, in both modes. INVALID_ARGUMENT: none is
 * left. */
int degrees_of_policy(const struct skrull_planner_options *options, struct degrees *ret_degrees,
                      struct skrull_error *err);
