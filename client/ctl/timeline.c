/* Time lines: a run of spans, sampled at the middle of each cell. Only integers, saturating: a plan
 * from a file may say anything. */
#include "timeline.h"

#include "ckd.h"

struct line {
    enum timeline_cell *cells;
    size_t n_cells, at; /* the first cell that no span has reached */
    uint64_t total_ns, now_ns;
};

/* The middle of cell `i`: (2 i + 1) total / (2 n), without passing 64 bits. */
static uint64_t middle_ns(const struct line *line, size_t i)
{
    uint64_t halves = 2 * (uint64_t)line->n_cells, odd = 2 * (uint64_t)i + 1;

    return line->total_ns / halves * odd + line->total_ns % halves * odd / halves;
}

static void span(struct line *line, int64_t ns, enum timeline_cell kind)
{
    line->now_ns = sat_add_u64(line->now_ns, ns > 0 ? (uint64_t)ns : 0);
    while (line->at < line->n_cells && middle_ns(line, line->at) < line->now_ns) {
        line->cells[line->at++] = kind;
    }
}

void timeline_fill(const struct skrull_plan *plan, size_t i_rank, int64_t total_ns, size_t n_cells,
                   enum timeline_cell *cells)
{
    const struct skrull_rank *rank = &plan->ranks[i_rank];
    struct line line = {
        .cells = cells, .n_cells = n_cells, .total_ns = total_ns > 0 ? (uint64_t)total_ns : 0};

    for (uint32_t i = 0; i < rank->n_micro_batches; i++) {
        const struct skrull_estimate *estimate =
            &plan->micro_batches[rank->first_micro_batch + i].estimate;

        span(&line, estimate->comp_ns, i % 2 ? TIMELINE_COMP_ODD : TIMELINE_COMP_EVEN);
        span(&line, estimate->comm_ns, TIMELINE_COMM);
        span(&line, estimate->idle_ns, TIMELINE_IDLE);
    }
    for (; line.at < n_cells; line.at++) {
        cells[line.at] = TIMELINE_IDLE;
    }
}
