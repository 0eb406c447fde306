/* GDS: the paper's scheduling of a global batch, around DACP. */
#pragma once

#include "plan/dacp.h"
#include "plan/policy.h"

/* Places a batch; `rule` is DACP's. Returns as policy_place_fn. */
int gds_place(const struct batch *batch, enum dacp_rule rule, struct placement *placements,
              struct skrull_error *err);
