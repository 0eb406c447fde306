/*
 * skrulld: reads the options, wires the stages, runs the loop, gives the exit status.
 *
 * Up: options -> store -> jobs (on the pool: indexes are read) -> gRPC -> listeners -> ready. Down
 * (SIGTERM, SIGINT): a drain (rpc/drain.h); what does not even end then (an index on a disk that
 * hangs) goes down with the process. All that answers promised is durable by then. A second signal
 * stops at once, and so does any while jobs are restored: nothing was promised yet. Where the
 * listeners went deaf (rpc/self_check.h) a drain leads to a new process in this one's place.
 */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "arena.h"
#include "base/log.h"
#include "base/map.h"
#include "config/config.h"
#include "config/listen_address.h"
#include "job/registry.h"
#include "loop/loop.h"
#include "loop/notify.h"
#include "loop/reexec.h"
#include "loop/serial.h"
#include "rpc/cq.h"
#include "rpc/drain.h"
#include "rpc/grpc_log.h"
#include "rpc/health.h"
#include "rpc/plan_stream.h"
#include "rpc/reflector.h"
#include "rpc/restore.h"
#include "rpc/rpc_ctx.h"
#include "rpc/self_check.h"
#include "rpc/server.h"
#include "rpc/unix_socket.h"
#include "store/store.h"

#define EXIT_USAGE 2
#define CONFIG_BYTES ((size_t)4 << 20)
#define ADDRESS_BYTES 512
#define SELF_CHECK_MS 5000
#define ANSWER_MS 3000
#define CUT_MS 1000
#define RESTART_DRAIN_MS 4000 /* nobody new can come, so waiting longer gains nothing */
#define EXTEND_FIRST_MS 200
#define EXTEND_MS 5000 /* how often the manager hears that jobs are still being restored */
#define EXTEND_STATE "EXTEND_TIMEOUT_USEC=30000000\nSTATUS=restoring jobs"

/* Threads of the pool beside those that plan: opening and describing indexes, encoding whole plans.
 */
#define OTHER_THREADS 2

#define PLAN_AHEAD_STEPS 8
#define KEPT_STEPS 64
#define KEPT_BYTES ((size_t)64 << 20)      /* of a job */
#define KEPT_BYTES_ALL ((size_t)256 << 20) /* of all jobs */

/* A listener: its socket, NULL for TCP, and its address once bound. */
struct listener {
    struct unix_socket *socket;
    int port;
    char bound[ADDRESS_BYTES];  /* as clients reach it from outside */
    char target[ADDRESS_BYTES]; /* and from here */
};

struct daemon {
    int argc;
    char **argv; /* without the program's name */
    struct config_env env;
    struct arena *arena; /* of the configuration */
    struct config config;
    struct rpc_ctx ctx;
    struct pipeline_memory memory;
    struct cq *cq;
    struct server *server;
    struct listener *listeners; /* [config.listen.n] */
    struct loop_signal *signals[3];
    struct loop_timer *watchdog, *extend;
    struct self_check *self_check;
    struct drain *drain;
    struct skrull_error err; /* of the start */
    bool is_restoring, is_draining, is_restarting, has_failed;
};

static void log_error(const char *event, const struct skrull_error *err)
{
    log_event(LOG_LEVEL_ERROR, event, LOG_TEXT("why", err->message));
}

static bool is_verbose(const struct daemon *daemon)
{
    return strcmp(daemon->config.log_level, "debug") == 0;
}

static void notify(const char *state)
{
    struct skrull_error err = {0};

    if (notify_send(getenv("NOTIFY_SOCKET"), state, &err) < 0) {
        log_event(LOG_LEVEL_WARN, "notify_failed", LOG_TEXT("why", err.message));
    }
}

