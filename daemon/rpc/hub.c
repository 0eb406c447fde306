/*
 * A job's hub. Both ways to the store are group commits: one transaction at a time is under way,
 * and what is wanted meanwhile is gathered for the next. So a thousand ranks that report a step
 * cost two or three transactions, not a thousand.
 *
 * A reply tells the next step as it stood when its transaction began: a step that only memory knows
 * would be taken back by a crash, and the next step never falls.
 */
#include "rpc/hub.h"

#include <assert.h>
#include <stdlib.h>

#include "arena.h"
#include "job/job.h"
#include "job/pipeline.h"
#include "job/progress.h"
#include "job/registry.h"
#include "rpc/plan_stream.h"
#include "rpc/rpc_ctx.h"
#include "store/store.h"

#define SAVE_BUDGET_BYTES ((size_t)64 << 20)

static int plan(void *arg, uint64_t step, struct skrull_plan **ret_plan, struct skrull_error *err)
{
    return job_plan((const struct job *)arg, step, ret_plan, NULL, err);
}

static void release(void *arg)
{
    job_unref((struct job *)arg);
}

static void mark_work(void *arg);
static void mark_done(void *arg);
static void save_work(void *arg);
static void save_done(void *arg);

/* Takes no reference: the pipeline's is to be taken once it has the source. */
static struct pipeline_source source_of(struct job *job)
{
    return (struct pipeline_source){
        .steps = job_spec(job)->info.steps, .plan = plan, .release = release, .arg = job};
}

int hub_new(struct rpc_ctx *ctx, struct registry_entry *entry, struct skrull_error *err)
{
    struct hub *hub = calloc(1, sizeof(*hub));
    struct pipeline_source source = source_of(entry->job);
    int code;

    if (!hub) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    code = pipeline_new(&source, &ctx->pipeline, &hub->pipeline, err);
    if (code < 0) {
        free(hub);
        return code;
    }
    (void)job_ref(entry->job);
    hub->ctx = ctx;
    hub->entry = registry_entry_ref(entry);
    hub->mark = (struct serial_item){.work = mark_work, .done = mark_done, .arg = hub};
    hub->save = (struct serial_item){.work = save_work, .done = save_done, .arg = hub};
    hub->mark_limit = UINT64_MAX;
    hub->saved_next_step = progress_next_step(entry->progress);
    entry->hub = hub;
    return 0;
}

static void free_if_over(struct hub *hub)
{
    if (hub->is_closed && !hub->is_marking && !hub->is_saving) {
        registry_entry_unref(hub->entry);
        free(hub);
    }
}

static void answer(struct hub_wait *waits, uint64_t next_step, const struct skrull_error *err)
{
    while (waits) {
        struct hub_wait *next = waits->next; /* done may free it */

        waits->done(waits->arg, next_step, err);
        waits = next;
    }
}

void hub_close(struct hub *hub, const struct skrull_error *err)
{
    struct hub_wait *running, *next;

    if (!hub) {
        return;
    }
    assert(!hub->is_closed);
    hub->is_closed = true;
    hub->entry->hub = NULL;
    plan_streams_fail(hub, err);
    pipeline_close(hub->pipeline, err);
    hub->pipeline = NULL;
    running = hub->waits_running;
    next = hub->waits_next;
    hub->waits_running = hub->waits_next = NULL;
    answer(running, 0, err);
    answer(next, 0, err);
    free_if_over(hub);
}

/* --- given out --- */

/* As far as given_out_below is wanted, and may be raised. */
static uint64_t mark_target(const struct hub *hub)
{
    return hub->mark_wanted < hub->mark_limit ? hub->mark_wanted : hub->mark_limit;
}

static void mark_start_if_wanted(struct hub *hub)
{
    if (hub->is_marking || mark_target(hub) <= hub->entry->given_out_below) {
        return;
    }
    hub->is_marking = true;
    hub->mark_running = mark_target(hub);
    hub->mark_err = (struct skrull_error){0};
    serial_push(hub->ctx->store_queue, &hub->mark);
}

static void mark_work(void *arg)
{
    struct hub *hub = (struct hub *)arg;
    int code = store_give_out(hub->ctx->store, hub->entry->uid, hub->mark_running, &hub->mark_err);

    if (code < 0) {
        hub->mark_err.code = code;
    }
}

