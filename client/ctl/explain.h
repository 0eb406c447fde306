/* Why a plan takes as long as it does: what "plan show" says below its picture. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <skrull/plan.h>

struct skrull_cost_model;

/* One micro-batch of the path to the last rank's end. */
struct explain_step {
    uint32_t micro_batch;
    size_t i_rank;    /* the path goes through this rank */
    bool was_waiting; /* the rank before on the path waited for this one */
};

/*
 * The critical path of a whole plan with estimates, from its first micro-batch on: fills `steps`
 * ([the largest number of micro-batches of a rank]), returns how many. Where a rank waited, it
 * waited for the member of its largest group that did not wait at all.
 */
size_t explain_path(const struct skrull_plan *plan, struct explain_step *steps);

/* Prints the path, where ranks idle, and what the distributed sequences' sizes cost and save; the
 * last only with the job's cost model (nullable). Returns 0, or RESOURCE_EXHAUSTED. */
int explain_print(const struct skrull_plan *plan, const struct skrull_cost_model *cost);
