/*
 * The gRPC server. What its arguments are about:
 *
 * - so_reuseport off: else a second daemon binds the same port without an error, and each gets
 *   some of the connections.
 * - keepalive: a worker that was stopped or cut off is noticed within 14 s; gRPC's default is 2 h.
 * - pings of clients: one in 5 s is allowed, also without data, which leaves those room who ping
 *   every 10 s; gRPC's default of 5 min cuts them.
 * - a small window of a stream: it is what gRPC takes of requests that nobody asked for (intake.h).
 * - handshake timeout: a peer that connects and says nothing is dropped after 10 s, not 120 s.
 * - no probing of bandwidth: it widens the windows for large requests and pings with each one; ours
 * are small, and it took a tenth of the time of a fleet's reports.
 *
 * Drain: stop arming, shut down (closes listeners; armed requests come back failed), wait for the
 * calls, cut those that are left after the deadline, destroy. Every other order aborts inside gRPC.
 * gRPC also waits for each connection's client to answer its goodbye, which one that is stopped, or
 * reads only during calls, does not: once no call is left, connections are closed after a moment.
 */
#include "rpc/server.h"

#include <assert.h>
#include <stdlib.h>

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include "cleanup.h"
#include "loop/loop.h"
#include "rpc/call_host.h"
#include "rpc/cq.h"
#include "rpc/grpc_locks.h"
#include "rpc/method.h"
#include "rpc/rpc_ctx.h"
#include "tag_order.h"

#define WINDOW_BYTES (16 << 10)
#define KEEPALIVE_MS 10000
#define KEEPALIVE_TIMEOUT_MS 4000
#define MIN_PING_MS 5000
#define HANDSHAKE_MS 10000
#define MAX_METADATA_BYTES (16 << 10)
#define GOODBYE_MS 300 /* for clients that answer it, also far ones */

struct server {
    struct call_host host;   /* first */
    struct call_slot *slots; /* [method_count() + 1]; the last takes unknown methods */
    struct cq_tag on_shutdown;
    struct loop_timer *goodbye;
    bool is_started, is_shut_down, is_idle;
    void (*drained)(void *arg);
    void *drained_arg;
};

void server_library_init(void)
{
    grpc_locks_quicken();
    grpc_init();
}

void server_library_shutdown(void)
{
    grpc_shutdown();
}

