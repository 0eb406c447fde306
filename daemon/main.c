/*
 * skrulld: reads the options, wires the stages, runs the loop, gives the exit status.
 *
 * Up: options -> store -> jobs -> gRPC -> listeners -> ready. Down (SIGTERM, SIGINT): not serving,
 * no new calls, streams end, calls that run may finish; those left after the drain timeout are cut,
 * and what does not even end then (an index on a disk that hangs) goes down with the process. All
 * that answers promised is durable by then. A second signal stops at once.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena.h"
#include "base/log.h"
#include "base/map.h"
#include "config/config.h"
#include "config/listen_address.h"
#include "job/registry.h"
#include "loop/loop.h"
#include "loop/notify.h"
#include "loop/serial.h"
#include "rpc/cq.h"
#include "rpc/grpc_log.h"
#include "rpc/health.h"
#include "rpc/plan_stream.h"
#include "rpc/restore.h"
#include "rpc/rpc_ctx.h"
#include "rpc/server.h"
#include "rpc/unix_socket.h"
#include "store/store.h"

#define EXIT_USAGE 2
#define CONFIG_BYTES ((size_t)4 << 20)
#define CUT_GRACE_MS 2000

/* Threads of the pool beside those that plan: opening and describing indexes, encoding whole plans.
 */
#define OTHER_THREADS 2

#define PLAN_AHEAD_STEPS 8
#define KEPT_STEPS 64
#define KEPT_BYTES ((size_t)64 << 20)

struct daemon {
    int argc;
    char **argv; /* without the program's name */
    struct config_env env;
    struct arena *arena; /* of the configuration */
    struct config config;
    struct rpc_ctx ctx;
    struct cq *cq;
    struct server *server;
    struct unix_socket **sockets; /* [config.listen.n], NULL: TCP */
    struct loop_signal *signals[3];
    struct loop_timer *drain_timer, *watchdog;
    bool is_draining, was_cut;
};

static void log_error(const char *event, const struct skrull_error *err)
{
    log_event(LOG_LEVEL_ERROR, event, LOG_TEXT("why", err->message));
}

static void notify(const char *state)
{
    struct skrull_error err = {0};

    if (notify_send(getenv("NOTIFY_SOCKET"), state, &err) < 0) {
        log_event(LOG_LEVEL_WARN, "notify_failed", LOG_TEXT("why", err.message));
    }
}

static void release_sockets(struct daemon *daemon)
{
    for (size_t i = 0; daemon->sockets && i < daemon->config.listen.n; i++) {
        unix_socket_release(daemon->sockets[i]);
    }
    free(daemon->sockets);
    daemon->sockets = NULL;
}

/* --- down --- */

static _Noreturn void stop_at_once(struct daemon *daemon)
{
    release_sockets(daemon);
    _exit(EXIT_FAILURE);
}

static void on_drained(void *arg)
{
    struct daemon *daemon = (struct daemon *)arg;

    loop_stop(daemon->ctx.loop);
}

static void on_drain_timer(void *arg)
{
    struct daemon *daemon = (struct daemon *)arg;

    if (daemon->was_cut) {
        log_event(LOG_LEVEL_ERROR, "stopped", LOG_TEXT("why", "calls did not end"));
        stop_at_once(daemon);
    }
    daemon->was_cut = true;
    log_event(LOG_LEVEL_WARN, "drain_timeout", LOG_U64("seconds", daemon->config.drain_timeout_s));
    server_cut(daemon->server);
    loop_timer_start(daemon->drain_timer, CUT_GRACE_MS, 0);
}

static void on_stop(void *arg)
{
    struct daemon *daemon = (struct daemon *)arg;
    struct registry *registry = daemon->ctx.registry;

    if (daemon->is_draining) {
        log_event(LOG_LEVEL_WARN, "stopped", LOG_TEXT("why", "second signal"));
        stop_at_once(daemon);
    }
    daemon->is_draining = true;
    log_event(LOG_LEVEL_INFO, "draining", LOG_U64("seconds", daemon->config.drain_timeout_s));
    notify("STOPPING=1");
    health_drain(daemon->ctx.health);
    server_drain(daemon->server, on_drained, daemon);
    for (size_t i = 0; i < registry_count(registry); i++) {
        if (registry_at(registry, i)->hub) {
            plan_streams_drain(registry_at(registry, i)->hub);
        }
    }
    loop_timer_start(daemon->drain_timer, daemon->config.drain_timeout_s * 1000, 0);
}

/* --- options --- */

static void set_log(const struct config *config)
{
    enum log_level level;

    if (log_level_parse(config->log_level, &level)) {
        log_set_level(level);
    }
    log_set_format(strcmp(config->log_format, "json") == 0 ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT);
}

