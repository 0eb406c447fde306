/*
 * Many StreamPlans calls on one thread, as cheap as gRPC allows: what arrives is counted, and
 * looked at only where a hook asks. The calls and their channels are libskrull's own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "call.h"

struct load;
struct load_stream;

/* An operation under way; its address is gRPC's tag. */
struct load_tag {
    void (*fn)(struct load_tag *tag, bool ok);
    void *owner;
};

struct load_stream {
    struct load *load;
    grpc_channel *channel; /* owned */
    struct call call;
    uint32_t data_rank;
    uint64_t n_received;
    unsigned int n_pending; /* tags that are to come */
    struct load_tag sent, opened, closed, received;
};

struct load {
    const char *target, *job;
    grpc_completion_queue *cq;
    struct load_stream *streams; /* [n_streams] */
    size_t n_streams;
    size_t n_open;                /* streams with tags to come */
    uint64_t n_received, n_bytes; /* over all streams */
    bool is_closing;              /* statuses are expected */
    void (*message)(struct load_stream *stream, const grpc_byte_buffer *message); /* NULL: none */
    void *arg;
};

/* `n_streams` channels, not yet connected. Programs end here on failure. */
void load_init(struct load *load, const char *target, const char *job, size_t n_streams);
void load_deinit(struct load *load);

/* Gives a stream a new channel: the next call on it connects anew. */
void load_renew_channel(struct load_stream *stream);

/* Opens stream i for `data_rank`. */
void load_open(struct load *load, size_t i, uint32_t data_rank, uint64_t from_step,
               uint32_t window);

/* Cancels what is open and waits for it. */
void load_close(struct load *load);

/* Handles events until `is_over`, which is asked after each; or until_ms (figure_now_ms). The
 * latter is an error where `is_over` is given, and nothing has come. */
void load_run(struct load *load, bool (*is_over)(struct load *load), double until_ms);

_Noreturn void load_fail(const char *what, const char *why);
