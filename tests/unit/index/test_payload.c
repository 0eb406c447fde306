/* Where the arrays of a .skx stand, and that no count overflows on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "index/payload.h"

static void test_skx_layout_of__places(void **state)
{
    static const struct {
        uint64_t count;
        uint32_t flags;
        struct skx_layout layout;
    } cases[] = {
        {0, 0, {64, 0, 0, 64}},
        {1, 0, {64, 0, 0, 68}},
        {1, 1, {64, 128, 0, 132}},
        {1, 2, {64, 0, 128, 132}},
        {1, 3, {64, 128, 192, 196}},
        {16, 3, {64, 128, 192, 256}},
        {17, 3, {64, 192, 320, 388}},
        {UINT64_C(1) << 32, 1, {64, 64 + (UINT64_C(1) << 34), 0, 64 + (UINT64_C(1) << 35)}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct skx_layout layout;

        assert_int_equal(skx_layout_of(cases[i].count, cases[i].flags, &layout), 0);
        assert_memory_equal(&layout, &cases[i].layout, sizeof(layout));
    }
}

static void test_skx_layout_of__too_many_rows(void **state)
{
    static const uint64_t counts[] = {UINT64_C(1) << 61, UINT64_C(1) << 62, (UINT64_C(1) << 62) + 1,
                                      UINT64_MAX, UINT64_MAX / 4};

    (void)state;
    for (uint32_t flags = 0; flags < 4; flags++) {
        struct skx_layout layout;

        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            assert_int_equal(skx_layout_of(counts[i], flags, &layout), -1);
        }
        /* The largest file offset, less or more than the arrays. */
        assert_int_equal(skx_layout_of((UINT64_C(1) << 61) - 17, 0, &layout), 0);
        assert_int_equal(skx_layout_of((UINT64_C(1) << 61) - 16, 0, &layout), -1);
        assert_int_equal(skx_layout_of((UINT64_C(1) << 61) - 17, 1, &layout), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skx_layout_of__places),
        cmocka_unit_test(test_skx_layout_of__too_many_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
