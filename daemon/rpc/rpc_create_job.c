/*
 * CreateJob.
 *
 * Happy path: decode and complete -> take the name -> open the job on the pool (the index is read
 * in full) -> everything that may fail on this side -> the store, which has the whole job or
 * nothing -> visible, reply. A crash leaves no job before the store's commit and a whole one after
 * it.
 *
 * While a name is being created, another request for it waits, and then finds the job there (the
 * same request id: that job again; else ALREADY_EXISTS) or, where the first one failed, tries
 * itself. A client that has gone changes nothing: the job is created, and a repeated request finds
 * it.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/rng.h"
#include "job/job.h"
#include "job/registry.h"
#include "job/spec.h"
#include "loop/loop.h"
#include "loop/serial.h"
#include "rpc/call.h"
#include "rpc/handlers.h"
#include "rpc/hub.h"
#include "rpc/rpc_ctx.h"
#include "store/store.h"

#include "codec_job.h"
#include "job_fields.h"

struct create_op {
    struct create_op *next; /* while waiting for another request */
    struct serial_item item;
    struct rpc_ctx *ctx;
    struct call *call;
    struct rpc_create_job request;
    char uid[SKRULL_UID_HEX_SIZE];
    struct registry_entry *entry; /* reserved; the registry's */
    struct job *job;              /* owned reference */
    uint8_t *spec;                /* packed, in the call's arena: the store's blob and the reply */
    size_t spec_len;
    struct skrull_error err;
};

static void reserve(struct create_op *op);

/* Those who waited for some creation to end look again. */
static void wake_waiting(struct rpc_ctx *ctx)
{
    struct create_op *op = ctx->creates_waiting;

    ctx->creates_waiting = NULL;
    while (op) {
        struct create_op *next = op->next;

        reserve(op);
        op = next;
    }
}

static void op_free(struct create_op *op)
{
    if (op->job) {
        job_unref(op->job);
    }
    free(op);
}

/* Gives the name back and answers. */
static void fail(struct create_op *op)
{
    struct rpc_ctx *ctx = op->ctx;

    if (op->entry) {
        hub_close(op->entry->hub, &op->err);
        registry_cancel(ctx->registry, op->entry);
    }
    call_fail(op->call, &op->err);
    op_free(op);
    wake_waiting(ctx);
}

static void on_stored(void *arg)
{
    struct create_op *op = (struct create_op *)arg;
    struct rpc_ctx *ctx = op->ctx;

    if (op->err.code < 0) {
        fail(op);
        return;
    }
    registry_publish(ctx->registry, op->entry);
    log_event(LOG_LEVEL_INFO, "job_created", LOG_TEXT("job", op->entry->spec->name),
              LOG_TEXT("uid", op->entry->spec->uid), LOG_TEXT("policy", op->entry->spec->policy),
              LOG_U64("sequences", op->entry->spec->info.sequences),
              LOG_U64("steps", op->entry->spec->info.steps));
    call_reply(op->call, (struct rpc_bytes){op->spec, op->spec_len});
    op_free(op);
    wake_waiting(ctx);
}

static void put_job(void *arg)
{
    struct create_op *op = (struct create_op *)arg;
    const struct store_job row = {
        .name = op->entry->spec->name,
        .uid = op->entry->spec->uid,
        .request_id = op->request.request_id,
        .spec = op->spec,
        .spec_len = op->spec_len,
        .given_out_below = 0,
    };
    int code = store_put_job(op->ctx->store, &row, &op->err);

    if (code < 0) {
        op->err.code = code;
    }
}

static void open_job(void *arg)
{
    struct create_op *op = (struct create_op *)arg;
    int code = job_open(op->request.job, &op->ctx->roots, &op->job, &op->err);

    if (code < 0) {
        op->err.code = code;
    }
}

static void on_opened(void *arg)
{
    struct create_op *op = (struct create_op *)arg;
    int code = op->err.code;

    if (code == 0) {
        code = registry_prepare(op->entry, op->job, &op->err);
    }
    if (code == 0) {
        code = hub_new(op->ctx, op->entry, &op->err);
    }
    if (code == 0) {
        code = codec_job_pack(call_arena(op->call), op->entry->spec, &op->spec, &op->spec_len,
                              &op->err);
    }
    if (code < 0) {
        op->err.code = code;
        fail(op);
        return;
    }
    op->item = (struct serial_item){.work = put_job, .done = on_stored, .arg = op};
    serial_push(op->ctx->store_queue, &op->item);
}

/* The same request created this job before. */
static void reply_existing(struct create_op *op, const struct registry_entry *entry)
{
    if (codec_job_pack(call_arena(op->call), entry->spec, &op->spec, &op->spec_len, &op->err) < 0) {
        call_fail(op->call, &op->err);
    } else {
        call_reply(op->call, (struct rpc_bytes){op->spec, op->spec_len});
    }
    op_free(op);
}

static void reserve(struct create_op *op)
{
    struct registry_entry *entry;
    int code = registry_reserve(op->ctx->registry, op->request.job, op->request.request_id, &entry,
                                &op->err);

    if (code == REGISTRY_REPEATED) {
        reply_existing(op, entry);
        return;
    }
    if (code == SKRULL_ERR_ABORTED) {
        op->err = (struct skrull_error){0};
        op->next = op->ctx->creates_waiting;
        op->ctx->creates_waiting = op;
        return;
    }
    if (code == 0) {
        op->entry = entry;
        code = loop_work(op->ctx->loop, open_job, on_opened, op);
    }
    if (code < 0) {
        op->err.code = code;
        fail(op);
    }
}

/* What only the daemon decides is cleared, and set. */
static int prepare(struct create_op *op)
{
    struct skrull_job *job = op->request.job;
    int code;

    if (!job) {
        return skrull_error_set(&op->err, SKRULL_ERR_INVALID_ARGUMENT, "job: required");
    }
    spec_clear_output(job);
    code = job_complete(job, &op->err);
    if (code == 0) {
        code = rng_hex(op->uid, (SKRULL_UID_HEX_SIZE - 1) / 2, &op->err);
    }
    job->uid = op->uid;
    job->revision = 1;
    return code;
}

void rpc_create_job(struct rpc_ctx *ctx, struct call *call)
{
    struct create_op *op = calloc(1, sizeof(*op));
    struct skrull_error err = {0};
    int code;

    if (!op) {
        (void)skrull_error_set(&err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
        call_fail(call, &err);
        return;
    }
    op->ctx = ctx;
    op->call = call;
    code = codec_create_job_request_unpack(call_arena(call), call_request(call), &op->request,
                                           &op->err);
    if (code == 0) {
        code = prepare(op);
    }
    if (code < 0) {
        op->err.code = code;
        call_fail(call, &op->err);
        op_free(op);
        return;
    }
    reserve(op);
}
