/* Tests of estimate_check.c: every figure of a plan is the model's, or a fault. */
#include "estimate_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan_check.h"

struct said {
    size_t n;
    char first[256];
};

static const struct skrull_cost_options cost_options = {.preset = "qwen2.5-0.5b"};

static void keep_first(void *arg, const char *message)
{
    struct said *said = arg;

    if (said->n++ == 0) {
        (void)snprintf(said->first, sizeof(said->first), "%s", message);
    }
}

static struct skrull_planner_options options(void)
{
    return (struct skrull_planner_options){
        .dp = 2, .cp = 2, .bucket_tokens = 4096, .policy = "joint"};
}

static struct skrull_plan *new_plan(const struct skrull_cost_model *cost)
{
    static const struct skrull_sequence sequences[] = {
        {.sample = 0, .length = 7000, .loss_tokens = 7000},
        {.sample = 1, .length = 900, .loss_tokens = 900},
        {.sample = 2, .length = 4000, .loss_tokens = 4000},
    };
    const struct skrull_planner_input input = {
        .options = options(), .cost = cost, .sequences = sequences, .n_sequences = 3};
    struct skrull_plan *plan;
    struct skrull_error err;

    assert_int_equal(skrull_planner_run(&input, &plan, &err), 0);
    return plan;
}

static int check(const struct skrull_cost_model *cost, struct skrull_plan *plan,
                 struct said *ret_said)
{
    const struct skrull_planner_options planner = options();
    struct skrull_error err;

    *ret_said = (struct said){0};
    return estimate_check(&planner, cost, plan, keep_first, ret_said, &err);
}

static int setup(void **state)
{
    struct skrull_error err;

    return skrull_cost_model_new(&cost_options, (struct skrull_cost_model **)state, &err);
}

static int teardown(void **state)
{
    skrull_cost_model_free(*state);
    return 0;
}

static void test_estimate_check__the_planners_own(void **state)
{
    struct skrull_plan *plan = new_plan(*state);
    struct said said;

    assert_int_equal(check(*state, plan, &said), 0);
    assert_int_equal(said.n, 0);
    skrull_plan_free(plan);
}

/* One ns more, anywhere. */
static void test_estimate_check__every_figure_counts(void **state)
{
    static const size_t offsets[] = {
        offsetof(struct skrull_estimate, iteration_ns), offsetof(struct skrull_estimate, bound_ns),
        offsetof(struct skrull_estimate, comp_ns), offsetof(struct skrull_estimate, comm_ns),
        offsetof(struct skrull_estimate, idle_ns)};
    static const char *const names[] = {"iteration", "bound", "comp", "comm", "idle"};
    static const char *const places[] = {"the plan: ", "rank 1: ", "rank 1, micro-batch 0: "};

    for (size_t i = 0; i < 15; i++) {
        struct skrull_plan *plan = new_plan(*state);
        struct skrull_estimate *holders[] = {
            &plan->estimate, &plan->ranks[1].estimate,
            &plan->micro_batches[plan->ranks[1].first_micro_batch].estimate};
        char *at = (char *)holders[i / 5] + offsets[i % 5], word[64];
        struct said said;
        int64_t model_ns, given_ns;

        memcpy(&model_ns, at, sizeof(model_ns));
        given_ns = model_ns + 1;
        memcpy(at, &given_ns, sizeof(given_ns));
        if (i == 1) {
            plan->estimate.bound_ns = given_ns = model_ns - 1;
        }
        assert_int_equal(check(*state, plan, &said), PLAN_CHECK_UNSOUND);
        assert_int_equal(said.n, 1);
        assert_non_null(strstr(said.first, places[i / 5]));
        (void)snprintf(word, sizeof(word), "says %s %lld ns, the model says %lld ns", names[i % 5],
                       (long long)given_ns, (long long)model_ns);
        assert_non_null(strstr(said.first, word));
        memcpy(&given_ns, at, sizeof(given_ns));
        assert_int_equal(given_ns, model_ns); /* the model's stay */
        skrull_plan_free(plan);
    }
}

static void test_estimate_check__none_is_no_claim(void **state)
{
    struct skrull_plan *plan = new_plan(*state);
    const struct skrull_estimate none = {0};
    struct said said;

    plan->estimate = none;
    for (size_t i = 0; i < plan->n_ranks; i++) {
        plan->ranks[i].estimate = none;
    }
    for (size_t i = 0; i < plan->n_micro_batches; i++) {
        plan->micro_batches[i].estimate = none;
    }
    assert_int_equal(check(*state, plan, &said), 0);
    assert_true(plan->estimate.iteration_ns > 0);
    plan->micro_batches[0].estimate = none;
    assert_int_equal(check(*state, plan, &said), PLAN_CHECK_UNSOUND);
    skrull_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_estimate_check__the_planners_own, setup, teardown),
        cmocka_unit_test_setup_teardown(test_estimate_check__every_figure_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_estimate_check__none_is_no_claim, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