/* systemd wants the time with it, and READY=1 afterwards. */
static void notify_reloading(void)
{
    struct timespec now;
    char state[64];

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    (void)snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%lld",
                   (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
    notify(state);
}

static void release_sockets(struct daemon *daemon)
{
    for (size_t i = 0; daemon->listeners && i < daemon->config.listen.n; i++) {
        unix_socket_release(daemon->listeners[i].socket);
    }
    free(daemon->listeners);
    daemon->listeners = NULL;
}

/* --- down --- */

static _Noreturn void stop_at_once(struct daemon *daemon, int status, const char *why)
{
    log_event(status == EXIT_SUCCESS ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "stopped",
              LOG_TEXT("why", why));
    release_sockets(daemon);
    _exit(status);
}

/* Returns only where it fails. */
static void restart(char *const *argv)
{
    reexec(argv);
    log_event(LOG_LEVEL_ERROR, "restart_failed", LOG_TEXT("why", strerror(errno)));
}

static void on_drained(void *arg, enum drain_end end)
{
    struct daemon *daemon = (struct daemon *)arg;

    daemon->has_failed = daemon->has_failed || end != DRAIN_CLEAN;
    if (end == DRAIN_STUCK && daemon->is_restarting) {
        release_sockets(daemon);
        restart(daemon->argv - 1);
    }
    if (end == DRAIN_STUCK) {
        stop_at_once(daemon, EXIT_FAILURE, "calls did not end");
    }
    loop_stop(daemon->ctx.loop);
}

static void start_drain(struct daemon *daemon, uint64_t timeout_ms)
{
    daemon->is_draining = true;
    if (!daemon->has_failed) { /* else it never served */
        log_event(LOG_LEVEL_INFO, "draining", LOG_U64("seconds", timeout_ms / 1000));
    }
    self_check_stop(daemon->self_check);
    drain_start(daemon->drain, daemon->server, timeout_ms);
}

static void on_stop(void *arg)
{
    struct daemon *daemon = (struct daemon *)arg;

    notify("STOPPING=1");
    if (daemon->is_restoring) {
        stop_at_once(daemon, EXIT_SUCCESS, "asked to while jobs were restored");
    }
    if (daemon->is_restarting) {
        daemon->is_restarting = false; /* its drain becomes the last one */
        return;
    }
    if (daemon->is_draining) {
        stop_at_once(daemon, EXIT_FAILURE, "second signal");
    }
    start_drain(daemon, daemon->config.drain_timeout_s * 1000);
}

/* The new process listens where this one does, also where it picked the port. */
static int keep_ports(const struct daemon *daemon)
{
    size_t n = daemon->config.listen.n;
    int *ports = ARENA_ARRAY(daemon->arena, int, n);

    if (!ports) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        ports[i] = daemon->listeners[i].port;
    }
    return reexec_keep_ports(ports, n);
}

/* No client can connect any more, and only a new process mends that. */
static void on_deaf(void *arg)
{
    struct daemon *daemon = (struct daemon *)arg;

    if (daemon->is_draining || keep_ports(daemon) < 0) {
        return;
    }
    log_event(LOG_LEVEL_ERROR, "restarting",
              LOG_TEXT("why", "a listener takes no connections any more, as after descriptors ran "
                              "out"));
    daemon->is_restarting = true;
    notify_reloading();
    start_drain(daemon, RESTART_DRAIN_MS);
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

    notify_reloading();
    if (!arena ||
        config_parse(arena, daemon->argc, daemon->argv, &daemon->env, &config, &err) < 0) {
        log_error("reload_failed", &err);
    } else {
        set_log(&config);
        log_event(LOG_LEVEL_INFO, "reloaded", LOG_TEXT("log_level", config.log_level));
    }
    arena_free(arena);
    notify("READY=1");
}

static void on_watchdog(void *arg)
{
    struct daemon *daemon = (struct daemon *)arg;

    if (!daemon->self_check || daemon->is_draining || self_check_is_well(daemon->self_check)) {
        notify("WATCHDOG=1");
    }
}

