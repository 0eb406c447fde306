/* The keyed permutation: a bijection for every n, unrelated between keys, and the same for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sample/permutation.h"

#define MAX_N 4096

static void fill(uint64_t n, uint64_t seed, uint64_t stream, uint32_t *ret_order)
{
    struct permutation perm;

    permutation_init(&perm, n, seed, stream);
    for (uint64_t i = 0; i < n; i++) {
        ret_order[i] = (uint32_t)permutation_at(&perm, i);
    }
}

static void assert_bijection(uint64_t n, const uint32_t *order)
{
    static unsigned char seen[1 << 20];

    assert_true(n <= sizeof(seen));
    memset(seen, 0, n);
    for (uint64_t i = 0; i < n; i++) {
        assert_true(order[i] < n);
        assert_int_equal(seen[order[i]], 0);
        seen[order[i]] = 1;
    }
}

static void test_permutation__bijection_for_all_small_n(void **state)
{
    static const uint64_t seeds[] = {0, 1, 42, UINT64_C(1) << 63, UINT64_MAX};
    static uint32_t order[MAX_N];

    (void)state;
    for (uint64_t n = 1; n <= 300; n++) {
        for (size_t s = 0; s < sizeof(seeds) / sizeof(seeds[0]); s++) {
            for (uint64_t stream = 0; stream < 3; stream++) {
                fill(n, seeds[s], stream, order);
                assert_bijection(n, order);
            }
        }
    }
}

static void test_permutation__bijection_around_powers_of_two(void **state)
{
    uint32_t *order = malloc((1 << 20) * sizeof(*order));

    (void)state;
    assert_non_null(order);
    for (uint64_t bits = 9; bits < 19; bits++) {
        for (uint64_t n = (UINT64_C(1) << bits) - 1; n <= (UINT64_C(1) << bits) + 1; n++) {
            fill(n, n, 7, order);
            assert_bijection(n, order);
        }
    }
    free(order);
}

/* No table can check a huge n: distinct places lead to distinct values inside. */
static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void test_permutation__huge_n(void **state)
{
    static const uint64_t ns[] = {(UINT64_C(1) << 32) - 1, (UINT64_C(1) << 32) + 1,
                                  UINT64_C(1000000000000), (UINT64_C(1) << 63) - 1,
                                  (UINT64_C(1) << 63) + 1, UINT64_MAX};
    static uint64_t values[20000];

    (void)state;
    for (size_t k = 0; k < sizeof(ns) / sizeof(ns[0]); k++) {
        struct permutation perm;
        uint64_t upper = 0;

        permutation_init(&perm, ns[k], 3, k);
        for (uint64_t i = 0; i < 20000; i++) {
            values[i] = permutation_at(&perm, i < 10000 ? i : ns[k] - 1 - (i - 10000));
            assert_true(values[i] < ns[k]);
            upper += values[i] >= ns[k] / 2;
        }
        assert_in_range(upper, 9500, 10500); /* 7 standard deviations */
        qsort(values, 20000, sizeof(values[0]), compare);
        for (size_t i = 1; i < 20000; i++) {
            assert_true(values[i - 1] != values[i]);
        }
    }
}

/* Over many keys each place leads to each value as often: chi-square of the n x n counts, which has
 * (n - 1)^2 degrees of freedom; 6 standard deviations are allowed. */
static void assert_uniform(uint64_t n, const uint32_t *counts, uint64_t trials)
{
    double expected = (double)trials / (double)n, chi = 0, degrees = (double)((n - 1) * (n - 1));

    for (uint64_t i = 0; i < n * n; i++) {
        double off = (double)counts[i] - expected;

        chi += off * off / expected;
    }
    print_message("# n %u: chi-square %.1f of %.0f degrees\n", (unsigned int)n, chi, degrees);
    assert_true((chi - degrees) * (chi - degrees) < 36 * 2 * degrees);
}

enum vary { VARY_SEED, VARY_STREAM };

static void check_uniform(uint64_t n, enum vary vary)
{
    static uint32_t counts[64 * 64], order[64];
    const uint64_t trials = 20000;

    memset(counts, 0, sizeof(counts));
    for (uint64_t t = 0; t < trials; t++) {
        fill(n, vary == VARY_SEED ? t : 42, vary == VARY_STREAM ? t : 0, order);
        for (uint64_t i = 0; i < n; i++) {
            counts[i * n + order[i]]++;
        }
    }
    assert_uniform(n, counts, trials);
}

static void test_permutation__uniform_over_neighbouring_keys(void **state)
{
    static const uint64_t ns[] = {2, 3, 5, 7, 9, 16, 17, 33};

    (void)state;
    for (size_t k = 0; k < sizeof(ns) / sizeof(ns[0]); k++) {
        check_uniform(ns[k], VARY_SEED);
        check_uniform(ns[k], VARY_STREAM);
    }
}

/* All 24 orders of 4 come up, about as often: pairs and triples are unrelated too. */
static void test_permutation__all_orders_of_four(void **state)
{
    uint32_t counts[256] = {0}, n_orders = 0, order[4];
    double chi = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 24000; seed++) {
        fill(4, seed, 0, order);
        counts[order[0] | order[1] << 2 | order[2] << 4 | order[3] << 6]++;
    }
    for (size_t i = 0; i < 256; i++) {
        double off = (double)counts[i] - 1000;

        n_orders += counts[i] > 0;
        chi += counts[i] > 0 ? off * off / 1000 : 0;
    }
    print_message("# 24 orders: chi-square %.1f of 23 degrees\n", chi);
    assert_int_equal(n_orders, 24);
    assert_true(chi < 64); /* 6 standard deviations */
}

