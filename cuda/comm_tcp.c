/*
 * A star of TCP connections, with data rank 0 in the middle: for ranks that a launcher other than
 * MPI has started. It gathers bytes and tells who gives up, no more; the first frame that is not
 * data ends everything. All waiting is against a deadline. Strangers that connect are sent away by
 * their first bytes. Frames are of this machine's byte order, as the ranks run one program. Only
 * the thread that opened it may call.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "comm.h"
#include "launcher.h"

#define MAGIC UINT64_C(0x31304c4c55524b53) /* "SKRULL01" */
#define MAX_RANKS 65536u
#define STRANGER_MS 2000
#define FAREWELL_MS 1000
#define RETRY_NS 50000000
#define TRY_US 5000000

/* END: a rank leaves, having done all. One that dies does not say so. */
enum frame_kind { FRAME_HELLO = 1, FRAME_DATA, FRAME_FAILURE, FRAME_END };

struct frame {
    uint64_t magic;
    uint32_t kind, rank, size, reserved;
    uint64_t bytes; /* that follow */
};

struct tcp_comm {
    struct skrull_comm comm;
    int *sockets; /* rank 0: [size], by rank, -1 its own; else [1], to rank 0 */
    uint32_t n_sockets;
    bool is_failed;
};

static struct tcp_comm *tcp_of(struct skrull_comm *comm)
{
    return (struct tcp_comm *)(void *)comm;
}

static uint32_t peer_of(const struct tcp_comm *tcp, uint32_t i)
{
    return tcp->comm.rank == 0 ? i : 0;
}

static int64_t deadline_after(int64_t ms)
{
    return comm_now_ns() + ms * 1000000;
}

/* Waits until a socket is ready. 0, or DEADLINE_EXCEEDED. */
static int await(int fd, short events, int64_t deadline_ns, struct skrull_error *err)
{
    for (;;) {
        struct pollfd poller = {.fd = fd, .events = events};
        int64_t left_ms = (deadline_ns - comm_now_ns()) / 1000000;
        int n = poll(&poller, 1, left_ms > 0 ? (int)(left_ms < 1000 ? left_ms : 1000) : 0);

        if (n > 0) {
            return 0;
        }
        if (left_ms <= 0) {
            return skrull_error_set(err, SKRULL_ERR_DEADLINE_EXCEEDED, "it did not come in time");
        }
    }
}

/* All of `bytes`, in or out. */
static int move_bytes(int fd, bool is_out, void *memory, size_t bytes, int64_t deadline_ns,
                      struct skrull_error *err)
{
    char *at = memory;

