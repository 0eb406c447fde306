/* Tests of backoff.c. */
#include "backoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_backoff_next_ns__grows_to_its_limit_within_the_jitter(void **state)
{
    struct backoff backoff;
    int64_t expected = BACKOFF_FIRST_NS;

    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        expected = BACKOFF_FIRST_NS;
        backoff_init(&backoff, seed);
        for (int i = 0; i < 20; i++) {
            int64_t delay = backoff_next_ns(&backoff);

            assert_in_range(delay, expected - expected / 5, expected + expected / 5);
            expected = expected * 8 / 5 < BACKOFF_LAST_NS ? expected * 8 / 5 : BACKOFF_LAST_NS;
        }
    }
    assert_int_equal(expected, BACKOFF_LAST_NS);
}

static void test_backoff_next_ns__two_seeds_do_not_return_together(void **state)
{
    struct backoff a, b;
    int n_equal = 0;

    (void)state;
    backoff_init(&a, 1);
    backoff_init(&b, 2);
    for (int i = 0; i < 20; i++) {
        n_equal += backoff_next_ns(&a) == backoff_next_ns(&b);
    }
    assert_true(n_equal < 2);
}

static void test_backoff_reset__begins_anew(void **state)
{
    struct backoff backoff;

    (void)state;
    backoff_init(&backoff, 3);
    for (int i = 0; i < 9; i++) {
        (void)backoff_next_ns(&backoff);
    }
    backoff_reset(&backoff);
    assert_in_range(backoff_next_ns(&backoff), BACKOFF_FIRST_NS * 4 / 5, BACKOFF_FIRST_NS * 6 / 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backoff_next_ns__grows_to_its_limit_within_the_jitter),
        cmocka_unit_test(test_backoff_next_ns__two_seeds_do_not_return_together),
        cmocka_unit_test(test_backoff_reset__begins_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
