/* Decimal numbers, exactly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "index/decimal.h"

static void test_decimal_parse__table(void **state)
{
    static const struct {
        const char *text;
        enum decimal decimal;
        uint32_t value;
    } cases[] = {
        {"0", DECIMAL_WHOLE, 0},
        {"-0", DECIMAL_WHOLE, 0},
        {"-0.000e7", DECIMAL_WHOLE, 0},
        {"7", DECIMAL_WHOLE, 7},
        {"007", DECIMAL_WHOLE, 7},
        {"512.0", DECIMAL_WHOLE, 512},
        {"5.120000000000000000e+02", DECIMAL_WHOLE, 512},
        {"1e3", DECIMAL_WHOLE, 1000},
        {"1E+3", DECIMAL_WHOLE, 1000},
        {"1200e-2", DECIMAL_WHOLE, 12},
        {"12.50e1", DECIMAL_WHOLE, 125},
        {"0.0005e4", DECIMAL_WHOLE, 5},
        {"4294967295", DECIMAL_WHOLE, 4294967295},
        {"4294967295.00", DECIMAL_WHOLE, 4294967295},
        {"0.4294967295e10", DECIMAL_WHOLE, 4294967295},
        {"4294967296", DECIMAL_LARGE, 0},
        {"9999999999", DECIMAL_LARGE, 0},
        {"10000000000", DECIMAL_LARGE, 0},
        {"1e10", DECIMAL_LARGE, 0},
        {"1e99", DECIMAL_LARGE, 0},
        {"1e99999999999999999999", DECIMAL_LARGE, 0},
        {"0e99999999999999999999", DECIMAL_WHOLE, 0},
        {"1e-99999999999999999999", DECIMAL_FRACTION, 0},
        {"5.5", DECIMAL_FRACTION, 0},
        {"0.1", DECIMAL_FRACTION, 0},
        {"4294967295.5", DECIMAL_FRACTION, 0},
        {"1234567890123.5", DECIMAL_FRACTION, 0},
        {"15e-1", DECIMAL_FRACTION, 0},
        {"-3", DECIMAL_NEGATIVE, 0},
        {"-0.5", DECIMAL_NEGATIVE, 0},
        {"", DECIMAL_NONE, 0},
        {"-", DECIMAL_NONE, 0},
        {"+5", DECIMAL_NONE, 0},
        {" 5", DECIMAL_NONE, 0},
        {"5 ", DECIMAL_NONE, 0},
        {"5.", DECIMAL_NONE, 0},
        {".5", DECIMAL_NONE, 0},
        {"5e", DECIMAL_NONE, 0},
        {"5e+", DECIMAL_NONE, 0},
        {"5.e3", DECIMAL_NONE, 0},
        {"1,024", DECIMAL_NONE, 0},
        {"1_024", DECIMAL_NONE, 0},
        {"0x10", DECIMAL_NONE, 0},
        {"NaN", DECIMAL_NONE, 0},
        {"inf", DECIMAL_NONE, 0},
        {"--5", DECIMAL_NONE, 0},
        {"5e3.0", DECIMAL_NONE, 0},
        {"000000000000000000000000000000000000000000000000000000000000012", DECIMAL_WHOLE, 12},
        {"0000000000000000000000000000000000000000000000000000000000000012", DECIMAL_NONE, 0},
        {"999999999999999999999999999999999999999999999999999999999999999", DECIMAL_LARGE, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t value = 0;

        print_message("# %s\n", cases[i].text);
        assert_int_equal(decimal_parse(cases[i].text, strlen(cases[i].text), &value),
                         cases[i].decimal);
        assert_true(value == cases[i].value);
    }
}

/* Every u32 has one text; a digit more is too large. */
static void test_decimal_parse__round_trip(void **state)
{
    char text[32];

    (void)state;
    for (uint64_t x = 1; x <= UINT32_MAX; x = x * 3 + 1) {
        uint32_t value = 0;
        int n = snprintf(text, sizeof(text), "%llu", (unsigned long long)x);

        assert_int_equal(decimal_parse(text, (size_t)n, &value), DECIMAL_WHOLE);
        assert_true(value == x);
        n = snprintf(text, sizeof(text), "%llu.000e0", (unsigned long long)x);
        assert_int_equal(decimal_parse(text, (size_t)n, &value), DECIMAL_WHOLE);
        assert_true(value == x);
        n = snprintf(text, sizeof(text), "%llu", (unsigned long long)x + UINT32_MAX);
        assert_int_equal(decimal_parse(text, (size_t)n, &value), DECIMAL_LARGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decimal_parse__table),
        cmocka_unit_test(test_decimal_parse__round_trip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