    while (bytes) {
        ssize_t n = is_out ? send(fd, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT)
                           : recv(fd, at, bytes, MSG_DONTWAIT);

        if (n > 0) {
            at += n;
            bytes -= (size_t)n;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            return skrull_error_set(err, SKRULL_ERR_UNAVAILABLE, "the connection broke%s%s",
                                    n == 0 ? "" : ": ", n == 0 ? "" : strerror(errno));
        } else {
            int rc = await(fd, is_out ? POLLOUT : POLLIN, deadline_ns, err);

            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}

static int send_frame(const struct tcp_comm *tcp, int fd, enum frame_kind kind, const void *data,
                      size_t bytes, int64_t deadline_ns, struct skrull_error *err)
{
    struct frame frame = {.magic = MAGIC,
                          .kind = kind,
                          .rank = tcp->comm.rank,
                          .size = tcp->comm.size,
                          .bytes = bytes};
    int rc = move_bytes(fd, true, &frame, sizeof(frame), deadline_ns, err);

    return rc < 0 ? rc : move_bytes(fd, true, (void *)(uintptr_t)data, bytes, deadline_ns, err);
}

/* What a rank said before it left. */
static int take_failure(int fd, const struct frame *frame, int64_t deadline_ns,
                        struct skrull_error *err)
{
    char words[SKRULL_ERROR_MESSAGE_SIZE] = "";
    size_t bytes = frame->bytes < sizeof(words) ? (size_t)frame->bytes : sizeof(words) - 1;

    (void)move_bytes(fd, false, words, bytes, deadline_ns, NULL);
    words[sizeof(words) - 1] = '\0';
    return skrull_error_set(err, SKRULL_ERR_ABORTED, "another rank gave up: %s", words);
}

/* Exactly `bytes` of data from a peer. */
static int take_data(const struct tcp_comm *tcp, uint32_t i, void *to, size_t bytes,
                     int64_t deadline_ns, struct skrull_error *err)
{
    struct frame frame;
    int fd = tcp->sockets[i];
    int rc = move_bytes(fd, false, &frame, sizeof(frame), deadline_ns, err);

    if (rc == 0 && frame.magic == MAGIC && frame.kind == FRAME_FAILURE) {
        return take_failure(fd, &frame, deadline_ns, err);
    }
    if (rc == 0 && frame.magic == MAGIC && frame.kind == FRAME_END) {
        rc = skrull_error_set(err, SKRULL_ERR_UNAVAILABLE, "it has done all that it had to");
    } else if (rc == 0 &&
               (frame.magic != MAGIC || frame.kind != FRAME_DATA || frame.bytes != bytes)) {
        rc = skrull_error_set(err, SKRULL_ERR_DATA_LOSS, "it exchanges different things");
    }
    if (rc == 0) {
        rc = move_bytes(fd, false, to, bytes, deadline_ns, err);
    }
    return rc < 0 ? skrull_error_prefix(err, rc, "data rank %" PRIu32, peer_of(tcp, i)) : 0;
}

static int gather_here(struct tcp_comm *tcp, const void *mine, size_t bytes, char *all,
                       int64_t deadline_ns, struct skrull_error *err)
{
    int rc = 0;

    memmove(all, mine, bytes);
    for (uint32_t r = 1; r < tcp->comm.size && rc == 0; r++) {
        rc = take_data(tcp, r, all + r * bytes, bytes, deadline_ns, err);
    }
    for (uint32_t r = 1; r < tcp->comm.size && rc == 0; r++) {
        rc = send_frame(tcp, tcp->sockets[r], FRAME_DATA, all, tcp->comm.size * bytes, deadline_ns,
                        err);
    }
    return rc;
}

static int tcp_gather(struct skrull_comm *comm, const void *mine, size_t bytes, void *all,
                      struct skrull_error *err)
{
    struct tcp_comm *tcp = tcp_of(comm);
    int64_t deadline_ns = deadline_after(comm->timeout_ms);
    int rc;

    if (comm->rank == 0) {
        rc = gather_here(tcp, mine, bytes, all, deadline_ns, err);
    } else {
        rc = send_frame(tcp, tcp->sockets[0], FRAME_DATA, mine, bytes, deadline_ns, err);
        if (rc == 0) {
            rc = take_data(tcp, 0, all, comm->size * bytes, deadline_ns, err);
        }
    }
    if (rc < 0) {
        skrull_comm_fail(comm, err);
    }
    return rc;
}

/* Data that comes early stays where it is. */
static int tcp_check(struct skrull_comm *comm, struct skrull_error *err)
{
    const struct tcp_comm *tcp = tcp_of(comm);

    for (uint32_t i = 0; i < tcp->n_sockets; i++) {
        struct frame frame;
        ssize_t n = tcp->sockets[i] < 0
                        ? -1
                        : recv(tcp->sockets[i], &frame, sizeof(frame), MSG_PEEK | MSG_DONTWAIT);

        if (n == 0) {
            return skrull_error_set(err, SKRULL_ERR_UNAVAILABLE, "data rank %" PRIu32 " has died",
                                    peer_of(tcp, i));
        }
        if (n == (ssize_t)sizeof(frame) && frame.kind == FRAME_FAILURE) {
            int64_t deadline_ns = deadline_after(FAREWELL_MS);

            (void)move_bytes(tcp->sockets[i], false, &frame, sizeof(frame), deadline_ns, NULL);
            return take_failure(tcp->sockets[i], &frame, deadline_ns, err);
        }
    }
    return 0;
}

static void tcp_fail(struct skrull_comm *comm, const struct skrull_error *why)
{
    struct tcp_comm *tcp = tcp_of(comm);
    const char *words = why ? why->message : "it did not say why";
    int64_t deadline_ns = deadline_after(FAREWELL_MS);

    for (uint32_t i = 0; i < tcp->n_sockets && !tcp->is_failed; i++) {
        if (tcp->sockets[i] >= 0) {
            (void)send_frame(tcp, tcp->sockets[i], FRAME_FAILURE, words, strlen(words), deadline_ns,
                             NULL);
        }
    }
    tcp->is_failed = true;
}

/* A socket that is closed with something unread takes back what was sent last. */
static void drain(int fd, int64_t deadline_ns)
{
    char waste[4096];

    (void)shutdown(fd, SHUT_WR);
    while (await(fd, POLLIN, deadline_ns, NULL) == 0 &&
           recv(fd, waste, sizeof(waste), MSG_DONTWAIT) > 0) {
    }
}

static void tcp_free(struct skrull_comm *comm)
{
    struct tcp_comm *tcp = tcp_of(comm);
    int64_t deadline_ns = deadline_after(FAREWELL_MS);

    for (uint32_t i = 0; i < tcp->n_sockets; i++) {
        if (tcp->sockets[i] >= 0 && tcp->is_failed) {
            drain(tcp->sockets[i], deadline_ns);
        } else if (tcp->sockets[i] >= 0) {
            (void)send_frame(tcp, tcp->sockets[i], FRAME_END, NULL, 0, deadline_ns, NULL);
        }
    }
    for (uint32_t i = 0; i < tcp->n_sockets; i++) {
        if (tcp->sockets[i] >= 0) {
            (void)close(tcp->sockets[i]);
        }
    }
    free(tcp->sockets);
    free(tcp);
}

static const struct comm_ops tcp_ops = {
    .name = "tcp",
    .gather = tcp_gather,
    .check = tcp_check,
    .fail = tcp_fail,
    .free = tcp_free,
};

static int resolve(const struct launcher_place *place, bool is_passive, struct addrinfo **ret,
                   struct skrull_error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = is_passive ? AI_PASSIVE : 0};
    char port[8];
    int code;

    (void)snprintf(port, sizeof(port), "%" PRIu16, place->port);
    code = getaddrinfo(is_passive ? NULL : place->host, port, &hints, ret);
    return code == 0 ? 0
                     : skrull_error_set(err, SKRULL_ERR_UNAVAILABLE, "%s: %s", place->host,
                                        gai_strerror(code));
}

/* A listening socket for both families where there is one. */
static int listen_at(const struct launcher_place *place, int *ret_fd, struct skrull_error *err)
{
    const int yes = 1, no = 0;
    struct addrinfo *addresses = NULL;
    int fd = -1, rc = resolve(place, true, &addresses, err);

    for (int family = AF_INET6; rc == 0 && fd < 0; family = AF_INET) {
        for (const struct addrinfo *a = addresses; a && fd < 0; a = a->ai_next) {
            fd = a->ai_family == family ? socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
            if (fd < 0) {
                continue;
            }
            (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
            if (family == AF_INET6) {
                (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
            }
            if (bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, 1024) != 0) {
                (void)close(fd);
                fd = -1;
            }
        }
        if (family == AF_INET) {
            break;
        }
    }
    if (addresses) {
        freeaddrinfo(addresses);
    }
    if (rc == 0 && fd < 0) {
        rc = skrull_error_set(err, SKRULL_ERR_UNAVAILABLE,
                              "data rank 0 cannot listen at port %" PRIu16
                              ": %s; SKRULL_PORT names another",
                              place->port, strerror(errno));
    }
    if (rc == 0) {
        *ret_fd = fd;
    }
    return rc;
}

/* Whoever connects and is one of the ranks. */
static void greet(struct tcp_comm *tcp, int fd, uint32_t *n_here)
{
    const int yes = 1;
    struct frame frame = {0};
    int rc = move_bytes(fd, false, &frame, sizeof(frame), deadline_after(STRANGER_MS), NULL);

    if (rc < 0 || frame.magic != MAGIC || frame.kind != FRAME_HELLO ||
        frame.size != tcp->comm.size || frame.rank == 0 || frame.rank >= tcp->comm.size ||
        tcp->sockets[frame.rank] >= 0) {
        (void)close(fd);
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    tcp->sockets[frame.rank] = fd;
    (*n_here)++;
}

static uint32_t first_missing(const struct tcp_comm *tcp)
{
    uint32_t r = 1;

    while (r < tcp->comm.size && tcp->sockets[r] >= 0) {
        r++;
    }
    return r;
}

static int accept_all(struct tcp_comm *tcp, const struct launcher_place *place,
                      struct skrull_error *err)
{
    int64_t deadline_ns = deadline_after(tcp->comm.timeout_ms);
    uint32_t n_here = 1;
    int listener = -1, rc = listen_at(place, &listener, err);

    while (rc == 0 && n_here < tcp->comm.size) {
        rc = await(listener, POLLIN, deadline_ns, NULL);
        if (rc < 0) {
            rc = skrull_error_set(err, rc,
                                  "data rank 0 waited %" PRId64 " ms for data rank %" PRIu32
                                  ", which did not come",
                                  tcp->comm.timeout_ms, first_missing(tcp));
        } else {
            int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

            if (fd >= 0) {
                greet(tcp, fd, &n_here);
            } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
                rc = skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                      "data rank 0 cannot take data rank %" PRIu32 " in: %s",
                                      first_missing(tcp), strerror(errno));
            }
        }
    }
    if (listener >= 0) {
        (void)close(listener);
    }
    return rc;
}

/* One try at every address; -1: nobody listens. A host that does not even refuse would hold up the
 * others for minutes. */
static int try_connect(const struct addrinfo *addresses, int64_t deadline_ns)
{
    for (const struct addrinfo *a = addresses; a; a = a->ai_next) {
        int64_t left_us = (deadline_ns - comm_now_ns()) / 1000;
        int64_t try_us = left_us < TRY_US ? left_us : TRY_US;
        const struct timeval limit = {.tv_sec = try_us / 1000000, .tv_usec = try_us % 1000000};
        int fd = try_us > 0 ? socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;

        if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0 &&
            connect(fd, a->ai_addr, a->ai_addrlen) == 0) {
            return fd;
        }
        if (fd >= 0) {
            (void)close(fd);
        }
    }
    return -1;
}

