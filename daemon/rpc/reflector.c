/*
 * One stream: a request is there -> its answer is sent -> the answer has left -> the next request
 * is asked for. So a client that does not read holds one answer, and one that does not ask nothing.
 * The client ends it; a drain does where nothing is in flight, else once that has left.
 */
#include "rpc/reflector.h"

#include <assert.h>
#include <stdlib.h>

#include "job/shared_bytes.h"
#include "rpc/call.h"
#include "rpc/handlers.h"
#include "rpc/rpc_ctx.h"

#include "codec_reflection.h"
#include "descriptor_set.h"

#define MAX_TALKS 32 /* each may hold a large request that is half there (intake.h) */

struct talk {
    struct talk *prev, *next;
    struct reflector *reflector;
    struct call *call;
    bool is_sending;
};

struct reflector {
    struct reflection *reflection;
    struct talk talks; /* head of a ring */
    int n_talks;
    bool is_draining;
};

int reflector_new(struct reflector **ret_reflector, struct skrull_error *err)
{
    struct reflector *reflector = calloc(1, sizeof(*reflector));
    int code;

    if (!reflector) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "reflection: out of memory");
    }
    reflector->talks.prev = reflector->talks.next = &reflector->talks;
    code = reflection_new(descriptor_set, descriptor_set_len, &reflector->reflection, err);
    if (code < 0) {
        free(reflector);
        return code;
    }
    *ret_reflector = reflector;
    return 0;
}

void reflector_free(struct reflector *reflector)
{
    if (reflector) {
        assert(reflector->talks.next == &reflector->talks);
        reflection_free(reflector->reflection);
        free(reflector);
    }
}

/* Takes the talk out and returns its call, which must be ended. */
static struct call *talk_free(struct talk *talk)
{
    struct call *call = talk->call;

    talk->prev->next = talk->next;
    talk->next->prev = talk->prev;
    talk->reflector->n_talks--;
    free(talk);
    return call;
}

static void talk_end(struct talk *talk)
{
    call_end(talk_free(talk), (struct rpc_bytes){NULL, 0});
}

void reflector_drain(struct reflector *reflector)
{
    if (!reflector) {
        return;
    }
    reflector->is_draining = true;
    for (struct talk *talk = reflector->talks.next, *next; talk != &reflector->talks; talk = next) {
        next = talk->next;
        if (!talk->is_sending) {
            talk_end(talk);
        }
    }
}

/* Answers the request at hand. */
static void answer(struct talk *talk)
{
    struct skrull_error err = {0};
    struct shared_bytes *message = NULL;
    struct rpc_bytes response;
    int code = reflection_answer(talk->reflector->reflection, call_arena(talk->call),
                                 call_request(talk->call), &response, &err);

    if (code == 0) {
        message = shared_bytes_copy(response.data, response.len);
        code = message ? 0 : SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    if (code < 0) {
        err.code = code;
        call_fail(talk_free(talk), &err);
        return;
    }
    talk->is_sending = true;
    call_send(talk->call, message, false);
    shared_bytes_unref(message);
}

static void on_sent(void *owner)
{
    struct talk *talk = (struct talk *)owner;

    talk->is_sending = false;
    if (talk->reflector->is_draining) {
        talk_end(talk);
    } else {
        call_receive(talk->call);
    }
}

static void on_received(void *owner, int result, const struct skrull_error *err)
{
    struct talk *talk = (struct talk *)owner;

    if (result == 0) {
        answer(talk);
    } else if (result == CALL_NO_MORE) {
        talk_end(talk);
    } else {
        call_fail(talk_free(talk), err);
    }
}

static void on_closed(void *owner)
{
    talk_end((struct talk *)owner);
}

void rpc_reflection(struct rpc_ctx *ctx, struct call *call)
{
    static const struct call_events events = {
        .sent = on_sent, .closed = on_closed, .received = on_received};
    struct reflector *reflector = ctx->reflector;
    struct skrull_error err = {0};
    struct talk *talk;

    if (!reflector) {
        (void)skrull_error_because(&err, SKRULL_ERR_UNIMPLEMENTED, SKRULL_REASON_METHOD_UNBUILT, 0,
                                   "reflection is off here: start skrulld with --reflection");
        call_fail(call, &err);
        return;
    }
    if (reflector->n_talks == MAX_TALKS) {
        (void)skrull_error_because(&err, SKRULL_ERR_RESOURCE_EXHAUSTED, SKRULL_REASON_BUSY,
                                   MAX_TALKS, "%d streams ask for the schema already", MAX_TALKS);
        call_fail(call, &err);
        return;
    }
    talk = calloc(1, sizeof(*talk));
    if (!talk) {
        (void)skrull_error_set(&err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
        call_fail(call, &err);
        return;
    }
    talk->reflector = reflector;
    talk->call = call;
    talk->next = &reflector->talks;
    talk->prev = reflector->talks.prev;
    talk->prev->next = talk;
    reflector->talks.prev = talk;
    reflector->n_talks++;
    call_stream(call, &events, talk);
    answer(talk);
}
