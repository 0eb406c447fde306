/*
 * Runs a rank's plan: for each micro-batch its layout, then forth through the layers and back
 * (exec_walk.c). Memory: one arena, sized from the limits of all of the rank's layouts before the
 * first begins, kept for later steps. A failure is told to the other ranks before this one lets go
 * of memory that they may still read. On a device a micro-batch is only enqueued.
 */
#include "exec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <skrull/tensors.h>

int skrull_device_of_launcher(void)
{
    return device_of_launcher();
}

/* Memories must be of one kind on both sides. */
static int check_comm(const struct skrull_exec *exec, struct skrull_error *err)
{
    if (exec->comm && exec->device->is_host == (exec->comm->streams != NULL)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "backend %s cannot exchange by %s: %s", exec->device->ops->name,
                                exec->comm->ops->name,
                                exec->device->is_host ? "its memory is not a device's"
                                                      : "that moves memory of hosts; use NCCL");
    }
    return 0;
}

static int open_streams(struct skrull_exec *exec, const struct skrull_exec_options *options,
                        struct skrull_error *err)
{
    const struct device_ops *device = exec->device->ops;
    size_t n_messages = exec->comm ? 2 * (size_t)exec->comm->size : 0;
    int rc = 0;

    exec->finished.name = "finished";
    exec->owns_compute_stream = !options->has_stream;
    if (options->has_stream) {
        exec->compute_stream = options->stream;
    } else {
        rc = device->stream_new(exec->device, &exec->compute_stream, err);
    }
    if (rc == 0) {
        rc = device->stream_new(exec->device, &exec->exchange_stream, err);
    }
    if (rc == 0) {
        rc = device->event_init(exec->device, &exec->finished, false, err);
    }
    return rc < 0
               ? rc
               : exec_traffic_init(exec, &exec->sums, "sums ready", "sums landed", n_messages, err);
}

static int open_exec(struct skrull_exec *exec, const struct skrull_exec_options *options,
                     struct skrull_error *err)
{
    const char *backend = options->backend ? options->backend : "cpu";
    int rc = device_open(backend, options->device, &exec->device, err);

    if (rc < 0) {
        return rc;
    }
    exec->ops = ops_find(backend);
    if (!exec->ops) {
        return skrull_error_set(err, SKRULL_ERR_UNIMPLEMENTED, "no backend %s was built", backend);
    }
    exec->dtype = options->dtype          ? options->dtype
                  : exec->device->is_host ? SKRULL_DTYPE_F32
                                          : SKRULL_DTYPE_BF16;
    exec->element = exec->dtype == SKRULL_DTYPE_F32 ? sizeof(float) : sizeof(uint16_t);
    exec->has_shares_apart = !exec->device->is_host;
    exec->comm = options->comm;
    exec->exchange = options->exchange;
    rc = check_comm(exec, err);
    return rc < 0 ? rc : open_streams(exec, options, err);
}

int skrull_exec_new(const struct skrull_exec_options *options, struct skrull_exec **ret_exec,
                    struct skrull_error *err)
{
    struct skrull_exec *exec = calloc(1, sizeof(*exec));
    int rc;

    if (!exec) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "out of memory for the execution of plans");
    }
    rc = open_exec(exec, options, err);
    if (rc < 0) {
        skrull_exec_free(exec);
        return rc;
    }
    *ret_exec = exec;
    return 0;
}

static void free_groups(struct skrull_exec *exec)
{
    for (size_t g = 0; g < exec->n_groups; g++) {
        exec_traffic_deinit(exec, &exec->groups[g].keys);
        exec_traffic_deinit(exec, &exec->groups[g].gradients);
    }
    free(exec->groups);
    exec->groups = NULL;
    exec->n_groups = 0;
}

void skrull_exec_free(struct skrull_exec *exec)
{
    const struct device_ops *device;

    if (!exec) {
        return;
    }
    if (exec->device) {
        device = exec->device->ops;
        free_groups(exec);
        exec_traffic_deinit(exec, &exec->sums);
        exec_maps_deinit(exec);
        exec_clock_deinit(exec);
        device->release(exec->device, exec->memory);
        device->event_deinit(exec->device, &exec->finished);
        device->stream_free(exec->device, exec->exchange_stream);
        if (exec->owns_compute_stream) {
            device->stream_free(exec->device, exec->compute_stream);
        }
        device_close(exec->device);
    }
    free(exec);
}

int exec_zero(struct skrull_exec *exec, void *to, size_t bytes, struct skrull_error *err)
{
    return exec->device->ops->zero(exec->device, exec->compute_stream, to, bytes, err);
}

int exec_copy(struct skrull_exec *exec, void *to, const void *from, size_t bytes,
              struct skrull_error *err)
{
    return exec->device->ops->copy(exec->device, exec->compute_stream, to, from, bytes, err);
}

