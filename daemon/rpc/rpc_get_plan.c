/*
 * GetPlan: the plan of one step, from the job's pipeline; encoded on the pool, because a whole plan
 * may take milliseconds. It is for looking at plans, of steps far ahead too, so nothing is recorded
 * as given out here: what workers run comes by StreamPlans, or is reported.
 */
#include <stdlib.h>

#include "arena.h"
#include "job/job.h"
#include "job/pipeline.h"
#include "job/registry.h"
#include "job/shared_bytes.h"
#include "loop/loop.h"
#include "rpc/call.h"
#include "rpc/handlers.h"
#include "rpc/hub.h"
#include "rpc/plan_reply.h"
#include "rpc/rpc_ctx.h"

struct get_plan_op {
    struct pipeline_wait wait;
    struct rpc_ctx *ctx;
    struct call *call;
    struct rpc_get_plan request;
    struct planned *planned; /* owned reference */
    struct arena *arena;
    struct rpc_bytes reply; /* in the arena */
    struct skrull_error err;
};

static void finish(struct get_plan_op *op, const struct skrull_error *err)
{
    if (err) {
        call_fail(op->call, err);
    } else {
        call_reply(op->call, op->reply);
    }
    planned_unref(op->planned);
    arena_free(op->arena);
    free(op);
}

/* A plan's ranks are what its messages hold, so their size is known before anything is encoded. */
static int check_size(const struct get_plan_op *op, struct skrull_error *err)
{
    const struct planned *planned = op->planned;
    size_t n = op->request.n_data_ranks > 0 ? op->request.n_data_ranks : planned->n_messages;
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        size_t i_rank = op->request.n_data_ranks > 0 ? op->request.data_ranks[i] : i;

        if (i_rank >= planned->n_messages) {
            return skrull_error_set(err, SKRULL_ERR_ABORTED,
                                    "data_ranks: a revision of the job came in between, step %llu "
                                    "has no data rank %zu any more",
                                    (unsigned long long)op->request.step, i_rank);
        }
        len += planned->messages[i_rank]->len;
        if (len > PLAN_REPLY_MAX_BYTES) {
            return plan_reply_too_large(err);
        }
    }
    return 0;
}

static void work(void *arg)
{
    struct get_plan_op *op = (struct get_plan_op *)arg;
    int code = plan_reply_pack(op->arena, op->planned->plan, op->request.data_ranks,
                               op->request.n_data_ranks, &op->reply, &op->err);

    if (code < 0) {
        op->err.code = code;
    }
}

static void work_done(void *arg)
{
    struct get_plan_op *op = (struct get_plan_op *)arg;

    finish(op, op->err.code < 0 ? &op->err : NULL);
}

static void on_planned(void *arg, struct planned *planned, const struct skrull_error *err)
{
    struct get_plan_op *op = (struct get_plan_op *)arg;

    if (err) {
        finish(op, err);
        return;
    }
    op->planned = planned_ref(planned);
    if (check_size(op, &op->err) < 0) {
        finish(op, &op->err);
        return;
    }
    op->arena = arena_new(PLAN_REPLY_BUDGET);
    if (!op->arena || loop_work(op->ctx->loop, work, work_done, op) < 0) {
        (void)skrull_error_set(&op->err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
        finish(op, &op->err);
    }
}

/* Ranges; and the ranks become ascending and unique, as a plan has them. */
static int check_request(const struct registry_entry *entry, struct rpc_get_plan *request,
                         struct skrull_error *err)
{
    const struct skrull_job *spec = entry->spec;
    uint64_t n_ranks;
    struct job *job;
    int code = registry_entry_job(entry, &job, err);

    if (code < 0) {
        return code;
    }
    n_ranks = job_n_ranks(job, request->step);
    if (request->step >= spec->info.steps) {
        return skrull_error_because(
            err, SKRULL_ERR_OUT_OF_RANGE, SKRULL_REASON_STEP_OUT_OF_RANGE, spec->info.steps,
            "step: %llu is past the end, job %s has %llu steps", (unsigned long long)request->step,
            spec->name, (unsigned long long)spec->info.steps);
    }
    return plan_reply_ranks(request->data_ranks, &request->n_data_ranks, n_ranks, err);
}

void rpc_get_plan(struct rpc_ctx *ctx, struct call *call)
{
    struct get_plan_op *op = calloc(1, sizeof(*op));
    struct registry_entry *entry;
    struct skrull_error err = {0};
    int code = SKRULL_ERR_RESOURCE_EXHAUSTED;

    if (op) {
        code =
            codec_get_plan_request_unpack(call_arena(call), call_request(call), &op->request, &err);
    }
    if (code == 0) {
        code = registry_find(ctx->registry, op->request.job, &entry, &err);
    }
    if (code == 0) {
        code = check_request(entry, &op->request, &err);
    }
    if (code < 0) {
        free(op);
        err.code = code;
        call_fail(call, &err);
        return;
    }
    op->ctx = ctx;
    op->call = call;
    op->wait.done = on_planned;
    op->wait.arg = op;
    pipeline_ask(entry->hub->pipeline, op->request.step, false, &op->wait);
}
