/*
 * Memory, streams and events of one device, behind one table. "cpu" does everything at once and has
 * no streams; "cuda" only enqueues. Only execution (exec*.c) and training call it; operators and
 * exchanges take its streams. One thread a device at a time.
 *
 * Nothing here waits for the device but `alloc`, `release` and those that are said to.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>

struct device;

/* A point of a stream. Recorded anew, it stands for the later point; who waits means the record
 * before his call. */
struct device_event {
    const char *name; /* static; of messages and tests */
    void *handle;     /* the backend's; NULL on "cpu" */
};

struct device_ops {
    const char *name;

    /* Memory of the device, undefined, 256-byte aligned; NULL is released as nothing. */
    int (*alloc)(struct device *device, size_t bytes, void **ret, struct skrull_error *err);
    void (*release)(struct device *device, void *memory);
    /* Memory of the host that the device can copy to and from without help. */
    int (*alloc_staging)(struct device *device, size_t bytes, void **ret, struct skrull_error *err);
    void (*release_staging)(struct device *device, void *memory);

    /* On a stream. copy: any of both memories, host memory from alloc_staging only. */
    int (*zero)(struct device *device, void *stream, void *to, size_t bytes,
                struct skrull_error *err);
    int (*copy)(struct device *device, void *stream, void *to, const void *from, size_t bytes,
                struct skrull_error *err);

    int (*stream_new)(struct device *device, void **ret, struct skrull_error *err);
    void (*stream_free)(struct device *device, void *stream);
    /* is_timed: elapsed_ns may be asked. */
    int (*event_init)(struct device *device, struct device_event *event, bool is_timed,
                      struct skrull_error *err);
    void (*event_deinit)(struct device *device, struct device_event *event);
    int (*record)(struct device *device, struct device_event *event, void *stream,
                  struct skrull_error *err);
    /* What is enqueued on `stream` from now on begins after `event`. */
    int (*wait)(struct device *device, void *stream, const struct device_event *event,
                struct skrull_error *err);
    /* 1: the event has come, or was never recorded; 0: not yet. Also tells of failures of work. */
    int (*is_past)(struct device *device, const struct device_event *event,
                   struct skrull_error *err);
    /* Between two events that have come. */
    int (*elapsed_ns)(struct device *device, const struct device_event *from,
                      const struct device_event *to, int64_t *ret_ns, struct skrull_error *err);

    /* The calling thread works with this device from now on; needed once a thread. */
    int (*enter)(struct device *device, struct skrull_error *err);
    void (*close)(struct device *device);
};

/* The first member of each backend's struct. */
struct device {
    const struct device_ops *ops;
    int idx;      /* of several */
    bool is_host; /* its memory is the host's, and work is done when a call returns */
};

/* Device `idx` of `backend` (skrull_exec_options); -1: the one that the launcher's environment
 * gives this process, else 0. UNIMPLEMENTED: not built. UNAVAILABLE: there is no such device, or no
 * driver. */
int device_open(const char *backend, int idx, struct device **ret, struct skrull_error *err);
void device_close(struct device *device);

/* The backends. */
int device_cpu_open(struct device **ret, struct skrull_error *err);
int device_cuda_open(int idx, struct device **ret, struct skrull_error *err);

/* Which of its node's devices the launcher gives this process: LOCAL_RANK,
 * OMPI_COMM_WORLD_LOCAL_RANK or SLURM_LOCALID; 0 without any. */
int device_of_launcher(void);
