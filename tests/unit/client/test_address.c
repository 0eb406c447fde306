/* Tests of address.c. */
#include "address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_address_to_target__accepted(void **state)
{
    static const struct {
        const char *address, *target;
    } rows[] = {
        {"localhost:7070", "dns:///localhost:7070"},
        {"127.0.0.1:1", "dns:///127.0.0.1:1"},
        {"a-b.example_c.org:65535", "dns:///a-b.example_c.org:65535"},
        {"[::1]:7070", "ipv6:%5B::1%5D:7070"},
        {"[2001:db8::7]:1", "ipv6:%5B2001:db8::7%5D:1"},
        {"unix:/run/skrull/skrulld.sock", "unix:/run/skrull/skrulld.sock"},
        {"unix:here.sock", "unix:here.sock"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char target[ADDRESS_MAX];
        struct skrull_error err;

        print_message("# %s\n", rows[i].address);
        assert_int_equal(address_to_target(rows[i].address, target, &err), 0);
        assert_string_equal(target, rows[i].target);
    }
}

static void test_address_to_target__refused(void **state)
{
    static const struct {
        const char *address, *why;
    } rows[] = {
        {"", "no port"},
        {"localhost", "no port"},
        {":7070", "not a host name"},
        {"localhost:", "the port"},
        {"localhost:0", "the port"},
        {"localhost:65536", "the port"},
        {"localhost:+7", "the port"},
        {"localhost:007070", "the port"},
        {"http://localhost:7070", "not a host name"},
        {"a b:7", "not a host name"},
        {"::1:7070", "not a host name"},
        {"[::1]", "no ]:PORT"},
        {"[::1]7070", "no ]:PORT"},
        {"[::1:7070", "no ]:PORT"},
        {"[localhost]:7070", "not an IPv6 address"},
        {"[]:7070", "not an IPv6 address"},
        {"[1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16:17:18:19:20:21:22:23]:1", "not an IPv6 address"},
        {"[::1]:x", "the port"},
        {"unix:", "the path is empty"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char target[ADDRESS_MAX] = "untouched";
        struct skrull_error err = {0};

        print_message("# %s\n", rows[i].address);
        assert_int_equal(address_to_target(rows[i].address, target, &err),
                         SKRULL_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, rows[i].why));
        assert_non_null(strstr(err.message, "unix:PATH are allowed"));
        assert_string_equal(target, "untouched");
    }
}

static void test_address_to_target__socket_path_at_its_limit(void **state)
{
    char address[ADDRESS_MAX] = "unix:/", target[ADDRESS_MAX];
    struct skrull_error err;

    (void)state;
    memset(address + 6, 'x', 106); /* 107 bytes of path, as much as sun_path takes */
    assert_int_equal(address_to_target(address, target, &err), 0);
    address[6 + 106] = 'x';
    assert_int_equal(address_to_target(address, target, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "at most 107"));
}

static void test_address_default__order(void **state)
{
    static const struct {
        struct address_environment environment;
        const char *address;
    } rows[] = {
        {{"h:1", "/run/user/7", 7}, "h:1"},
        {{"", "/run/user/7", 7}, "unix:/run/user/7/skrull/skrulld.sock"},
        {{NULL, "/run/user/0", 0}, "unix:/run/user/0/skrull/skrulld.sock"},
        {{NULL, "", 0}, "unix:/run/skrull/skrulld.sock"},
        {{NULL, NULL, 0}, "unix:/run/skrull/skrulld.sock"},
        {{NULL, NULL, 1000}, "unix:/tmp/skrull-1000/skrulld.sock"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char address[ADDRESS_MAX];

        print_message("# %s\n", rows[i].address);
        assert_int_equal(address_default(&rows[i].environment, address, NULL), 0);
        assert_string_equal(address, rows[i].address);
    }
}

static void test_address_default__too_long(void **state)
{
    char dir[ADDRESS_MAX + 1], address[ADDRESS_MAX] = "untouched";
    const struct address_environment environment = {NULL, dir, 7};

    (void)state;
    memset(dir, 'd', ADDRESS_MAX);
    dir[ADDRESS_MAX] = '\0';
    assert_int_equal(address_default(&environment, address, NULL), SKRULL_ERR_INVALID_ARGUMENT);
    assert_string_equal(address, "untouched");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_address_to_target__accepted),
        cmocka_unit_test(test_address_to_target__refused),
        cmocka_unit_test(test_address_to_target__socket_path_at_its_limit),
        cmocka_unit_test(test_address_default__order),
        cmocka_unit_test(test_address_default__too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
