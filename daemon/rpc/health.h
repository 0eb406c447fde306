/* grpc.health.v1: whether the daemon takes calls. Loop thread only. */
#pragma once

#include <stdbool.h>

struct call;
struct health;
struct rpc_ctx;

/* Not serving yet; NULL: out of memory. */
struct health *health_new(void);

/* No Watch may be left. NULL is fine. */
void health_free(struct health *health);

/* Tells Check from now on, and every Watch at once. */
void health_set_serving(struct health *health);

/* Not serving; each Watch hears it and ends. */
void health_drain(struct health *health);

/* Check: "" is the whole server, "skrull.v1.PlannerService" its service; others are NOT_FOUND. */
void rpc_health_check(struct rpc_ctx *ctx, struct call *call);

/* Watch: the state now and at each change; of an unknown service SERVICE_UNKNOWN, and the stream
 * stays. */
void rpc_health_watch(struct rpc_ctx *ctx, struct call *call);
