/*
 * Addresses, checked before gRPC sees them: it would take "localhost" for a name without a port and
 * say so only when the first call fails. Pure; any thread.
 */
#include "address.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#define MAX_SOCKET_PATH (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)
#define MAX_HOST 253 /* RFC 1035, as text */

int address_default(const struct address_environment *environment, char ret_address[ADDRESS_MAX],
                    struct skrull_error *err)
{
    char address[ADDRESS_MAX];
    int n;

    if (environment->server && environment->server[0]) {
        n = snprintf(address, sizeof(address), "%s", environment->server);
    } else if (environment->xdg_runtime_dir && environment->xdg_runtime_dir[0]) {
        n = snprintf(address, sizeof(address), "unix:%s/skrull/skrulld.sock",
                     environment->xdg_runtime_dir);
    } else if (environment->uid == 0) {
        n = snprintf(address, sizeof(address), "unix:/run/skrull/skrulld.sock");
    } else {
        n = snprintf(address, sizeof(address), "unix:/tmp/skrull-%u/skrulld.sock",
                     environment->uid);
    }
    if (n < 0 || (size_t)n >= sizeof(address)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "the default server address is longer than %d bytes: give another "
                                "by --server or SKRULL_SERVER",
                                ADDRESS_MAX - 1);
    }
    memcpy(ret_address, address, sizeof(address));
    return 0;
}

static int refuse(struct skrull_error *err, const char *address, const char *why)
{
    return skrull_error_set(
        err, SKRULL_ERR_INVALID_ARGUMENT,
        "server address %.80s: %s; HOST:PORT, [V6]:PORT and unix:PATH are allowed", address, why);
}

/* 1 to 65535 in digits, nothing else. */
static bool is_port(const char *text)
{
    uint32_t port = 0;

    if (!text[0] || strlen(text) > 5) {
        return false;
    }
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9') {
            return false;
        }
        port = port * 10 + (uint32_t)(*c - '0');
    }
    return port >= 1 && port <= 65535;
}

static bool is_host(const char *text, size_t len)
{
    if (len == 0 || len > MAX_HOST) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

        if (!is_letter && !(c >= '0' && c <= '9') && c != '.' && c != '-' && c != '_') {
            return false;
        }
    }
    return true;
}

static int socket_target(const char *address, char ret_target[ADDRESS_MAX],
                         struct skrull_error *err)
{
    size_t len = strlen(address + strlen("unix:"));

    if (len == 0) {
        return refuse(err, address, "the path is empty");
    }
    if (len > MAX_SOCKET_PATH) {
        return skrull_error_set(
            err, SKRULL_ERR_INVALID_ARGUMENT,
            "server address %.80s...: the path has %zu bytes, a socket's has at "
            "most %zu; use a shorter one",
            address, len, MAX_SOCKET_PATH);
    }
    memcpy(ret_target, address, strlen(address) + 1);
    return 0;
}

static int v6_target(const char *address, char ret_target[ADDRESS_MAX], struct skrull_error *err)
{
    const char *end = strchr(address, ']');
    char host[INET6_ADDRSTRLEN];
    struct in6_addr ignored;
    size_t len;

    if (!end || end[1] != ':') {
        return refuse(err, address, "no ]:PORT after the [");
    }
    len = (size_t)(end - address) - 1;
    if (len >= sizeof(host)) {
        return refuse(err, address, "not an IPv6 address in the brackets");
    }
    memcpy(host, address + 1, len);
    host[len] = '\0';
    if (inet_pton(AF_INET6, host, &ignored) != 1) {
        return refuse(err, address, "not an IPv6 address in the brackets");
    }
    if (!is_port(end + 2)) {
        return refuse(err, address, "the port is not a number from 1 to 65535");
    }
    (void)snprintf(ret_target, ADDRESS_MAX, "ipv6:%%5B%s%%5D:%s", host, end + 2);
    return 0;
}

int address_to_target(const char *address, char ret_target[ADDRESS_MAX], struct skrull_error *err)
{
    const char *colon;

    if (strncmp(address, "unix:", 5) == 0) {
        return socket_target(address, ret_target, err);
    }
    if (address[0] == '[') {
        return v6_target(address, ret_target, err);
    }
    colon = strrchr(address, ':');
    if (!colon) {
        return refuse(err, address, "no port");
    }
    if (!is_host(address, (size_t)(colon - address))) {
        return refuse(err, address, "not a host name or an IPv4 address before the port");
    }
    if (!is_port(colon + 1)) {
        return refuse(err, address, "the port is not a number from 1 to 65535");
    }
    (void)snprintf(ret_target, ADDRESS_MAX, "dns:///%s", address);
    return 0;
}
