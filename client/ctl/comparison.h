/* Several policies on the same batches. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/planner.h>

#include "codec_text.h"

struct job;

struct comparison_options {
    uint64_t n_steps; /* from step 0; at least 1 */
    bool is_barrier;
};

/* What one policy did. */
struct comparison_times {
    const char *policy;                             /* borrowed */
    int64_t *iteration_ns, *bound_ns, *planning_ns; /* [n_steps] each; owned */
    char refused[SKRULL_ERROR_MESSAGE_SIZE];        /* "": it held every batch */
};

/* Plans every step by `policy`. A policy that cannot hold a batch is refused, which is no error.
 * Free by comparison_times_deinit, also after an error. */
int comparison_measure(const struct job *job, const struct comparison_options *options,
                       const char *policy, struct comparison_times *ret_times,
                       struct skrull_error *err);
void comparison_times_deinit(struct comparison_times *times);

/* The row of a policy, over `uniform` as measured on the same steps; strings borrowed from `times`.
 * Sorts the times. `step_ns`: what the optimizer adds to each iteration. */
void comparison_row(struct comparison_times *times, const struct comparison_times *uniform,
                    uint64_t n_steps, int64_t step_ns, struct codec_text_comparison_row *ret_row);
