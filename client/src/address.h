/* Where the daemon is: HOST:PORT, [V6]:PORT or unix:PATH, and what gRPC calls that. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <skrull/error.h>

#define ADDRESS_MAX 300 /* bytes with NUL: a host name of 253, or a socket's path of 107 */

/* What of the environment decides the default address; passed in, so that tests need no
 * environment. */
struct address_environment {
    const char *server;          /* $SKRULL_SERVER, or NULL */
    const char *xdg_runtime_dir; /* $XDG_RUNTIME_DIR, or NULL */
    unsigned uid;
};

/* The address that is used where none is given. INVALID_ARGUMENT: the socket's path would be too
 * long. */
int address_default(const struct address_environment *environment, char ret_address[ADDRESS_MAX],
                    struct skrull_error *err);

/* gRPC's target of an address. INVALID_ARGUMENT says what is wrong and what is allowed. */
int address_to_target(const char *address, char ret_target[ADDRESS_MAX], struct skrull_error *err);
