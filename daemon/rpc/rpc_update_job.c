/*
 * UpdateJob: a revision of a job, from a step on of which no plan was given out.
 *
 * Happy path: decode -> the next spec -> plans of its first step and later are held back -> the
 * revised job on the pool (it shares the opened indexes) -> everything that may fail on this side
 * -> the store, which has the revision or nothing -> the job is swapped, its streams end where the
 * revision begins, reply. Until the store's commit the job is what it was; from then on a crash
 * finds it revised.
 *
 * One update of a job at a time: another that comes meanwhile is ABORTED, as one that comes after
 * it with the revision it knew is. A job that was deleted meanwhile is NOT_FOUND.
 */
#include <stdlib.h>

#include "base/log.h"
#include "codec_job.h"
#include "job/job.h"
#include "job/progress.h"
#include "job/registry.h"
#include "job/revise.h"
#include "loop/loop.h"
#include "loop/serial.h"
#include "rpc/call.h"
#include "rpc/handlers.h"
#include "rpc/hub.h"
#include "rpc/rpc_ctx.h"
#include "store/store.h"

struct update_op {
    struct serial_item item;
    struct rpc_ctx *ctx;
    struct call *call;
    struct registry_entry *entry; /* owned reference */
    struct job *old;              /* owned reference */
    struct job *job;              /* the revised one; owned reference */
    struct skrull_job *next;      /* its spec, in the call's arena */
    uint64_t first_step;
    struct progress *progress; /* owned until the swap */
    uint8_t *spec;             /* packed, in the call's arena: the store's blob and the reply */
    size_t spec_len;
    struct skrull_error err;
};

/* Lets the job go on as it is. The op is gone afterwards, and its call to be ended. */
static struct call *op_free(struct update_op *op)
{
    struct call *call = op->call;

    if (op->entry) {
        registry_entry_unref(op->entry);
    }
    job_unref(op->old);
    job_unref(op->job);
    progress_free(op->progress);
    free(op);
    return call;
}

static void fail(struct update_op *op)
{
    struct skrull_error err = op->err;

    if (op->old) { /* it was under way */
        op->entry->is_updating = false;
        if (op->entry->hub) {
            hub_drop(op->entry->hub);
        }
    }
    call_fail(op_free(op), &err);
}

/* A job that was deleted has no hub any more. True: it is so, and said. */
static bool is_deleted(struct update_op *op)
{
    struct job *job;
    int code = registry_entry_job(op->entry, &job, &op->err);

    if (code < 0) {
        op->err.code = code;
        fail(op);
    }
    return code < 0;
}

static void on_stored(void *arg)
{
    struct update_op *op = (struct update_op *)arg;
    struct registry_entry *entry = op->entry;
    struct rpc_bytes reply = {op->spec, op->spec_len};

    if (op->err.code < 0) {
        fail(op);
        return;
    }
    if (is_deleted(op)) {
        return;
    }
    registry_revise(entry, op->job, op->progress);
    op->progress = NULL;
    entry->is_updating = false;
    hub_revise(entry->hub, op->first_step);
    log_event(LOG_LEVEL_INFO, "job_revised", LOG_TEXT("job", entry->name),
              LOG_TEXT("uid", entry->uid), LOG_U64("revision", entry->spec->revision),
              LOG_U64("first_step", op->first_step), LOG_U64("steps", entry->spec->info.steps));
    call_reply(op->call, reply);
    (void)op_free(op);
}

static void put_revision(void *arg)
{
    struct update_op *op = (struct update_op *)arg;
    const struct store_revision row = {
        .revision = op->next->revision,
        .first_step = op->first_step,
        .spec = op->spec,
        .spec_len = op->spec_len,
    };
    int code = store_put_revision(op->ctx->store, op->entry->uid, &row, &op->err);

    if (code < 0) {
        op->err.code = code;
    }
}

