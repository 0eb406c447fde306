/* A plan as a reply: which ranks of it, and that it fits into a message. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>
#include <skrull/plan.h>

#include "codec_rpc.h"

struct arena;

#define PLAN_REPLY_MAX_BYTES ((size_t)3 << 20) /* clients take 4 MiB by default */

/* Memory to encode one in; also where it turns out to be too large. */
#define PLAN_REPLY_BUDGET ((size_t)64 << 20)

/* Ranks asked for become ascending and unique, as a plan has them. INVALID_ARGUMENT: one of them is
 * not below `n_grid`. */
int plan_reply_ranks(uint32_t *ranks, size_t *n_ranks, uint64_t n_grid, struct skrull_error *err);

/* Encodes `ranks` ([n_ranks], 0: all) of a plan. RESOURCE_EXHAUSTED: more than fits into a message.
 * Any thread. */
int plan_reply_pack(struct arena *arena, const struct skrull_plan *plan, const uint32_t *ranks,
                    size_t n_ranks, struct rpc_bytes *ret, struct skrull_error *err);

/* Sets that error. */
int plan_reply_too_large(struct skrull_error *err);
