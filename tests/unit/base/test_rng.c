/* Random bytes: filled to the end, never twice the same; hex is well formed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

static void test_rng_bytes__fill_all_and_no_more(void **state)
{
    unsigned char a[66] = {0}, seen[64] = {0};

    (void)state;
    for (int round = 0; round < 16; round++) { /* a byte is 0 in 16 rounds with 2^-128 */
        assert_int_equal(rng_bytes(a + 1, 64, NULL), 0);
        for (size_t i = 0; i < 64; i++) {
            seen[i] |= a[i + 1];
        }
    }
    for (size_t i = 0; i < 64; i++) {
        assert_int_not_equal(seen[i], 0);
    }
    assert_int_equal(a[0] | a[65], 0);
}

static void test_rng_hex__is_hex_and_new_each_time(void **state)
{
    char a[33], b[33];

    (void)state;
    assert_int_equal(rng_hex(a, 16, NULL), 0);
    assert_int_equal(rng_hex(b, 16, NULL), 0);
    assert_int_equal(strlen(a), 32);
    assert_int_equal(strspn(a, "0123456789abcdef"), 32);
    assert_string_not_equal(a, b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rng_bytes__fill_all_and_no_more),
        cmocka_unit_test(test_rng_hex__is_hex_and_new_each_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
