/*
 * The loop itself and its pool. libuv keeps one pool for a process and sizes it from the
 * environment at its first use, hence the setenv before any thread exists.
 */
#include "loop/loop.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include <uv.h>

struct loop {
    uv_loop_t uv;
};

struct work {
    uv_work_t uv;
    loop_fn work, done;
    void *arg;
};

int loop_error(struct skrull_error *err, int uv_code, const char *what)
{
    int code = SKRULL_ERR_INTERNAL;

    if (uv_code == UV_ENOMEM || uv_code == UV_EMFILE || uv_code == UV_ENFILE) {
        code = SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    return skrull_error_set(err, code, "%s: %s", what, uv_strerror(uv_code));
}

uint32_t loop_cores(void)
{
    return uv_available_parallelism();
}

int loop_new(uint32_t n_threads, struct loop **ret_loop, struct skrull_error *err)
{
    struct loop *loop = calloc(1, sizeof(*loop));
    char text[16];
    int code;

    if (!loop) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "event loop: out of memory");
    }
    (void)snprintf(text, sizeof(text), "%u", n_threads);
    if (setenv("UV_THREADPOOL_SIZE", text, 1) < 0) {
        free(loop);
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "event loop: out of memory");
    }
    code = uv_loop_init(&loop->uv);
    if (code < 0) {
        free(loop);
        return loop_error(err, code, "event loop");
    }
    *ret_loop = loop;
    return 0;
}

void loop_run(struct loop *loop)
{
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *loop)
{
    uv_stop(&loop->uv);
}

void loop_free(struct loop *loop)
{
    int code;

    if (!loop) {
        return;
    }
    /* A stop that was asked for ends one run; what follows waits for the pool and the closing
     * handles. */
    (void)uv_run(&loop->uv, UV_RUN_NOWAIT);
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    code = uv_loop_close(&loop->uv);
    assert(code == 0);
    (void)code;
    free(loop);
}

uint64_t loop_now_ms(const struct loop *loop)
{
    return uv_now(&loop->uv);
}

struct uv_loop_s *loop_uv(struct loop *loop)
{
    return &loop->uv;
}

static void on_work(uv_work_t *uv)
{
    struct work *work = (struct work *)uv->data;

    work->work(work->arg);
}

static void on_work_done(uv_work_t *uv, int status)
{
    struct work *work = (struct work *)uv->data;

    (void)status; /* nothing cancels work */
    work->done(work->arg);
    free(work);
}

int loop_work(struct loop *loop, loop_fn work, loop_fn done, void *arg)
{
    struct work *item = calloc(1, sizeof(*item));

    if (!item) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    item->uv.data = item;
    item->work = work;
    item->done = done;
    item->arg = arg;
    if (uv_queue_work(&loop->uv, &item->uv, on_work, on_work_done) < 0) {
        free(item);
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    return 0;
}
