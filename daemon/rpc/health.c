/*
 * grpc.health.v1. A watcher holds what it sent last: after a change, and after each message that
 * left, it sends the state where the two differ, so one that reads slowly skips states but ends
 * with the right one.
 */
#include "rpc/health.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "job/shared_bytes.h"
#include "rpc/call.h"
#include "rpc/rpc_ctx.h"

#define REPLY_BYTES 1024

struct watcher {
    struct watcher *prev, *next;
    struct health *health;
    struct call *call;
    bool is_known; /* the service */
    bool is_sending;
    bool has_sent;
    enum rpc_health last;
};

struct health {
    enum rpc_health state;
    bool is_draining;
    struct watcher watchers; /* head of a ring */
};

struct health *health_new(void)
{
    struct health *health = calloc(1, sizeof(*health));

    if (health) {
        health->state = RPC_HEALTH_NOT_SERVING;
        health->watchers.prev = health->watchers.next = &health->watchers;
    }
    return health;
}

void health_free(struct health *health)
{
    if (health) {
        assert(health->watchers.next == &health->watchers);
        free(health);
    }
}

static bool is_known(const char *service)
{
    return service[0] == '\0' || strcmp(service, "skrull.v1.PlannerService") == 0;
}

void rpc_health_check(struct rpc_ctx *ctx, struct call *call)
{
    struct skrull_error err = {0};
    const char *service;
    struct rpc_bytes reply;

    if (codec_health_check_request_unpack(call_arena(call), call_request(call), &service, &err) <
        0) {
        call_fail(call, &err);
        return;
    }
    if (!is_known(service)) {
        (void)skrull_error_because(&err, SKRULL_ERR_NOT_FOUND, SKRULL_REASON_SERVICE_UNKNOWN, 0,
                                   "%s: no such service", service);
        call_fail(call, &err);
        return;
    }
    if (codec_health_check_response_pack(call_arena(call), &ctx->health->state, &reply, &err) < 0) {
        call_fail(call, &err);
        return;
    }
    call_reply(call, reply);
}

/* Takes the watcher out and returns its call, which must be ended. */
static struct call *watcher_free(struct watcher *watcher)
{
    struct call *call = watcher->call;

    watcher->prev->next = watcher->next;
    watcher->next->prev = watcher->prev;
    free(watcher);
    return call;
}

static void watcher_update(struct watcher *watcher)
{
    enum rpc_health state = watcher->is_known ? watcher->health->state : RPC_HEALTH_SERVICE_UNKNOWN;
    struct skrull_error err = {0};
    struct shared_bytes *message = NULL;
    struct arena *arena;
    struct rpc_bytes reply = {NULL, 0};

    if (watcher->is_sending) {
        return;
    }
    if (watcher->has_sent && watcher->last == state) {
        if (watcher->health->is_draining) {
            call_end(watcher_free(watcher), reply);
        }
        return;
    }
    arena = arena_new(REPLY_BYTES);
    if (arena && codec_health_check_response_pack(arena, &state, &reply, &err) == 0) {
        message = shared_bytes_copy(reply.data, reply.len);
    }
    arena_free(arena);
    if (!message) {
        (void)skrull_error_set(&err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
        call_fail(watcher_free(watcher), &err);
        return;
    }
    watcher->has_sent = true;
    watcher->last = state;
    watcher->is_sending = true;
    call_send(watcher->call, message, false);
    shared_bytes_unref(message);
}

static void on_sent(void *owner)
{
    struct watcher *watcher = (struct watcher *)owner;

    watcher->is_sending = false;
    watcher_update(watcher);
}

static void on_closed(void *owner)
{
    call_end(watcher_free((struct watcher *)owner), (struct rpc_bytes){NULL, 0});
}

void rpc_health_watch(struct rpc_ctx *ctx, struct call *call)
{
    static const struct call_events events = {.sent = on_sent, .closed = on_closed};
    struct health *health = ctx->health;
    struct skrull_error err = {0};
    struct watcher *watcher;
    const char *service;

    if (codec_health_check_request_unpack(call_arena(call), call_request(call), &service, &err) <
        0) {
        call_fail(call, &err);
        return;
    }
    watcher = calloc(1, sizeof(*watcher));
    if (!watcher) {
        (void)skrull_error_set(&err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
        call_fail(call, &err);
        return;
    }
    watcher->health = health;
    watcher->call = call;
    watcher->is_known = is_known(service);
    watcher->next = &health->watchers;
    watcher->prev = health->watchers.prev;
    watcher->prev->next = watcher;
    health->watchers.prev = watcher;
    call_stream(call, &events, watcher);
    watcher_update(watcher);
}

static void update_all(struct health *health)
{
    struct watcher *watcher = health->watchers.next;

    while (watcher != &health->watchers) {
        struct watcher *next = watcher->next; /* an update may free it */

        watcher_update(watcher);
        watcher = next;
    }
}

void health_set_serving(struct health *health)
{
    health->state = RPC_HEALTH_SERVING;
    update_all(health);
}

void health_drain(struct health *health)
{
    health->state = RPC_HEALTH_NOT_SERVING;
    health->is_draining = true;
    update_all(health);
}
