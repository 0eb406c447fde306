/*
 * Drain: one timer, three deadlines. First the streams whose clients do not read, then whatever
 * still runs, then the process. All that answers promised is durable throughout, so that nothing is
 * lost at any of them.
 */
#include "rpc/drain.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/log.h"
#include "job/registry.h"
#include "loop/loop.h"
#include "rpc/health.h"
#include "rpc/plan_stream.h"
#include "rpc/reflector.h"
#include "rpc/rpc_ctx.h"
#include "rpc/server.h"

#define READER_GRACE_MS 5000
#define CUT_GRACE_MS 2000

enum phase { PHASE_IDLE, PHASE_GRACE, PHASE_REST, PHASE_CUT };

struct drain {
    struct rpc_ctx *ctx;
    struct server *server;
    struct loop_timer *timer;
    enum phase phase;
    bool has_cut; /* calls */
    uint64_t timeout_ms, grace_ms;
    void (*over)(void *arg, enum drain_end end);
    void *arg;
};

static void for_each_hub(struct rpc_ctx *ctx, void (*fn)(struct hub *hub))
{
    for (size_t i = 0; i < registry_count(ctx->registry); i++) {
        struct hub *hub = registry_at(ctx->registry, i)->hub;

        if (hub) {
            fn(hub);
        }
    }
}

static void on_timer(void *arg)
{
    struct drain *drain = (struct drain *)arg;

    switch (drain->phase) {
    case PHASE_GRACE:
        drain->phase = PHASE_REST;
        for_each_hub(drain->ctx, plan_streams_cut);
        loop_timer_start(drain->timer, drain->timeout_ms - drain->grace_ms, 0);
        break;
    case PHASE_REST:
        drain->phase = PHASE_CUT;
        drain->has_cut = server_has_calls(drain->server);
        if (drain->has_cut) {
            log_event(LOG_LEVEL_WARN, "drain_timeout",
                      LOG_U64("seconds", drain->timeout_ms / 1000));
        }
        server_cut(drain->server);
        loop_timer_start(drain->timer, CUT_GRACE_MS, 0);
        break;
    case PHASE_CUT:
    case PHASE_IDLE:
    default:
        drain->over(drain->arg, DRAIN_STUCK);
        break;
    }
}

static void on_drained(void *arg)
{
    struct drain *drain = (struct drain *)arg;

    loop_timer_stop(drain->timer);
    drain->over(drain->arg, drain->has_cut ? DRAIN_CUT : DRAIN_CLEAN);
}

int drain_new(struct rpc_ctx *ctx, void (*over)(void *arg, enum drain_end end), void *arg,
              struct drain **ret_drain, struct skrull_error *err)
{
    struct drain *drain = calloc(1, sizeof(*drain));
    int code;

    if (!drain) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "drain: out of memory");
    }
    drain->ctx = ctx;
    drain->over = over;
    drain->arg = arg;
    code = loop_timer_new(ctx->loop, on_timer, drain, &drain->timer, err);
    if (code < 0) {
        free(drain);
        return code;
    }
    *ret_drain = drain;
    return 0;
}

void drain_start(struct drain *drain, struct server *server, uint64_t timeout_ms)
{
    assert(drain->phase == PHASE_IDLE);
    drain->phase = PHASE_GRACE;
    drain->server = server;
    drain->timeout_ms = timeout_ms;
    drain->grace_ms = timeout_ms / 2 < READER_GRACE_MS ? timeout_ms / 2 : READER_GRACE_MS;
    loop_timer_start(drain->timer, drain->grace_ms, 0);
    health_drain(drain->ctx->health);
    reflector_drain(drain->ctx->reflector);
    server_drain(server, on_drained, drain);
    for_each_hub(drain->ctx, plan_streams_drain);
}

void drain_free(struct drain *drain)
{
    if (drain) {
        loop_timer_free(drain->timer);
        free(drain);
    }
}
