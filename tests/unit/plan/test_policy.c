/* The table of policies. */
#include "plan/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "unit/plan/fixture.h"

static void test_skrull_planner_policies__lists_what_is_built(void **state)
{
    static const char *const wanted[] = {"uniform", "round_robin", "skrull", "joint"};
    const char *const *names = skrull_planner_policies();

    (void)state;
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        assert_string_equal(names[i], wanted[i]);
    }
    assert_null(names[4]);
}

static void test_policy_find__every_listed_name(void **state)
{
    const char *const *names = skrull_planner_policies();

    (void)state;
    for (; *names; names++) {
        const struct policy *policy = NULL;

        assert_int_equal(policy_find(*names, &policy, NULL), 0);
        assert_string_equal(policy->name, *names);
        assert_non_null(policy->place);
        assert_non_null(policy->summary);
    }
}

static void test_policy_find__default_is_joint(void **state)
{
    const struct policy *policy = NULL;

    (void)state;
    assert_int_equal(policy_find(NULL, &policy, NULL), 0);
    assert_string_equal(policy->name, "joint");
    assert_int_equal(policy_find("", &policy, NULL), 0);
    assert_string_equal(policy->name, "joint");
}

static void test_policy_find__names_to_come(void **state)
{
    static const char *const names[] = {"packed",         "sorted",     "wlb",
                                        "karmarkar_karp", "dynamic_cp", "flexsp",
                                        "libra",          "chunkflow",  "sparse_balance"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct policy *policy = NULL;
        struct skrull_error err = {0};
        char wanted[64];

        (void)snprintf(wanted, sizeof(wanted), "policy: %s is not built yet", names[i]);
        assert_int_equal(policy_find(names[i], &policy, &err), SKRULL_ERR_INVALID_ARGUMENT);
        assert_string_equal(err.message, wanted);
        assert_null(policy);
    }
}

static void test_policy_find__unknown_name(void **state)
{
    const struct policy *policy = NULL;
    struct skrull_error err = {0};

    (void)state;
    assert_int_equal(policy_find("Skrull", &policy, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.message,
                        "policy: unknown policy Skrull, there are: uniform, round_robin, skrull, joint");
}

/* DP rank i takes the i-th run of ceil(7 / 3) samples; the last one gets what is left. */
static void test_policy_uniform_place__deals_runs(void **state)
{
    static const uint32_t lengths[] = {1, 2, 3, 4, 5, 6, 7};
    static const struct placement wanted[] = {{0, 0, 2}, {1, 0, 2}, {2, 0, 2}, {0, 2, 2},
                                              {1, 2, 2}, {2, 2, 2}, {0, 4, 2}};
    struct placement placements[7];
    struct fixture fixture;
    struct batch batch;

    (void)state;
    fixture_init(&fixture, 3, 2, 100);
    fixture_set(&fixture, lengths, 7);
    fixture_batch(&fixture, &batch);
    assert_int_equal(policy_uniform_place(&batch, placements, NULL), 0);
    for (size_t k = 0; k < 7; k++) {
        print_message("# sequence %zu\n", k);
        assert_int_equal(placements[k].micro_batch, wanted[k].micro_batch);
        assert_int_equal(placements[k].group_first, wanted[k].group_first);
        assert_int_equal(placements[k].group_size, wanted[k].group_size);
    }
    fixture.input.options.max_degree = 1;
    fixture_batch(&fixture, &batch);
    assert_int_equal(policy_uniform_place(&batch, placements, NULL), 0);
    assert_int_equal(placements[3].group_first, 2);
    assert_int_equal(placements[3].group_size, 1);
    fixture_deinit(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skrull_planner_policies__lists_what_is_built),
        cmocka_unit_test(test_policy_find__every_listed_name),
        cmocka_unit_test(test_policy_find__default_is_joint),
        cmocka_unit_test(test_policy_find__names_to_come),
        cmocka_unit_test(test_policy_find__unknown_name),
        cmocka_unit_test(test_policy_uniform_place__deals_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
