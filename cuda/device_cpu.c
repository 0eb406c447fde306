/* The host as a device: memory is malloc's, work is done on return, so streams and events are
 * nothing. Any thread. */
#include <stdlib.h>
#include <string.h>

#include "device.h"

#define ALIGNMENT 256u

static int cpu_alloc(struct device *device, size_t bytes, void **ret, struct skrull_error *err)
{
    size_t size = bytes ? (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT;
    void *memory = size < bytes ? NULL : aligned_alloc(ALIGNMENT, size);

    (void)device;
    if (!memory) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory: %zu bytes",
                                bytes);
    }
    *ret = memory;
    return 0;
}

static void cpu_release(struct device *device, void *memory)
{
    (void)device;
    free(memory);
}

static int cpu_zero(struct device *device, void *stream, void *to, size_t bytes,
                    struct skrull_error *err)
{
    (void)device;
    (void)stream;
    (void)err;
    if (bytes) {
        memset(to, 0, bytes);
    }
    return 0;
}

static int cpu_copy(struct device *device, void *stream, void *to, const void *from, size_t bytes,
                    struct skrull_error *err)
{
    (void)device;
    (void)stream;
    (void)err;
    if (bytes) {
        memcpy(to, from, bytes);
    }
    return 0;
}

static int cpu_stream_new(struct device *device, void **ret, struct skrull_error *err)
{
    (void)device;
    (void)err;
    *ret = NULL;
    return 0;
}

static void cpu_stream_free(struct device *device, void *stream)
{
    (void)device;
    (void)stream;
}

static int cpu_event_init(struct device *device, struct device_event *event, bool is_timed,
                          struct skrull_error *err)
{
    (void)device;
    (void)is_timed;
    (void)err;
    event->handle = NULL;
    return 0;
}

static void cpu_event_deinit(struct device *device, struct device_event *event)
{
    (void)device;
    (void)event;
}

static int cpu_record(struct device *device, struct device_event *event, void *stream,
                      struct skrull_error *err)
{
    (void)device;
    (void)event;
    (void)stream;
    (void)err;
    return 0;
}

static int cpu_wait(struct device *device, void *stream, const struct device_event *event,
                    struct skrull_error *err)
{
    (void)device;
    (void)stream;
    (void)event;
    (void)err;
    return 0;
}

static int cpu_is_past(struct device *device, const struct device_event *event,
                       struct skrull_error *err)
{
    (void)device;
    (void)event;
    (void)err;
    return 1;
}

static int cpu_elapsed_ns(struct device *device, const struct device_event *from,
                          const struct device_event *to, int64_t *ret_ns, struct skrull_error *err)
{
    (void)device;
    (void)from;
    (void)to;
    (void)err;
    *ret_ns = 0;
    return 0;
}

static int cpu_enter(struct device *device, struct skrull_error *err)
{
    (void)device;
    (void)err;
    return 0;
}

static void cpu_close(struct device *device)
{
    free(device);
}

static const struct device_ops cpu_ops = {
    .name = "cpu",
    .alloc = cpu_alloc,
    .release = cpu_release,
    .alloc_staging = cpu_alloc,
    .release_staging = cpu_release,
    .zero = cpu_zero,
    .copy = cpu_copy,
    .stream_new = cpu_stream_new,
    .stream_free = cpu_stream_free,
    .event_init = cpu_event_init,
    .event_deinit = cpu_event_deinit,
    .record = cpu_record,
    .wait = cpu_wait,
    .is_past = cpu_is_past,
    .elapsed_ns = cpu_elapsed_ns,
    .enter = cpu_enter,
    .close = cpu_close,
};

int device_cpu_open(struct device **ret, struct skrull_error *err)
{
    struct device *device = calloc(1, sizeof(*device));

    if (!device) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a device");
    }
    *device = (struct device){.ops = &cpu_ops, .is_host = true};
    *ret = device;
    return 0;
}
