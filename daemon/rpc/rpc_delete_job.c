/*
 * DeleteJob: first from the store, then from the table; then its streams end. A second request for
 * the same job that comes meanwhile finds nothing in the store when its turn comes.
 */
#include <stdlib.h>

#include "base/log.h"
#include "job/registry.h"
#include "loop/serial.h"
#include "rpc/call.h"
#include "rpc/handlers.h"
#include "rpc/hub.h"
#include "rpc/rpc_ctx.h"
#include "store/store.h"

struct delete_op {
    struct serial_item item;
    struct rpc_ctx *ctx;
    struct call *call;
    struct registry_entry *entry; /* owned reference */
    struct skrull_error err;
};

static void work(void *arg)
{
    struct delete_op *op = (struct delete_op *)arg;
    int code = store_delete_job(op->ctx->store, op->entry->name, &op->err);

    if (code < 0) {
        op->err.code = code;
    }
}

static void done(void *arg)
{
    struct delete_op *op = (struct delete_op *)arg;
    const char *name = op->entry->name;
    struct skrull_error gone = {0};

    if (op->err.code < 0) {
        call_fail(op->call, &op->err);
    } else {
        if (!op->entry->is_deleted) {
            registry_remove(op->ctx->registry, op->entry);
            (void)skrull_error_because(&gone, SKRULL_ERR_NOT_FOUND, SKRULL_REASON_JOB_DELETED, 0,
                                       "job %s was deleted", name);
            hub_close(op->entry->hub, &gone);
        }
        log_event(LOG_LEVEL_INFO, "job_deleted", LOG_TEXT("job", name),
                  LOG_TEXT("uid", op->entry->uid));
        call_reply(op->call, (struct rpc_bytes){NULL, 0});
    }
    registry_entry_unref(op->entry);
    free(op);
}

void rpc_delete_job(struct rpc_ctx *ctx, struct call *call)
{
    struct delete_op *op = calloc(1, sizeof(*op));
    struct registry_entry *entry;
    struct skrull_error err = {0};
    struct rpc_name request;
    int code = SKRULL_ERR_RESOURCE_EXHAUSTED;

    if (op) {
        code =
            codec_delete_job_request_unpack(call_arena(call), call_request(call), &request, &err);
    }
    if (code == 0) {
        code = registry_find(ctx->registry, request.name, &entry, &err);
    }
    if (code < 0) {
        free(op);
        err.code = code;
        call_fail(call, &err);
        return;
    }
    op->item = (struct serial_item){.work = work, .done = done, .arg = op};
    op->ctx = ctx;
    op->call = call;
    op->entry = registry_entry_ref(entry);
    serial_push(ctx->store_queue, &op->item);
}