static void on_extend(void *arg)
{
    (void)arg;
    notify(EXTEND_STATE);
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

/* Reflection is for those who may look around: on this machine everyone, elsewhere if asked for. */
static int start_reflection(struct daemon *daemon, struct skrull_error *err)
{
    bool is_on = true;

    for (size_t i = 0; i < daemon->config.listen.n; i++) {
        struct listen_address address;
        int code = listen_address_parse(daemon->config.listen.items[i], &address, err);

        if (code < 0) {
            return code;
        }
        is_on = is_on && address.is_local;
    }
    return is_on || daemon->config.reflection ? reflector_new(&daemon->ctx.reflector, err) : 0;
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
    if (code == 0 && daemon->config.is_state_default) {
        code = store_make_folder(daemon->config.state, err);
    }
    if (code == 0) {
        code = store_open(daemon->config.state, &ctx->store, err);
    }
    if (code < 0) {
        return code;
    }
    daemon->memory.max_bytes = KEPT_BYTES_ALL;
    ctx->pipeline = (struct pipeline_options){.run = run_on_pool,
                                              .run_arg = ctx->loop,
                                              .max_running = n_plan,
                                              .ahead = PLAN_AHEAD_STEPS,
                                              .max_steps = KEPT_STEPS,
                                              .max_bytes = KEPT_BYTES,
                                              .memory = &daemon->memory};
    ctx->registry = registry_new();
    ctx->health = health_new();
    if (!ctx->registry || !ctx->health) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    code = start_reflection(daemon, err);
    if (code == 0) {
        code = plan_streams_new(ctx->loop, daemon->config.heartbeat_s * 1000, &ctx->streams, err);
    }
    if (code == 0) {
        code = serial_new(ctx->loop, &ctx->store_queue, err);
    }
    return code;
}

/* Where a client on this machine finds a listener: an address that means all of them is none. */
static void set_target(struct listener *listener)
{
    static const struct {
        const char *all, *one;
    } names[] = {{"0.0.0.0:", "127.0.0.1:"}, {"[::]:", "[::1]:"}};

    (void)snprintf(listener->target, sizeof(listener->target), "%s", listener->bound);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t len = strlen(names[i].all);

        if (strncmp(listener->bound, names[i].all, len) == 0) {
            (void)snprintf(listener->target, sizeof(listener->target), "%s%s", names[i].one,
                           listener->bound + len);
        }
    }
}

/* "HOST:PORT" with another port. */
static void with_port(const char *text, int port, char ret_text[ADDRESS_BYTES])
{
    const char *colon = strrchr(text, ':');

    (void)snprintf(ret_text, ADDRESS_BYTES, "%.*s:%d", (int)(colon - text), text, port);
}

static int listen_on(struct daemon *daemon, size_t i, struct skrull_error *err)
{
    struct listener *listener = &daemon->listeners[i];
    const char *text = daemon->config.listen.items[i];
    int kept_port = reexec_kept_port(i);
    struct listen_address address;
    int code = listen_address_parse(text, &address, err);

    (void)snprintf(listener->bound, sizeof(listener->bound), "%s", text);
    if (code == 0 && address.path) {
        code = unix_socket_claim(address.path, &listener->socket, err);
    } else if (code == 0 && kept_port > 0) {
        with_port(text, kept_port, listener->bound);
    }
    if (code == 0) {
        code = server_listen(daemon->server, listener->bound, &listener->port, err);
    }
    if (code == 0 && address.path) {
        code = unix_socket_protect(listener->socket, err);
    } else if (code == 0) {
        with_port(text, listener->port, listener->bound);
    }
    set_target(listener);
    return code;
}

static int start_self_check(struct daemon *daemon, struct skrull_error *err)
{
    struct self_check_options options = {.loop = daemon->ctx.loop,
                                         .cq = daemon->cq,
                                         .n_targets = daemon->config.listen.n,
                                         .period_ms = SELF_CHECK_MS,
                                         .answer_ms = ANSWER_MS,
                                         .deaf = on_deaf,
                                         .arg = daemon};
    const char **targets = ARENA_ARRAY(daemon->arena, const char *, options.n_targets);

    if (!targets) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    for (size_t i = 0; i < options.n_targets; i++) {
        targets[i] = daemon->listeners[i].target;
    }
    options.targets = targets;
    return self_check_new(&options, &daemon->self_check, err);
}