/* 0: go on waiting. */
static int check_wait(const struct skrull_exec *exec, int64_t deadline_ns, struct skrull_error *err)
{
    int rc = exec->comm ? exec->comm->streams->check(exec->comm, err) : 0;

    if (rc == 0 && exec->comm && comm_now_ns() > deadline_ns) {
        rc = skrull_error_set(err, SKRULL_ERR_DEADLINE_EXCEEDED,
                              "data rank %" PRIu32 " waited %" PRId64
                              " ms for its device: another data rank did not come",
                              exec->comm->rank, exec->comm->timeout_ms);
    }
    return rc;
}

int exec_wait_for(struct skrull_exec *exec, const struct device_event *event,
                  struct skrull_error *err)
{
    const struct timespec nap = {.tv_nsec = 20000};
    int64_t deadline_ns = comm_now_ns() + (exec->comm ? exec->comm->timeout_ms * 1000000 : 0);
    int rc;

    for (;;) {
        rc = exec->device->ops->is_past(exec->device, event, err);
        if (rc == 0) {
            rc = check_wait(exec, deadline_ns, err);
        }
        if (rc != 0) {
            return rc < 0 ? rc : 0;
        }
        (void)nanosleep(&nap, NULL);
    }
}

int skrull_exec_finish(struct skrull_exec *exec, struct skrull_error *err)
{
    int rc = exec->device->ops->record(exec->device, &exec->finished, exec->compute_stream, err);

    if (rc == 0) {
        rc = exec_wait_for(exec, &exec->finished, err);
    }
    if (rc < 0 && exec->comm) {
        skrull_comm_fail(exec->comm, err);
    }
    return rc;
}

void *skrull_exec_stream(const struct skrull_exec *exec)
{
    return exec->compute_stream;
}

enum skrull_dtype skrull_exec_dtype(const struct skrull_exec *exec)
{
    return exec->dtype;
}

const struct skrull_layout *skrull_exec_layout(const struct skrull_exec *exec)
{
    return exec->layout;
}

/* Room for the messages of so many groups of so many ranks. */
static int prepare_groups(struct skrull_exec *exec, const struct skrull_layout_limits *limits,
                          struct skrull_error *err)
{
    size_t n_messages = 4 * (size_t)limits->group_size;

    if (limits->groups <= exec->n_groups && limits->group_size <= exec->group_size) {
        return 0;
    }
    free_groups(exec);
    exec->groups = calloc(limits->groups, sizeof(exec->groups[0]));
    if (!exec->groups) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for groups");
    }
    exec->group_size = limits->group_size;
    for (; exec->n_groups < limits->groups; exec->n_groups++) {
        struct exec_group *group = &exec->groups[exec->n_groups];
        int rc =
            exec_traffic_init(exec, &group->keys, "keys ready", "keys landed", n_messages, err);

        if (rc == 0) {
            rc = exec_traffic_init(exec, &group->gradients, "gradients ready", "gradients landed",
                                   n_messages, err);
            if (rc < 0) {
                exec_traffic_deinit(exec, &group->keys);
            }
        }
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* Every group needs its other ranks. */
static int check_groups(const struct skrull_exec *exec, struct skrull_error *err)
{
    const struct skrull_layout *layout = exec->host_layout;
    uint32_t size = exec->comm ? exec->comm->size : 1;

    for (uint32_t g = 0; g < layout->n_groups; g++) {
        if ((uint64_t)layout->groups[g].first_rank + layout->groups[g].size > size) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "the plan has a group of data ranks %u to %u; here are %u",
                                    layout->groups[g].first_rank,
                                    layout->groups[g].first_rank + layout->groups[g].size - 1,
                                    size);
        }
        exec->groups[g].members = (struct comm_group){.first = layout->groups[g].first_rank,
                                                      .size = layout->groups[g].size,
                                                      .member = layout->groups[g].member};
    }
    return 0;
}

/* Everything before the trainer begins. `own`: its bytes of the arena. */
static int begin(struct skrull_exec *exec, const struct skrull_layout *layout,
                 const struct skrull_layout_limits *limits, size_t own, struct skrull_error *err)
{
    int rc = exec->device->ops->enter(exec->device, err);

    exec->host_layout = layout;
    exec->used = 0;
    exec->times = (struct comm_times){0};
    if (rc == 0) {
        rc = exec_arena_prepare(exec, limits, own, err);
    }
    if (rc == 0) {
        rc = prepare_groups(exec, limits, err);
    }
    if (rc == 0) {
        rc = check_groups(exec, err);
    }
    if (rc == 0) {
        rc = exec_maps_prepare(exec, limits, err);
    }
    return rc < 0 ? rc : exec_maps_upload(exec, limits, err);
}

int skrull_exec_begin(struct skrull_exec *exec, const struct skrull_layout *layout,
                      const struct skrull_layout_limits *limits,
                      const struct skrull_attention_shape *shape, struct skrull_error *err)
{
    int rc;

    exec->trainer = NULL;
    exec->shape = *shape;
    rc = begin(exec, layout, limits, 0, err);
    if (rc < 0 && exec->comm) {
        skrull_comm_fail(exec->comm, err);
    }
    return rc;
}

int skrull_exec_end(struct skrull_exec *exec, struct skrull_error *err)
{
    int rc = exec->device->ops->enter(exec->device, err);

    return rc < 0 ? rc : exec_maps_end(exec, err);
}

