/* The seam between the server, which owns the listeners, and its calls. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "rpc/intake.h"

struct cq;
struct grpc_server;
struct loop_timer;
struct method;
struct rpc_ctx;

struct call_host {
    struct grpc_server *core;
    struct cq *cq;
    struct rpc_ctx *ctx;
    bool is_draining;                     /* no more calls are taken */
    size_t n_calls;                       /* arrived and not yet freed */
    size_t n_armed;                       /* waiting for one to arrive */
    void (*idle)(struct call_host *host); /* no call is left, none is armed */
    struct intake intake;                 /* of the calls whose request is not there yet */
    struct loop_timer *intake_timer;      /* runs call_host_look while calls wait there */
};

/* Refuses what takes too long, and goes on with what waits. */
void call_host_look(struct call_host *host);

/* Refuses all calls whose requests are not there yet: the daemon stops. */
void call_host_refuse(struct call_host *host);

/* A method that waits for calls. gRPC never answers a call that nobody asked for: it would hang
 * until the client's deadline, so several requests are armed at all times. */
struct call_slot {
    struct call_host *host;
    const struct method *method; /* NULL: any that has no slot of its own */
    void *registered;            /* gRPC's handle of the method */
    size_t n_armed;
};

/* Arms requests up to the full number; does nothing while draining. RESOURCE_EXHAUSTED: none could
 * be armed; the next call that is freed tries again. */
int call_slot_fill(struct call_slot *slot);
