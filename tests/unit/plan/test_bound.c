/* The lower bound: by hand, and below every plan. */
#include "plan/bound.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cost/cost.h"
#include "unit/plan/fixture.h"

static int64_t bound_of(struct fixture *fixture)
{
    struct skrull_plan *plan = fixture_plan(fixture, "skrull");
    const int64_t bound_ns = plan->estimate.bound_ns;

    skrull_plan_free(plan);
    return bound_ns;
}

/* One sequence of 8000 on <1, 2>: shared, 0.6 of its time and the exchange; else all of it.
 * Whichever is less, and `fixed`. */
static void test_bound_of_plan__one_sequence_alone(void **state)
{
    static const uint32_t lengths[] = {8000};
    struct fixture fixture;
    int64_t whole, shared;

    (void)state;
    fixture_init(&fixture, 1, 2, 8000);
    fixture_set(&fixture, lengths, 1);
    whole = cost_comp_ns(fixture.cost, 8000, 1);
    shared =
        cost_comp_ns(fixture.cost, 8000, 2) + cost_exchange_ns(fixture.cost, COST_INSIDE, 8000);
    assert_true(shared < whole);
    assert_int_equal(bound_of(&fixture), cost_fixed_ns(fixture.cost) + shared);
    fixture.input.options.max_degree = 1;
    assert_int_equal(bound_of(&fixture), cost_fixed_ns(fixture.cost) + whole);
    fixture_deinit(&fixture);
}

/* Two ranks on two nodes: sharing costs the exchange across them. */
static void test_bound_of_plan__one_sequence_across_nodes(void **state)
{
    static const uint32_t lengths[] = {12000};
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 1, 2, 12000);
    fixture.input.options.min_degree = 2;
    fixture_set(&fixture, lengths, 1);
    fixture_use_nodes(&fixture, 8);
    assert_int_equal(bound_of(&fixture), cost_fixed_ns(fixture.cost) +
                                             cost_comp_ns(fixture.cost, 12000, 2) +
                                             cost_exchange_ns(fixture.cost, COST_ACROSS, 12000));
    fixture_deinit(&fixture);
}

/* 16 of 1000 on two ranks of 2000: 4 micro-batches on each, and half of all the work. */
static void test_bound_of_plan__mean_work_and_fixed(void **state)
{
    uint32_t lengths[16];
    struct fixture fixture;

    (void)state;
    for (size_t k = 0; k < 16; k++) {
        lengths[k] = 1000;
    }
    fixture_init(&fixture, 2, 1, 2000);
    fixture_set(&fixture, lengths, 16);
    assert_int_equal(bound_of(&fixture),
                     4 * cost_fixed_ns(fixture.cost) + 8 * cost_comp_ns(fixture.cost, 1000, 1));
    /* Room for all: one micro-batch each at least. */
    fixture.input.options.bucket_tokens = 100000;
    assert_int_equal(bound_of(&fixture),
                     cost_fixed_ns(fixture.cost) + 8 * cost_comp_ns(fixture.cost, 1000, 1));
    fixture_deinit(&fixture);
}

/* 3 of 1 token on two ranks of 1 token, 17 of 10: ceil(tokens / (C R)) rounds, where the work is
 * small. */
static void test_bound_of_plan__rounds(void **state)
{
    static const uint32_t lengths[] = {1, 1, 1};
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 2, 1, 1);
    fixture_set(&fixture, lengths, 3);
    assert_int_equal(bound_of(&fixture), 2 * cost_fixed_ns(fixture.cost));
    fixture_deinit(&fixture);
}

/* Sequences whose shards alone fit count their work at that size, 1.2 of the whole; here no two
 * share a micro-batch. */
static void test_bound_of_plan__counts_sizes_that_fit(void **state)
{
    static const uint32_t lengths[] = {8000, 8000, 8000, 8000};
    struct fixture fixture;
    int64_t optimum;

    (void)state;
    fixture_init(&fixture, 1, 2, 4000);
    fixture_set(&fixture, lengths, 4);
    optimum = 4 * (cost_fixed_ns(fixture.cost) + cost_comp_ns(fixture.cost, 8000, 2) +
                   cost_exchange_ns(fixture.cost, COST_INSIDE, 8000));
    assert_in_range(bound_of(&fixture), optimum - 20, optimum); /* whole-machine sequences */
    fixture_deinit(&fixture);
}

static void test_bound_of_plan__is_below_every_plan(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct fixture fixture;

        fixture_init(&fixture, 1, 1, 1);
        fixture_randomize(&fixture, seed);
        for (const char *const *policy = skrull_planner_policies(); *policy; policy++) {
            struct skrull_plan *plan = fixture_plan(&fixture, *policy);

            assert_true(plan->estimate.bound_ns > 0);
            assert_true(plan->estimate.bound_ns <= plan->estimate.iteration_ns);
            skrull_plan_free(plan);
        }
        fixture_deinit(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound_of_plan__one_sequence_alone),
        cmocka_unit_test(test_bound_of_plan__one_sequence_across_nodes),
        cmocka_unit_test(test_bound_of_plan__mean_work_and_fixed),
        cmocka_unit_test(test_bound_of_plan__rounds),
        cmocka_unit_test(test_bound_of_plan__counts_sizes_that_fit),
        cmocka_unit_test(test_bound_of_plan__is_below_every_plan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
