/*
 * Ranks that find each other by TCP, each a process with the environment of a launcher: they
 * gather, a rank that gives up is heard, one that never comes or dies is named, strangers are sent
 * away.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "comm.h"

#define N_RANKS 5u

/* A port that was free a moment ago. */
static uint16_t free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    (void)close(fd);
    return ntohs(address.sin_port);
}

static void set_number(const char *name, uint32_t value)
{
    char text[16];

    (void)snprintf(text, sizeof(text), "%u", value);
    (void)setenv(name, text, 1);
}

typedef bool (*rank_fn)(uint32_t rank);

/* Every rank a child, but for `absent`; each returns whether it saw what it should. */
static void run_ranks(rank_fn run, uint32_t absent)
{
    uint16_t port = free_port();
    pid_t children[N_RANKS];

    for (uint32_t r = 0; r < N_RANKS; r++) {
        children[r] = r == absent ? 0 : fork();
        assert_true(children[r] >= 0);
        if (children[r] == 0 && r != absent) {
            set_number("RANK", r);
            set_number("WORLD_SIZE", N_RANKS);
            set_number("MASTER_PORT", port);
            (void)setenv("MASTER_ADDR", "127.0.0.1", 1);
            _exit(run(r) ? 0 : 1);
        }
    }
    for (uint32_t r = 0; r < N_RANKS; r++) {
        int status;

        if (r != absent) {
            assert_int_equal(waitpid(children[r], &status, 0), children[r]);
            if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
                fail_msg("rank %u", r);
            }
        }
    }
}

static struct skrull_comm *open_tcp(int64_t timeout_ms)
{
    struct skrull_comm *comm = NULL;
    struct skrull_error err;

    if (skrull_comm_tcp(timeout_ms, &comm, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
    }
    return comm;
}

/* Sizes from nothing to more than a socket holds. */
static bool gather_all(uint32_t rank)
{
    static const size_t sizes[] = {1, 13, 70000, 3000000};
    struct skrull_comm *comm = open_tcp(20000);
    bool is_sound = comm && skrull_comm_rank(comm) == rank && skrull_comm_size(comm) == N_RANKS;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && is_sound; i++) {
        char *mine = malloc(sizes[i]), *all = malloc(N_RANKS * sizes[i]);

        is_sound = mine && all;
        if (is_sound) {
            memset(mine, (int)(rank + i), sizes[i]);
            is_sound = skrull_comm_gather(comm, mine, sizes[i], all, NULL) == 0;
        }
        for (uint32_t r = 0; r < N_RANKS && is_sound; r++) {
            is_sound =
                all[r * sizes[i]] == (char)(r + i) && all[(r + 1) * sizes[i] - 1] == (char)(r + i);
        }
        free(mine);
        free(all);
    }
    skrull_comm_free(comm);
    return is_sound;
}

static void test_comm_tcp__gathers(void **state)
{
    (void)state;
    run_ranks(gather_all, N_RANKS);
}

static bool hear_failure(uint32_t rank)
{
    struct skrull_comm *comm = open_tcp(20000);
    struct skrull_error err = {0};
    char all[N_RANKS];
    bool is_sound = comm != NULL;

    if (is_sound && rank == 3) {
        (void)skrull_error_set(&err, SKRULL_ERR_INTERNAL, "the disk is full");
        skrull_comm_fail(comm, &err);
    } else if (is_sound) {
        is_sound = skrull_comm_gather(comm, "x", 1, all, &err) == SKRULL_ERR_ABORTED &&
                   strstr(err.message, "the disk is full") != NULL;
    }
    skrull_comm_free(comm);
    return is_sound;
}

static void test_comm_tcp__rank_gives_up(void **state)
{
    (void)state;
    run_ranks(hear_failure, N_RANKS);
}

/* One that is asked from time to time, while something else is waited for. */
static bool check_failure(uint32_t rank)
{
    struct skrull_comm *comm = open_tcp(20000);
    struct skrull_error err = {0};
    char all[N_RANKS];
    int rc = comm ? skrull_comm_gather(comm, "x", 1, all, &err) : -1;

    if (rc == 0 && rank == 0) {
        (void)skrull_error_set(&err, SKRULL_ERR_INTERNAL, "too hot");
        skrull_comm_fail(comm, &err);
    } else {
        while (rc == 0) {
            rc = comm->ops->check(comm, &err);
        }
        rc = rc == SKRULL_ERR_ABORTED && strstr(err.message, "too hot") ? 0 : -1;
    }
    skrull_comm_free(comm);
    return rc == 0;
}

