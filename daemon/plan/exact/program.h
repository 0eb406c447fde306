/* The mixed-integer program of one number of micro-batches. */
#pragma once

#include <stdbool.h>

#include "plan/joint/problem.h"

/* What is asked. Times are of the clocks: what equal counts add is left out. */
struct exact_program {
    const struct joint_problem *problem;
    uint32_t n_mb;            /* micro-batches 0 to n_mb - 1 may be used */
    int64_t floor_ns, cap_ns; /* the time is at least this, and wanted below that */
    double max_seconds;
};

struct exact_answer {
    bool is_proved; /* `places` are the fastest, or, where none were found, there are none */
    bool is_found;
    double bound_ns; /* no placement within n_mb is faster */
};

/* Columns that the program would have. */
uint64_t exact_program_columns(const struct exact_program *program);

/* Solves it; fills places[n_sequences] = (mb, node) where one was found. RESOURCE_EXHAUSTED: out of
 * memory. */
int exact_program_solve(const struct exact_program *program, uint32_t (*places)[2],
                        struct exact_answer *ret_answer);
