/* The order by length against a plain stable sort. */
#include "sample/sorted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_ROWS 3000

static uint64_t next(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *random >> 32;
}

/* Every place once, lengths ascend, ties ascend by place. */
static void check(const struct sample_rows *rows, uint32_t n_datasets)
{
    static uint32_t lengths[2 * N_ROWS], places[2 * N_ROWS];
    static unsigned char seen[2 * N_ROWS];
    uint64_t n = 0;

    for (uint32_t i = 0; i < n_datasets; i++) {
        for (uint64_t row = 0; row < rows[i].count; row++) {
            if (!rows[i].kept || (rows[i].kept[row / 64] >> row % 64 & 1)) {
                lengths[n++] =
                    (uint32_t)(rows[i].lengths[row] < rows[i].limit ? rows[i].lengths[row]
                                                                    : rows[i].limit);
            }
        }
    }
    assert_int_equal(sorted_places(rows, n_datasets, n, places), 0);
    memset(seen, 0, sizeof(seen));
    for (uint64_t i = 0; i < n; i++) {
        assert_true(places[i] < n);
        assert_int_equal(seen[places[i]]++, 0);
        if (i > 0) {
            uint32_t before = lengths[places[i - 1]], here = lengths[places[i]];

            assert_true(before < here || (before == here && places[i - 1] < places[i]));
        }
    }
}

static void test_sorted_places__ascending_ties_by_place(void **state)
{
    static const uint64_t ranges[] = {1, 2, 100, 65535, 65536, 65537, 1000000, UINT32_MAX};
    static uint32_t lengths[2][N_ROWS];
    static uint64_t kept[N_ROWS / 64 + 1];
    uint64_t random = 11, n_kept;

    (void)state;
    for (size_t r = 0; r < sizeof(ranges) / sizeof(ranges[0]); r++) {
        struct sample_rows rows[2];

        n_kept = 0;
        memset(kept, 0, sizeof(kept));
        for (size_t i = 0; i < N_ROWS; i++) {
            lengths[0][i] = (uint32_t)(next(&random) % ranges[r] + 1);
            lengths[1][i] = (uint32_t)(next(&random) % ranges[r] + 1);
            if (next(&random) % 3 > 0) {
                kept[i / 64] |= UINT64_C(1) << i % 64;
                n_kept++;
            }
        }
        rows[0] = (struct sample_rows){
            .count = N_ROWS, .n_kept = N_ROWS, .lengths = lengths[0], .limit = ranges[r] / 2 + 1};
        rows[1] = (struct sample_rows){.count = N_ROWS,
                                       .n_kept = n_kept,
                                       .kept = kept,
                                       .lengths = lengths[1],
                                       .limit = UINT64_MAX};
        check(rows, 1);
        check(rows, 2);
        check(&rows[1], 1);
    }
}

static void test_sorted_places__of_nothing(void **state)
{
    struct sample_rows rows = {.limit = 5};
    uint32_t none = 77;

    (void)state;
    assert_int_equal(sorted_places(&rows, 1, 0, &none), 0);
    assert_int_equal(none, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sorted_places__ascending_ties_by_place),
        cmocka_unit_test(test_sorted_places__of_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
