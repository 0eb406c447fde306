/* The critical path: why the last rank ends when it does. */
#pragma once

#include "plan/joint/clock.h"

/* Scratch of one trace. */
struct joint_trace {
    int64_t *rows; /* [n_levels + 1][n_ranks] */
};

int joint_trace_init(struct joint_trace *trace, const struct joint_problem *problem);

/* Sequences on the critical path to the end of `rank`'s clock, at most `max`, in `ret_sequences`;
 * returns how many. Clocks must be up to date. */
uint32_t joint_trace_run(struct joint_trace *trace, const struct joint_state *state, uint32_t rank,
                         uint32_t *ret_sequences, uint32_t max);
