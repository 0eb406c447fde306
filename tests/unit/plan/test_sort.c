/* Ascending lengths, ties by place. */
#include "plan/sort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/plan/fixture.h"

static void check_sorted(const struct fixture *fixture)
{
    const uint32_t n = (uint32_t)fixture->input.n_sequences;
    const uint32_t *order = sort_by_length(fixture->sequences, n, fixture->scratch);
    uint8_t seen[FIXTURE_MAX_SEQUENCES] = {0};

    assert_non_null(order);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(order[i] < n);
        assert_int_equal(seen[order[i]]++, 0);
        if (i > 0) {
            const uint32_t before = fixture->sequences[order[i - 1]].length;
            const uint32_t here = fixture->sequences[order[i]].length;

            assert_true(before < here || (before == here && order[i - 1] < order[i]));
        }
    }
}

static void test_sort_by_length__is_stable_at_every_byte(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 1, 1, 1000);
    for (unsigned bits = 1; bits <= 32; bits++) {
        uint32_t lengths[300];

        for (size_t k = 0; k < 300; k++) {
            lengths[k] = fixture_random(&fixture, UINT32_MAX) >> (32 - bits);
        }
        fixture_set(&fixture, lengths, 300);
        check_sorted(&fixture);
    }
    fixture_deinit(&fixture);
}

static void test_sort_by_length__of_one_and_of_equals(void **state)
{
    const uint32_t lengths[] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 1, 1, 1000);
    fixture_set(&fixture, lengths, 1);
    check_sorted(&fixture);
    fixture_set(&fixture, lengths, 3);
    check_sorted(&fixture);
    fixture_deinit(&fixture);
}

/* Bare lengths come out as qsort would have them. */
static int compare_lengths(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

    return a < b ? -1 : a > b;
}

static void test_sort_lengths__ascend_at_every_byte(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 1, 1, 1000);
    for (unsigned bits = 1; bits <= 32; bits++) {
        uint32_t lengths[300], wanted[300];

        for (size_t k = 0; k < 300; k++) {
            lengths[k] = fixture_random(&fixture, UINT32_MAX) >> (32 - bits);
        }
        memcpy(wanted, lengths, sizeof(wanted));
        qsort(wanted, 300, sizeof(wanted[0]), compare_lengths);
        assert_int_equal(sort_lengths(lengths, 300, fixture.scratch), 0);
        assert_memory_equal(lengths, wanted, sizeof(wanted));
    }
    fixture_deinit(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sort_lengths__ascend_at_every_byte),
        cmocka_unit_test(test_sort_by_length__is_stable_at_every_byte),
        cmocka_unit_test(test_sort_by_length__of_one_and_of_equals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
