/* Tests of comparison.c: the figures of a row. */
#include "comparison.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define N 4

static void test_comparison_row__figures(void **state)
{
    int64_t uniform_ns[N] = {400, 400, 800, 400}, planning_ns[N] = {4, 1, 3, 2};
    int64_t times_ns[N] = {300, 100, 400, 200}, bounds_ns[N] = {300, 50, 320, 160};
    struct comparison_times uniform = {.policy = "uniform", .iteration_ns = uniform_ns};
    struct comparison_times times = {.policy = "skrull",
                                     .iteration_ns = times_ns,
                                     .bound_ns = bounds_ns,
                                     .planning_ns = planning_ns};
    struct codec_text_comparison_row row;

    (void)state;
    comparison_row(&times, &uniform, N, 50, &row);
    assert_string_equal(row.policy, "skrull");
    assert_int_equal(row.mean_ns, 250);
    assert_int_equal(row.p50_ns, 200); /* nearest rank: the second of four */
    assert_int_equal(row.p95_ns, 400);
    assert_int_equal(row.planning_ns, 2);
    assert_true(row.speedup >= 2.0 && row.speedup <= 2.0);                       /* 500 / 250 */
    assert_true(row.speedup_with_step > 1.833 && row.speedup_with_step < 1.834); /* 550 / 300 */
    assert_true(row.gap >= 0.375 && row.gap <= 0.375); /* (0 + 1 + 1/4 + 1/4) / 4, by step */
    assert_string_equal(row.refused, "");
}

static void test_comparison_row__refused_has_no_figures(void **state)
{
    int64_t uniform_ns[N] = {400, 400, 800, 400}, times_ns[N] = {300};
    struct comparison_times uniform = {.policy = "uniform", .iteration_ns = uniform_ns};
    struct comparison_times times = {
        .policy = "packed", .iteration_ns = times_ns, .refused = "why"};
    struct codec_text_comparison_row row;

    (void)state;
    comparison_row(&times, &uniform, N, 0, &row);
    assert_string_equal(row.refused, "why");
    assert_int_equal(row.mean_ns, 0);
    assert_true(row.speedup <= 0.0);
}

static void test_comparison_row__refused_uniform_gives_no_speedup(void **state)
{
    int64_t times_ns[N] = {300, 100, 400, 200}, bounds_ns[N] = {0}, planning_ns[N] = {0};
    struct comparison_times uniform = {.policy = "uniform", .refused = "why"};
    struct comparison_times times = {.policy = "skrull",
                                     .iteration_ns = times_ns,
                                     .bound_ns = bounds_ns,
                                     .planning_ns = planning_ns};
    struct codec_text_comparison_row row;

    (void)state;
    comparison_row(&times, &uniform, N, 50, &row);
    assert_int_equal(row.mean_ns, 250);
    assert_true(row.speedup <= 0.0 && row.speedup_with_step <= 0.0 && row.gap <= 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comparison_row__figures),
        cmocka_unit_test(test_comparison_row__refused_has_no_figures),
        cmocka_unit_test(test_comparison_row__refused_uniform_gives_no_speedup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