static void mark_done(void *arg)
{
    struct hub *hub = (struct hub *)arg;

    hub->is_marking = false;
    if (hub->is_closed) {
        free_if_over(hub);
        return;
    }
    if (hub->mark_err.code < 0) {
        hub->mark_wanted = hub->entry->given_out_below;
        plan_streams_mark_failed(hub, &hub->mark_err);
        return;
    }
    hub->entry->given_out_below = hub->mark_running;
    mark_start_if_wanted(hub);
    plan_streams_marked(hub);
}

void hub_mark(struct hub *hub, uint64_t below)
{
    if (below > hub->mark_wanted) {
        hub->mark_wanted = below;
    }
    mark_start_if_wanted(hub);
}

/* --- revisions --- */

uint64_t hub_floor(const struct hub *hub)
{
    const struct registry_entry *entry = hub->entry;
    uint64_t floor = entry->given_out_below, reported = progress_end(entry->progress), newest;

    (void)job_revision_at(entry->job, job_n_revisions(entry->job) - 1, &newest);
    if (hub->is_marking && hub->mark_running > floor) {
        floor = hub->mark_running;
    }
    floor = reported > floor ? reported : floor;
    return newest > floor ? newest : floor;
}

void hub_hold(struct hub *hub, uint64_t from_step)
{
    hub->mark_limit = from_step;
}

int hub_prepare(struct hub *hub, struct job *job, struct skrull_error *err)
{
    const struct pipeline_source source = source_of(job);
    int code = pipeline_prepare(hub->pipeline, &source, err);

    if (code == 0) {
        (void)job_ref(job);
    }
    return code;
}

void hub_revise(struct hub *hub, uint64_t from_step)
{
    hub->mark_limit = UINT64_MAX;
    if (hub->mark_wanted > from_step) {
        hub->mark_wanted = from_step; /* the streams that wanted more end */
    }
    pipeline_revise(hub->pipeline, from_step);
    plan_streams_revised(hub, from_step);
}

void hub_drop(struct hub *hub)
{
    hub->mark_limit = UINT64_MAX;
    pipeline_drop(hub->pipeline);
    mark_start_if_wanted(hub);
}

/* --- progress --- */

static void save_work(void *arg)
{
    struct hub *hub = (struct hub *)arg;
    int code = store_put_progress(hub->ctx->store, hub->entry->uid, hub->saved, hub->n_saved,
                                  &hub->save_err);

    if (code < 0) {
        hub->save_err.code = code;
    }
}

static void save_start(struct hub *hub)
{
    struct hub_wait *waits = hub->waits_next;
    int code = SKRULL_ERR_RESOURCE_EXHAUSTED;

    hub->waits_next = NULL;
    hub->save_err = (struct skrull_error){0};
    hub->save_arena = arena_new(SAVE_BUDGET_BYTES);
    if (hub->save_arena) {
        code = progress_take_dirty(hub->entry->progress, hub->save_arena, &hub->saved,
                                   &hub->n_saved, &hub->save_err);
    }
    if (code < 0) {
        (void)skrull_error_set(&hub->save_err, code, "saving reports: out of memory");
        arena_free(hub->save_arena);
        answer(waits, 0, &hub->save_err);
        return;
    }
    hub->waits_running = waits;
    hub->saving_next_step = progress_next_step(hub->entry->progress);
    hub->is_saving = true;
    serial_push(hub->ctx->store_queue, &hub->save);
}

static void save_done(void *arg)
{
    struct hub *hub = (struct hub *)arg;
    struct hub_wait *waits = hub->waits_running;
    struct skrull_error err = hub->save_err;

    hub->is_saving = false;
    hub->waits_running = NULL;
    if (err.code < 0) {
        progress_mark_dirty(hub->entry->progress, hub->saved, hub->n_saved);
    } else {
        hub->saved_next_step = hub->saving_next_step;
    }
    arena_free(hub->save_arena);
    if (hub->is_closed) {
        free_if_over(hub);
        return;
    }
    if (hub->waits_next) {
        save_start(hub);
    }
    answer(waits, hub->saved_next_step, err.code < 0 ? &err : NULL);
}

void hub_save(struct hub *hub, struct hub_wait *wait)
{
    bool is_dirty = progress_is_dirty(hub->entry->progress);

    if (!is_dirty && !hub->is_saving) {
        wait->done(wait->arg, hub->saved_next_step, NULL);
        return;
    }
    if (!is_dirty) {
        wait->next = hub->waits_running;
        hub->waits_running = wait;
        return;
    }
    wait->next = hub->waits_next;
    hub->waits_next = wait;
    if (!hub->is_saving) {
        save_start(hub);
    }
}
