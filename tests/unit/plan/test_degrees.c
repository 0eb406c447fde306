/* The chain of group sizes and what drops from it. */
#include "plan/degrees.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct row {
    struct skrull_planner_options options;
    uint32_t sizes[8]; /* 0 ends */
};

#define FIXED SKRULL_CP_MODE_FIXED
#define ELASTIC SKRULL_CP_MODE_ELASTIC

static void check_rows(const struct row *rows, size_t n,
                       int (*degrees_of)(const struct skrull_planner_options *, struct degrees *,
                                         struct skrull_error *))
{
    for (size_t i = 0; i < n; i++) {
        struct degrees degrees = {.n = 77};
        const int rc = degrees_of(&rows[i].options, &degrees, NULL);
        size_t wanted = 0;

        print_message("# row %zu\n", i);
        while (rows[i].sizes[wanted] != 0) {
            wanted++;
        }
        if (wanted == 0) {
            assert_int_equal(rc, SKRULL_ERR_INVALID_ARGUMENT);
            assert_int_equal(degrees.n, 77);
            continue;
        }
        assert_int_equal(rc, 0);
        assert_int_equal(degrees.n, wanted);
        assert_memory_equal(degrees.sizes, rows[i].sizes, wanted * sizeof(uint32_t));
    }
}

static void test_degrees_of_job__is_the_chain_of_the_contract(void **state)
{
    static const struct row rows[] = {
        {{.dp = 4, .cp = 8, .cp_mode = ELASTIC}, {1, 2, 4, 8, 16, 32}},
        {{.dp = 3, .cp = 6, .cp_mode = ELASTIC}, {1, 2, 6, 18}},
        {{.dp = 1, .cp = 12, .cp_mode = ELASTIC}, {1, 2, 4, 12}},
        {{.dp = 1, .cp = 1, .cp_mode = ELASTIC}, {1}},
        {{.dp = 7, .cp = 1, .cp_mode = ELASTIC}, {1, 7}},
        {{.dp = 9, .cp = 10, .cp_mode = ELASTIC}, {1, 2, 10, 30, 90}},
        {{.dp = 4, .cp = 8, .cp_mode = FIXED}, {1, 8}},
        {{.dp = 8, .cp = 1, .cp_mode = FIXED}, {1}},
    };

    (void)state;
    check_rows(rows, sizeof(rows) / sizeof(rows[0]), degrees_of_job);
}

static void test_degrees_of_job__obeys_the_limits(void **state)
{
    static const struct row rows[] = {
        {{.dp = 4, .cp = 8, .cp_mode = ELASTIC, .min_degree = 2}, {2, 4, 8, 16, 32}},
        {{.dp = 4, .cp = 8, .cp_mode = ELASTIC, .max_degree = 8}, {1, 2, 4, 8}},
        {{.dp = 4, .cp = 8, .cp_mode = ELASTIC, .ranks_per_node = 4}, {1, 2, 4}},
        {{.dp = 1, .cp = 12, .cp_mode = ELASTIC, .ranks_per_node = 6}, {1, 2}},
        {{.dp = 4, .cp = 8, .cp_mode = ELASTIC, .min_degree = 3, .max_degree = 3}, {0}},
        {{.dp = 4, .cp = 8, .cp_mode = FIXED, .min_degree = 2}, {8}},
        {{.dp = 4, .cp = 8, .cp_mode = FIXED, .max_degree = 4}, {1}},
        {{.dp = 4, .cp = 8, .cp_mode = FIXED, .min_degree = 2, .max_degree = 4}, {0}},
        {{.dp = 4, .cp = 8, .cp_mode = FIXED, .min_degree = 2, .ranks_per_node = 4}, {0}},
    };

    (void)state;
    check_rows(rows, sizeof(rows) / sizeof(rows[0]), degrees_of_job);
}

static void test_degrees_of_policy__is_1_and_cp_in_both_modes(void **state)
{
    static const struct row rows[] = {
        {{.dp = 4, .cp = 8, .cp_mode = ELASTIC}, {1, 8}},
        {{.dp = 4, .cp = 8, .cp_mode = FIXED}, {1, 8}},
        {{.dp = 4, .cp = 1, .cp_mode = ELASTIC}, {1}},
        {{.dp = 4, .cp = 8, .cp_mode = ELASTIC, .min_degree = 2, .max_degree = 4}, {0}},
        {{.dp = 4, .cp = 8, .cp_mode = ELASTIC, .min_degree = 2}, {8}},
    };

    (void)state;
    check_rows(rows, sizeof(rows) / sizeof(rows[0]), degrees_of_policy);
}

/* The message names every limit that may be relaxed. */
static void test_degrees_of_job__names_the_limits(void **state)
{
    const struct skrull_planner_options options = {
        .dp = 4, .cp = 8, .cp_mode = FIXED, .min_degree = 2, .max_degree = 4};
    struct skrull_error err = {0};
    struct degrees degrees;

    (void)state;
    assert_int_equal(degrees_of_job(&options, &degrees, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "min_degree 2"));
    assert_non_null(strstr(err.message, "max_degree 4"));
    assert_non_null(strstr(err.message, "cp 8"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_degrees_of_job__is_the_chain_of_the_contract),
        cmocka_unit_test(test_degrees_of_job__obeys_the_limits),
        cmocka_unit_test(test_degrees_of_policy__is_1_and_cp_in_both_modes),
        cmocka_unit_test(test_degrees_of_job__names_the_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
