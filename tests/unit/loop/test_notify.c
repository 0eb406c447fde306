/* The service manager's protocol. */
#include "loop/notify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static void test_notify_send__abstract_socket(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    char name[64], received[64];
    ssize_t len;

    (void)state;
    (void)snprintf(name, sizeof(name), "@skrull-unit-%d", (int)getpid());
    memcpy(address.sun_path + 1, name + 1, strlen(name) - 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
                     0);
    assert_int_equal(notify_send(name, "READY=1", NULL), 0);
    len = recv(fd, received, sizeof(received), 0);
    assert_int_equal(len, 7);
    assert_memory_equal(received, "READY=1", 7);
    (void)close(fd);
}

static void test_notify_send__nobody_listens(void **state)
{
    struct skrull_error err = {0};

    (void)state;
    assert_int_equal(notify_send(NULL, "READY=1", NULL), 0);
    assert_int_equal(notify_send("", "READY=1", NULL), 0);
    assert_int_equal(notify_send("relative", "READY=1", &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "relative"));
    assert_int_equal(notify_send("/nonexistent/socket", "READY=1", &err), SKRULL_ERR_UNAVAILABLE);
    assert_non_null(strstr(err.message, "/nonexistent/socket"));
}

static void test_notify_watchdog_ms__half_of_the_period(void **state)
{
    static const struct {
        const char *usec, *pid;
        uint64_t ms;
    } cases[] = {
        {NULL, NULL, 0},
        {"", NULL, 0},
        {"30000000", NULL, 15000},
        {"30000000", "17", 15000},
        {"30000000", "18", 0},
        {"x", NULL, 0},
        {"0", NULL, 0},
        {"1", NULL, 1},
        {"-5", NULL, 0},
        {"30000000", "x", 0},
        {"3000000000", NULL, 1500000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(notify_watchdog_ms(cases[i].usec, cases[i].pid, 17), cases[i].ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notify_send__abstract_socket),
        cmocka_unit_test(test_notify_send__nobody_listens),
        cmocka_unit_test(test_notify_watchdog_ms__half_of_the_period),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
