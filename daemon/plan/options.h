/* Planner options: defaults and ranges. */
#pragma once

#include <skrull/planner.h>

#define PLANNER_MAX_RANKS (UINT32_C(1) << 20)
#define PLANNER_MAX_BUCKET INT32_MAX
#define PLANNER_MAX_SEQUENCES (UINT32_C(1) << 24)
#define PLANNER_MAX_BYTES ((size_t)1 << 31) /* of one plan */
#define PLANNER_MAX_NS ((int64_t)1 << 62)   /* of a batch, all work on one rank */

/* Copies `options` with the defaults filled in and checks their ranges (not the policy). */
int options_complete(const struct skrull_planner_options *options,
                     struct skrull_planner_options *ret_options, struct skrull_error *err);
