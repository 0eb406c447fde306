/*
 * Start-up: store -> registry. Each job is opened as it was at its creation and held against what
 * it remembers of its indexes, so that it gives the plans it gave before or none.
 */
#include "rpc/restore.h"

#include "arena.h"
#include "base/log.h"
#include "codec_job.h"
#include "job/job.h"
#include "job/progress.h"
#include "job/registry.h"
#include "rpc/hub.h"
#include "rpc/rpc_ctx.h"
#include "store/store.h"

#define JOB_BUDGET_BYTES ((size_t)64 << 20)

struct restore {
    struct rpc_ctx *ctx;
    struct skrull_error *err;
};

static void log_broken(const char *name, const struct skrull_error *why)
{
    log_event(LOG_LEVEL_ERROR, "job_broken", LOG_TEXT("job", name), LOG_TEXT("why", why->message));
}

static int load(const struct restore *restore, const struct skrull_job *spec,
                const struct store_job *row)
{
    struct registry_entry *entry;
    struct skrull_error why = {0};
    struct job *job = NULL;
    int code = job_open(spec, &restore->ctx->roots, &job, &why);

    if (code < 0) {
        why.code = code;
        log_broken(row->name, &why);
    }
    code = registry_load(restore->ctx->registry, spec, row->request_id, job, job ? NULL : &why,
                         row->given_out_below, &entry, restore->err);
    if (job) {
        job_unref(job);
    }
    return code;
}

static int on_job(void *arg, const struct store_job *row)
{
    const struct restore *restore = (const struct restore *)arg;
    struct arena *arena = arena_new(JOB_BUDGET_BYTES);
    struct skrull_job *spec;
    int code;

    if (!arena) {
        return skrull_error_set(restore->err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    code = codec_job_unpack(arena, row->spec, row->spec_len, &spec, restore->err);
    if (code == 0) {
        code = load(restore, spec, row);
    }
    if (code < 0) {
        code = skrull_error_prefix(restore->err, code, "job %s", row->name);
    }
    arena_free(arena);
    return code;
}

struct revival {
    struct registry_entry *entry;
    struct skrull_error why; /* code: its reports are damaged */
};

static int on_progress(void *arg, const struct store_progress *saved)
{
    struct revival *revival = (struct revival *)arg;
    int code = progress_restore(revival->entry->progress, saved, &revival->why);

    revival->why.code = code;
    return code;
}

/* Lists the job without plans. */
static int make_broken(struct rpc_ctx *ctx, struct registry_entry *entry,
                       const struct skrull_error *why, struct skrull_error *err)
{
    struct registry_entry *broken;
    int code;

    log_broken(entry->spec->name, why);
    (void)registry_entry_ref(entry);
    registry_remove(ctx->registry, entry);
    code = registry_load(ctx->registry, entry->spec, entry->request_id, NULL, why,
                         entry->given_out_below, &broken, err);
    registry_entry_unref(entry);
    return code;
}

/* Reports and hub of one job. Where its reports are damaged the next step would fall back: no
 * plans. */
static int revive(struct rpc_ctx *ctx, struct registry_entry *entry, struct skrull_error *err)
{
    struct revival revival = {.entry = entry};
    struct job *job;
    int code;

    if (registry_entry_job(entry, &job, NULL) < 0) {
        return 0;
    }
    code = store_each_progress(ctx->store, entry->spec->uid, on_progress, &revival, err);
    if (revival.why.code < 0) {
        return make_broken(ctx, entry, &revival.why, err);
    }
    if (code < 0) {
        return skrull_error_prefix(err, code, "job %s: its reports", entry->spec->name);
    }
    code = hub_new(ctx, entry, err);
    if (code == 0) {
        log_event(LOG_LEVEL_INFO, "job_restored", LOG_TEXT("job", entry->spec->name),
                  LOG_TEXT("uid", entry->spec->uid),
                  LOG_U64("next_step", progress_next_step(entry->progress)),
                  LOG_U64("steps", entry->spec->info.steps));
    }
    return code;
}

int restore_jobs(struct rpc_ctx *ctx, struct skrull_error *err)
{
    struct restore restore = {.ctx = ctx, .err = err};
    int code = store_each_job(ctx->store, on_job, &restore, err);

    for (size_t i = 0; code == 0 && i < registry_count(ctx->registry); i++) {
        code = revive(ctx, registry_at(ctx->registry, i), err);
    }
    return code;
}

void restore_close(struct rpc_ctx *ctx)
{
    struct skrull_error err = {0};

    (void)skrull_error_set(&err, SKRULL_ERR_UNAVAILABLE, "the daemon is stopping");
    for (size_t i = 0; i < registry_count(ctx->registry); i++) {
        hub_close(registry_at(ctx->registry, i)->hub, &err);
    }
}
