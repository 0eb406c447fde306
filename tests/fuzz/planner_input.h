/* A planner's input from bytes, for the targets that plan. */
#pragma once

#include <skrull/planner.h>

#include "fuzz/fuzz.h"

#define PLANNER_INPUT_MAX_SEQUENCES 96
/* More make a plan too large to fuzz. */
#define PLANNER_INPUT_MAX_RANKS 256
#define PLANNER_INPUT_MAX_MICRO_BATCHES 256

struct planner_input {
    struct skrull_cost_model *cost;
    struct skrull_sequence sequences[PLANNER_INPUT_MAX_SEQUENCES];
    struct skrull_planner_input input;
};

/* Fills `ret` from bytes; any value may be out of range. `cost` is the caller's to free. */
void planner_input_read(struct fuzz_input *bytes, struct planner_input *ret);

/* Few enough ranks and micro-batches to be planned here? */
bool planner_input_is_small(const struct planner_input *planner);
