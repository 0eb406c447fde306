/*
 * The call state machine over gRPC's batches; how a call comes to its handler is call_arrival.c's.
 *
 * Happy path: armed -> (a call arrives) -> a batch that only waits for the close, in a tag of its
 * own -> its turn (intake.h), a batch for its request -> the handler -> messages, one in flight ->
 * status -> closed -> freed. Failures: armed and the server shuts down: freed. Client gone: its
 * tags come back failed, then the close; a stream's owner hears `closed` and ends the call. A
 * request that does not come in time: refused. Undecodable or no request: the handler fails the
 * call.
 *
 * gRPC's call may be released only once every tag has come back and the close was seen, so each
 * batch under way holds a reference, and so does the handler until it ended the call.
 */
#include "rpc/call.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>

#include "arena.h"
#include "base/log.h"
#include "cleanup.h"
#include "job/shared_bytes.h"
#include "rpc/call_host.h"
#include "rpc/call_state.h"
#include "rpc/cq.h"
#include "rpc/method.h"
#include "rpc/server.h"
#include "rpc/status.h"
#include "tag_order.h"

#define DECODE_BUDGET_FACTOR 8 /* bytes of memory for a byte of the wire: real ones take 1 to 4 */

void call_free(struct call *call)
{
    grpc_metadata_array_destroy(&call->metadata);
    grpc_call_details_destroy(&call->details);
    if (call->payload) {
        grpc_byte_buffer_destroy(call->payload);
    }
    grpc_slice_unref(call->request);
    arena_free(call->arena);
    if (call->core) {
        grpc_call_unref(call->core);
    }
    free(call);
}

void call_host_check_idle(struct call_host *host)
{
    if (host->is_draining && host->n_calls == 0 && host->n_armed == 0) {
        host->idle(host);
    }
}

void call_unref(struct call *call)
{
    struct call_slot *slot = call->slot;

    call->n_refs--;
    if (call->n_refs > 0) {
        return;
    }
    assert(call->is_closed && call->is_ended);
    call_free(call);
    slot->host->n_calls--;
    (void)call_slot_fill(slot); /* arms what memory did not suffice for before */
    call_host_check_idle(slot->host);
}

void call_start_batch(struct call *call, const grpc_op *ops, size_t n_ops, struct cq_tag *tag)
{
    grpc_call_error error;

    call->n_refs++;
    tag_hand_over(tag);
    error = grpc_call_start_batch(call->core, ops, n_ops, tag, NULL);
    assert(error == GRPC_CALL_OK);
    (void)error;
}

void call_cut(struct call *call)
{
    (void)grpc_call_cancel_with_status(call->core, GRPC_STATUS_UNAVAILABLE,
                                       "the daemon is stopping, and nobody reads", NULL);
}

static size_t add_initial(struct call *call, grpc_op *ops)
{
    if (call->has_sent_initial) {
        return 0;
    }
    call->has_sent_initial = true;
    ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
    return 1;
}

/* How a call ends. */
struct ending {
    grpc_byte_buffer *message; /* NULL: none */
    grpc_status_code status;
    grpc_slice *details; /* NULL: none */
    grpc_metadata *metadata;
    size_t n_metadata;
};

/* The last batch of a call: an optional message, and the status. Drops the handler's reference. */
static void finish(struct call *call, const struct ending *ending)
{
    grpc_op ops[3];
    size_t n = 0;

    assert(!call->is_ended);
    call->is_ended = true;
    if (!call->is_closed) {
        memset(ops, 0, sizeof(ops));
        n = add_initial(call, ops);
        if (ending->message) {
            ops[n].op = GRPC_OP_SEND_MESSAGE;
            ops[n].data.send_message.send_message = ending->message;
            n++;
        }
        ops[n].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
        ops[n].data.send_status_from_server.status = ending->status;
        ops[n].data.send_status_from_server.status_details = ending->details;
        ops[n].data.send_status_from_server.trailing_metadata = ending->metadata;
        ops[n].data.send_status_from_server.trailing_metadata_count = ending->n_metadata;
        call_start_batch(call, ops, n + 1, &call->on_status);
    }
    call_unref(call);
}