/* SIGHUP: of all options, the log's may change while the daemon runs. */
static void on_reload(void *arg)
{
    struct daemon *daemon = (struct daemon *)arg;
    struct skrull_error err = {0};
    struct arena *arena = arena_new(CONFIG_BYTES);
    struct config config;

    if (!arena ||
        config_parse(arena, daemon->argc, daemon->argv, &daemon->env, &config, &err) < 0) {
        log_error("reload_failed", &err);
    } else {
        set_log(&config);
        log_event(LOG_LEVEL_INFO, "reloaded", LOG_TEXT("log_level", config.log_level));
    }
    arena_free(arena);
}

static void on_watchdog(void *arg)
{
    (void)arg;
    notify("WATCHDOG=1");
}

/* --- up --- */

static int run_on_pool(void *arg, void (*work)(void *task), void (*done)(void *task), void *task)
{
    return loop_work((struct loop *)arg, work, done, task);
}

/* Data roots as the kernel names them, so that links below them can be judged. */
static int resolve_roots(struct daemon *daemon, struct skrull_error *err)
{
    struct config_list *roots = &daemon->config.data_root;

    for (size_t i = 0; i < roots->n; i++) {
        char *path = realpath(roots->items[i], NULL);

        if (!path) {
            return skrull_error_set(err, SKRULL_ERR_NOT_FOUND, "--data-root: %s: %s",
                                    roots->items[i], strerror(errno));
        }
        roots->items[i] = arena_strdup(daemon->arena, path);
        free(path);
        if (!roots->items[i]) {
            return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
        }
    }
    daemon->ctx.roots = (struct job_roots){.paths = roots->items, .n_paths = roots->n};
    return 0;
}

static int start_stages(struct daemon *daemon, struct skrull_error *err)
{
    struct rpc_ctx *ctx = &daemon->ctx;
    uint32_t n_plan = (uint32_t)daemon->config.plan_threads;
    int code = resolve_roots(daemon, err);

    if (n_plan == 0) {
        n_plan = loop_cores();
    }
    if (code == 0) {
        code = loop_new(n_plan + OTHER_THREADS, &ctx->loop, err);
    }
    if (code == 0) {
        code = store_open(daemon->config.state, &ctx->store, err);
    }
    if (code < 0) {
        return code;
    }
    ctx->pipeline = (struct pipeline_options){.run = run_on_pool,
                                              .run_arg = ctx->loop,
                                              .max_running = n_plan,
                                              .ahead = PLAN_AHEAD_STEPS,
                                              .max_steps = KEPT_STEPS,
                                              .max_bytes = KEPT_BYTES};
    ctx->registry = registry_new();
    ctx->health = health_new();
    if (!ctx->registry || !ctx->health) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    code = restore_jobs(ctx, err);
    if (code == 0) {
        code = plan_streams_new(ctx->loop, &ctx->streams, err);
    }
    if (code == 0) {
        code = serial_new(ctx->loop, &ctx->store_queue, err);
    }
    return code;
}

static void log_listening(const char *text, const struct listen_address *address, int port)
{
    const char *colon = strrchr(text, ':');
    char bound[512];

    if (address->path || !colon) {
        log_event(LOG_LEVEL_INFO, "listening", LOG_TEXT("address", text));
        return;
    }
    (void)snprintf(bound, sizeof(bound), "%.*s:%d", (int)(colon - text), text, port);
    log_event(LOG_LEVEL_INFO, "listening", LOG_TEXT("address", bound));
}

static int listen_on(struct daemon *daemon, size_t i, int *ret_port, struct skrull_error *err)
{
    const char *text = daemon->config.listen.items[i];
    struct listen_address address;
    int code = listen_address_parse(text, &address, err);

    if (code == 0 && address.path) {
        code = unix_socket_claim(address.path, &daemon->sockets[i], err);
    }
    if (code == 0) {
        code = server_listen(daemon->server, text, ret_port, err);
    }
    if (code == 0 && address.path) {
        code = unix_socket_protect(daemon->sockets[i], err);
    }
    return code;
}

