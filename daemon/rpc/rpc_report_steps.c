/*
 * ReportSteps: what ranks have finished. Three stages: every digest is held against its step's plan
 * (one that is not remembered is planned again, so this may take a while); then all reports are
 * counted; then the reply waits until the store has them. A refused report leaves no trace of its
 * request; repeated ones change nothing.
 *
 * The measured times and memory are not kept yet: no feature reads them.
 */
#include <stdlib.h>
#include <string.h>

#include "job/job.h"
#include "job/pipeline.h"
#include "job/progress.h"
#include "job/registry.h"
#include "rpc/call.h"
#include "rpc/handlers.h"
#include "rpc/hub.h"
#include "rpc/plan_stream.h"
#include "rpc/rpc_ctx.h"

struct report_op {
    struct pipeline_wait planning;
    struct hub_wait saving;
    struct call *call;
    struct registry_entry *entry; /* owned reference */
    struct rpc_report_steps request;
    uint32_t revision; /* that digests are of */
    size_t i_report;   /* the one whose digest is looked at */
};

static void finish(struct report_op *op, uint64_t next_step, const struct skrull_error *err)
{
    struct skrull_error pack_err = {0};
    struct rpc_bytes reply;

    if (!err &&
        codec_report_steps_response_pack(call_arena(op->call), &next_step, &reply, &pack_err) < 0) {
        err = &pack_err;
    }
    if (err) {
        call_fail(op->call, err);
    } else {
        call_reply(op->call, reply);
    }
    registry_entry_unref(op->entry);
    free(op);
}

static void on_saved(void *arg, uint64_t next_step, const struct skrull_error *err)
{
    finish((struct report_op *)arg, next_step, err);
}

static int check_request(const struct registry_entry *entry, const struct rpc_report_steps *request,
                         struct skrull_error *err)
{
    const struct skrull_job *spec = entry->spec;
    struct job *job;
    int code = registry_entry_check_uid(entry, request->uid, err);

    if (code == 0) {
        code = registry_entry_job(entry, &job, err);
    }
    if (code < 0) {
        return code;
    }
    for (size_t i = 0; i < request->n_reports; i++) {
        const struct rpc_step_report *report = &request->reports[i];
        uint64_t n_ranks = job_n_ranks(job, report->step);

        if (report->data_rank >= n_ranks) {
            return skrull_error_because(
                err, SKRULL_ERR_INVALID_ARGUMENT, SKRULL_REASON_DATA_RANK_OUT_OF_RANGE, n_ranks,
                "reports[%zu].data_rank: %u is out of range, 0 to %llu are allowed", i,
                report->data_rank, (unsigned long long)(n_ranks - 1));
        }
        if (entry->is_updating && report->step >= entry->updating_from) {
            return skrull_error_set(err, SKRULL_ERR_UNAVAILABLE,
                                    "reports[%zu].step: a revision of job %s from step %llu on is "
                                    "under way: try again",
                                    i, entry->name, (unsigned long long)entry->updating_from);
        }
        if (report->step >= spec->info.steps) {
            return skrull_error_because(
                err, SKRULL_ERR_OUT_OF_RANGE, SKRULL_REASON_STEP_OUT_OF_RANGE, spec->info.steps,
                "reports[%zu].step: %llu is past the end, job %s has %llu steps", i,
                (unsigned long long)report->step, spec->name, (unsigned long long)spec->info.steps);
        }
    }
    return 0;
}

static void check_digests(struct report_op *op);

static void count(struct report_op *op)
{
    struct skrull_error err = {0};
    struct hub *hub = op->entry->hub;
    int checked = check_request(op->entry, &op->request, &err);

    if (checked < 0) {
        err.code = checked;
        finish(op, 0, &err);
        return;
    }
    if (op->revision != op->entry->spec->revision) {
        op->revision = op->entry->spec->revision; /* steps may have other plans now */
        op->i_report = 0;
        check_digests(op);
        return;
    }
    for (size_t i = 0; i < op->request.n_reports; i++) {
        const struct rpc_step_report *report = &op->request.reports[i];
        int code = progress_report(op->entry->progress, report->data_rank, report->step, &err);

        if (code < 0) {
            err.code = code;
            finish(op, 0, &err);
            return;
        }
        plan_streams_reported(hub, report->data_rank, report->step);
    }
    op->saving.done = on_saved;
    op->saving.arg = op;
    hub_save(hub, &op->saving);
}

/* Compares one digest; false: the request was refused, and `op` is gone. */
static bool compare(struct report_op *op, const uint8_t digest[SKRULL_DIGEST_SIZE])
{
    const struct rpc_step_report *report = &op->request.reports[op->i_report];
    uint8_t reported[SKRULL_DIGEST_SIZE];
    struct skrull_error err = {0};

    if (skrull_digest_from_hex(report->digest, reported) < 0) {
        (void)skrull_error_set(&err, SKRULL_ERR_INVALID_ARGUMENT,
                               "reports[%zu].digest: not 32 lower-case hex digits", op->i_report);
    } else if (memcmp(reported, digest, SKRULL_DIGEST_SIZE) != 0) {
        (void)skrull_error_because(&err, SKRULL_ERR_FAILED_PRECONDITION,
                                   SKRULL_REASON_DIGEST_MISMATCH, report->step,
                                   "reports[%zu].digest: step %llu of data rank %u did not run the "
                                   "plan of job %s",
                                   op->i_report, (unsigned long long)report->step,
                                   report->data_rank, op->entry->spec->name);
    } else {
        return true;
    }
    finish(op, 0, &err);
    return false;
}

static void on_planned(void *arg, struct planned *planned, const struct skrull_error *err);

/* Goes through the digests, as far as they are remembered. */
static void check_digests(struct report_op *op)
{
    uint8_t digest[SKRULL_DIGEST_SIZE];

    for (; op->i_report < op->request.n_reports; op->i_report++) {
        uint64_t step = op->request.reports[op->i_report].step;

        if (!pipeline_digest(op->entry->hub->pipeline, step, digest)) {
            op->planning.done = on_planned;
            op->planning.arg = op;
            pipeline_ask(op->entry->hub->pipeline, step, false, &op->planning);
            return;
        }
        if (!compare(op, digest)) {
            return;
        }
    }
    count(op);
}

static void on_planned(void *arg, struct planned *planned, const struct skrull_error *err)
{
    struct report_op *op = (struct report_op *)arg;

    if (err) {
        finish(op, 0, err);
        return;
    }
    if (compare(op, planned->plan->digest)) {
        op->i_report++;
        check_digests(op);
    }
}

void rpc_report_steps(struct rpc_ctx *ctx, struct call *call)
{
    struct report_op *op = calloc(1, sizeof(*op));
    struct registry_entry *entry;
    struct skrull_error err = {0};
    int code = SKRULL_ERR_RESOURCE_EXHAUSTED;

    if (op) {
        code = codec_report_steps_request_unpack(call_arena(call), call_request(call), &op->request,
                                                 &err);
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
    op->call = call;
    op->entry = registry_entry_ref(entry);
    op->revision = entry->spec->revision;
    check_digests(op);
}
