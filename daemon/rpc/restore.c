/*
 * Start-up: store -> registry. Each job is opened as it was at its creation and held against what
 * it remembers of its indexes, so that it gives the plans it gave before or none.
 */
#include "rpc/restore.h"

#include <stdlib.h>

#include "arena.h"
#include "base/log.h"
#include "codec_job.h"
#include "job/job.h"
#include "job/progress.h"
#include "job/registry.h"
#include "job_fields.h"
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

/* One job's rows: all its revisions, in the order of their numbers. */
struct saved_job {
    struct restore *restore;
    struct arena *arena;
    const struct store_job *row;
    const struct skrull_job *specs[JOB_MAX_REVISIONS];
    uint32_t n_specs;
};

static int load(const struct saved_job *saved)
{
    const struct restore *restore = saved->restore;
    struct registry_entry *entry;
    struct skrull_error why = {0};
    struct registry_saved as_saved = {
        .created = saved->specs[0],
        .newest = saved->specs[saved->n_specs - 1],
        .request_id = saved->row->request_id,
        .given_out_below = saved->row->given_out_below,
    };
    struct job *job = NULL;
    int code = job_open_all(saved->specs, saved->n_specs, &restore->ctx->roots, &job, &why);

    if (code < 0) {
        why.code = code;
        as_saved.why = &why;
        log_broken(saved->row->name, &why);
    }
    code = registry_load(restore->ctx->registry, &as_saved, job, &entry, restore->err);
    if (job) {
        job_unref(job);
    }
    return code;
}

static int add_spec(struct saved_job *saved, const uint8_t *bytes, size_t len)
{
    struct skrull_job *spec;
    int code = codec_job_unpack(saved->arena, bytes, len, &spec, saved->restore->err);

    if (code < 0) {
        return code;
    }
    saved->specs[saved->n_specs++] = spec;
    return 0;
}

static int on_revision(void *arg, const struct store_revision *row)
{
    struct saved_job *saved = (struct saved_job *)arg;

    if (row->revision != saved->n_specs + 1 || saved->n_specs == JOB_MAX_REVISIONS) {
        return skrull_error_set(saved->restore->err, SKRULL_ERR_DATA_LOSS,
                                "revision %u follows on revision %u", row->revision,
                                saved->n_specs);
    }
    return add_spec(saved, row->spec, row->spec_len);
}

static int on_job(void *arg, const struct store_job *row)
{
    struct restore *restore = (struct restore *)arg;
    struct saved_job *saved = calloc(1, sizeof(*saved));
    struct arena *arena = arena_new(JOB_BUDGET_BYTES);
    int code = SKRULL_ERR_RESOURCE_EXHAUSTED;

    if (saved && arena) {
        *saved = (struct saved_job){.restore = restore, .arena = arena, .row = row};
        code = add_spec(saved, row->spec, row->spec_len);
    } else {
        (void)skrull_error_set(restore->err, code, "out of memory");
    }
    if (code == 0) {
        code = store_each_revision(restore->ctx->store, row->uid, on_revision, saved, restore->err);
    }
    if (code == 0) {
        code = load(saved);
    }
    if (code < 0) {
        code = skrull_error_prefix(restore->err, code, "job %s", row->name);
    }
    arena_free(arena);
    free(saved);
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
    const struct registry_saved saved = {
        .created = entry->created,
        .newest = entry->spec,
        .request_id = entry->request_id,
        .why = why,
        .given_out_below = entry->given_out_below,
    };
    struct registry_entry *broken;
    int code;

    log_broken(entry->name, why);
    (void)registry_entry_ref(entry);
    registry_remove(ctx->registry, entry);
    code = registry_load(ctx->registry, &saved, NULL, &broken, err);
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
    code = store_each_progress(ctx->store, entry->uid, on_progress, &revival, err);
    if (revival.why.code < 0) {
        return make_broken(ctx, entry, &revival.why, err);
    }
    if (code < 0) {
        return skrull_error_prefix(err, code, "job %s: its reports", entry->name);
    }
    code = hub_new(ctx, entry, err);
    if (code == 0) {
        log_event(LOG_LEVEL_INFO, "job_restored", LOG_TEXT("job", entry->name),
                  LOG_TEXT("uid", entry->uid),
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

    (void)skrull_error_because(&err, SKRULL_ERR_UNAVAILABLE, SKRULL_REASON_DRAINING, 0,
                               "the daemon is stopping");
    for (size_t i = 0; i < registry_count(ctx->registry); i++) {
        hub_close(registry_at(ctx->registry, i)->hub, &err);
    }
}
