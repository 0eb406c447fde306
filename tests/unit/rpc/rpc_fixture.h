/*
 * Handlers on real loops, queues, tables and jobs, but calls without gRPC and a store that fails on
 * demand: include once in a test, in place of store/. CMocka's headers come first.
 */
#pragma once

#include <uv.h>

#include "job/pipeline.h"
#include "job/registry.h"
#include "loop/loop.h"
#include "loop/serial.h"
#include "rpc/handlers.h"
#include "rpc/hub.h"
#include "rpc/plan_stream.h"
#include "rpc/rpc_ctx.h"
#include "store/store.h"
#include "unit/job/job_folder.h"
#include "unit/rpc/fake_call.h"

#include "codec_job.h"

/* Touched by the store's thread while a call is under way there. */
struct store {
    int put_error, delete_error, give_out_error, progress_error; /* 0: it works */
    int n_puts, n_deletes, n_give_outs, n_progresses;
    uint64_t given_out_below;
    size_t n_ranks; /* of the last progress */
    int revision_error, n_revisions;
    struct store_revision revision; /* the last; its spec is gone */
};

int store_put_job(struct store *store, const struct store_job *job, struct skrull_error *err)
{
    (void)job;
    store->n_puts++;
    return store->put_error ? skrull_error_set(err, store->put_error, "disk full") : 0;
}

int store_put_revision(struct store *store, const char *uid, const struct store_revision *revision,
                       struct skrull_error *err)
{
    (void)uid;
    if (store->revision_error) {
        return skrull_error_set(err, store->revision_error, "disk full");
    }
    store->n_revisions++;
    store->revision = *revision;
    return 0;
}

int store_delete_job(struct store *store, const char *name, struct skrull_error *err)
{
    (void)name;
    store->n_deletes++;
    return store->delete_error ? skrull_error_set(err, store->delete_error, "disk full") : 0;
}

int store_give_out(struct store *store, const char *uid, uint64_t below, struct skrull_error *err)
{
    (void)uid;
    store->n_give_outs++;
    if (store->give_out_error) {
        return skrull_error_set(err, store->give_out_error, "disk full");
    }
    store->given_out_below = below;
    return 0;
}

int store_put_progress(struct store *store, const char *uid, const struct store_progress *progress,
                       size_t n, struct skrull_error *err)
{
    (void)uid;
    (void)progress;
    store->n_progresses++;
    store->n_ranks = n;
    return store->progress_error ? skrull_error_set(err, store->progress_error, "disk full") : 0;
}

struct rpc_fixture {
    struct job_folder *folder;
    struct store store;
    struct rpc_ctx ctx;
    struct arena *arena;
};

static inline int rpc_fixture_run(void *arg, void (*work)(void *task), void (*done)(void *task),
                                  void *task)
{
    return loop_work((struct loop *)arg, work, done, task);
}

/* CMocka's setup: *state is the fixture; 80 sequences on <DP 2, CP 4>, batches of 8: 10 steps. */
static inline int rpc_fixture_setup(void **state)
{
    static const uint32_t lengths[][2] = {{40, 100}, {30, 700}, {10, 3000}, {0, 0}};
    struct rpc_fixture *fixture = calloc(1, sizeof(*fixture));
    void *folder = NULL;

    assert_non_null(fixture);
    assert_int_equal(job_folder_setup(&folder), 0);
    fixture->folder = folder;
    job_folder_write(fixture->folder, "a.txt", lengths);
    fixture->arena = arena_new((size_t)8 << 20);
    fixture->ctx.store = &fixture->store;
    fixture->ctx.roots = fixture->folder->roots;
    fixture->ctx.registry = registry_new();
    assert_int_equal(loop_new(2, &fixture->ctx.loop, NULL), 0);
    assert_int_equal(serial_new(fixture->ctx.loop, &fixture->ctx.store_queue, NULL), 0);
    assert_int_equal(plan_streams_new(fixture->ctx.loop, 3600000, &fixture->ctx.streams, NULL), 0);
    fixture->ctx.pipeline = (struct pipeline_options){.run = rpc_fixture_run,
                                                      .run_arg = fixture->ctx.loop,
                                                      .max_running = 2,
                                                      .ahead = 2,
                                                      .max_steps = 8,
                                                      .max_bytes = SIZE_MAX};
    *state = fixture;
    return 0;
}

static inline int rpc_fixture_teardown(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct skrull_error stopping = {.code = SKRULL_ERR_UNAVAILABLE,
                                    .message = "the daemon is stopping"};
    void *folder = fixture->folder;

    for (size_t i = 0; i < registry_count(fixture->ctx.registry); i++) {
        hub_close(registry_at(fixture->ctx.registry, i)->hub, &stopping);
    }
    serial_free(fixture->ctx.store_queue);
    plan_streams_free(fixture->ctx.streams);
    loop_free(fixture->ctx.loop);
    registry_free(fixture->ctx.registry);
    arena_free(fixture->arena);
    free(fixture);
    return job_folder_teardown(&folder);
}

/* Turns the loop until the call has ended, or is sending. */
static inline void run_until_ended(struct rpc_fixture *fixture, const struct call *call)
{
    while (!call->is_ended) {
        (void)uv_run(loop_uv(fixture->ctx.loop), UV_RUN_ONCE);
    }
}

static inline void run_until_sending(struct rpc_fixture *fixture, const struct call *call)
{
    while (!call->is_sending && !call->is_ended) {
        (void)uv_run(loop_uv(fixture->ctx.loop), UV_RUN_ONCE);
    }
}

/* Starts to create the fixture's job under a name. */
static inline void start_create(struct rpc_fixture *fixture, struct call *call, const char *name,
                                const char *request_id)
{
    struct skrull_job spec = fixture->folder->spec;
    struct rpc_create_job request = {.job = &spec, .request_id = request_id};
    struct rpc_bytes bytes;

    spec.name = name;
    assert_int_equal(codec_create_job_request_pack(fixture->arena, &request, &bytes, NULL), 0);
    fake_call_init(call, bytes);
    rpc_create_job(&fixture->ctx, call);
}

/* A published job, by the handler. */
static inline struct registry_entry *make_job(struct rpc_fixture *fixture, const char *name)
{
    struct registry_entry *entry;
    struct call call;

    start_create(fixture, &call, name, "");
    run_until_ended(fixture, &call);
    assert_int_equal(call.status, 0);
    fake_call_deinit(&call);
    assert_int_equal(registry_find(fixture->ctx.registry, name, &entry, NULL), 0);
    return entry;
}
