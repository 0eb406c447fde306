/* Shares by largest remainder, and turns that are spread evenly. */
#include "sample/mixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define MAX_SETS 64

static void set_weights(struct sample_rows *rows, const double *weights, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = (struct sample_rows){.count = 1, .n_kept = 1, .weight = weights[i]};
    }
}

static void test_mixture_shares__by_largest_remainder(void **state)
{
    static const struct {
        double weights[5];
        uint32_t n, shares[5];
    } cases[] = {
        {{1}, 1, {10000}},
        {{0.001}, 1, {10000}},
        {{1, 1}, 2, {5000, 5000}},
        {{1, 1, 1}, 3, {3334, 3333, 3333}}, /* a tie: the lower one */
        {{1, 2}, 2, {3333, 6667}},          /* .33 and .67 */
        {{1, 4, 7}, 3, {834, 3333, 5833}},  /* three remainders of exactly a third */
        {{7, 4, 1}, 3, {5834, 3333, 833}},
        {{1, 4, 4}, 3, {1111, 4445, 4444}},
        {{0.7, 0.2, 0.1}, 3, {7000, 2000, 1000}}, /* not exact, as doubles */
        {{0.1, 0.2, 0.7}, 3, {1000, 2000, 7000}},
        {{0.3, 0.3, 0.3, 0.1}, 4, {3000, 3000, 3000, 1000}},
        {{1, 99999999}, 2, {0, 10000}}, /* rounds to none */
        {{1, 14999}, 2, {1, 9999}},     /* two thirds of a sample */
        {{1, 19999}, 2, {1, 9999}},     /* half of one: the tie goes to the lower */
        {{19999, 1}, 2, {10000, 0}},
        {{1, 20001}, 2, {0, 10000}}, /* just below half */
        {{1e308, 1e308}, 2, {5000, 5000}},
        {{4.9e-324, 4.9e-324}, 2, {5000, 5000}},
        {{4.9e-324, 1e308}, 2, {0, 10000}},
        {{1, 0.5, 0.25, 0.125, 0.125}, 5, {5000, 2500, 1250, 625, 625}},
    };
    struct sample_rows rows[5];
    uint32_t shares[5];

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        set_weights(rows, cases[c].weights, cases[c].n);
        assert_int_equal(mixture_shares(rows, cases[c].n, shares), 0);
        for (uint32_t i = 0; i < cases[c].n; i++) {
            if (shares[i] != cases[c].shares[i]) {
                fail_msg("case %zu: data set %u has %u, expected %u", c, i, shares[i],
                         cases[c].shares[i]);
            }
        }
    }
}

/* What a largest-remainder sum must be, whatever the weights. */
static void test_mixture_shares__of_many(void **state)
{
    static struct sample_rows rows[2000];
    static uint32_t shares[2000];
    uint64_t random = 7;

    (void)state;
    for (uint32_t n = 1; n <= 2000; n += 37) {
        double sum = 0;
        uint32_t total = 0;

        for (uint32_t i = 0; i < n; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            rows[i].weight = (double)((random >> 40) + 1) / 1024;
            sum += rows[i].weight;
        }
        assert_int_equal(mixture_shares(rows, n, shares), 0);
        for (uint32_t i = 0; i < n; i++) {
            const double quota = rows[i].weight * MIXTURE_BLOCK / sum;

            total += shares[i];
            assert_true(shares[i] > quota - 1.0001 && shares[i] < quota + 1.0001);
        }
        assert_int_equal(total, MIXTURE_BLOCK);
    }
}

/* After any number of samples each data set had its share of them, but for less than one. */
static void check_evenness(const double *weights, uint32_t n)
{
    struct sample_rows rows[MAX_SETS];
    uint64_t counts[MAX_SETS] = {0};
    struct mixture *mixture;

    set_weights(rows, weights, n);
    mixture = mixture_new(rows, n);
    assert_non_null(mixture);
    for (uint64_t k = 0; k < 3 * MIXTURE_BLOCK; k++) {
        struct mixture_draw draw = mixture_at(mixture, k);

        assert_true(draw.dataset < n);
        assert_int_equal(draw.draw, counts[draw.dataset]); /* one after the other */
        counts[draw.dataset]++;
        for (uint32_t i = 0; i < n; i++) {
            int64_t off =
                (int64_t)(counts[i] * MIXTURE_BLOCK) - (int64_t)((k + 1) * mixture->shares[i]);

            assert_true(off > -MIXTURE_BLOCK && off < MIXTURE_BLOCK);
        }
        if ((k + 1) % MIXTURE_BLOCK == 0) { /* exact in each block */
            for (uint32_t i = 0; i < n; i++) {
                assert_int_equal(counts[i], (k + 1) / MIXTURE_BLOCK * mixture->shares[i]);
            }
        }
    }
    mixture_free(mixture);
}

static void test_mixture__spread_evenly(void **state)
{
    static const double few[][4] = {{1},       {1, 1},          {1, 9999},
                                    {5, 3, 2}, {1, 1, 1, 9997}, {0.1, 0.2, 0.3, 0.4}};
    static const uint32_t n_few[] = {1, 2, 2, 3, 4, 4};
    double many[MAX_SETS];
    uint64_t random = 3;

    (void)state;
    for (size_t c = 0; c < sizeof(n_few) / sizeof(n_few[0]); c++) {
        check_evenness(few[c], n_few[c]);
    }
    for (uint32_t round = 0; round < 8; round++) {
        for (uint32_t i = 0; i < MAX_SETS; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            many[i] = (double)((random >> 54) + 1) * (i % 8 == round ? 500 : 1);
        }
        check_evenness(many, MAX_SETS - round);
    }
}

static void test_mixture__two_alike_alternate_and_a_single_one_stands_in_the_middle(void **state)
{
    static const double alike[] = {1, 1}, single[] = {9999, 1};
    struct sample_rows rows[2];
    struct mixture *mixture;

    (void)state;
    set_weights(rows, alike, 2);
    mixture = mixture_new(rows, 2);
    assert_non_null(mixture);
    for (uint64_t k = 0; k < 100; k++) {
        assert_int_equal(mixture_at(mixture, k).dataset, k % 2);
    }
    mixture_free(mixture);
    set_weights(rows, single, 2);
    mixture = mixture_new(rows, 2);
    assert_non_null(mixture);
    for (uint64_t k = 0; k < MIXTURE_BLOCK; k++) {
        assert_int_equal(mixture_at(mixture, k).dataset, k == MIXTURE_BLOCK / 2);
    }
    mixture_free(mixture);
    mixture_free(NULL);
}

/* The most samples there can be: draws still count on. */
static void test_mixture_at__far_ahead(void **state)
{
    static const double weights[] = {3, 1};
    struct sample_rows rows[2];
    struct mixture *mixture;
    struct mixture_draw draw;

    (void)state;
    set_weights(rows, weights, 2);
    mixture = mixture_new(rows, 2);
    assert_non_null(mixture);
    draw = mixture_at(mixture, UINT64_MAX / MIXTURE_BLOCK * MIXTURE_BLOCK);
    assert_int_equal(draw.dataset, 0);
    assert_true(draw.draw == UINT64_MAX / MIXTURE_BLOCK * 7500);
    mixture_free(mixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mixture_shares__by_largest_remainder),
        cmocka_unit_test(test_mixture_shares__of_many),
        cmocka_unit_test(test_mixture__spread_evenly),
        cmocka_unit_test(test_mixture__two_alike_alternate_and_a_single_one_stands_in_the_middle),
        cmocka_unit_test(test_mixture_at__far_ahead),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
