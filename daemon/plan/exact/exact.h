/* The optimum of a small batch, by a mixed-integer program: the reference that policies are
 * measured against. A library of its own, as it needs a solver; no policy of a job. */
#pragma once

#include <stdbool.h>

#include <skrull/planner.h>

#define EXACT_MAX_COLUMNS 20000 /* of the program; larger batches are refused */

struct exact_result {
    int64_t best_ns;                /* iteration time of the best plan found */
    int64_t joint_ns;               /* of policy joint at high effort, where the search begins */
    int64_t bound_ns;               /* no plan is faster: best_ns where it is proved */
    bool is_proved;                 /* the best is the optimum, to a millionth */
    uint32_t n_programs, n_columns; /* solved; columns of the largest */
};

/*
 * Searches for the fastest plan of `input` (its policy is not looked at) for about `max_seconds`.
 * The cost of an exchange must be a straight line of the tokens, as it is with built-in profiles.
 * INVALID_ARGUMENT: the input, or a batch too large. RESOURCE_EXHAUSTED: out of memory.
 */
int exact_solve(const struct skrull_planner_input *input, double max_seconds,
                struct exact_result *ret_result, struct skrull_error *err);
