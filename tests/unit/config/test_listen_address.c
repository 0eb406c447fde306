/* Addresses, and which of them are local. */
#include "config/listen_address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_listen_address_parse__table(void **state)
{
    static const struct {
        const char *text;
        bool is_local;
        const char *path;
    } cases[] = {
        {"127.0.0.1:0", true, NULL},
        {"127.8.9.1:7443", true, NULL},
        {"localhost:7443", true, NULL},
        {"[::1]:65535", true, NULL},
        {"unix:/run/x.sock", true, "/run/x.sock"},
        {"0.0.0.0:7443", false, NULL},
        {"10.0.0.1:7443", false, NULL},
        {"[::]:7443", false, NULL},
        {"[::ffff:127.0.0.1]:7443", false, NULL},
        {"localhost.example.org:1", false, NULL},
        {"node-7:7443", false, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct listen_address address;

        print_message("# %s\n", cases[i].text);
        assert_int_equal(listen_address_parse(cases[i].text, &address, NULL), 0);
        assert_int_equal(address.is_local, cases[i].is_local);
        if (cases[i].path) {
            assert_string_equal(address.path, cases[i].path);
        } else {
            assert_null(address.path);
        }
    }
}

static void test_listen_address_parse__refuses(void **state)
{
    static const char *const texts[] = {
        "",           "7443",     ":7443",      "host",          "host:",
        "host:65536", "host:-1",  "host:7x",    "::1:7443",      "[::1]",
        "[::1:7443",  "[]:1",     "[host]:1",   "ho st:1",       "http://h:1",
        "unix:",      "unix:rel", "dns:///h:1", "host:00000001",
    };
    char longest[300] = "unix:/";

    (void)state;
    memset(longest + 6, 'x', 150);
    for (size_t i = 0; i <= sizeof(texts) / sizeof(texts[0]); i++) {
        const char *text = i < sizeof(texts) / sizeof(texts[0]) ? texts[i] : longest;
        struct listen_address address;
        struct skrull_error err = {0};

        print_message("# %s\n", text);
        assert_int_equal(listen_address_parse(text, &address, &err), SKRULL_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listen_address_parse__table),
        cmocka_unit_test(test_listen_address_parse__refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