static void test_comm_tcp__failure_is_seen_meanwhile(void **state)
{
    (void)state;
    run_ranks(check_failure, N_RANKS);
}

/* Some leave, and others still look whether all are well; the last one dies. */
static bool leave_or_die(uint32_t rank)
{
    struct skrull_comm *comm = open_tcp(20000);
    struct skrull_error err = {0};
    char all[N_RANKS];
    int rc = comm ? skrull_comm_gather(comm, "x", 1, all, &err) : -1;

    if (rank == N_RANKS - 1) {
        _exit(rc == 0 ? 0 : 1);
    }
    while (rc == 0 && rank == 0) {
        rc = comm->ops->check(comm, &err);
    }
    if (rank == 0) {
        rc = rc == SKRULL_ERR_UNAVAILABLE && strstr(err.message, "data rank 4 has died") ? 0 : -1;
    }
    skrull_comm_free(comm);
    return rc == 0;
}

static void test_comm_tcp__leaving_is_not_dying(void **state)
{
    (void)state;
    run_ranks(leave_or_die, N_RANKS);
}

static bool name_absent(uint32_t rank)
{
    struct skrull_comm *comm = NULL;
    struct skrull_error err = {0};
    char all[N_RANKS];
    int rc = skrull_comm_tcp(700, &comm, &err);

    if (rc == 0) {
        rc = skrull_comm_gather(comm, "x", 1, all, &err);
        skrull_comm_free(comm);
    }
    return rank == 0 ? rc == SKRULL_ERR_DEADLINE_EXCEEDED &&
                           strstr(err.message, "data rank 2, which did not come")
                     : rc < 0;
}

static void test_comm_tcp__rank_never_comes(void **state)
{
    (void)state;
    run_ranks(name_absent, 2);
}

/* Rank 1 says something else first, as a scanner of ports might. */
static bool send_strangers_away(uint32_t rank)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port =
                                      htons((uint16_t)strtoul(getenv("MASTER_PORT"), NULL, 10)),
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    char answer;

    if (rank == 1) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        while (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
            (void)close(fd);
            fd = socket(AF_INET, SOCK_STREAM, 0);
        }
        if (send(fd, "GET / HTTP/1.1\r\nHost: everybody\r\n\r\n1234567890", 45, MSG_NOSIGNAL) !=
                45 ||
            recv(fd, &answer, 1, 0) > 0) {
            return false;
        }
        (void)close(fd);
    }
    return gather_all(rank);
}

static void test_comm_tcp__strangers(void **state)
{
    (void)state;
    run_ranks(send_strangers_away, N_RANKS);
}

/* Its kernel takes no connection any more and does not refuse one either. */
static void test_comm_tcp__host_that_does_not_answer(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0), filling[4];
    struct skrull_comm *comm = NULL;
    struct skrull_error err;
    int64_t start;

    (void)state;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    assert_int_equal(listen(listener, 0), 0);
    for (size_t i = 0; i < 4; i++) {
        filling[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(filling[i], (struct sockaddr *)&address, sizeof(address));
    }
    set_number("RANK", 1);
    set_number("WORLD_SIZE", 2);
    set_number("MASTER_PORT", ntohs(address.sin_port));
    (void)setenv("MASTER_ADDR", "127.0.0.1", 1);
    start = comm_now_ns();
    assert_int_equal(skrull_comm_tcp(300, &comm, &err), SKRULL_ERR_DEADLINE_EXCEEDED);
    assert_true(comm_now_ns() - start < INT64_C(20000000000));
    for (size_t i = 0; i < 4; i++) {
        (void)close(filling[i]);
    }
    (void)close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comm_tcp__gathers),
        cmocka_unit_test(test_comm_tcp__rank_gives_up),
        cmocka_unit_test(test_comm_tcp__failure_is_seen_meanwhile),
        cmocka_unit_test(test_comm_tcp__leaving_is_not_dying),
        cmocka_unit_test(test_comm_tcp__rank_never_comes),
        cmocka_unit_test(test_comm_tcp__strangers),
        cmocka_unit_test(test_comm_tcp__host_that_does_not_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
