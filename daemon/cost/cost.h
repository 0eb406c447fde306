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

/* What the exchange of a group runs over. */
enum cost_link {
    COST_INSIDE, /* one node, or a profile that knows no nodes */
    COST_ACROSS, /* several nodes; never cheaper */
};

/* Of the group of `size` data ranks from `first`: where all its GPUs are on one node, inside. */
enum cost_link cost_link_of(const struct skrull_cost_model *model, uint32_t first, uint32_t size);

/* The least and the most of all aligned groups of a size: where the ranks of a node are no multiple
 * of it, some groups may cross and others not. O(groups). */
struct cost_links {
    enum cost_link least, most;
};
struct cost_links cost_links_of_size(const struct skrull_cost_model *model, uint32_t n_ranks,
                                     uint32_t size);

/* Exchange of a group in one micro-batch: `tokens` is the total length of its distributed sequences
 * there; 0 costs nothing. */
int64_t cost_exchange_ns(const struct skrull_cost_model *model, enum cost_link link,
                         uint64_t tokens);

/* base_ns + t x slope_q20 / 2^20 ns for t tokens. */
struct cost_line {
    int64_t base_ns, slope_q20;
};

/* Lines that cost_exchange_ns never falls below, and never rises above, for t of at least 1, short
 * of saturation: for proofs about plans. Neither base nor slope is negative. */
struct cost_line cost_exchange_floor(const struct skrull_cost_model *model, enum cost_link link);
struct cost_line cost_exchange_ceiling(const struct skrull_cost_model *model, enum cost_link link);

/* Fixed cost of a micro-batch on a rank that has work in it. */
int64_t cost_fixed_ns(const struct skrull_cost_model *model);
