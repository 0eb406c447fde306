/* Counts of micro-batches: what contradicts itself, and what dummies fill up to. */
#include "plan/counts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plan/options.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static void test_counts_check_options__table(void **state)
{
    static const struct {
        bool equal;
        uint32_t dp, exact, multiple, min;
        const char *wanted; /* NULL: fine */
    } rows[] = {
        {false, 4, 0, 0, 0, NULL},
        {false, 4, 0, 1, 1, NULL},
        {true, 4, 0, 6, 7, NULL},
        {false, 4, 12, 6, 7, NULL}, /* an exact count makes them equal */
        {false, 4, 7, 0, 0, NULL},
        {false, 4, 0, 2, 1, "batch.micro_batch_multiple: 2 needs equal counts"},
        {false, 4, 0, 1, 2, "batch.micro_batch_min: 2 needs equal counts"},
        {true, 4, 7, 2, 1,
         "batch.micro_batches: 7 is no multiple of batch.micro_batch_multiple: 2"},
        {true, 4, 8, 2, 9, "batch.micro_batches: 8 is less than batch.micro_batch_min: 9"},
        {true, 1, 1 << 20, 1 << 16, 1 << 20, NULL},
        {true, 1 << 16, 1 << 10, 1, 1, "batch.micro_batches: a plan holds at most"},
        {true, 1 << 16, 0, 1 << 10, 1, "batch.micro_batch_multiple: a plan holds at most"},
        {true, 1 << 16, 0, 1, 1 << 10, "batch.micro_batch_min: a plan holds at most"},
        {true, 1, UINT32_MAX, 1, 1, "batch.micro_batches: a plan holds at most"},
        {true, 1, 0, UINT32_MAX, UINT32_MAX, "a plan holds at most"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct skrull_planner_options options = {.dp = rows[i].dp,
                                                       .cp = 1,
                                                       .bucket_tokens = 8,
                                                       .equal_micro_batches = rows[i].equal,
                                                       .micro_batches = rows[i].exact,
                                                       .micro_batch_multiple = rows[i].multiple,
                                                       .micro_batch_min = rows[i].min};
        struct skrull_error err = {0};
        const int rc = skrull_planner_check_options(&options, &err);

        print_message("# row %zu: %s\n", i, err.message);
        assert_int_equal(rc, rows[i].wanted ? SKRULL_ERR_INVALID_ARGUMENT : 0);
        assert_true(!rows[i].wanted || strstr(err.message, rows[i].wanted));
    }
}

static void test_counts_equal__table(void **state)
{
    static const struct {
        uint32_t exact, multiple, min, most, wanted;
    } rows[] = {
        {0, 1, 1, 1, 1},   {0, 1, 1, 5, 5},
        {0, 1, 4, 3, 4},   {0, 1, 4, 5, 5},
        {0, 4, 1, 1, 4},   {0, 4, 1, 4, 4},
        {0, 4, 1, 5, 8},   {0, 4, 6, 1, 8},
        {0, 4, 8, 1, 8},   {0, 65536, 1, PLANNER_MAX_SEQUENCES, PLANNER_MAX_SEQUENCES},
        {7, 1, 1, 5, 7},   {7, 1, 1, 7, 7},
        {12, 6, 7, 1, 12}, {7, 1, 1, 9, 9}, /* refused elsewhere, but nothing is cut off */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct skrull_planner_options options = {.micro_batches = rows[i].exact,
                                                       .micro_batch_multiple = rows[i].multiple,
                                                       .micro_batch_min = rows[i].min};

        print_message("# row %zu\n", i);
        assert_int_equal(counts_equal(&options, rows[i].most), rows[i].wanted);
    }
}

static void test_counts_most__is_of_all(void **state)
{
    static const struct placement placements[] = {{2, 0, 1}, {4, 0, 1}, {0, 0, 1}};

    (void)state;
    assert_int_equal(counts_most(placements, 0), 0);
    assert_int_equal(counts_most(placements, 1), 3);
    assert_int_equal(counts_most(placements, 3), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_check_options__table),
        cmocka_unit_test(test_counts_equal__table),
        cmocka_unit_test(test_counts_most__is_of_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
