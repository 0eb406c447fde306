/* What a call is, for call.c and call_arrival.c alone. Loop thread only. */
#pragma once

#include <grpc/grpc.h>

#include "rpc/call.h"
#include "rpc/cq.h"
#include "rpc/intake.h"

struct call_host;
struct call_slot;

struct call {
    struct call_slot *slot;
    grpc_call *core;
    gpr_timespec deadline; /* gRPC itself cancels at it */
    grpc_metadata_array metadata;
    grpc_call_details details; /* of an unknown method */
    grpc_byte_buffer *payload;
    struct cq_tag on_request, on_payload, on_close, on_initial, on_send, on_receive, on_status;
    struct intake_item intake;
    int was_cancelled;
    size_t n_refs;
    bool is_closed, is_ended, is_sending, has_sent_initial;
    struct arena *arena;
    grpc_slice request;
    const struct call_events *events; /* NULL: not a stream */
    void *owner;
};

/* A zeroed call of a method: its tags but those of its arrival. */
void call_init(struct call *call, struct call_slot *slot);
void call_free(struct call *call);

/* Drops a reference: the handler's, or that of a batch that came back. */
void call_unref(struct call *call);

/* Starts a batch, which holds a reference until its tag comes back. */
void call_start_batch(struct call *call, const grpc_op *ops, size_t n_ops, struct cq_tag *tag);

/* Asks for a request: a call's, or the next of a stream. */
void call_start_receive(struct call *call, struct cq_tag *tag);

/* Makes the request of what was received, and an arena for it. */
int call_read_request(struct call *call, struct skrull_error *err);

/* Says so where the host drains and this was its last call. */
void call_host_check_idle(struct call_host *host);
