/* Which ranks of a plan a reply has. */
#include "rpc/plan_reply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_plan_reply_ranks__ascending_and_unique(void **state)
{
    uint32_t ranks[] = {7, 0, 3, 7, 0, 7};
    const uint32_t want[] = {0, 3, 7};
    size_t n = 6;

    (void)state;
    assert_int_equal(plan_reply_ranks(ranks, &n, 8, NULL), 0);
    assert_int_equal(n, 3);
    assert_memory_equal(ranks, want, sizeof(want));
    n = 0;
    assert_int_equal(plan_reply_ranks(NULL, &n, 8, NULL), 0);
    assert_int_equal(n, 0);
}

static void test_plan_reply_ranks__out_of_range(void **state)
{
    uint32_t ranks[] = {7, 8, 9};
    struct skrull_error err = {0};
    size_t n = 3;

    (void)state;
    assert_int_equal(plan_reply_ranks(ranks, &n, 8, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(err.reason, SKRULL_REASON_DATA_RANK_OUT_OF_RANGE);
    assert_int_equal(err.limit, 8);
    assert_non_null(strstr(err.message, "data_ranks: 8 "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_reply_ranks__ascending_and_unique),
        cmocka_unit_test(test_plan_reply_ranks__out_of_range),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
