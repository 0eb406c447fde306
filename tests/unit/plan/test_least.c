/* The tournament tree against a plain scan. */
#include "plan/least.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <skrull/error.h>

#include "arena.h"

static uint32_t scan(const int64_t *keys, uint32_t n)
{
    uint32_t first = 0;

    for (uint32_t i = 1; i < n; i++) {
        first = keys[i] < keys[first] ? i : first;
    }
    return first;
}

static void test_least_set__agrees_with_a_scan(void **state)
{
    static const uint32_t sizes[] = {1, 2, 3, 7, 8, 64, 65};
    uint32_t random = 1;

    (void)state;
    for (size_t row = 0; row < sizeof(sizes) / sizeof(sizes[0]); row++) {
        struct arena *arena = arena_new(1 << 20);
        const uint32_t n = sizes[row];
        struct least least;

        print_message("# %u keys\n", n);
        assert_int_equal(least_init(&least, n, arena), 0);
        assert_int_equal(least_first(&least), 0);
        for (int change = 0; change < 2000; change++) {
            random = random * 1664525 + 1013904223;
            least_set(&least, (random >> 8) % n, (int64_t)(random >> 28) - 8); /* many ties */
            assert_int_equal(least_first(&least), scan(least.keys, n));
        }
        arena_free(arena);
    }
}

static void test_least_fill__gives_ties_to_the_lowest(void **state)
{
    struct arena *arena = arena_new(1 << 20);
    struct least least;

    (void)state;
    assert_int_equal(least_init(&least, 5, arena), 0);
    least_set(&least, 3, -1);
    assert_int_equal(least_first(&least), 3);
    least_fill(&least, INT64_MAX);
    assert_int_equal(least_first(&least), 0);
    least_set(&least, 4, 0);
    assert_int_equal(least_first(&least), 4);
    arena_free(arena);
}

static void test_least_init__reports_a_full_arena(void **state)
{
    struct arena *arena = arena_new(64);
    struct least least;

    (void)state;
    assert_int_equal(least_init(&least, 1000, arena), SKRULL_ERR_RESOURCE_EXHAUSTED);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_least_set__agrees_with_a_scan),
        cmocka_unit_test(test_least_fill__gives_ties_to_the_lowest),
        cmocka_unit_test(test_least_init__reports_a_full_arena),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
