/* The jobs that the store holds, back in the table. */
#pragma once

#include <skrull/error.h>

struct rpc_ctx;

/*
 * Loads and opens every job, before calls are taken and the store queue runs. A job that cannot be
 * opened (its index is gone or another one) is logged and stays listed, without plans. Fails where
 * the store cannot be read or memory runs out.
 */
int restore_jobs(struct rpc_ctx *ctx, struct skrull_error *err);

/* Ends every job's hub, so that nothing is left on its way. */
void restore_close(struct rpc_ctx *ctx);
