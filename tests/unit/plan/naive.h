/* The scheduler and the evaluator a second time, as plainly as their descriptions: what the real
 * ones are held against. Slow. */
#pragma once

#include <stdbool.h>

#include "plan/batch.h"
#include "plan/policy.h"

/* GDS over DACP (`most_room`: the round-robin rule). */
void naive_schedule(const struct batch *batch, bool most_room, struct placement *placements);

/* Iteration time of placements, from them alone. */
int64_t naive_evaluate(const struct batch *batch, const struct placement *placements, bool barrier);
