/*
 * Addresses to listen on. Loopback is judged by the text: 127.0.0.0/8, ::1 and "localhost"; any
 * other name may resolve to anything, and so is not.
 */
#include "config/listen_address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#define MAX_HOST 255

static int parse_path(const char *text, const char *path, struct listen_address *ret,
                      struct skrull_error *err)
{
    struct sockaddr_un longest;

    if (path[0] != '/') {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: the path of a socket must be absolute", text);
    }
    if (strlen(path) >= sizeof(longest.sun_path)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: the path of a socket has at most %zu bytes", text,
                                sizeof(longest.sun_path) - 1);
    }
    *ret = (struct listen_address){.path = path, .is_local = true};
    return 0;
}

static bool is_port(const char *text)
{
    unsigned int port = 0;
    size_t len = strlen(text);

    if (len == 0 || len > 5) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        port = port * 10 + (unsigned int)(text[i] - '0');
    }
    return port <= 65535;
}

static bool is_name(const char *host)
{
    for (const char *c = host; *c != '\0'; c++) {
        bool is_alnum =
            (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');

        if (!is_alnum && *c != '.' && *c != '-' && *c != '_') {
            return false;
        }
    }
    return host[0] != '\0';
}

/* 1: loopback, 0: not, -1: no host. */
static int judge_host(const char *host, bool is_bracketed)
{
    struct in6_addr v6;
    struct in_addr v4;

    if (is_bracketed) {
        if (inet_pton(AF_INET6, host, &v6) != 1) {
            return -1;
        }
        return IN6_IS_ADDR_LOOPBACK(&v6) ? 1 : 0;
    }
    if (inet_pton(AF_INET, host, &v4) == 1) {
        return (ntohl(v4.s_addr) >> 24) == 127 ? 1 : 0;
    }
    if (!is_name(host)) {
        return -1;
    }
    return strcmp(host, "localhost") == 0 ? 1 : 0;
}

int listen_address_parse(const char *text, struct listen_address *ret_address,
                         struct skrull_error *err)
{
    const char *colon = strrchr(text, ':');
    bool is_bracketed = text[0] == '[';
    char host[MAX_HOST + 1];
    size_t len;
    int judgement = -1;

    if (strncmp(text, "unix:", 5) == 0) {
        return parse_path(text, text + 5, ret_address, err);
    }
    if (colon && is_port(colon + 1)) {
        const char *from = text + (is_bracketed ? 1 : 0);

        len = (size_t)(colon - from);
        if (is_bracketed) {
            len = len > 0 && from[len - 1] == ']' ? len - 1 : 0;
        }
        if (len > 0 && len <= MAX_HOST) {
            memcpy(host, from, len);
            host[len] = '\0';
            judgement = judge_host(host, is_bracketed);
        }
    }
    if (judgement < 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s is not an address: HOST:PORT, [V6]:PORT or unix:PATH are",
                                text);
    }
    *ret_address = (struct listen_address){.path = NULL, .is_local = judgement == 1};
    return 0;
}
