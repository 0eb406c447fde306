/*
 * Plan <-> skrull.v1.Plan and skrull.v1.RankPlan.
 *
 * Decoding checks what the struct needs, not the rules of a plan: that is plan_check. DATA_LOSS:
 * the message contradicts itself, where `plan check` speaks of a fault: a digest that is not 32 hex
 * digits, a rank whose head is not the plan's. INVALID_ARGUMENT: a string too long (job 63, policy
 * 63, uid 32 bytes).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/plan.h>

struct arena;
typedef struct Skrull__V1__Plan Skrull__V1__Plan;
typedef struct Skrull__V1__RankPlan Skrull__V1__RankPlan;

/* Plan to message, all in `arena`, strings borrowed from the plan. `ranks` ([n_ranks], any order)
 * picks ranks by data_rank, n_ranks 0: all; those that the plan lacks are passed over: callers
 * check ranks. RESOURCE_EXHAUSTED: out of memory. */
int codec_plan_encode(struct arena *arena, const struct skrull_plan *plan, const uint32_t *ranks,
                      size_t n_ranks, Skrull__V1__Plan **ret_message, struct skrull_error *err);

/* One rank of a plan to its message. */
int codec_rank_plan_encode(struct arena *arena, const struct skrull_plan *plan, size_t i_rank,
                           Skrull__V1__RankPlan **ret_message, struct skrull_error *err);

/* Message to a plan of its own (free with skrull_plan_free); it borrows nothing. */
int codec_plan_decode(const Skrull__V1__Plan *message, struct skrull_plan **ret_plan,
                      struct skrull_error *err);

/* The same of a RankPlan: a plan with one rank, whose own estimate is zero. */
int codec_rank_plan_decode(const Skrull__V1__RankPlan *message, struct skrull_plan **ret_plan,
                           struct skrull_error *err);
