/*
 * A GPU by the CUDA runtime. Every call only enqueues; what goes wrong in enqueued work is told by
 * a later call, at the latest by is_past. Streams do not wait for the default stream. The driver
 * (libcuda) is never linked, so that programs start without one and can say that it is missing.
 */
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "device.h"

/* 0, or the failure of `call`. */
static int check(cudaError_t code, const char *call, struct skrull_error *err)
{
    if (code == cudaSuccess) {
        return 0;
    }
    (void)cudaGetLastError(); /* told once, here */
    return skrull_error_set(err,
                            code == cudaErrorMemoryAllocation ? SKRULL_ERR_RESOURCE_EXHAUSTED
                                                              : SKRULL_ERR_INTERNAL,
                            "%s: %s", call, cudaGetErrorString(code));
}

static int cuda_alloc(struct device *device, size_t bytes, void **ret, struct skrull_error *err)
{
    (void)device;
    return check(cudaMalloc(ret, bytes ? bytes : 1), "cudaMalloc", err);
}

static void cuda_release(struct device *device, void *memory)
{
    (void)device;
    (void)cudaFree(memory);
}

static int cuda_alloc_staging(struct device *device, size_t bytes, void **ret,
                              struct skrull_error *err)
{
    (void)device;
    return check(cudaMallocHost(ret, bytes ? bytes : 1), "cudaMallocHost", err);
}

static void cuda_release_staging(struct device *device, void *memory)
{
    (void)device;
    if (memory) {
        (void)cudaFreeHost(memory);
    }
}

static int cuda_zero(struct device *device, void *stream, void *to, size_t bytes,
                     struct skrull_error *err)
{
    (void)device;
    return bytes ? check(cudaMemsetAsync(to, 0, bytes, stream), "cudaMemsetAsync", err) : 0;
}

static int cuda_copy(struct device *device, void *stream, void *to, const void *from, size_t bytes,
                     struct skrull_error *err)
{
    (void)device;
    return bytes ? check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream),
                         "cudaMemcpyAsync", err)
                 : 0;
}

static int cuda_stream_new(struct device *device, void **ret, struct skrull_error *err)
{
    cudaStream_t stream;
    int rc = check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                   "cudaStreamCreateWithFlags", err);

    (void)device;
    if (rc == 0) {
        *ret = stream;
    }
    return rc;
}

static void cuda_stream_free(struct device *device, void *stream)
{
    (void)device;
    if (stream) {
        (void)cudaStreamDestroy(stream);
    }
}

static int cuda_event_init(struct device *device, struct device_event *event, bool is_timed,
                           struct skrull_error *err)
{
    cudaEvent_t handle;
    unsigned int flags = is_timed ? cudaEventDefault : cudaEventDisableTiming;
    int rc = check(cudaEventCreateWithFlags(&handle, flags), "cudaEventCreateWithFlags", err);

    (void)device;
    if (rc == 0) {
        event->handle = handle;
    }
    return rc;
}

static void cuda_event_deinit(struct device *device, struct device_event *event)
{
    (void)device;
    if (event->handle) {
        (void)cudaEventDestroy(event->handle);
        event->handle = NULL;
    }
}

static int cuda_record(struct device *device, struct device_event *event, void *stream,
                       struct skrull_error *err)
{
    (void)device;
    return check(cudaEventRecord(event->handle, stream), "cudaEventRecord", err);
}

static int cuda_wait(struct device *device, void *stream, const struct device_event *event,
                     struct skrull_error *err)
{
    (void)device;
    return check(cudaStreamWaitEvent(stream, event->handle, 0), "cudaStreamWaitEvent", err);
}

static int cuda_is_past(struct device *device, const struct device_event *event,
                        struct skrull_error *err)
{
    cudaError_t code = cudaEventQuery(event->handle);

    (void)device;
    if (code == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return 0;
    }
    return code == cudaSuccess ? 1 : check(code, "work on the GPU", err);
}

static int cuda_elapsed_ns(struct device *device, const struct device_event *from,
                           const struct device_event *to, int64_t *ret_ns, struct skrull_error *err)
{
    float ms = 0.0F;
    int rc =
        check(cudaEventElapsedTime(&ms, from->handle, to->handle), "cudaEventElapsedTime", err);

    (void)device;
    if (rc == 0) {
        *ret_ns = (int64_t)((double)ms * 1e6);
    }
    return rc;
}

static int cuda_enter(struct device *device, struct skrull_error *err)
{
    return check(cudaSetDevice(device->idx), "cudaSetDevice", err);
}

static void cuda_close(struct device *device)
{
    free(device);
}

static const struct device_ops cuda_ops = {
    .name = "cuda",
    .alloc = cuda_alloc,
    .release = cuda_release,
    .alloc_staging = cuda_alloc_staging,
    .release_staging = cuda_release_staging,
    .zero = cuda_zero,
    .copy = cuda_copy,
    .stream_new = cuda_stream_new,
    .stream_free = cuda_stream_free,
    .event_init = cuda_event_init,
    .event_deinit = cuda_event_deinit,
    .record = cuda_record,
    .wait = cuda_wait,
    .is_past = cuda_is_past,
    .elapsed_ns = cuda_elapsed_ns,
    .enter = cuda_enter,
    .close = cuda_close,
};

/* Is there such a GPU? The count is not written where there is no driver. */
static int find(int idx, struct skrull_error *err)
{
    int n = 0;
    cudaError_t code = cudaGetDeviceCount(&n);

    if (code != cudaSuccess) {
        (void)cudaGetLastError();
        return skrull_error_set(err, SKRULL_ERR_UNAVAILABLE, "no GPU here: %s",
                                cudaGetErrorString(code));
    }
    if (idx >= n) {
        return skrull_error_set(err, SKRULL_ERR_UNAVAILABLE,
                                "no GPU %d here: there are %d; start one process a GPU", idx, n);
    }
    return 0;
}

int device_cuda_open(int idx, struct device **ret, struct skrull_error *err)
{
    struct device *device;
    int rc = find(idx, err);

    if (rc < 0) {
        return rc;
    }
    device = calloc(1, sizeof(*device));
    if (!device) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a device");
    }
    *device = (struct device){.ops = &cuda_ops, .idx = idx};
    rc = cuda_enter(device, err);
    if (rc < 0) {
        free(device);
        return rc;
    }
    *ret = device;
    return 0;
}
