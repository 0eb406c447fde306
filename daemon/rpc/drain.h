/*
 * The end of serving: not serving, no new calls, streams end, calls that run may finish. Loop
 * thread only.
 */
#pragma once

#include <stdint.h>

#include <skrull/error.h>

struct drain;
struct rpc_ctx;
struct server;

enum drain_end {
    DRAIN_CLEAN, /* every call ended; streams of clients that do not read were cut */
    DRAIN_CUT,   /* the timeout came: what was left was cut */
    DRAIN_STUCK, /* and some calls did not even end then: the process must */
};

/* A drain that has not begun; over(arg, end) is called once it is over. `ctx` is borrowed. */
int drain_new(struct rpc_ctx *ctx, void (*over)(void *arg, enum drain_end end), void *arg,
              struct drain **ret_drain, struct skrull_error *err);

/*
 * Begins it. A stream whose message in flight does not leave within 5 s, or half the timeout, has a
 * client that does not read: it is cut then, so that it holds nobody up.
 */
void drain_start(struct drain *drain, struct server *server, uint64_t timeout_ms);

/* NULL is fine. */
void drain_free(struct drain *drain);
