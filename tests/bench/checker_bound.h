/* The simple lower bound of model.md, profile paper-h100, by itself: what an independent check of a
 * plan can know. */
#pragma once

#include <skrull/planner.h>

/* Milliseconds. `preset`: a name of presets.def; the options' defaults must be filled in. */
double checker_bound_ms(const char *preset, const struct skrull_planner_options *options,
                        const struct skrull_sequence *sequences, size_t n);
