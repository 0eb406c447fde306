/*
 * The protocol of sd_notify(3): a datagram of KEY=VALUE lines to a UNIX socket, whose name begins
 * with
 * "/" or, for an abstract one, with "@" in place of the leading NUL.
 */
#include "loop/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int notify_send(const char *path, const char *state, struct skrull_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t address_len;
    size_t len;
    ssize_t sent;
    int fd, error;

    if (!path || path[0] == '\0') {
        return 0;
    }
    len = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || len < 2 || len >= sizeof(address.sun_path)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "NOTIFY_SOCKET: %s is not a socket", path);
    }
    memcpy(address.sun_path, path, len);
    if (path[0] == '@') {
        address.sun_path[0] = '\0';
    }
    address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    if (path[0] == '/') {
        address_len++; /* the NUL of a path counts, an abstract name has none */
    }
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return skrull_error_set(err, SKRULL_ERR_UNAVAILABLE, "NOTIFY_SOCKET: %s", strerror(errno));
    }
    sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address,
                  address_len);
    error = errno;
    (void)close(fd);
    if (sent < 0) {
        return skrull_error_set(err, SKRULL_ERR_UNAVAILABLE, "NOTIFY_SOCKET: %s: %s", path,
                                strerror(error));
    }
    return 0;
}

static int parse_u64(const char *text, uint64_t *ret)
{
    unsigned long long value;
    char *end;

    if (!text || text[0] < '0' || text[0] > '9') {
        return SKRULL_ERR_INVALID_ARGUMENT;
    }
    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0') {
        return SKRULL_ERR_INVALID_ARGUMENT;
    }
    *ret = value;
    return 0;
}

uint64_t notify_watchdog_ms(const char *usec, const char *watchdog_pid, int64_t pid)
{
    uint64_t period, wanted_pid, half_ms;

    if (parse_u64(usec, &period) < 0 || period == 0) {
        return 0;
    }
    if (watchdog_pid && (parse_u64(watchdog_pid, &wanted_pid) < 0 || wanted_pid != (uint64_t)pid)) {
        return 0;
    }
    half_ms = period / 2000;
    return half_ms > 0 ? half_ms : 1;
}
