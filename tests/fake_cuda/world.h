/* Inside the fake: streams, what is on them, and who waits. All under one lock (world_lock). */
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "fake.h"

#define FAKE_MAX_DEVICES 16

/* A point that was recorded; shared by its event, its place in a stream and those who wait. */
struct record {
    uint32_t n_refs;
    bool is_past;
    uint64_t at; /* in work run before */
};

enum work_kind { WORK_CALL, WORK_RECORD, WORK_WAIT, WORK_NCCL };

struct work {
    struct work *next;
    enum work_kind kind;
    const char *name;
    void (*call)(const void *params); /* CALL */
    void *params;                     /* owned */
    struct record *record;            /* RECORD, WAIT */
    struct nccl_item *item;           /* NCCL; owned */
};

struct CUstream_st {
    struct CUstream_st *next; /* of the world, oldest first */
    uint32_t device, number;
    uint64_t priority;
    struct work *first, *last;
};

struct CUevent_st {
    struct record *record; /* the last; NULL: none */
    bool is_timed;
};

/* The lock. */
void world_lock(void);
void world_unlock(void);

/* Under the lock from here on. */
void world_report(const char *format, ...) __attribute__((format(printf, 1, 2)));
struct CUstream_st *world_stream_of(void *handle); /* of NULL: the device's default stream */
struct CUstream_st *world_new_stream(void);
void world_put(struct CUstream_st *stream, struct work *work);
struct work *world_work(enum work_kind kind, const char *name);
void record_unref(struct record *record);

/* Waits until is_done(arg) holds, while streams run. False: nothing can bring it about. */
bool world_wait(bool (*is_done)(const void *arg), const void *arg);
bool world_is_drained(const void *device); /* uint32_t: its streams are empty */

uint32_t world_device(void); /* of the calling thread */
uint32_t world_n_devices(void);
void world_set_device(uint32_t device);
/* For counting what is left over. */
void world_count(int change);

/* Memory (memory.c). */
void *memory_new(uint32_t device, size_t bytes, bool is_host);
bool memory_free(void *at, bool is_host);
void memory_open(bool is_open); /* to the host, hence to calls */
/* Where [at, at + bytes) lies; is_host: page-locked. NULL device: any. */
bool memory_holds(const void *at, size_t bytes, bool *ret_is_host);
uint32_t memory_free_all(void);

/* NCCL's part (nccl_fake.c): what an item at the head of its stream can do. */
void nccl_start(struct nccl_item *item);
bool nccl_is_started(const struct nccl_item *item);
uint32_t nccl_n_ready(const struct nccl_item *item); /* transfers that can happen now */
void nccl_transfer(struct nccl_item *item, uint32_t i);
bool nccl_is_done(const struct nccl_item *item);
void nccl_item_free(struct nccl_item *item);
void nccl_describe(const struct nccl_item *item, char *text, size_t size);
uint32_t nccl_free_all(void);
