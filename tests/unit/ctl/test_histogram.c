/* Tests of histogram.c. */
#include "histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define WIDTH 8

static void test_histogram_bar__table(void **state)
{
    static const struct {
        uint64_t count, most;
        const char *utf8, *ascii;
    } rows[] = {
        {0, 100, "", ""},
        {1, 100, "▏", "#"}, /* what is not zero shows */
        {50, 100, "████", "####"},
        {51, 100, "████▏", "#####"},
        {100, 100, "████████", "########"},
        {200, 100, "████████", "########"},
        {0, 0, "", ""},
        {UINT64_MAX, UINT64_MAX, "████████", "########"},
        {UINT64_MAX / 2 + 1, UINT64_MAX, "████▏", "#####"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char bar[HISTOGRAM_BAR_SIZE(WIDTH)];

        print_message("# row %zu\n", i);
        histogram_bar(rows[i].count, rows[i].most, WIDTH, true, bar);
        assert_string_equal(bar, rows[i].utf8);
        histogram_bar(rows[i].count, rows[i].most, WIDTH, false, bar);
        assert_string_equal(bar, rows[i].ascii);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_histogram_bar__table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