/* Until data rank 0 listens. */
static int connect_to(struct tcp_comm *tcp, const struct launcher_place *place,
                      struct skrull_error *err)
{
    const struct timespec nap = {.tv_nsec = RETRY_NS};
    int64_t deadline_ns = deadline_after(tcp->comm.timeout_ms);
    const int yes = 1;
    struct addrinfo *addresses;
    int rc = resolve(place, false, &addresses, err);

    if (rc < 0) {
        return rc;
    }
    for (;;) {
        tcp->sockets[0] = try_connect(addresses, deadline_ns);
        if (tcp->sockets[0] >= 0 || comm_now_ns() > deadline_ns) {
            break;
        }
        (void)nanosleep(&nap, NULL);
    }
    freeaddrinfo(addresses);
    if (tcp->sockets[0] < 0) {
        return skrull_error_set(err, SKRULL_ERR_DEADLINE_EXCEEDED,
                                "data rank %" PRIu32 " found nobody at %s port %" PRIu16
                                " in %" PRId64 " ms",
                                tcp->comm.rank, place->host, place->port, tcp->comm.timeout_ms);
    }
    (void)setsockopt(tcp->sockets[0], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    return send_frame(tcp, tcp->sockets[0], FRAME_HELLO, NULL, 0, deadline_ns, err);
}

static struct tcp_comm *tcp_new(const struct launcher_place *place, int64_t timeout_ms)
{
    struct tcp_comm *tcp = calloc(1, sizeof(*tcp));
    uint32_t n = place->rank == 0 ? place->size : 1;

