/* The rules of plan_check that follow from planner options. */
#pragma once

#include <skrull/planner.h>

#include "plan/degrees.h"
#include "plan_check.h"

struct plan_rules {
    struct skrull_planner_options options; /* completed */
    struct degrees degrees;
    struct plan_check_rules rules; /* of these two; without lookup and n_sequences */
};

/* Returns 0, or what is wrong with the options. `ret` must not be moved. */
int plan_rules_init(const struct skrull_planner_options *options, struct plan_rules *ret);