static grpc_byte_buffer *copy_bytes(struct rpc_bytes bytes)
{
    grpc_slice slice = grpc_slice_from_copied_buffer((const char *)bytes.data, bytes.len);
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);

    grpc_slice_unref(slice);
    return buffer;
}

void call_reply(struct call *call, struct rpc_bytes reply)
{
    struct ending ending = {.message = copy_bytes(reply), .status = GRPC_STATUS_OK};

    finish(call, &ending);
    grpc_byte_buffer_destroy(ending.message);
}

/* Clients hear of their faults themselves; the log is for those that are the daemon's. */
static void log_failed(const struct call *call, const struct skrull_error *err)
{
    const struct method *method = call->slot->method;
    grpc_status_code status = status_code(err);
    bool is_ours = status == GRPC_STATUS_INTERNAL || status == GRPC_STATUS_DATA_LOSS ||
                   status == GRPC_STATUS_UNKNOWN;

    log_event(is_ours ? LOG_LEVEL_ERROR : LOG_LEVEL_DEBUG, "call_failed",
              LOG_TEXT("method", method ? method->name : "unknown"),
              LOG_TEXT("status", skrull_error_text(err->code)), LOG_TEXT("why", err->message));
}

void call_fail(struct call *call, const struct skrull_error *err)
{
    const struct method *method = call->slot->method;
    grpc_slice details = status_details(err);
    grpc_metadata metadata;
    struct ending ending = {.status = status_code(err), .details = &details, .metadata = &metadata};

    log_failed(call, err);
    ending.n_metadata = status_metadata(err, method ? method->name : NULL, &metadata);
    finish(call, &ending);
    grpc_slice_unref(details);
    if (ending.n_metadata > 0) {
        grpc_slice_unref(metadata.value);
    }
}

void call_end(struct call *call, struct rpc_bytes last)
{
    struct ending ending = {.status = GRPC_STATUS_OK};

    if (last.len > 0) {
        assert(!call->is_sending || call->is_closed);
        ending.message = copy_bytes(last);
    }
    finish(call, &ending);
    if (ending.message) {
        grpc_byte_buffer_destroy(ending.message);
    }
}

void call_stream(struct call *call, const struct call_events *events, void *owner)
{
    grpc_op ops[1];

    assert(!call->events && !call->is_ended);
    call->events = events;
    call->owner = owner;
    if (call->is_closed) {
        return;
    }
    memset(ops, 0, sizeof(ops));
    call_start_batch(call, ops, add_initial(call, ops), &call->on_initial);
}

static void release_bytes(void *arg)
{
    shared_bytes_unref((struct shared_bytes *)arg);
}

void call_send(struct call *call, struct shared_bytes *message, bool more)
{
    grpc_slice slice;
    grpc_byte_buffer *buffer;
    grpc_op op;

    assert(call->events && !call->is_ended && !call->is_sending);
    if (call->is_closed) {
        return;
    }
    slice = grpc_slice_new_with_user_data(message->data, message->len, release_bytes,
                                          shared_bytes_ref(message));
    buffer = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    memset(&op, 0, sizeof(op));
    op.op = GRPC_OP_SEND_MESSAGE;
    op.flags = more ? GRPC_WRITE_BUFFER_HINT : 0;
    op.data.send_message.send_message = buffer;
    call->is_sending = true;
    call_start_batch(call, &op, 1, &call->on_send);
    grpc_byte_buffer_destroy(buffer);
}

static void on_send(struct cq_tag *tag, bool ok)
{
    struct call *call = CQ_OWNER(tag, struct call, on_send);

    call->is_sending = false;
    /* A failed send is the first sign of a client that has gone: its close follows. */
    if (ok && !call->is_ended && !call->is_closed) {
        call->events->sent(call->owner);
    }
    call_unref(call);
}

