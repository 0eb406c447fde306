/*
 * Timers, signals and tasks: each a libuv handle on the heap that libuv lets go of one turn after
 * it was closed, so that freeing one is always allowed, also from its own callback.
 */
#include "loop/loop.h"

#include <stdlib.h>

#include <uv.h>

struct handle {
    union {
        uv_handle_t any;
        uv_timer_t timer;
        uv_signal_t signal;
        uv_idle_t idle;
    } uv;
    loop_fn fn;
    void *arg;
};

struct loop_timer {
    struct handle handle;
};

struct loop_signal {
    struct handle handle;
};

struct loop_task {
    struct handle handle;
};

static struct handle *handle_new(loop_fn fn, void *arg)
{
    struct handle *handle = calloc(1, sizeof(*handle));

    if (handle) {
        handle->fn = fn;
        handle->arg = arg;
        handle->uv.any.data = handle;
    }
    return handle;
}

static int out_of_memory(struct skrull_error *err, const char *what)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "%s: out of memory", what);
}

static void on_closed(uv_handle_t *uv)
{
    free(uv->data);
}

static void handle_free(struct handle *handle)
{
    if (handle) {
        uv_close(&handle->uv.any, on_closed);
    }
}

static void on_timer(uv_timer_t *uv)
{
    struct handle *handle = (struct handle *)uv->data;

    handle->fn(handle->arg);
}

int loop_timer_new(struct loop *loop, loop_fn fn, void *arg, struct loop_timer **ret_timer,
                   struct skrull_error *err)
{
    struct handle *handle = handle_new(fn, arg);

    if (!handle) {
        return out_of_memory(err, "timer");
    }
    (void)uv_timer_init(loop_uv(loop), &handle->uv.timer);
    *ret_timer = (struct loop_timer *)handle;
    return 0;
}

void loop_timer_start(struct loop_timer *timer, uint64_t after_ms, uint64_t repeat_ms)
{
    (void)uv_timer_start(&timer->handle.uv.timer, on_timer, after_ms, repeat_ms);
}

void loop_timer_stop(struct loop_timer *timer)
{
    (void)uv_timer_stop(&timer->handle.uv.timer);
}

void loop_timer_free(struct loop_timer *timer)
{
    handle_free((struct handle *)timer);
}

static void on_signal(uv_signal_t *uv, int number)
{
    struct handle *handle = (struct handle *)uv->data;

    (void)number;
    handle->fn(handle->arg);
}

int loop_signal_new(struct loop *loop, int number, loop_fn fn, void *arg,
                    struct loop_signal **ret_signal, struct skrull_error *err)
{
    struct handle *handle = handle_new(fn, arg);
    int code;

    if (!handle) {
        return out_of_memory(err, "signal");
    }
    code = uv_signal_init(loop_uv(loop), &handle->uv.signal);
    if (code < 0) {
        free(handle);
        return loop_error(err, code, "signal");
    }
    code = uv_signal_start(&handle->uv.signal, on_signal, number);
    if (code < 0) {
        handle_free(handle);
        return loop_error(err, code, "signal");
    }
    *ret_signal = (struct loop_signal *)handle;
    return 0;
}

void loop_signal_free(struct loop_signal *handler)
{
    handle_free((struct handle *)handler);
}

static void on_idle(uv_idle_t *uv)
{
    struct handle *handle = (struct handle *)uv->data;

    (void)uv_idle_stop(uv);
    handle->fn(handle->arg);
}

int loop_task_new(struct loop *loop, loop_fn fn, void *arg, struct loop_task **ret_task,
                  struct skrull_error *err)
{
    struct handle *handle = handle_new(fn, arg);

    if (!handle) {
        return out_of_memory(err, "task");
    }
    (void)uv_idle_init(loop_uv(loop), &handle->uv.idle);
    *ret_task = (struct loop_task *)handle;
    return 0;
}

void loop_task_schedule(struct loop_task *task)
{
    (void)uv_idle_start(&task->handle.uv.idle, on_idle);
}

void loop_task_free(struct loop_task *task)
{
    handle_free((struct handle *)task);
}
