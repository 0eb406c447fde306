/* What the two halves of plan_check share. */
#pragma once

#include <stdbool.h>

#include "plan_check.h"

struct arena;

/* One sequence on one rank: its first segment there. */
struct plan_check_part {
    const struct skrull_segment *segment;
    uint32_t rank, micro_batch;
};

struct plan_check_state {
    const struct skrull_plan *plan;
    const struct plan_check_rules *rules;
    plan_check_fault fault;
    void *arg;
    unsigned n_faults;
    struct arena *arena;
    struct plan_check_part *parts; /* [n_parts] */
    size_t n_parts;
};

/* Hands a fault on, as long as there are not too many. */
void plan_check_report(struct plan_check_state *check, const char *format, ...) SKRULL_PRINTF(2, 3);

/* Equal to the bit: what digests see. */
bool plan_check_same_bits(double a, double b);

/* Whether two segments speak of the same sequence in the same way. */
bool plan_check_same_sequence(const struct skrull_segment *a, const struct skrull_segment *b);

/* Checks the batch as a whole; sorts the parts. `loss_tokens` ([n_parts]) is room for each
 * sequence's. */
void plan_check_batch(struct plan_check_state *check, uint64_t *loss_tokens);
