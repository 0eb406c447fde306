/* Tests of plan_print.c: figures. */
#include "plan_print.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_plan_ms__rounds_to_microseconds(void **state)
{
    static const struct {
        int64_t ns;
        const char *text;
    } rows[] = {
        {0, "0.000"},
        {499, "0.000"},
        {500, "0.001"},
        {1234567, "1.235"},
        {408118000, "408.118"},
        {-1, "0.000"},
        {INT64_MAX, "9223372036854.776"},
    };
    char text[PLAN_MS_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(plan_ms(rows[i].ns, text), rows[i].text);
    }
}

static void test_plan_gap__table(void **state)
{
    static const struct {
        int64_t iteration_ns, bound_ns;
        const char *text;
    } rows[] = {
        {100, 100, "0.00 %"}, {103, 100, "3.00 %"}, {288, 100, "188.00 %"},
        {1, 0, "-"},          {99, 100, "-"},       {INT64_MAX, 1, "-"},
    };
    char text[PLAN_MS_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(plan_gap(rows[i].iteration_ns, rows[i].bound_ns, text), rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_ms__rounds_to_microseconds),
        cmocka_unit_test(test_plan_gap__table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
