/* Figures of an index, held against sorting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "index/index.h"

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Nearest rank: the smallest value with at least q of the rows at or below it. */
static uint32_t quantile(const uint32_t *sorted, uint64_t n, uint64_t thousandths)
{
    return sorted[(n * thousandths + 999) / 1000 - 1];
}

static void check(const uint32_t *lengths, uint64_t n)
{
    struct length_index idx = {.format = "text", .lengths = lengths, .count = n};
    uint32_t *sorted = malloc(n * sizeof(*sorted));
    struct index_stats stats;
    uint64_t tokens = 0, bins[33] = {0};

    assert_non_null(sorted);
    for (uint64_t i = 0; i < n; i++) {
        unsigned int bin = 0;

        sorted[i] = lengths[i];
        tokens += lengths[i];
        while (bin < 32 && lengths[i] >> bin != 0) {
            bin++;
        }
        bins[bin]++;
    }
    qsort(sorted, n, sizeof(*sorted), compare);
    assert_int_equal(index_describe(&idx, &stats, NULL), 0);
    assert_string_equal(stats.format, "text");
    assert_int_equal(stats.count, n);
    assert_int_equal(stats.tokens, tokens);
    assert_int_equal(stats.loss_tokens, 0);
    assert_int_equal(stats.min, sorted[0]);
    assert_int_equal(stats.max, sorted[n - 1]);
    assert_int_equal(stats.p50, quantile(sorted, n, 500));
    assert_int_equal(stats.p90, quantile(sorted, n, 900));
    assert_int_equal(stats.p99, quantile(sorted, n, 990));
    assert_int_equal(stats.p999, quantile(sorted, n, 999));
    assert_true(stats.mean >= (double)tokens / (double)n &&
                stats.mean <= (double)tokens / (double)n);
    assert_memory_equal(stats.bins, bins, sizeof(bins));
    free(sorted);
}

static void test_index_describe__all_small_sizes(void **state)
{
    uint32_t lengths[1100], random = 5;

    (void)state;
    for (size_t i = 0; i < 1100; i++) {
        random = random * 1664525 + 1013904223;
        lengths[i] = (random >> (random % 31)) | 1;
    }
    for (uint64_t n = 1; n <= 40; n++) {
        check(lengths, n);
    }
    for (uint64_t n = 990; n <= 1010; n++) {
        check(lengths, n);
    }
}

static void test_index_describe__edges(void **state)
{
    static const uint32_t ends[] = {UINT32_MAX, 1,     UINT32_MAX - 1, 65535,
                                    65536,      65537, 131071,         131072};
    static const uint32_t same[] = {7, 7, 7, 7, 7};

    (void)state;
    check(ends, sizeof(ends) / sizeof(ends[0]));
    check(same, 5);
    check(ends, 1);
}

/* 1,2,3,...,1000: every figure is known by heart. */
static void test_index_describe__one_to_thousand(void **state)
{
    static uint32_t lengths[1000], loss[1000];
    struct length_index idx = {
        .format = "skx", .lengths = lengths, .loss_tokens = loss, .count = 1000};
    struct index_stats stats;

    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        lengths[i] = 1000 - i;
        loss[i] = 2;
    }
    assert_int_equal(index_describe(&idx, &stats, NULL), 0);
    assert_int_equal(stats.p50, 500);
    assert_int_equal(stats.p90, 900);
    assert_int_equal(stats.p99, 990);
    assert_int_equal(stats.p999, 999);
    assert_int_equal(stats.tokens, 500500);
    assert_int_equal(stats.loss_tokens, 2000);
    assert_true(stats.mean > 500.4999 && stats.mean < 500.5001);
    assert_int_equal(stats.bins[0], 0);
    assert_int_equal(stats.bins[1], 1);    /* 1 */
    assert_int_equal(stats.bins[2], 2);    /* 2 and 3 */
    assert_int_equal(stats.bins[10], 489); /* 512 to 1000 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index_describe__all_small_sizes),
        cmocka_unit_test(test_index_describe__edges),
        cmocka_unit_test(test_index_describe__one_to_thousand),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
