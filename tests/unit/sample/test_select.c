/* The k-th set bit, against counting by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sample/select.h"

#define MAX_BITS 20000

static uint64_t words[MAX_BITS / 64 + 1];

static void check(uint64_t n_bits)
{
    struct bit_select select;
    uint64_t k = 0;

    assert_int_equal(bit_select_init(&select, words, n_bits), 0);
    for (uint64_t bit = 0; bit < n_bits; bit++) {
        if (words[bit / 64] >> bit % 64 & 1) {
            assert_int_equal(bit_select_at(&select, k), bit);
            k++;
        }
    }
    assert_int_equal(select.n_set, k);
    bit_select_deinit(&select);
}

/* About one bit in 2^sparse is set. */
static void set_random(uint64_t n_bits, uint32_t sparse)
{
    uint64_t random = n_bits * 7 + sparse;

    memset(words, 0, sizeof(words));
    for (uint64_t bit = 0; bit < n_bits; bit++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        words[bit / 64] |= (uint64_t)(random >> 40 < UINT64_C(1) << (24 - sparse)) << bit % 64;
    }
}

static void test_bit_select__random_bits_of_many_sizes(void **state)
{
    static const uint64_t sizes[] = {0,    1,    63,   64,   65,    127,   4095, 4096,
                                     4097, 8191, 8192, 8193, 12288, 19999, 20000};

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (uint32_t sparse = 0; sparse < 13; sparse += 3) {
            set_random(sizes[i], sparse);
            check(sizes[i]);
        }
    }
}

static void test_bit_select__single_bits(void **state)
{
    (void)state;
    for (uint64_t bit = 0; bit < MAX_BITS; bit += bit < 200 || bit % 4096 > 4090 ? 1 : 7) {
        memset(words, 0, sizeof(words));
        words[bit / 64] = UINT64_C(1) << bit % 64;
        check(MAX_BITS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bit_select__random_bits_of_many_sizes),
        cmocka_unit_test(test_bit_select__single_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
