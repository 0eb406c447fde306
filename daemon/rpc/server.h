/* The gRPC server: listeners, armed methods, drain. Loop thread only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <skrull/error.h>

struct cq;
struct rpc_ctx;
struct server;

/* gRPC itself: before the first cq_new, and after the last cq_free. Never fork in between. */
void server_library_init(void);
void server_library_shutdown(void);

/* A new server with every method of methods.def. `cq` and `ctx` are borrowed and outlive it. */
int server_new(struct cq *cq, struct rpc_ctx *ctx, struct server **ret_server,
               struct skrull_error *err);

/*
 * Adds a listener in plain text, before server_start: "HOST:PORT", "[V6]:PORT" or "unix:PATH", as
 * listen.h has checked it. *ret_port is the port that was bound (1 for a socket path). UNAVAILABLE:
 * it cannot be bound.
 */
int server_listen(struct server *server, const char *address, int *ret_port,
                  struct skrull_error *err);

/* Starts to take calls. */
int server_start(struct server *server, struct skrull_error *err);

/*
 * Takes no more calls, closes the listeners, and calls drained(arg) once the last call has ended
 * and the connections are closed. Streams must be ended by their owners.
 */
void server_drain(struct server *server, void (*drained)(void *arg), void *arg);

/* A call is answered, or a stream open. */
bool server_has_calls(const struct server *server);

/* While draining: cancels the calls that are left, and closes the connections. */
void server_cut(struct server *server);

/* A server that never started, or has drained. NULL is fine. */
void server_free(struct server *server);
