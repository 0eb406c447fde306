/*
 * What micro-batches took on a device: pairs of timed events around each of them, around each
 * exchange on its stream, and around each time that compute waits for one. Read once all work is
 * done; between two reads events are only enqueued. On "cpu" times are the host's (exec.c).
 */
#include "exec.h"

#include <stdlib.h>
#include <string.h>

#include "ckd.h"

#define FIRST_SPANS 64u

void exec_clock_deinit(struct skrull_exec *exec)
{
    struct exec_clock *clock = &exec->clock;

    for (size_t i = 0; i < clock->n_ready; i++) {
        exec->device->ops->event_deinit(exec->device, &clock->spans[i].from);
        exec->device->ops->event_deinit(exec->device, &clock->spans[i].to);
    }
    free(clock->spans);
    *clock = (struct exec_clock){0};
}

static int grow(struct exec_clock *clock, struct skrull_error *err)
{
    size_t room = clock->room ? 2 * clock->room : FIRST_SPANS, bytes;
    struct exec_span *spans =
        ckd_mul(&bytes, room, sizeof(*spans)) ? NULL : realloc(clock->spans, bytes);

    if (!spans) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for times");
    }
    memset(spans + clock->room, 0, (room - clock->room) * sizeof(*spans));
    clock->spans = spans;
    clock->room = room;
    return 0;
}

/* Events are kept from step to step. */
static int make_ready(struct skrull_exec *exec, struct exec_span *span, struct skrull_error *err)
{
    const struct device_ops *device = exec->device->ops;
    int rc;

    span->from.name = span->to.name = "clock";
    rc = device->event_init(exec->device, &span->from, true, err);
    if (rc == 0) {
        rc = device->event_init(exec->device, &span->to, true, err);
        if (rc < 0) {
            device->event_deinit(exec->device, &span->from);
        }
    }
    exec->clock.n_ready += rc == 0;
    return rc;
}

int exec_clock_start(struct skrull_exec *exec, enum exec_span_kind kind, void *stream,
                     size_t *ret_span, struct skrull_error *err)
{
    struct exec_clock *clock = &exec->clock;
    struct exec_span *span;
    int rc = 0;

    if (!clock->is_on) {
        return 0;
    }
    if (clock->n_spans == clock->room) {
        rc = grow(clock, err);
    }
    if (rc == 0 && clock->n_spans == clock->n_ready) {
        rc = make_ready(exec, &clock->spans[clock->n_spans], err);
    }
    if (rc < 0) {
        return rc;
    }
    span = &clock->spans[clock->n_spans];
    span->kind = kind;
    span->i_micro_batch = clock->i_micro_batch;
    *ret_span = clock->n_spans++;
    return exec->device->ops->record(exec->device, &span->from, stream, err);
}

int exec_clock_stop(struct skrull_exec *exec, size_t i_span, void *stream, struct skrull_error *err)
{
    return exec->clock.is_on
               ? exec->device->ops->record(exec->device, &exec->clock.spans[i_span].to, stream, err)
               : 0;
}

/* Busy is what is left of the whole; an exchange waits for nothing but what compute waits for. */
static void settle(struct skrull_exec_times *times)
{
    times->compute_busy_ns -= times->compute_wait_ns;
    times->exchange_wait_ns = times->compute_wait_ns;
}

int exec_clock_read(struct skrull_exec *exec, struct skrull_exec_times *times, uint32_t n,
                    struct skrull_error *err)
{
    struct exec_clock *clock = &exec->clock;
    int rc = skrull_exec_finish(exec, err);

    memset(times, 0, n * sizeof(times[0]));
    for (size_t i = 0; i < clock->n_spans && rc == 0; i++) {
        const struct exec_span *span = &clock->spans[i];
        struct skrull_exec_times *of = &times[span->i_micro_batch];
        int64_t *const sums[] = {&of->compute_busy_ns, &of->compute_wait_ns, &of->exchange_busy_ns};
        int64_t ns = 0;

        rc = exec->device->ops->elapsed_ns(exec->device, &span->from, &span->to, &ns, err);
        *sums[span->kind] += ns;
    }
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        settle(&times[i]);
    }
    clock->n_spans = 0;
    clock->is_on = false;
    return rc;
}
