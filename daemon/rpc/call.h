/*
 * One call as its handler sees it: no gRPC here, so that handlers can be tested without it. Loop
 * thread only.
 *
 * A handler ends its call exactly once, by call_reply, call_fail or call_end, now or later; until
 * then the call lives, also where the client has gone (ending it then only frees it).
 */
#pragma once

#include <stdbool.h>

#include <skrull/error.h>

#include "codec_rpc.h"

struct arena;
struct call;
struct shared_bytes;

/* The request's bytes, and memory for decoding it; both live as long as the call, or until it is
 * told that they are not needed any more: streams are many and live long. */
struct rpc_bytes call_request(const struct call *call);
struct arena *call_arena(const struct call *call);
void call_forget_request(struct call *call);

/* Has the client gone? What is not begun yet is not worth beginning then. */
bool call_is_over(const struct call *call);

/* Ends a unary call well; the bytes are copied. */
void call_reply(struct call *call, struct rpc_bytes reply);

/* Ends any call badly, at once, also with a message in flight. err->code must be an error. */
void call_fail(struct call *call, const struct skrull_error *err);

/* Gives up on a client that does not take what was sent: the call is cancelled as UNAVAILABLE, and
 * a stream's owner hears `closed`. */
void call_cut(struct call *call);

/* What the owner of a stream hears. */
struct call_events {
    void (*sent)(
        void *owner); /* the message in flight left this process; it may not have arrived */
    void (*closed)(
        void *owner); /* the client has gone; the owner must call call_end or call_fail */
    /* After call_receive: 0, the next request is there (call_request, call_arena); CALL_NO_MORE,
     * the client has sent its last; negative, one that cannot be taken, as `err` says. */
    void (*received)(void *owner, int result, const struct skrull_error *err);
};

#define CALL_NO_MORE 1

/* Makes the call a stream; nothing is heard after it was ended. */
void call_stream(struct call *call, const struct call_events *events, void *owner);

/* Sends a message (takes a reference of its own); one at a time: the next after `sent`. `more`:
 * another follows at once, so this one may wait for it and share its way through the kernel. */
void call_send(struct call *call, struct shared_bytes *message, bool more);

/* Asks for the next request of a stream that has several, in place of the one at hand. One at a
 * time; a message may be in flight. */
void call_receive(struct call *call);

/* Ends a stream well, after one last message (len 0: none), which is copied. No message may be in
 * flight unless there is no last one, or the client has gone. */
void call_end(struct call *call, struct rpc_bytes last);
