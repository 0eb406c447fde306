/*
 * The planner service's handlers, one file each (rpc_*.c): decode, ask the job's side, encode. Each
 * ends its call exactly once, now or later (call.h).
 */
#pragma once

struct call;
struct rpc_ctx;

void rpc_create_job(struct rpc_ctx *ctx, struct call *call);
void rpc_get_job(struct rpc_ctx *ctx, struct call *call);
void rpc_list_jobs(struct rpc_ctx *ctx, struct call *call);
void rpc_update_job(struct rpc_ctx *ctx, struct call *call);
void rpc_delete_job(struct rpc_ctx *ctx, struct call *call);
void rpc_get_plan(struct rpc_ctx *ctx, struct call *call);
void rpc_plan_batch(struct rpc_ctx *ctx, struct call *call);
void rpc_stream_plans(struct rpc_ctx *ctx, struct call *call);
void rpc_report_steps(struct rpc_ctx *ctx, struct call *call);
void rpc_describe_index(struct rpc_ctx *ctx, struct call *call);
void rpc_reflection(struct rpc_ctx *ctx, struct call *call);
