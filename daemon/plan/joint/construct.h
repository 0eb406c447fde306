/* Whole placements from nothing, longest sequence first. */
#pragma once

#include "plan/joint/loads.h"
#include "plan/joint/pick.h"

struct joint_construct {
    int64_t degree_ns; /* a sequence takes the smallest size at which it alone ends by then */
    int64_t end_ns;    /* larger sizes are tried too where the placement would end after this */
    uint64_t levels;   /* bits of the levels to use */
    struct joint_pick_rule rule;
};

/*
 * Clears `state` and places every sequence. False: some sequence found no room; the state holds the
 * others. Clocks are not run.
 */
bool joint_construct_run(struct joint_state *state, struct joint_loads *loads,
                         const struct joint_construct *how);