static void revise_job(void *arg)
{
    struct update_op *op = (struct update_op *)arg;
    int code = job_revise(op->old, op->next, &op->job, &op->err);

    if (code < 0) {
        op->err.code = code;
    }
}

static void on_revised(void *arg)
{
    struct update_op *op = (struct update_op *)arg;
    int code = op->err.code;

    if (code == 0 && is_deleted(op)) {
        return;
    }
    if (code == 0) {
        code = registry_make_progress(op->job, &op->progress, &op->err);
    }
    if (code == 0) {
        code = hub_prepare(op->entry->hub, op->job, &op->err);
    }
    if (code == 0) {
        code = codec_job_pack(call_arena(op->call), job_spec(op->job), &op->spec, &op->spec_len,
                              &op->err);
    }
    if (code < 0) {
        op->err.code = code;
        fail(op);
        return;
    }
    op->item = (struct serial_item){.work = put_revision, .done = on_stored, .arg = op};
    serial_push(op->ctx->store_queue, &op->item);
}

/* Holds plans back and starts. */
static int start(struct update_op *op, struct job *job)
{
    const struct skrull_job_info *info = &op->next->info;
    int code;

    op->first_step = info->revisions[info->n_revisions - 1].first_step;
    op->old = job_ref(job);
    op->entry->is_updating = true;
    op->entry->updating_from = op->first_step;
    hub_hold(op->entry->hub, op->first_step);
    code = loop_work(op->ctx->loop, revise_job, on_revised, op);
    if (code < 0) {
        (void)skrull_error_set(&op->err, code, "out of memory");
    }
    return code;
}

/* Nothing changes: the job as it is. */
static int reply_unchanged(struct update_op *op)
{
    int code =
        codec_job_pack(call_arena(op->call), op->entry->spec, &op->spec, &op->spec_len, &op->err);

    if (code == 0) {
        call_reply(op->call, (struct rpc_bytes){op->spec, op->spec_len});
        (void)op_free(op);
    }
    return code;
}

static int update(struct update_op *op, const struct rpc_update_job *request)
{
    struct revise_request revision = {
        .job = request->job,
        .mask = request->mask,
        .n_mask = request->n_mask,
        .expected_revision = request->expected_revision,
        .from_step = request->from_step,
    };
    struct registry_entry *entry;
    struct job *job;
    int code = 0;

    if (!request->job->name) {
        return skrull_error_set(&op->err, SKRULL_ERR_INVALID_ARGUMENT, "job.name: is required");
    }
    code = registry_find(op->ctx->registry, request->job->name, &entry, &op->err);
    if (code == 0) {
        op->entry = registry_entry_ref(entry);
        code = registry_entry_job(entry, &job, &op->err);
    }
    if (code < 0) {
        return code;
    }
    if (entry->is_updating) {
        return skrull_error_because(
            &op->err, SKRULL_ERR_ABORTED, SKRULL_REASON_REVISION_STALE, entry->spec->revision,
            "job %s is being updated by another request: look at it again", entry->name);
    }
    revision.floor = hub_floor(entry->hub);
    code = revise_spec(call_arena(op->call), entry->spec, &revision, &op->next, &op->err);
    if (code == REVISE_UNCHANGED) {
        return reply_unchanged(op);
    }
    return code < 0 ? code : start(op, job);
}

void rpc_update_job(struct rpc_ctx *ctx, struct call *call)
{
    struct update_op *op = calloc(1, sizeof(*op));
    struct rpc_update_job request;
    struct skrull_error err = {0};
    int code;

    if (!op) {
        (void)skrull_error_set(&err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
        call_fail(call, &err);
        return;
    }
    op->ctx = ctx;
    op->call = call;
    code =
        codec_update_job_request_unpack(call_arena(call), call_request(call), &request, &op->err);
    if (code == 0) {
        code = update(op, &request);
    }
    if (code < 0) {
        op->err.code = code;
        fail(op);
    }
}
