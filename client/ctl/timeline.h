/* The time line of a plan's rank, cell by cell. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/plan.h>

/* What a rank does in a cell's middle; computation of even and odd micro-batches differs, so that
 * blocks can be told apart. */
enum timeline_cell {
    TIMELINE_COMP_EVEN,
    TIMELINE_COMP_ODD,
    TIMELINE_COMM,
    TIMELINE_IDLE,
    N_TIMELINE_CELLS,
};

/* Fills `cells` ([n_cells]) with rank `i_rank` of the plan, the whole line being `total_ns`. In a
 * micro-batch come computation, exchange, waiting; after the last one the rank waits. Figures that
 * are no durations count as 0. */
void timeline_fill(const struct skrull_plan *plan, size_t i_rank, int64_t total_ns, size_t n_cells,
                   enum timeline_cell *cells);
