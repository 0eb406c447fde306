/*
 * A call without gRPC: include once in a test, in place of rpc/call.c. It keeps what the handler
 * did. CMocka's headers come first.
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "job/shared_bytes.h"
#include "rpc/call.h"

#define FAKE_MESSAGES 8

struct call {
    struct arena *arena;
    struct rpc_bytes request;
    const struct call_events *events;
    void *owner;
    struct shared_bytes *sent[FAKE_MESSAGES]; /* [n_sent] */
    size_t n_sent;
    bool more; /* the last message sent may wait for the next */
    bool is_sending, is_ended, was_cut, is_receiving;
    int status; /* of the end: 0 or an error */
    char message[SKRULL_ERROR_MESSAGE_SIZE];
    uint8_t *reply; /* [reply_len]: of call_reply, or the last message of call_end */
    size_t reply_len;
};

static inline void fake_call_init(struct call *call, struct rpc_bytes request)
{
    *call = (struct call){.arena = arena_new((size_t)1 << 20), .request = request};
}

static inline void fake_call_deinit(struct call *call)
{
    assert_true(call->is_ended);
    for (size_t i = 0; i < call->n_sent; i++) {
        shared_bytes_unref(call->sent[i]);
    }
    free(call->reply);
    arena_free(call->arena);
}

/* The message in flight has left. */
static inline void fake_call_sent(struct call *call)
{
    assert_true(call->is_sending);
    call->is_sending = false;
    call->events->sent(call->owner);
}

static inline void fake_call_closed(struct call *call)
{
    call->is_sending = false;
    call->events->closed(call->owner);
}

struct rpc_bytes call_request(const struct call *call)
{
    return call->request;
}

struct arena *call_arena(const struct call *call)
{
    return call->arena;
}

void call_reply(struct call *call, struct rpc_bytes reply)
{
    assert_false(call->is_ended);
    call->is_ended = true;
    call->reply = malloc(reply.len + 1);
    if (reply.len > 0) {
        memcpy(call->reply, reply.data, reply.len);
    }
    call->reply_len = reply.len;
}

void call_fail(struct call *call, const struct skrull_error *err)
{
    assert_false(call->is_ended);
    assert_true(err->code < 0);
    call->is_ended = true;
    call->status = err->code;
    memcpy(call->message, err->message, sizeof(call->message));
}

void call_stream(struct call *call, const struct call_events *events, void *owner)
{
    call->events = events;
    call->owner = owner;
}

void call_forget_request(struct call *call)
{
    call->request = (struct rpc_bytes){NULL, 0};
    arena_free(call->arena);
    call->arena = NULL;
}

void call_send(struct call *call, struct shared_bytes *message, bool more)
{
    call->more = more;
    assert_false(call->is_sending);
    assert_false(call->is_ended);
    assert_true(call->n_sent < FAKE_MESSAGES);
    call->sent[call->n_sent++] = shared_bytes_ref(message);
    call->is_sending = true;
}

bool call_is_over(const struct call *call)
{
    (void)call;
    return false;
}

/* The test hands over the next request itself: events->received. */
void call_receive(struct call *call)
{
    assert_false(call->is_receiving);
    call->is_receiving = true;
}

void call_cut(struct call *call)
{
    call->was_cut = true;
}

void call_end(struct call *call, struct rpc_bytes last)
{
    call_reply(call, last);
}
