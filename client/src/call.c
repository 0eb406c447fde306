/*
 * Batches of the gRPC C core. Every call asks for the initial metadata: without that its status
 * never arrives and it dies at its deadline. Threading: see call.h.
 */
#include "call.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/slice.h>
#include <grpc/support/time.h>

#include "arena.h"
#include "codec_status.h"
#include "tag_order.h"

#define MAX_DETAILS 400 /* bytes of a daemon's message that are kept */
#define STATUS_BUDGET ((size_t)64 << 10)

gpr_timespec call_deadline(int64_t ns)
{
    if (ns < 0) {
        return gpr_inf_future(GPR_CLOCK_MONOTONIC);
    }
    return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(ns, GPR_TIMESPAN));
}

void call_init(struct call *call, grpc_channel *channel, grpc_completion_queue *cq,
               const char *method, gpr_timespec deadline)
{
    memset(call, 0, sizeof(*call));
    grpc_metadata_array_init(&call->initial);
    grpc_metadata_array_init(&call->trailing);
    call->details = grpc_empty_slice();
    call->handle =
        grpc_channel_create_call(channel, NULL, GRPC_PROPAGATE_DEFAULTS, cq,
                                 grpc_slice_from_static_string(method), NULL, deadline, NULL);
}

void call_deinit(struct call *call)
{
    if (!call->handle) {
        return;
    }
    if (call->message) {
        grpc_byte_buffer_destroy(call->message);
    }
    grpc_metadata_array_destroy(&call->initial);
    grpc_metadata_array_destroy(&call->trailing);
    grpc_slice_unref(call->details);
    grpc_call_unref(call->handle);
    memset(call, 0, sizeof(*call));
}

static int start(struct call *call, const grpc_op *ops, size_t n_ops, void *tag,
                 struct skrull_error *err)
{
    grpc_call_error code;

    tag_hand_over(tag);
    code = grpc_call_start_batch(call->handle, ops, n_ops, tag, NULL);
    if (code != GRPC_CALL_OK) {
        return skrull_error_set(err, SKRULL_ERR_INTERNAL, "gRPC refuses a batch: %s",
                                grpc_call_error_to_string(code));
    }
    return 0;
}

static grpc_byte_buffer *message_new(struct rpc_bytes request)
{
    grpc_slice slice = grpc_slice_from_copied_buffer((const char *)request.data, request.len);
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);

    grpc_slice_unref(slice);
    return buffer;
}

/* The three operations that send a request. */
static void send_ops(grpc_op ops[3], grpc_byte_buffer *message)
{
    memset(ops, 0, 3 * sizeof(ops[0]));
    ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
    ops[1].op = GRPC_OP_SEND_MESSAGE;
    ops[1].data.send_message.send_message = message;
    ops[2].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
}

static grpc_op opened_op(struct call *call)
{
    grpc_op op = {.op = GRPC_OP_RECV_INITIAL_METADATA};

    op.data.recv_initial_metadata.recv_initial_metadata = &call->initial;
    return op;
}

static grpc_op message_op(struct call *call)
{
    grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};

    op.data.recv_message.recv_message = &call->message;
    return op;
}

static grpc_op status_op(struct call *call)
{
    grpc_op op = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT};

    op.data.recv_status_on_client.trailing_metadata = &call->trailing;
    op.data.recv_status_on_client.status = &call->status;
    op.data.recv_status_on_client.status_details = &call->details;
    return op;
}

int call_start_unary(struct call *call, struct rpc_bytes request, void *tag,
                     struct skrull_error *err)
{
    grpc_byte_buffer *message = message_new(request);
    grpc_op ops[6];
    int r;

    send_ops(ops, message);
    ops[3] = opened_op(call);
    ops[4] = message_op(call);
    ops[5] = status_op(call);
    r = start(call, ops, 6, tag, err);
    grpc_byte_buffer_destroy(message);
    return r;
}

