/*
 * 4 PLANNER: a batch of lengths -> placements -> the flat plan. Pure: no I/O, no clock, no globals.
 *
 * skrull/planner.h is the contract; the stage's own parts, in the order of the data:
 *   options    defaults and ranges        degrees   allowed group sizes
 *   batch      checks, costs and slots, each once
 *   policy     policies.def, policy_*.c: where each sequence goes (gds, dacp, least: shared)
 *   joint/     the search behind the default policy, from solve.c down
 *   counts     how many micro-batches     order     which of them first
 *   layout     placements -> segments     weights   of the loss
 *   evaluate   the modelled time          bound     what no plan can beat
 */
#pragma once

#include <skrull/planner.h>

/*
 * Could a batch of `n_sequences`, none longer than `longest`, pass 2^62 ns? Asked once, when a job
 * is created; skrull_planner_run then asks each batch. INVALID_ARGUMENT says so.
 */
int planner_check_load(const struct skrull_cost_model *cost, uint64_t n_sequences, uint32_t longest,
                       struct skrull_error *err);

/*
 * Is micro_batches certainly too few for any batch of `n_sequences`, whatever their lengths? Only
 * of `uniform` is that known before there are lengths; skrull_planner_run then asks each batch.
 * INVALID_ARGUMENT names how many are needed.
 */
int planner_check_counts(const struct skrull_planner_options *options, uint64_t n_sequences,
                         struct skrull_error *err);
