/*
 * The path of a listening UNIX socket. gRPC lets a second daemon take over a path without an error,
 * so who wants to listen first takes a lock beside it.
 */
#pragma once

#include <skrull/error.h>

struct unix_socket;

/*
 * Creates the folder (mode 700) where it is missing, takes PATH.lock, and removes a socket that a
 * crash left behind. FAILED_PRECONDITION: another daemon has the path; PERMISSION_DENIED: the
 * folder is another user's; INVALID_ARGUMENT: something else than a socket is there.
 */
int unix_socket_claim(const char *path, struct unix_socket **ret_socket, struct skrull_error *err);

/* Once it is listening: nobody else may connect (mode 600). */
int unix_socket_protect(const struct unix_socket *socket, struct skrull_error *err);

/* Removes the socket and the lock. NULL is fine. */
void unix_socket_release(struct unix_socket *socket);