int call_start_stream(struct call *call, struct rpc_bytes request, const struct call_tags *tags,
                      int *ret_n_started, struct skrull_error *err)
{
    grpc_byte_buffer *message = message_new(request);
    const grpc_op opened = opened_op(call), closed = status_op(call);
    grpc_op ops[3];
    int r;

    *ret_n_started = 0;
    send_ops(ops, message);
    r = start(call, ops, 3, tags->sent, err);
    grpc_byte_buffer_destroy(message);
    if (r < 0) {
        return r;
    }
    *ret_n_started = 1;
    r = start(call, &opened, 1, tags->opened, err);
    if (r < 0) {
        return r;
    }
    *ret_n_started = 2;
    r = start(call, &closed, 1, tags->closed, err);
    if (r < 0) {
        return r;
    }
    *ret_n_started = 3;
    return 0;
}

int call_start_receive(struct call *call, void *tag, struct skrull_error *err)
{
    const grpc_op op = message_op(call);

    return start(call, &op, 1, tag, err);
}

int call_take_message(struct call *call, uint8_t **ret_bytes, size_t *ret_len,
                      struct skrull_error *err)
{
    grpc_byte_buffer *buffer = call->message;
    grpc_byte_buffer_reader reader;
    uint8_t *bytes;
    size_t len;
    grpc_slice all;

    if (!buffer) {
        *ret_bytes = NULL;
        *ret_len = 0;
        return 0;
    }
    call->message = NULL;
    if (!grpc_byte_buffer_reader_init(&reader, buffer)) {
        grpc_byte_buffer_destroy(buffer);
        return skrull_error_set(err, SKRULL_ERR_DATA_LOSS, "a message cannot be unpacked");
    }
    all = grpc_byte_buffer_reader_readall(&reader);
    grpc_byte_buffer_reader_destroy(&reader);
    grpc_byte_buffer_destroy(buffer);
    len = GRPC_SLICE_LENGTH(all);
    bytes = malloc(len ? len : 1);
    if (bytes) {
        memcpy(bytes, GRPC_SLICE_START_PTR(all), len);
    }
    grpc_slice_unref(all);
    if (!bytes) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "out of memory for a message of %zu bytes", len);
    }
    *ret_bytes = bytes;
    *ret_len = len;
    return 0;
}

/* The daemon's words on one line, whatever it put into them. */
static void copy_details(const grpc_slice *details, char ret_text[MAX_DETAILS + 1])
{
    size_t len = GRPC_SLICE_LENGTH(*details);
    const uint8_t *text = GRPC_SLICE_START_PTR(*details);

    len = len < MAX_DETAILS ? len : MAX_DETAILS;
    for (size_t i = 0; i < len; i++) {
        ret_text[i] = text[i] < 0x20 || text[i] == 0x7f ? ' ' : (char)text[i];
    }
    ret_text[len] = '\0';
}

/* The reason that the daemon gave beside its words, where it gave one. */
static void take_reason(const struct call *call, struct skrull_error *err)
{
    static const char name[] = "grpc-status-details-bin";
    struct arena *arena = arena_new(STATUS_BUDGET);

    for (size_t i = 0; err && arena && i < call->trailing.count; i++) {
        const grpc_metadata *entry = &call->trailing.metadata[i];
        const struct rpc_bytes bytes = {GRPC_SLICE_START_PTR(entry->value),
                                        GRPC_SLICE_LENGTH(entry->value)};

        if (grpc_slice_str_cmp(entry->key, name) == 0) {
            (void)codec_status_unpack(arena, bytes, err, NULL);
        }
    }
    arena_free(arena);
}

int call_result(const struct call *call, const char *server, struct skrull_error *err)
{
    char details[MAX_DETAILS + 1];
    int code = (int)call->status;

    if (code == GRPC_STATUS_OK) {
        return 0;
    }
    if (code < 0 || code > GRPC_STATUS_UNAUTHENTICATED) {
        code = GRPC_STATUS_UNKNOWN;
    }
    copy_details(&call->details, details);
    if (code == GRPC_STATUS_UNAVAILABLE) {
        (void)skrull_error_set(err, SKRULL_ERR_UNAVAILABLE,
                               "skrulld at %s is not available: %s; is it running? (--server and "
                               "SKRULL_SERVER name another)",
                               server, details);
    } else {
        (void)skrull_error_set(err, -code, "%s", details[0] ? details : skrull_error_text(-code));
    }
    take_reason(call, err);
    return -code;
}
