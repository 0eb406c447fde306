/* What options are refused, and what the longest sequence is. */
#include "plan/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_skrull_planner_check_options__accepts_defaults(void **state)
{
    const struct skrull_planner_options options = {.dp = 4, .cp = 8, .bucket_tokens = 2};

    (void)state;
    assert_int_equal(skrull_planner_check_options(&options, NULL), 0);
}

static void test_skrull_planner_check_options__names_the_fault(void **state)
{
    static const struct {
        struct skrull_planner_options options;
        const char *wanted;
    } rows[] = {
        {{.dp = 0, .cp = 8, .bucket_tokens = 8}, "dp 0"},
        {{.dp = 4, .cp = 0, .bucket_tokens = 8}, "cp 0"},
        {{.dp = 1 << 20, .cp = 2, .bucket_tokens = 8}, "more than 1048576 ranks"},
        {{.dp = UINT32_MAX, .cp = UINT32_MAX, .bucket_tokens = 8}, "more than 1048576 ranks"},
        {{.dp = 4, .cp = 8, .bucket_tokens = 0}, "batch.bucket_tokens"},
        {{.dp = 4, .cp = 8, .bucket_tokens = 255, .align = 128},
         "255 is less than 2 x align (128)"},
        {{.dp = 4, .cp = 1, .bucket_tokens = 127, .align = 128}, "127 is less than 1 x align"},
        {{.dp = 1, .cp = 1, .bucket_tokens = 2147483648u}, "2147483648 is more than 2147483647"},
        {{.dp = 4, .cp = 8, .bucket_tokens = 8, .cp_mode = 3}, "parallel.cp_mode: 3"},
        {{.dp = 4, .cp = 8, .bucket_tokens = 8, .shard = 3}, "batch.shard: 3"},
        {{.dp = 4, .cp = 8, .bucket_tokens = 8, .loss = 4}, "loss: 4"},
        {{.dp = 4, .cp = 8, .bucket_tokens = 8, .micro_batch_order = 4},
         "batch.micro_batch_order: 4"},
        {{.dp = 4, .cp = 8, .bucket_tokens = 8, .mix = 3}, "batch.mix: 3"},
        {{.dp = 4, .cp = 8, .bucket_tokens = 8, .min_degree = 9}, "min_degree 9"},
        {{.dp = 4, .cp = 8, .bucket_tokens = 8, .policy = "foo"}, "unknown policy foo"},
        {{.dp = 4, .cp = 8, .bucket_tokens = 8, .policy = "packed"},
         "policy: packed is not built yet"},
        {{.dp = 4,
          .cp = 8,
          .bucket_tokens = 8,
          .cp_mode = SKRULL_CP_MODE_ELASTIC,
          .min_degree = 2,
          .max_degree = 4,
          .policy = "skrull"},
         "which the policy uses"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct skrull_error err = {0};

        print_message("# row %zu: %s\n", i, rows[i].wanted);
        assert_int_equal(skrull_planner_check_options(&rows[i].options, &err),
                         SKRULL_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, rows[i].wanted));
    }
}

static void test_skrull_planner_longest__counts_padded_tokens(void **state)
{
    static const struct {
        struct skrull_planner_options options;
        uint64_t tokens;
    } rows[] = {
        {{.dp = 4, .cp = 8, .bucket_tokens = 26624}, 212992},
        {{.dp = 4, .cp = 8, .bucket_tokens = 1000, .align = 128}, 6144}, /* 3 x 256 a rank */
        {{.dp = 4, .cp = 8, .bucket_tokens = 1000, .align = 128, .shard = SKRULL_SHARD_CONTIGUOUS},
         7168}, /* 7 x 128 a rank */
        {{.dp = 4, .cp = 8, .bucket_tokens = 1000, .align = 128, .max_degree = 1}, 896},
        {{.dp = 4, .cp = 1, .bucket_tokens = 1000}, 1000},
        {{.dp = 4, .cp = 8, .bucket_tokens = 1000, .cp_mode = SKRULL_CP_MODE_ELASTIC}, 32000},
        {{.dp = 4,
          .cp = 8,
          .bucket_tokens = 1000,
          .cp_mode = SKRULL_CP_MODE_ELASTIC,
          .policy = "skrull"},
         8000},
        {{.dp = 4, .cp = 8, .bucket_tokens = 1000, .min_degree = 9}, 0},
        {{.dp = 0, .cp = 8, .bucket_tokens = 1000}, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        print_message("# row %zu\n", i);
        assert_int_equal(skrull_planner_longest(&rows[i].options), rows[i].tokens);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skrull_planner_check_options__accepts_defaults),
        cmocka_unit_test(test_skrull_planner_check_options__names_the_fault),
        cmocka_unit_test(test_skrull_planner_longest__counts_padded_tokens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
