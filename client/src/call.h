/*
 * One gRPC call, unary or server-streaming, and its batches. Batches of one call must be started
 * one after the other (the owner's lock); cancelling is safe from any thread. gRPC's own names stay
 * in channel, call and stream_reader.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <grpc/grpc.h>

#include <skrull/error.h>

#include "codec_rpc.h"

struct call {
    grpc_call *handle; /* NULL: none */
    grpc_metadata_array initial, trailing;
    grpc_byte_buffer *message; /* received, NULL: none */
    grpc_status_code status;
    grpc_slice details;
};

/* Tags of a stream's opening batches, which complete in any order. */
struct call_tags {
    void *sent, *opened, *closed;
};

/* Creates the call. Before the last of its tags has come back it must not be deinited. */
void call_init(struct call *call, grpc_channel *channel, grpc_completion_queue *cq,
               const char *method, gpr_timespec deadline);
void call_deinit(struct call *call);

/* Starts a whole unary call under one tag. INTERNAL: gRPC refuses the batch; no tag is then to
 * come. */
int call_start_unary(struct call *call, struct rpc_bytes request, void *tag,
                     struct skrull_error *err);

/* Opens a server stream: three tags are to come. On INTERNAL some may be: *ret_n_started says how
 * many. */
int call_start_stream(struct call *call, struct rpc_bytes request, const struct call_tags *tags,
                      int *ret_n_started, struct skrull_error *err);

/* Asks for the next message of a stream: `message` is set when the tag comes back, NULL at the end.
 */
int call_start_receive(struct call *call, void *tag, struct skrull_error *err);

/* Hands out the message that was received: malloc'd bytes; *ret_bytes NULL where there was none.
 * RESOURCE_EXHAUSTED: out of memory; DATA_LOSS: it cannot be read. */
int call_take_message(struct call *call, uint8_t **ret_bytes, size_t *ret_len,
                      struct skrull_error *err);

/* The status of a finished call: 0, or its code with the daemon's words. `server` is named where it
 * was not reached. */
int call_result(const struct call *call, const char *server, struct skrull_error *err);

/* `ns` from now, on gRPC's monotonic clock; negative: never. */
gpr_timespec call_deadline(int64_t ns);
