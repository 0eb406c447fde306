/*
 * The self-check against a listener that never answers, and with no descriptors left. Against a
 * real daemon, deaf and not, it is tested from outside: integration, test_traps.
 */
#include "rpc/self_check.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <uv.h>

#include "loop/loop.h"
#include "rpc/cq.h"
#include "rpc/server.h"

struct fixture {
    struct loop *loop;
    struct cq *cq;
    struct self_check *check;
    char folder[32], target[64];
    int listener;
    int n_deaf;
};

static void on_deaf(void *arg)
{
    ((struct fixture *)arg)->n_deaf++;
}

/* A socket that connections reach and nobody serves: what a deaf listener looks like. */
static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    assert_non_null(fixture);
    (void)snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/skrull-check-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", fixture->folder);
    (void)snprintf(fixture->target, sizeof(fixture->target), "unix:%s/s", fixture->folder);
    fixture->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fixture->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fixture->listener, 8), 0);
    server_library_init();
    assert_int_equal(loop_new(1, &fixture->loop, NULL), 0);
    assert_int_equal(cq_new(fixture->loop, &fixture->cq, NULL), 0);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    self_check_stop(fixture->check);
    cq_free(fixture->cq);
    self_check_free(fixture->check);
    loop_free(fixture->loop);
    server_library_shutdown();
    (void)close(fixture->listener);
    (void)unlink(fixture->target + strlen("unix:"));
    (void)rmdir(fixture->folder);
    free(fixture);
    return 0;
}

static void start(struct fixture *fixture, uint64_t answer_ms)
{
    const char *targets[] = {fixture->target};
    const struct self_check_options options = {.loop = fixture->loop,
                                               .cq = fixture->cq,
                                               .targets = targets,
                                               .n_targets = 1,
                                               .period_ms = 1,
                                               .answer_ms = answer_ms,
                                               .deaf = on_deaf,
                                               .arg = fixture};

    assert_int_equal(self_check_new(&options, &fixture->check, NULL), 0);
    assert_true(self_check_is_well(fixture->check));
}

static void test_self_check__unwell_but_no_restart_where_nothing_ever_answered(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, 20);
    while (self_check_is_well(fixture->check)) {
        (void)uv_run(loop_uv(fixture->loop), UV_RUN_ONCE);
    }
    assert_int_equal(fixture->n_deaf, 0);
}

static void test_self_check__stops_in_the_middle_of_a_call(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, 60000);
    for (int i = 0; i < 3; i++) {
        (void)uv_run(loop_uv(fixture->loop), UV_RUN_ONCE);
    }
    assert_true(self_check_is_well(fixture->check)); /* the call is still under way */
}

static void test_self_check__says_nothing_without_descriptors(void **state)
{
    struct fixture *fixture = *state;
    struct rlimit before, low;
    int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_true(lowest >= 0);
    (void)close(lowest);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = before;
    low.rlim_cur = (rlim_t)lowest + 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    start(fixture, 1);
    for (int i = 0; i < 20; i++) {
        (void)uv_run(loop_uv(fixture->loop), UV_RUN_ONCE);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(self_check_is_well(fixture->check));
}

#define FIXTURE_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_self_check__unwell_but_no_restart_where_nothing_ever_answered),
        FIXTURE_TEST(test_self_check__stops_in_the_middle_of_a_call),
        FIXTURE_TEST(test_self_check__says_nothing_without_descriptors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
