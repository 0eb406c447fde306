/* The CUDA runtime's functions that skrull calls, over the fake's streams. */
#include <stdlib.h>
#include <string.h>

#include "world.h"

cudaError_t cudaGetDeviceCount(int *count)
{
    if (world_n_devices() == 0) {
        return cudaErrorInsufficientDriver; /* count stays as it was: as it does */
    }
    *count = (int)world_n_devices();
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (world_n_devices() == 0) {
        return cudaErrorInsufficientDriver;
    }
    if (device < 0 || (uint32_t)device >= world_n_devices()) {
        return cudaErrorInvalidDevice;
    }
    world_set_device((uint32_t)device);
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = (int)world_device();
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return "no error";
    case cudaErrorInsufficientDriver:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorInvalidDevice:
        return "invalid device ordinal";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorNotReady:
        return "device not ready";
    case cudaErrorInvalidValue:
    case cudaErrorLaunchFailure:
        break;
    }
    return "an error of the fake";
}

static cudaError_t allocate(void **memory, size_t size, bool is_host)
{
    void *new;

    if (world_n_devices() == 0) {
        return cudaErrorInsufficientDriver;
    }
    world_lock();
    new = memory_new(world_device(), size, is_host);
    world_unlock();
    if (!new) {
        return cudaErrorMemoryAllocation;
    }
    *memory = new;
    return cudaSuccess;
}

/* Waits for the device, as the real ones do. */
static cudaError_t release(void *memory, bool is_host)
{
    uint32_t device = world_device();
    bool is_known;

    if (!memory) {
        return cudaSuccess;
    }
    world_lock();
    (void)world_wait(world_is_drained, &device);
    is_known = memory_free(memory, is_host);
    if (!is_known) {
        world_report("%p is freed and was not allocated", memory);
    }
    world_unlock();
    return is_known ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaMalloc(void **memory, size_t size)
{
    return allocate(memory, size, false);
}

cudaError_t cudaFree(void *memory)
{
    return release(memory, false);
}

cudaError_t cudaMallocHost(void **memory, size_t size)
{
    return allocate(memory, size, true);
}

cudaError_t cudaFreeHost(void *memory)
{
    return release(memory, true);
}

struct copy {
    void *to;
    const void *from; /* NULL: `value` */
    int value;
    size_t count;
};

static void run_copy(const void *params)
{
    const struct copy *copy = params;

    if (copy->from) {
        memmove(copy->to, copy->from, copy->count);
    } else {
        memset(copy->to, copy->value, copy->count);
    }
}

/* Memory that a copy may touch without the host's help. */
static bool is_reachable(const char *what, const void *at, size_t count)
{
    bool is_host, is_known = memory_holds(at, count, &is_host);

    if (!is_known) {
        world_report("%s: %p and %zu bytes are neither a device's nor page-locked", what, at,
                     count);
    }
    return is_known;
}

static cudaError_t put_copy(const char *name, const struct copy *copy, cudaStream_t stream)
{
    bool is_sound;

    world_lock();
    is_sound = is_reachable(name, copy->to, copy->count) &&
               (!copy->from || is_reachable(name, copy->from, copy->count));
    world_unlock();
    if (!is_sound) {
        return cudaErrorInvalidValue;
    }
    fake_stream_call(stream, name, run_copy, copy, sizeof(*copy));
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t count, cudaStream_t stream)
{
    const struct copy copy = {.to = memory, .value = value, .count = count};

    return put_copy("cudaMemsetAsync", &copy, stream);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t count, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    const struct copy copy = {.to = to, .from = from, .count = count};

    (void)kind;
    return put_copy("cudaMemcpyAsync", &copy, stream);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    (void)flags;
    world_lock();
    *stream = world_new_stream();
    world_count(1);
    world_unlock();
    return cudaSuccess;
}

static bool is_empty(const void *stream)
{
    return ((const struct CUstream_st *)stream)->first == NULL;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    world_lock();
    (void)world_wait(is_empty, stream);
    world_count(-1); /* it is freed at the end */
    world_unlock();
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    bool has_come;

    world_lock();
    has_come = world_wait(is_empty, world_stream_of(stream));
    world_unlock();
    return has_come ? cudaSuccess : cudaErrorLaunchFailure;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    struct CUevent_st *new = calloc(1, sizeof(*new));

    if (!new) {
        return cudaErrorMemoryAllocation;
    }
    new->is_timed = !(flags & cudaEventDisableTiming);
    *event = new;
    world_lock();
    world_count(1);
    world_unlock();
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    world_lock();
    record_unref(event->record);
    world_count(-1);
    world_unlock();
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    struct record *record = calloc(1, sizeof(*record));
    struct work *work;

    if (!record) {
        return cudaErrorMemoryAllocation;
    }
    world_lock();
    record_unref(event->record);
    event->record = record;
    work = world_work(WORK_RECORD, "cudaEventRecord");
    work->record = record;
    record->n_refs = 2;
    world_put(world_stream_of(stream), work);
    world_unlock();
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    (void)flags;
    world_lock();
    if (event->record) {
        struct work *work = world_work(WORK_WAIT, "cudaStreamWaitEvent");

        work->record = event->record;
        work->record->n_refs++;
        world_put(world_stream_of(stream), work);
    }
    world_unlock();
    return cudaSuccess;
}

static bool is_past(const void *record)
{
    return ((const struct record *)record)->is_past;
}

/* Who asks wants to wait: streams run meanwhile. */
cudaError_t cudaEventQuery(cudaEvent_t event)
{
    bool has_come = true;

    world_lock();
    if (event->record) {
        has_come = world_wait(is_past, event->record);
    }
    world_unlock();
    return has_come ? cudaSuccess : cudaErrorNotReady;
}

/* A unit of work takes a microsecond. */
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    if (!start->is_timed || !end->is_timed || !start->record || !end->record) {
        return cudaErrorInvalidValue;
    }
    if (!start->record->is_past || !end->record->is_past) {
        return cudaErrorNotReady;
    }
    *ms = ((float)end->record->at - (float)start->record->at) * 1e-3F;
    return cudaSuccess;
}
