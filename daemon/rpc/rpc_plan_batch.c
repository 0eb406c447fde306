/*
 * PlanBatch: lengths that are known only now. No state and no index, but possibly a lot of work:
 * all of it, from decoding to encoding, is done on the pool, and at most half of the threads that
 * plan are given to it, so that streams have theirs. Requests wait for their turn as bytes; where
 * these become too many, more are refused for now.
 */
#include <stdlib.h>

#include "arena.h"
#include "job/plan_batch.h"
#include "loop/loop.h"
#include "rpc/call.h"
#include "rpc/handlers.h"
#include "rpc/plan_reply.h"
#include "rpc/rpc_ctx.h"

#define MAX_BYTES ((size_t)32 << 20)  /* of requests, running or waiting */
#define LEAST_BYTES ((size_t)4 << 10) /* what each counts at least */

struct batch_op {
    struct batch_op *next;
    struct rpc_ctx *ctx;
    struct call *call;
    struct arena *arena;
    struct rpc_bytes reply; /* in the arena */
    size_t n_bytes;
    struct skrull_error err;
};

static void pump(struct rpc_ctx *ctx);

static void finish(struct batch_op *op)
{
    struct rpc_ctx *ctx = op->ctx;

    ctx->batches.n_bytes -= op->n_bytes;
    if (op->err.code < 0) {
        call_fail(op->call, &op->err);
    } else {
        call_reply(op->call, op->reply);
    }
    arena_free(op->arena);
    free(op);
}

static int plan(struct batch_op *op)
{
    struct rpc_plan_batch request;
    struct skrull_plan *made = NULL;
    struct job_lengths lengths;
    int code = codec_plan_batch_request_unpack(call_arena(op->call), call_request(op->call),
                                               &request, &op->err);

    if (code < 0) {
        return code;
    }
    lengths = (struct job_lengths){.lengths = request.lengths,
                                   .loss_tokens = request.loss_tokens,
                                   .n = request.n_lengths,
                                   .n_loss_tokens = request.n_loss_tokens};
    code = job_plan_batch(request.job, &lengths, &made, &op->err);
    if (code == 0) {
        code = plan_reply_ranks(request.data_ranks, &request.n_data_ranks,
                                (uint64_t)made->dp * made->cp, &op->err);
    }
    if (code == 0) {
        code = plan_reply_pack(op->arena, made, request.data_ranks, request.n_data_ranks,
                               &op->reply, &op->err);
    }
    skrull_plan_free(made);
    return code;
}

static void work(void *arg)
{
    struct batch_op *op = (struct batch_op *)arg;
    int code = plan(op);

    if (code < 0) {
        op->err.code = code;
    }
}

static void done(void *arg)
{
    struct batch_op *op = (struct batch_op *)arg;
    struct rpc_ctx *ctx = op->ctx;

    ctx->batches.n_running--;
    finish(op);
    pump(ctx);
}

static uint32_t max_running(const struct rpc_ctx *ctx)
{
    return ctx->pipeline.max_running > 1 ? ctx->pipeline.max_running / 2 : 1;
}

/* Starts what waits, as far as it may. */
static void pump(struct rpc_ctx *ctx)
{
    struct plan_batches *batches = &ctx->batches;

    while (batches->first && batches->n_running < max_running(ctx)) {
        struct batch_op *op = batches->first;

        batches->first = op->next;
        if (call_is_over(op->call)) {
            (void)skrull_error_set(&op->err, SKRULL_ERR_CANCELLED, "the client has gone");
            finish(op);
            continue;
        }
        op->arena = arena_new(PLAN_REPLY_BUDGET);
        if (op->arena && loop_work(ctx->loop, work, done, op) == 0) {
            batches->n_running++;
            continue;
        }
        (void)skrull_error_set(&op->err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
        finish(op);
    }
}

static void append(struct plan_batches *batches, struct batch_op *op)
{
    if (batches->first) {
        batches->last->next = op;
    } else {
        batches->first = op;
    }
    batches->last = op;
    batches->n_bytes += op->n_bytes;
}

void rpc_plan_batch(struct rpc_ctx *ctx, struct call *call)
{
    size_t len = call_request(call).len;
    struct batch_op *op = calloc(1, sizeof(*op));
    struct skrull_error err = {0};

    if (!op) {
        (void)skrull_error_set(&err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
        call_fail(call, &err);
        return;
    }
    op->ctx = ctx;
    op->call = call;
    op->n_bytes = len > LEAST_BYTES ? len : LEAST_BYTES;
    if (ctx->batches.n_bytes > MAX_BYTES - op->n_bytes) {
        free(op);
        (void)skrull_error_because(&err, SKRULL_ERR_RESOURCE_EXHAUSTED, SKRULL_REASON_BUSY,
                                   MAX_BYTES,
                                   "%zu bytes of batches are being planned, at most %zu are "
                                   "allowed: try again",
                                   ctx->batches.n_bytes, MAX_BYTES);
        call_fail(call, &err);
        return;
    }
    append(&ctx->batches, op);
    pump(ctx);
}