static int start_server(struct daemon *daemon, struct skrull_error *err)
{
    const struct config_list *listen = &daemon->config.listen;
    int *ports = ARENA_ARRAY(daemon->arena, int, listen->n);
    int code = cq_new(daemon->ctx.loop, &daemon->cq, err);

    if (code == 0) {
        code = server_new(daemon->cq, &daemon->ctx, &daemon->server, err);
    }
    daemon->sockets = calloc(listen->n, sizeof(struct unix_socket *));
    if (code == 0 && (!ports || !daemon->sockets)) {
        code = skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    for (size_t i = 0; code == 0 && i < listen->n; i++) {
        code = listen_on(daemon, i, &ports[i], err);
    }
    if (code == 0) {
        code = server_start(daemon->server, err);
    }
    for (size_t i = 0; code == 0 && i < listen->n; i++) {
        struct listen_address address;

        code = listen_address_parse(listen->items[i], &address, err);
        log_listening(listen->items[i], &address, ports[i]);
    }
    return code;
}

static int start_handles(struct daemon *daemon, struct skrull_error *err)
{
    struct loop *loop = daemon->ctx.loop;
    uint64_t watchdog_ms =
        notify_watchdog_ms(getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"), getpid());
    int code = loop_signal_new(loop, SIGTERM, on_stop, daemon, &daemon->signals[0], err);

    if (code == 0) {
        code = loop_signal_new(loop, SIGINT, on_stop, daemon, &daemon->signals[1], err);
    }
    if (code == 0) {
        code = loop_signal_new(loop, SIGHUP, on_reload, daemon, &daemon->signals[2], err);
    }
    if (code == 0) {
        code = loop_timer_new(loop, on_drain_timer, daemon, &daemon->drain_timer, err);
    }
    if (code == 0 && watchdog_ms > 0) {
        code = loop_timer_new(loop, on_watchdog, daemon, &daemon->watchdog, err);
    }
    if (code == 0 && watchdog_ms > 0) {
        loop_timer_start(daemon->watchdog, watchdog_ms, watchdog_ms);
    }
    return code;
}

/* Frees all that there is; the server has drained, or never took a call. */
static void finish(struct daemon *daemon)
{
    struct rpc_ctx *ctx = &daemon->ctx;

    for (size_t i = 0; i < sizeof(daemon->signals) / sizeof(daemon->signals[0]); i++) {
        loop_signal_free(daemon->signals[i]);
    }
    loop_timer_free(daemon->drain_timer);
    loop_timer_free(daemon->watchdog);
    server_free(daemon->server);
    cq_free(daemon->cq);
    if (ctx->registry) {
        restore_close(ctx);
    }
    serial_free(ctx->store_queue);
    plan_streams_free(ctx->streams);
    health_free(ctx->health);
    loop_free(ctx->loop); /* waits for plans in the making */
    registry_free(ctx->registry);
    store_close(ctx->store);
    release_sockets(daemon);
    arena_free(daemon->arena);
}

static int run(struct daemon *daemon)
{
    struct skrull_error err = {0};
    int code = start_stages(daemon, &err);

    if (code == 0) {
        code = start_handles(daemon, &err);
    }
    if (code == 0) {
        code = start_server(daemon, &err);
    }
    if (code == 0) {
        health_set_serving(daemon->ctx.health);
        notify("READY=1");
    } else {
        log_error("start_failed", &err);
    }
    if (code < 0 && daemon->server) {
        server_drain(daemon->server, on_drained, daemon);
    }
    if (code == 0 || daemon->server) {
        loop_run(daemon->ctx.loop);
    }
    if (code == 0) {
        log_event(LOG_LEVEL_INFO, "stopped", LOG_TEXT("why", "drained"));
    }
    return code < 0 || daemon->was_cut ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Each worker is a descriptor, and gRPC's listener does not recover from running out of them. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int print(char *text)
{
    int status = text && fputs(text, stdout) >= 0 && fflush(stdout) == 0 ? 0 : EXIT_FAILURE;

    free(text);
    return status;
}

int main(int argc, char **argv)
{
    struct daemon daemon = {
        .argc = argc > 0 ? argc - 1 : 0,
        .argv = argv + 1,
        .env = {.xdg_runtime_dir = getenv("XDG_RUNTIME_DIR"),
                .state_directory = getenv("STATE_DIRECTORY"),
                .xdg_state_home = getenv("XDG_STATE_HOME"),
                .home = getenv("HOME"),
                .uid = geteuid()},
    };
    struct skrull_error err = {0};
    int status;

    map_guard_install();
    daemon.arena = arena_new(CONFIG_BYTES);
    if (!daemon.arena || config_parse(daemon.arena, daemon.argc, daemon.argv, &daemon.env,
                                      &daemon.config, &err) < 0) {
        (void)fprintf(stderr, "skrulld: %s\n", daemon.arena ? err.message : "out of memory");
        arena_free(daemon.arena);
        return EXIT_USAGE;
    }
    if (daemon.config.help || daemon.config.version) {
        status = print(daemon.config.help ? config_help() : strdup("skrulld " SKRULL_VERSION "\n"));
        arena_free(daemon.arena);
        return status;
    }
    (void)umask(0077);
    (void)signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    set_log(&daemon.config);
    grpc_log_install(strcmp(daemon.config.log_level, "debug") == 0);
    server_library_init();
    status = run(&daemon);
    finish(&daemon);
    server_library_shutdown();
    return status;
}