void call_start_receive(struct call *call, struct cq_tag *tag)
{
    grpc_op op;

    memset(&op, 0, sizeof(op));
    op.op = GRPC_OP_RECV_MESSAGE;
    op.data.recv_message.recv_message = &call->payload;
    call_start_batch(call, &op, 1, tag);
}

void call_receive(struct call *call)
{
    assert(call->events && !call->is_ended && !call->payload);
    if (!call->is_closed) {
        call_start_receive(call, &call->on_receive);
    }
}

static void on_receive(struct cq_tag *tag, bool ok)
{
    struct call *call = CQ_OWNER(tag, struct call, on_receive);
    struct skrull_error err = {0};
    int result = CALL_NO_MORE;

    if (ok && !call->is_ended && !call->is_closed) {
        if (call->payload) {
            call_forget_request(call);
            result = call_read_request(call, &err);
        }
        call->events->received(call->owner, result, &err);
    }
    call_unref(call);
}

static void on_initial(struct cq_tag *tag, bool ok)
{
    (void)ok;
    call_unref(CQ_OWNER(tag, struct call, on_initial));
}

static void on_status(struct cq_tag *tag, bool ok)
{
    (void)ok;
    call_unref(CQ_OWNER(tag, struct call, on_status));
}

static void on_close(struct cq_tag *tag, bool ok)
{
    struct call *call = CQ_OWNER(tag, struct call, on_close);

    (void)ok; /* always true; was_cancelled tells */
    call->is_closed = true;
    if (call->intake.state == INTAKE_IS_WAITING) {
        intake_leave(&call->slot->host->intake, &call->intake);
        call_end(call, (struct rpc_bytes){0});
    }
    if (call->events && !call->is_ended) {
        call->events->closed(call->owner);
    }
    call_unref(call);
}

struct rpc_bytes call_request(const struct call *call)
{
    return (struct rpc_bytes){GRPC_SLICE_START_PTR(call->request),
                              GRPC_SLICE_LENGTH(call->request)};
}

struct arena *call_arena(const struct call *call)
{
    return call->arena;
}

bool call_is_over(const struct call *call)
{
    return call->is_closed;
}

void call_forget_request(struct call *call)
{
    grpc_slice_unref(call->request);
    call->request = grpc_empty_slice();
    arena_free(call->arena);
    call->arena = NULL;
    grpc_metadata_array_destroy(&call->metadata);
    grpc_metadata_array_init(&call->metadata);
}

int call_read_request(struct call *call, struct skrull_error *err)
{
    grpc_byte_buffer_reader reader;

    size_t max_bytes = call->slot->method->max_request_bytes;

    call->arena = arena_new(DECODE_BUDGET_FACTOR * max_bytes);
    if (!call->arena) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    if (!call->payload || !grpc_byte_buffer_reader_init(&reader, call->payload)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "the request has no message");
    }
    call->request = grpc_byte_buffer_reader_readall(&reader);
    grpc_byte_buffer_reader_destroy(&reader);
    grpc_byte_buffer_destroy(call->payload);
    call->payload = NULL;
    if (GRPC_SLICE_LENGTH(call->request) > max_bytes) {
        return skrull_error_because(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                    SKRULL_REASON_REQUEST_TOO_LARGE, max_bytes,
                                    "the request has more than %zu bytes", max_bytes);
    }
    return 0;
}

void call_init(struct call *call, struct call_slot *slot)
{
    call->slot = slot;
    call->request = grpc_empty_slice();
    call->on_close.fn = on_close;
    call->on_initial.fn = on_initial;
    call->on_send.fn = on_send;
    call->on_receive.fn = on_receive;
    call->on_status.fn = on_status;
    grpc_metadata_array_init(&call->metadata);
    grpc_call_details_init(&call->details);
}