/* Between neighbouring seeds, streams and places nothing stays: fixed points of a random
 * permutation are Poisson of mean 1, so are steps of one; 20 of either come up once in 10^18. */
static void test_permutation__no_pattern_between_neighbours(void **state)
{
    static uint32_t a[MAX_N], b[MAX_N];

    (void)state;
    for (uint64_t key = 0; key < 200; key++) {
        uint64_t n = 3000 + key, same = 0, rises = 0, place = 0;

        fill(n, key / 2, 5, a);
        fill(n, key / 2 + key % 2, 5 + (key + 1) % 2, b);
        for (uint64_t i = 0; i < n; i++) {
            same += a[i] == b[i];
            place += a[i] == i;
            rises += i > 0 && a[i] == a[i - 1] + 1;
        }
        assert_true(same < 20 && place < 20 && rises < 20);
    }
}

/* Consecutive places fall into quarters of the range independently: chi-square of the 16 pairs. */
static void test_permutation__neighbouring_places_are_independent(void **state)
{
    const uint64_t n = 1000003, count = 64000;
    uint32_t pairs[16] = {0};
    struct permutation perm;
    double chi = 0;

    (void)state;
    permutation_init(&perm, n, 42, 0);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t a = permutation_at(&perm, 2 * i) * 4 / n,
                 b = permutation_at(&perm, 2 * i + 1) * 4 / n;

        pairs[a * 4 + b]++;
    }
    for (size_t i = 0; i < 16; i++) {
        double off = (double)pairs[i] - (double)count / 16;

        chi += off * off / ((double)count / 16);
    }
    print_message("# pairs: chi-square %.1f of 15 degrees\n", chi);
    assert_true(chi < 48); /* 6 standard deviations */
}

/* Plans hang on these: a change is a new planner version. */
static void test_permutation__golden(void **state)
{
    static const struct {
        uint64_t n, seed, stream;
        uint64_t values[8];
    } cases[] = {
        {UINT64_C(10),
         UINT64_C(0),
         UINT64_C(0),
         {UINT64_C(5), UINT64_C(7), UINT64_C(3), UINT64_C(4), UINT64_C(2), UINT64_C(8), UINT64_C(6),
          UINT64_C(1)}},
        {UINT64_C(10),
         UINT64_C(0),
         UINT64_C(1),
         {UINT64_C(9), UINT64_C(8), UINT64_C(7), UINT64_C(0), UINT64_C(3), UINT64_C(6), UINT64_C(4),
          UINT64_C(1)}},
        {UINT64_C(65536),
         UINT64_C(42),
         UINT64_C(0),
         {UINT64_C(25273), UINT64_C(13823), UINT64_C(62293), UINT64_C(22905), UINT64_C(24271),
          UINT64_C(28466), UINT64_C(23076), UINT64_C(54194)}},
        {UINT64_C(100000),
         UINT64_C(42),
         UINT64_C(0),
         {UINT64_C(39864), UINT64_C(49144), UINT64_C(61798), UINT64_C(49525), UINT64_C(21252),
          UINT64_C(10698), UINT64_C(42747), UINT64_C(15079)}},
        {UINT64_C(100000),
         UINT64_C(42),
         UINT64_C(1),
         {UINT64_C(64739), UINT64_C(47886), UINT64_C(74048), UINT64_C(8596), UINT64_C(87940),
          UINT64_C(45318), UINT64_C(86648), UINT64_C(82604)}},
        {UINT64_C(1000000007),
         UINT64_C(9223372036854775807),
         UINT64_C(3),
         {UINT64_C(815395859), UINT64_C(861714199), UINT64_C(625545619), UINT64_C(973878120),
          UINT64_C(974081829), UINT64_C(271838591), UINT64_C(298380973), UINT64_C(616150790)}},
        {UINT64_C(18446744073709551615),
         UINT64_C(1),
         UINT64_C(18446744073709551615),
         {UINT64_C(6843171469435420654), UINT64_C(16415241400910192786),
          UINT64_C(1842317102906648203), UINT64_C(434784765255373196),
          UINT64_C(2686993098370855444), UINT64_C(14981659116228289912),
          UINT64_C(14184444698239929689), UINT64_C(5325378785550241093)}},
    };

    (void)state;
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct permutation perm;

        permutation_init(&perm, cases[k].n, cases[k].seed, cases[k].stream);
        for (uint64_t i = 0; i < 8; i++) {
            assert_true(permutation_at(&perm, i) == cases[k].values[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permutation__bijection_for_all_small_n),
        cmocka_unit_test(test_permutation__bijection_around_powers_of_two),
        cmocka_unit_test(test_permutation__huge_n),
        cmocka_unit_test(test_permutation__uniform_over_neighbouring_keys),
        cmocka_unit_test(test_permutation__all_orders_of_four),
        cmocka_unit_test(test_permutation__no_pattern_between_neighbours),
        cmocka_unit_test(test_permutation__neighbouring_places_are_independent),
        cmocka_unit_test(test_permutation__golden),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