static int start_server(struct daemon *daemon, struct skrull_error *err)
{
    size_t n = daemon->config.listen.n;
    int code = cq_new(daemon->ctx.loop, &daemon->cq, err);

    if (code == 0) {
        code = server_new(daemon->cq, &daemon->ctx, &daemon->server, err);
    }
    daemon->listeners = calloc(n, sizeof(*daemon->listeners));
    if (code == 0 && !daemon->listeners) {
        code = skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    for (size_t i = 0; code == 0 && i < n; i++) {
        code = listen_on(daemon, i, err);
    }
    if (code == 0) {
        code = server_start(daemon->server, err);
    }
    if (code == 0) {
        code = start_self_check(daemon, err);
    }
    for (size_t i = 0; code == 0 && i < n; i++) {
        log_event(LOG_LEVEL_INFO, "listening", LOG_TEXT("address", daemon->listeners[i].bound));
    }
    return code;
}

static void restore(void *arg)
{
    struct daemon *daemon = (struct daemon *)arg;
    int code = restore_jobs(&daemon->ctx, &daemon->err);

    if (code < 0) {
        daemon->err.code = code;
    }
}

static void on_restored(void *arg)
{
    struct daemon *daemon = (struct daemon *)arg;
    int code = daemon->err.code;

    daemon->is_restoring = false;
    loop_timer_stop(daemon->extend);
    if (code == 0) {
        code = start_server(daemon, &daemon->err);
    }
    if (code == 0) {
        grpc_log_show_errors(is_verbose(daemon));
        health_set_serving(daemon->ctx.health);
        notify("READY=1\nSTATUS=serving");
        return;
    }
    log_error("start_failed", &daemon->err);
    daemon->has_failed = true;
    if (daemon->server) {
        start_drain(daemon, CUT_MS);
    } else {
        loop_stop(daemon->ctx.loop);
    }
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
        code = drain_new(&daemon->ctx, on_drained, daemon, &daemon->drain, err);
    }
    if (code == 0) {
        code = loop_timer_new(loop, on_extend, daemon, &daemon->extend, err);
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
    loop_timer_free(daemon->watchdog);
    loop_timer_free(daemon->extend);
    self_check_stop(daemon->self_check);
    server_free(daemon->server);
    cq_free(daemon->cq);
    self_check_free(daemon->self_check);
    drain_free(daemon->drain);
    if (ctx->registry) {
        restore_close(ctx);
    }
    serial_free(ctx->store_queue);
    plan_streams_free(ctx->streams);
    reflector_free(ctx->reflector);
    health_free(ctx->health);
    loop_free(ctx->loop); /* waits for plans in the making */
    registry_free(ctx->registry);
    store_close(ctx->store);
    release_sockets(daemon);
    arena_free(daemon->arena);
}

static void run(struct daemon *daemon)
{
    int code = start_stages(daemon, &daemon->err);

    if (code == 0) {
        code = start_handles(daemon, &daemon->err);
    }
    if (code == 0) {
        daemon->is_restoring = true;
        log_event(LOG_LEVEL_DEBUG, "restoring", LOG_TEXT("state", daemon->config.state));
        loop_timer_start(daemon->extend, EXTEND_FIRST_MS, EXTEND_MS);
        code = loop_work(daemon->ctx.loop, restore, on_restored, daemon);
    }
    if (code < 0) {
        log_error("start_failed", &daemon->err);
        daemon->has_failed = true;
        return;
    }
    loop_run(daemon->ctx.loop);
    if (!daemon->has_failed) {
        log_event(LOG_LEVEL_INFO, "stopped", LOG_TEXT("why", "drained"));
    }
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

/* Each thread would get a heap of its own and keep in it what its largest plan took: 20 MB and more
 * on two cores, for nothing. */
static void limit_heaps(void)
{
#ifdef M_ARENA_MAX
    (void)mallopt(M_ARENA_MAX, 2 + (int)loop_cores() / 4);
#endif
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
    bool is_restarting;
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
    limit_heaps();
    set_log(&daemon.config);
    grpc_log_install(is_verbose(&daemon));
    server_library_init();
    run(&daemon);
    is_restarting = daemon.is_restarting;
    finish(&daemon);
    server_library_shutdown();
    if (is_restarting) {
        restart(argv);
    }
    return is_restarting || daemon.has_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
