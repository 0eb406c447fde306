/* Inputs that made other planners overfill, starve ranks or stop with words that did not help; all
 * by every policy. */
#include "unit/plan/reports.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MAX_LENGTHS 8

/* What cannot be placed is refused by name, however the rest of the batch looks. */
static void test_inputs__too_long_for_all_ranks(void **state)
{
    static const struct {
        uint32_t dp, cp, cap, lengths[MAX_LENGTHS], n;
        const char *words[2];
    } rows[] = {
        {2, 1, 10, {12, 3, 4, 5}, 4, {"12 tokens", "at most 10 fit"}},
        {2, 2, 10, {3, 25, 4, 5}, 4, {"25 tokens", "at most 20 fit"}},
        {1, 4, 64, {600}, 1, {"600 tokens", "at most 256 fit"}},
        {1, 4, 100, {900}, 1, {"900 tokens", "at most 400 fit"}},
    };

    (void)state;
    for (size_t i = 0; i < REPORTS_COUNT(rows); i++) {
        REPORTS_EACH_POLICY(policy)
        {
            struct fixture fixture;

            print_message("# row %zu by %s\n", i, *policy);
            fixture_init(&fixture, rows[i].dp, rows[i].cp, rows[i].cap);
            reports_refuse(&fixture, *policy, rows[i].lengths, rows[i].n, rows[i].words, 2);
            fixture_deinit(&fixture);
        }
    }
}

/* Too few samples to move from pack to pack: dummies fill up to the multiple. */
static void test_inputs__fewer_samples_than_a_multiple(void **state)
{
    static const struct {
        uint32_t dp, cp, cap, multiple, lengths[MAX_LENGTHS], n;
    } rows[] = {
        {2, 1, 10, 4, {10, 10, 10}, 3},
        {2, 1, 10, 4, {5}, 1},
        {2, 1, 10, 4, {5, 5, 5, 5, 5, 5}, 6},
        {1, 4, 100, 2, {400}, 1},
        {1, 4, 100, 2, {314}, 1},
        {2, 2, 200, 2, {314}, 1},
    };

    (void)state;
    for (size_t i = 0; i < REPORTS_COUNT(rows); i++) {
        REPORTS_EACH_POLICY(policy)
        {
            struct skrull_plan *plan;
            struct fixture fixture;

            print_message("# row %zu by %s\n", i, *policy);
            fixture_init(&fixture, rows[i].dp, rows[i].cp, rows[i].cap);
            fixture.input.options.equal_micro_batches = true;
            fixture.input.options.micro_batch_multiple = rows[i].multiple;
            plan = reports_plan(&fixture, *policy, rows[i].lengths, rows[i].n);
            for (uint32_t r = 0; r < plan->n_ranks; r++) {
                assert_int_equal(plan->ranks[r].n_micro_batches, rows[i].multiple);
            }
            skrull_plan_free(plan);
            fixture_deinit(&fixture);
        }
    }
}

/* Lengths from a quarter of a rank to twice its cap: all placed, in both modes. */
static void test_inputs__powers_of_two_around_the_cap(void **state)
{
    static const struct {
        uint32_t cap, lengths[MAX_LENGTHS];
    } rows[] = {
        {2048, {1024, 4096, 2048, 1024, 2048, 1024, 2048, 1024}},
        {64, {128, 96, 64, 48, 32, 24, 16, 8}},
    };

    (void)state;
    for (size_t i = 0; i < REPORTS_COUNT(rows); i++) {
        for (int mode = SKRULL_CP_MODE_FIXED; mode <= SKRULL_CP_MODE_ELASTIC; mode++) {
            REPORTS_EACH_POLICY(policy)
            {
                struct skrull_plan *plan;
                struct fixture fixture;

                print_message("# row %zu by %s\n", i, *policy);
                fixture_init(&fixture, 2, 2, rows[i].cap);
                fixture.input.options.cp_mode = (enum skrull_cp_mode)mode;
                plan = reports_plan(&fixture, *policy, rows[i].lengths, MAX_LENGTHS);
                assert_true(plan->estimate.iteration_ns >= plan->estimate.bound_ns);
                skrull_plan_free(plan);
                fixture_deinit(&fixture);
            }
        }
    }
}

/* Others split 7 tokens eight ways, only so that no rank is idle. */
static void test_inputs__a_short_sequence_stays_whole(void **state)
{
    static const uint32_t lengths[] = {7};
    struct skrull_plan *plan;
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 1, 8, 100);
    plan = reports_plan(&fixture, "skrull", lengths, 1);
    assert_int_equal(reports_find(plan, 100)->group_size, 1);
    skrull_plan_free(plan);
    fixture_deinit(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inputs__too_long_for_all_ranks),
        cmocka_unit_test(test_inputs__fewer_samples_than_a_multiple),
        cmocka_unit_test(test_inputs__powers_of_two_around_the_cap),
        cmocka_unit_test(test_inputs__a_short_sequence_stays_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