static void note_times(const struct skrull_exec *exec, int64_t elapsed_ns,
                       struct skrull_exec_times *ret_times)
{
    *ret_times = (struct skrull_exec_times){
        .compute_busy_ns = elapsed_ns - exec->times.wait_ns,
        .compute_wait_ns = exec->times.wait_ns,
        .exchange_busy_ns = exec->times.busy_ns,
        .exchange_wait_ns = exec->times.wait_ns,
    };
}

/* One micro-batch; on a device within a span of its clock. */
static int run_layout(struct skrull_exec *exec, const struct skrull_layout *layout,
                      const struct skrull_layout_limits *limits,
                      const struct skrull_trainer *trainer, struct skrull_error *err)
{
    size_t own = trainer->bytes ? trainer->bytes(trainer->arg, limits) : 0, span = 0;
    int rc;

    exec->trainer = trainer;
    exec->shape = trainer->shape;
    rc = begin(exec, layout, limits, own, err);
    if (rc == 0) {
        rc = exec_clock_start(exec, SPAN_WHOLE, exec->compute_stream, &span, err);
    }
    if (rc == 0) {
        rc = exec_walk(exec, err);
    }
    if (rc == 0) {
        rc = exec_clock_stop(exec, span, exec->compute_stream, err);
    }
    if (rc == 0) {
        rc = exec_maps_end(exec, err);
    }
    if (rc < 0 && exec->comm) {
        skrull_comm_fail(exec->comm, err);
    }
    return rc;
}

/* Times of what follows: those of the host at once, those of a device by read_times. */
static void start_clock(struct skrull_exec *exec, const struct skrull_exec_times *times)
{
    exec->clock.is_on = times && !exec->device->is_host;
    exec->clock.n_spans = 0;
    exec->clock.i_micro_batch = 0;
}

static int read_times(struct skrull_exec *exec, struct skrull_exec_times *times, uint32_t n,
                      struct skrull_error *err)
{
    return exec->clock.is_on ? exec_clock_read(exec, times, n, err) : 0;
}

int skrull_exec_run_layout(struct skrull_exec *exec, const struct skrull_layout *layout,
                           const struct skrull_layout_limits *limits,
                           const struct skrull_trainer *trainer, struct skrull_exec_times *times,
                           struct skrull_error *err)
{
    int64_t started = comm_now_ns();
    int rc;

    start_clock(exec, times);
    rc = run_layout(exec, layout, limits, trainer, err);
    if (rc == 0 && times && exec->device->is_host) {
        note_times(exec, comm_now_ns() - started, times);
    }
    return rc < 0 ? rc : read_times(exec, times, 1, err);
}

/* Is the plan one for these ranks? */
static int check_plan(const struct skrull_exec *exec, const struct skrull_plan *plan, size_t i_rank,
                      struct skrull_error *err)
{
    uint64_t n_ranks = (uint64_t)plan->dp * plan->cp;

    if (exec->comm && n_ranks != exec->comm->size) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "the plan is for %u x %u data ranks; here are %u", plan->dp,
                                plan->cp, exec->comm->size);
    }
    if (exec->comm && plan->ranks[i_rank].data_rank != exec->comm->rank) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "the plan is that of data rank %u; here is %u",
                                plan->ranks[i_rank].data_rank, exec->comm->rank);
    }
    return 0;
}

static int run_micro_batch(struct skrull_exec *exec, const struct skrull_plan *plan, size_t i_rank,
                           uint32_t i, const struct skrull_layout_limits *limits,
                           const struct skrull_trainer *trainer, struct skrull_exec_times *times,
                           struct skrull_error *err)
{
    struct skrull_layout *layout;
    int rc = skrull_layout_new(plan, i_rank, i, &layout, err);
    int64_t started = comm_now_ns();

    if (rc < 0) {
        return rc;
    }
    exec->clock.i_micro_batch = i;
    rc = run_layout(exec, layout, limits, trainer, err);
    if (rc == 0 && times && exec->device->is_host) {
        note_times(exec, comm_now_ns() - started, times);
    }
    skrull_layout_free(layout);
    return rc;
}

int skrull_exec_run(struct skrull_exec *exec, const struct skrull_plan *plan, size_t i_rank,
                    const struct skrull_trainer *trainer, struct skrull_exec_times *times,
                    struct skrull_error *err)
{
    struct skrull_layout_limits limits;
    int rc = skrull_layout_measure(plan, i_rank, &limits, err);

    if (rc == 0) {
        rc = check_plan(exec, plan, i_rank, err);
    }
    start_clock(exec, times);
    for (uint32_t i = 0; rc == 0 && i < plan->ranks[i_rank].n_micro_batches; i++) {
        rc =
            run_micro_batch(exec, plan, i_rank, i, &limits, trainer, times ? &times[i] : NULL, err);
    }
    if (rc == 0) {
        rc = read_times(exec, times, plan->ranks[i_rank].n_micro_batches, err);
    }
    if (rc < 0 && exec->comm) {
        skrull_comm_fail(exec->comm, err);
    }
    return rc;
}