    if (tcp) {
        tcp->sockets = calloc(n, sizeof(tcp->sockets[0]));
    }
    if (!tcp || !tcp->sockets) {
        free(tcp);
        return NULL;
    }
    tcp->n_sockets = n;
    for (uint32_t i = 0; i < n; i++) {
        tcp->sockets[i] = -1;
    }
    tcp->comm = (struct skrull_comm){
        .ops = &tcp_ops, .rank = place->rank, .size = place->size, .timeout_ms = timeout_ms};
    return tcp;
}

int skrull_comm_tcp(int64_t timeout_ms, struct skrull_comm **ret_comm, struct skrull_error *err)
{
    struct launcher_place place;
    struct tcp_comm *tcp;
    int rc = launcher_find(&place, err);

    if (rc < 0) {
        return rc;
    }
    tcp = place.size <= MAX_RANKS ? tcp_new(&place, timeout_ms) : NULL;
    if (!tcp) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "out of memory for %" PRIu32 " ranks", place.size);
    }
    if (place.size > 1) {
        rc = place.rank == 0 ? accept_all(tcp, &place, err) : connect_to(tcp, &place, err);
    }
    if (rc < 0) {
        tcp_free(&tcp->comm);
        return rc;
    }
    *ret_comm = &tcp->comm;
    return 0;
}
