/*
 * How a call comes to its handler: armed requests of each method, what can be said against a call
 * at once, its turn to send the request (intake.h), the request. The happy path and what may fail:
 * see call.c. Loop thread only.
 */
#include "rpc/call_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/grpc.h>

#include "loop/loop.h"
#include "rpc/call_host.h"
#include "rpc/method.h"
#include "rpc/rpc_ctx.h"
#include "tag_order.h"

#define ARMED_REQUESTS 16
#define INTAKE_LOOK_MS 100

static int refuse_unknown(const struct call *call, struct skrull_error *err)
{
    char name[128];
    size_t len = GRPC_SLICE_LENGTH(call->details.method);

    /* The client's bytes: cut, and nothing but printable ASCII. */
    len = len < sizeof(name) ? len : sizeof(name) - 1;
    for (size_t i = 0; i < len; i++) {
        uint8_t byte = GRPC_SLICE_START_PTR(call->details.method)[i];

        name[i] = '?';
        if (byte >= 0x20 && byte < 0x7f) {
            name[i] = (char)byte;
        }
    }
    name[len] = '\0';
    return skrull_error_because(err, SKRULL_ERR_UNIMPLEMENTED, SKRULL_REASON_METHOD_UNKNOWN, 0,
                                "%s: no such method", name);
}

/* What can be said against a call before its request is there. */
static int admit(struct call *call, struct skrull_error *err)
{
    const struct call_slot *slot = call->slot;

    if (!slot->method) {
        return refuse_unknown(call, err);
    }
    if (!slot->method->handle) {
        return skrull_error_because(err, SKRULL_ERR_UNIMPLEMENTED, SKRULL_REASON_METHOD_UNBUILT, 0,
                                    "%s is not built yet", slot->method->name);
    }
    if (slot->host->is_draining) {
        return skrull_error_because(err, SKRULL_ERR_UNAVAILABLE, SKRULL_REASON_DRAINING, 0,
                                    "the daemon is stopping");
    }
    return 0;
}

static struct call *call_of(struct intake_item *item)
{
    return (struct call *)(void *)((char *)item - offsetof(struct call, intake));
}

/* There is room again for requests. */
static void take_more(struct call_host *host)
{
    uint64_t now_ms = loop_now_ms(host->ctx->loop);
    struct intake_item *item = intake_next(&host->intake, now_ms);

    while (item) {
        call_start_receive(call_of(item), &call_of(item)->on_payload);
        item = intake_next(&host->intake, now_ms);
    }
}

static void refuse_slow(struct intake_item *item)
{
    struct skrull_error err;

    (void)skrull_error_because(&err, SKRULL_ERR_RESOURCE_EXHAUSTED, SKRULL_REASON_BUSY, 0,
                               "the request did not come in time, and others wait");
    call_fail(call_of(item), &err);
}

void call_host_look(struct call_host *host)
{
    uint64_t now_ms = loop_now_ms(host->ctx->loop);
    struct intake_item *item = intake_overdue(&host->intake, now_ms);

    while (item) {
        refuse_slow(item);
        item = intake_overdue(&host->intake, now_ms);
    }
    take_more(host);
    if (!host->intake.waiting.first) {
        loop_timer_stop(host->intake_timer);
    }
}

void call_host_refuse(struct call_host *host)
{
    struct intake_list *const lists[] = {&host->intake.waiting, &host->intake.receiving};
    struct skrull_error err;

    (void)skrull_error_because(&err, SKRULL_ERR_UNAVAILABLE, SKRULL_REASON_DRAINING, 0,
                               "the daemon is stopping");
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        while (lists[i]->first) {
            struct call *call = call_of(lists[i]->first);

            intake_leave(&host->intake, &call->intake);
            call_fail(call, &err);
        }
    }
}

/* A call comes: its request now, or in its turn. */
static void take_in(struct call *call)
{
    struct call_host *host = call->slot->host;
    struct intake_item *refused;

    if (intake_enter(&host->intake, &call->intake, loop_now_ms(host->ctx->loop), &refused)) {
        call_start_receive(call, &call->on_payload);
    } else if (host->intake.waiting.n == 1) {
        loop_timer_start(host->intake_timer, INTAKE_LOOK_MS, INTAKE_LOOK_MS);
    }
    if (refused) {
        refuse_slow(refused);
    }
}

/* The request is there, or there is none. */
static void on_payload(struct cq_tag *tag, bool ok)
{
    struct call *call = CQ_OWNER(tag, struct call, on_payload);
    struct call_host *host = call->slot->host;
    struct skrull_error err = {0};

    intake_leave(&host->intake, &call->intake);
    if (!call->is_ended && call->is_closed) {
        call_end(call, (struct rpc_bytes){0});
    } else if (!call->is_ended && !ok) {
        (void)skrull_error_because(&err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                   SKRULL_REASON_REQUEST_TOO_LARGE, METHOD_BATCH_BYTES,
                                   "the request has more than %zu bytes", METHOD_BATCH_BYTES);
        call_fail(call, &err);
    } else if (!call->is_ended && call_read_request(call, &err) < 0) {
        call_fail(call, &err);
    } else if (!call->is_ended) {
        call->slot->method->handle(host->ctx, call);
    }
    call_unref(call);
    take_more(host);
}

static void on_request(struct cq_tag *tag, bool ok)
{
    struct call *call = CQ_OWNER(tag, struct call, on_request);
    struct call_slot *slot = call->slot;
    struct skrull_error err = {0};
    grpc_op op;

    slot->n_armed--;
    slot->host->n_armed--;
    if (!ok) { /* the server shuts down */
        call_free(call);
        call_host_check_idle(slot->host);
        return;
    }
    slot->host->n_calls++;
    (void)call_slot_fill(slot);
    call->n_refs = 1; /* the handler's */
    memset(&op, 0, sizeof(op));
    op.op = GRPC_OP_RECV_CLOSE_ON_SERVER;
    op.data.recv_close_on_server.cancelled = &call->was_cancelled;
    call_start_batch(call, &op, 1, &call->on_close);
    if (admit(call, &err) < 0) {
        call_fail(call, &err);
        return;
    }
    take_in(call);
}

static struct call *call_new(struct call_slot *slot)
{
    struct call *call = calloc(1, sizeof(*call));

    if (!call) {
        return NULL;
    }
    call_init(call, slot);
    call->on_request.fn = on_request;
    call->on_payload.fn = on_payload;
    return call;
}

int call_slot_fill(struct call_slot *slot)
{
    struct call_host *host = slot->host;
    grpc_completion_queue *queue = cq_queue(host->cq);

    while (!host->is_draining && slot->n_armed < ARMED_REQUESTS) {
        struct call *call = call_new(slot);
        grpc_call_error error;

        if (!call) {
            return slot->n_armed > 0 ? 0 : SKRULL_ERR_RESOURCE_EXHAUSTED;
        }
        tag_hand_over(&call->on_request);
        if (slot->method) {
            error = grpc_server_request_registered_call(host->core, slot->registered, &call->core,
                                                        &call->deadline, &call->metadata, NULL,
                                                        queue, queue, &call->on_request);
        } else {
            error = grpc_server_request_call(host->core, &call->core, &call->details,
                                             &call->metadata, queue, queue, &call->on_request);
        }
        assert(error == GRPC_CALL_OK);
        (void)error;
        slot->n_armed++;
        host->n_armed++;
    }
    return 0;
}
