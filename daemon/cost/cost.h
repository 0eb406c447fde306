/*
 * 3 COST MODEL: lengths -> integer nanoseconds. The only place with floating point: each cost is
 * computed once in double by + - * / alone, rounded (add 0.5, truncate), saturated at COST_MAX_NS.
 * To add a preset, a profile or a FLOP function: one line in presets.def, profiles.def, flops.def.
 */
#pragma once

#include <stdint.h>

#include <skrull/planner.h>

#define COST_MAX_NS ((int64_t)1 << 53)

/* Computation of one sequence on each member of a group of `degree` ranks (1: local). */
int64_t cost_comp_ns(const struct skrull_cost_model *model, uint32_t length, uint32_t degree);

/* Exchange of a group in one micro-batch: `tokens` is the total length of its distributed sequences
 * there; 0 costs nothing. */
int64_t cost_exchange_ns(const struct skrull_cost_model *model, uint64_t tokens);

/* Fixed cost of a micro-batch on a rank that has work in it. */
int64_t cost_fixed_ns(const struct skrull_cost_model *model);