static grpc_server *core_new(void)
{
    static const struct {
        const char *key;
        int value;
    } settings[] = {
        {GRPC_ARG_ALLOW_REUSEPORT, 0},
        {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, (int)METHOD_BATCH_BYTES},
        {GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, WINDOW_BYTES},
        {GRPC_ARG_MAX_METADATA_SIZE, MAX_METADATA_BYTES},
        {GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, HANDSHAKE_MS},
        {GRPC_ARG_KEEPALIVE_TIME_MS, KEEPALIVE_MS},
        {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, KEEPALIVE_TIMEOUT_MS},
        {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
        {GRPC_ARG_HTTP2_BDP_PROBE, 0},
        {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, MIN_PING_MS},
        {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0},
    };
    enum { N_ARGS = sizeof(settings) / sizeof(settings[0]) };
    grpc_arg args[N_ARGS];
    grpc_channel_args list = {N_ARGS, args};

    for (int i = 0; i < N_ARGS; i++) {
        args[i].type = GRPC_ARG_INTEGER;
        args[i].key = (char *)(uintptr_t)settings[i].key; /* gRPC copies it */
        args[i].value.integer = settings[i].value;
    }
    return grpc_server_create(&list, NULL);
}

static void check_drained(struct server *server)
{
    if (server->is_shut_down && server->is_idle && server->drained) {
        void (*drained)(void *arg) = server->drained;

        server->drained = NULL;
        drained(server->drained_arg);
    }
}

static void on_idle(struct call_host *host)
{
    struct server *server = (struct server *)host;

    server->is_idle = true;
    loop_timer_start(server->goodbye, GOODBYE_MS, 0);
    check_drained(server);
}

static void on_goodbye(void *arg)
{
    server_cut((struct server *)arg);
}

static void on_shutdown(struct cq_tag *tag, bool ok)
{
    struct server *server = CQ_OWNER(tag, struct server, on_shutdown);

    (void)ok;
    server->is_shut_down = true;
    loop_timer_stop(server->goodbye);
    check_drained(server);
}

static void on_intake_timer(void *arg)
{
    call_host_look((struct call_host *)arg);
}

static void register_methods(struct server *server)
{
    size_t n = method_count();

    for (size_t i = 0; i <= n; i++) {
        struct call_slot *slot = &server->slots[i];

        slot->host = &server->host;
        if (i == n) {
            continue;
        }
        slot->method = &method_table[i];
        slot->registered = grpc_server_register_method(server->host.core, slot->method->path, NULL,
                                                       GRPC_SRM_PAYLOAD_NONE, 0);
        assert(slot->registered);
    }
}

int server_new(struct cq *cq, struct rpc_ctx *ctx, struct server **ret_server,
               struct skrull_error *err)
{
    struct server *server = calloc(1, sizeof(*server));
    int code;

    if (server) {
        server->slots = calloc(method_count() + 1, sizeof(*server->slots));
    }
    if (!server || !server->slots) {
        free(server);
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "server: out of memory");
    }
    code = loop_timer_new(ctx->loop, on_goodbye, server, &server->goodbye, err);
    if (code == 0) {
        code = loop_timer_new(ctx->loop, on_intake_timer, &server->host, &server->host.intake_timer,
                              err);
    }
    if (code < 0) {
        loop_timer_free(server->goodbye);
        free(server->slots);
        free(server);
        return code;
    }
    server->host.cq = cq;
    server->host.ctx = ctx;
    server->host.idle = on_idle;
    server->on_shutdown.fn = on_shutdown;
    server->host.core = core_new();
    grpc_server_register_completion_queue(server->host.core, cq_queue(cq), NULL);
    register_methods(server);
    *ret_server = server;
    return 0;
}

int server_listen(struct server *server, const char *address, int *ret_port,
                  struct skrull_error *err)
{
    grpc_server_credentials *credentials = grpc_insecure_server_credentials_create();
    int port = grpc_server_add_http2_port(server->host.core, address, credentials);

    grpc_server_credentials_release(credentials);
    if (port <= 0) {
        return skrull_error_set(err, SKRULL_ERR_UNAVAILABLE,
                                "%s: cannot listen: in use, or not an address of this machine",
                                address);
    }
    *ret_port = port;
    return 0;
}

int server_start(struct server *server, struct skrull_error *err)
{
    grpc_server_start(server->host.core);
    server->is_started = true;
    for (size_t i = 0; i <= method_count(); i++) {
        if (call_slot_fill(&server->slots[i]) < 0) {
            return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "server: out of memory");
        }
    }
    return 0;
}

void server_drain(struct server *server, void (*drained)(void *arg), void *arg)
{
    assert(!server->host.is_draining);
    server->host.is_draining = true;
    server->drained = drained;
    server->drained_arg = arg;
    call_host_refuse(&server->host);
    server->is_idle = server->host.n_calls == 0 && server->host.n_armed == 0;
    tag_hand_over(&server->on_shutdown);
    grpc_server_shutdown_and_notify(server->host.core, cq_queue(server->host.cq),
                                    &server->on_shutdown);
    if (server->is_idle) {
        loop_timer_start(server->goodbye, GOODBYE_MS, 0);
    }
}

bool server_has_calls(const struct server *server)
{
    return server->host.n_calls > 0;
}

void server_cut(struct server *server)
{
    grpc_server_cancel_all_calls(server->host.core);
}

void server_free(struct server *server)
{
    if (!server) {
        return;
    }
    assert(!server->host.is_draining || (server->is_shut_down && server->is_idle));
    loop_timer_free(server->goodbye);
    loop_timer_free(server->host.intake_timer);
    grpc_server_destroy(server->host.core);
    free(server->slots);
    free(server);
}
