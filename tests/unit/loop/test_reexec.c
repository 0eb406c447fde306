/* Ports that a new process keeps. That it starts is tested from outside: integration, test_traps.
 */
#include "loop/reexec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_reexec_kept_port__what_was_kept(void **state)
{
    const int ports[] = {7443, 1, 65535};

    (void)state;
    assert_int_equal(reexec_kept_port(0), 0);
    assert_int_equal(reexec_keep_ports(ports, 3), 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(reexec_kept_port(i), ports[i]);
    }
    assert_int_equal(reexec_kept_port(3), 0);
    assert_int_equal(reexec_keep_ports(ports, 0), 0);
    assert_int_equal(reexec_kept_port(0), 0);
}

static void test_reexec_kept_port__garbage_is_none(void **state)
{
    static const char *const texts[] = {"", ",", "x", "-1", "65536", "99999999999999999999"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(setenv("SKRULLD_KEPT_PORTS", texts[i], 1), 0);
        assert_int_equal(reexec_kept_port(0), 0);
        assert_int_equal(reexec_kept_port(1), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reexec_kept_port__what_was_kept),
        cmocka_unit_test(test_reexec_kept_port__garbage_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
