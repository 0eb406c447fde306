/* Addresses to listen on: HOST:PORT, [V6]:PORT or unix:PATH. */
#pragma once

#include <stdbool.h>

#include <skrull/error.h>

struct listen_address {
    const char *path; /* of a socket, in the text; NULL: TCP */
    bool is_local;    /* a socket path, or loopback */
};

/* INVALID_ARGUMENT: not an address; says what is allowed. `text` is borrowed. */
int listen_address_parse(const char *text, struct listen_address *ret_address,
                         struct skrull_error *err);
