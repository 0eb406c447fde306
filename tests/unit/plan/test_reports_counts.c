/* Reports about ranks that must do the same number of things, on any grid. */
#include "unit/plan/reports.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MAX_LENGTHS 64

/* Each rank has as many micro-batches; dummies are those without segments and nothing else. */
static void expect_equal_counts(const struct skrull_plan *plan)
{
    for (uint32_t r = 0; r < plan->n_ranks; r++) {
        assert_int_equal(plan->ranks[r].n_micro_batches, plan->ranks[0].n_micro_batches);
        for (uint32_t m = 0; m < plan->ranks[r].n_micro_batches; m++) {
            const struct skrull_micro_batch *micro_batch = reports_micro_batch(plan, r, m);

            assert_int_equal(micro_batch->dummy, micro_batch->n_segments == 0);
        }
    }
}

static uint32_t all_dummies(const struct skrull_plan *plan)
{
    uint32_t n = 0;

    for (uint32_t r = 0; r < plan->n_ranks; r++) {
        n += reports_dummies(plan, r);
    }
    return n;
}

/* Alone, one rank would take five micro-batches and the other one. */
static void test_R3__five_of_95_and_five_of_20_give_both_ranks_the_same_count(void **state)
{
    static const uint32_t lengths[] = {95, 95, 95, 95, 95, 20, 20, 20, 20, 20};

    (void)state;
    REPORTS_EACH_POLICY(policy)
    {
        struct skrull_plan *plan;
        struct fixture fixture;

        fixture_init(&fixture, 2, 1, 100);
        fixture.input.options.equal_micro_batches = true;
        plan = reports_plan(&fixture, *policy, lengths, REPORTS_COUNT(lengths));
        expect_equal_counts(plan);
        assert_true(plan->ranks[0].n_micro_batches >= 3); /* six bins hold them, none less */
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

/* Five full micro-batches on four ranks: two each, three of the eight are dummies. */
static void test_R4__a_rank_with_too_few_samples_gets_marked_dummies(void **state)
{
    static const uint32_t lengths[] = {100, 100, 100, 100, 100};

    (void)state;
    REPORTS_EACH_POLICY(policy)
    {
        struct skrull_plan *plan;
        struct fixture fixture;

        fixture_init(&fixture, 4, 1, 100);
        fixture.input.options.equal_micro_batches = true;
        plan = reports_plan(&fixture, *policy, lengths, REPORTS_COUNT(lengths));
        expect_equal_counts(plan);
        assert_int_equal(plan->ranks[0].n_micro_batches, 2);
        assert_int_equal(all_dummies(plan), 3);
        for (size_t i = 0; i < plan->n_micro_batches; i++) {
            assert_true(!plan->micro_batches[i].dummy || plan->micro_batches[i].tokens == 0);
        }
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

/* Three full ones on two ranks: the second has one micro-batch, not one and an empty bin. */
static void test_R5__no_empty_bins_at_the_end_of_a_rank(void **state)
{
    static const uint32_t lengths[] = {10, 10, 10};

    (void)state;
    REPORTS_EACH_POLICY(policy)
    {
        struct skrull_plan *plan;
        struct fixture fixture;

        fixture_init(&fixture, 2, 1, 10);
        plan = reports_plan(&fixture, *policy, lengths, REPORTS_COUNT(lengths));
        assert_int_equal(all_dummies(plan), 0);
        assert_int_equal(plan->n_micro_batches, 3);
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

/* What others spread as 4, 4, 8 and 4, and one more: six each, three dummies. */
static void test_R9__twenty_one_full_micro_batches_are_six_on_each_of_four_ranks(void **state)
{
    uint32_t lengths[21];

    (void)state;
    for (size_t i = 0; i < REPORTS_COUNT(lengths); i++) {
        lengths[i] = 100;
    }
    REPORTS_EACH_POLICY(policy)
    {
        struct skrull_plan *plan;
        struct fixture fixture;

        fixture_init(&fixture, 4, 1, 100);
        fixture.input.options.equal_micro_batches = true;
        plan = reports_plan(&fixture, *policy, lengths, REPORTS_COUNT(lengths));
        expect_equal_counts(plan);
        assert_int_equal(plan->ranks[0].n_micro_batches, 6);
        assert_int_equal(all_dummies(plan), 3);
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

/* The long one only fits shared; nobody's list starts with nothing because of it. */
static void test_R10__no_empty_micro_batch_before_a_long_sequence(void **state)
{
    static const uint32_t lengths[] = {350, 10, 10, 20};

    (void)state;
    REPORTS_EACH_POLICY(policy)
    {
        struct skrull_plan *plan;
        struct fixture fixture;

        fixture_init(&fixture, 2, 2, 200);
        plan = reports_plan(&fixture, *policy, lengths, REPORTS_COUNT(lengths));
        for (uint32_t r = 0; r < plan->n_ranks; r++) {
            assert_true(plan->ranks[r].n_micro_batches == 0 ||
                        !reports_micro_batch(plan, r, 0)->dummy);
        }
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

/* Three sequences on eight ranks: the others run dummies, or have nothing at all. */
static void test_R10__ranks_without_work_are_marked(void **state)
{
    static const uint32_t lengths[] = {50, 60, 70};

    (void)state;
    for (int equal = 0; equal < 2; equal++) {
        REPORTS_EACH_POLICY(policy)
        {
            struct skrull_plan *plan;
            struct fixture fixture;

            fixture_init(&fixture, 8, 1, 100);
            fixture.input.options.equal_micro_batches = equal;
            plan = reports_plan(&fixture, *policy, lengths, REPORTS_COUNT(lengths));
            assert_int_equal(all_dummies(plan), equal ? 5 : 0);
            for (uint32_t r = 0; equal && r < 8; r++) {
                assert_int_equal(plan->ranks[r].n_micro_batches, 1);
            }
            skrull_plan_free(plan);
            fixture_deinit(&fixture);
        }
    }
}

/* Every grid of up to 24 ranks, though most are no power of two: all ranks are there, all work is
 * done, and the paper's heuristics leave no DP rank without. */
static void test_R11__any_grid_is_planned(void **state)
{
    uint32_t lengths[MAX_LENGTHS];

    (void)state;
    for (uint32_t i = 0; i < MAX_LENGTHS; i++) {
        lengths[i] = 1 + i * i % 97;
    }
    for (uint32_t dp = 1; dp <= 24; dp++) {
        for (uint32_t cp = 1; dp * cp <= 24; cp++) {
            REPORTS_EACH_POLICY(policy)
            {
                struct skrull_plan *plan;
                struct fixture fixture;

                fixture_init(&fixture, dp, cp, 100);
                fixture.input.options.equal_micro_batches = true;
                plan = reports_plan(&fixture, *policy, lengths, MAX_LENGTHS);
                assert_int_equal(plan->n_ranks, dp * cp);
                for (uint32_t d = 0; strcmp(*policy, "skrull") == 0 && d < dp; d++) {
                    assert_true(reports_working(plan, d * cp) > 0);
                }
                skrull_plan_free(plan);
                fixture_deinit(&fixture);
            }
        }
    }
}

/* Groups of six ranks: each lies in the world, its first rank a multiple of its size. */
static void expect_groups_of_the_world(const struct skrull_plan *plan)
{
    for (size_t i = 0; i < plan->n_segments; i++) {
        const struct skrull_segment *segment = &plan->segments[i];

        assert_int_equal(plan->n_ranks % segment->group_size, 0);
        assert_int_equal(segment->group_first % segment->group_size, 0);
        assert_true(segment->group_first + segment->group_size <= plan->n_ranks);
    }
}

static void test_R12__groups_of_six_ranks_are_aligned(void **state)
{
    static const uint32_t grids[][2] = {{1, 6}, {2, 3}, {3, 2}, {6, 1}};
    static const uint32_t lengths[] = {238, 124, 204, 21}, short_ones[] = {100, 64, 99, 21};

    (void)state;
    for (size_t i = 0; i < REPORTS_COUNT(grids); i++) {
        for (int mode = SKRULL_CP_MODE_FIXED; mode <= SKRULL_CP_MODE_ELASTIC; mode++) {
            REPORTS_EACH_POLICY(policy)
            {
                struct skrull_plan *plan;
                struct fixture fixture;

                fixture_init(&fixture, grids[i][0], grids[i][1], 100);
                fixture.input.options.cp_mode = (enum skrull_cp_mode)mode;
                plan = reports_plan(&fixture, *policy, grids[i][1] > 2 ? lengths : short_ones, 4);
                expect_groups_of_the_world(plan);
                skrull_plan_free(plan);
                fixture_deinit(&fixture);
            }
        }
    }
}

/* Above four ranks' room a power of two would be eight ranks; six hold up to 600. */
static void test_R12__six_ranks_take_all_of_401_to_600(void **state)
{
    static const char *const words[] = {"601 tokens", "at most 600 fit"};
    const uint32_t too_long[] = {601};
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 1, 6, 100);
    for (uint32_t length = 401; length <= 600; length++) {
        REPORTS_EACH_POLICY(policy)
        {
            struct skrull_plan *plan = reports_plan(&fixture, *policy, &length, 1);

            assert_int_equal(reports_find(plan, 100)->group_size, 6);
            skrull_plan_free(plan);
        }
    }
    reports_refuse(&fixture, "skrull", too_long, 1, words, REPORTS_COUNT(words));
    fixture_deinit(&fixture);
}

/* Four sequences, one a micro-batch. */
static void expect_order(enum skrull_micro_batch_order order, const uint32_t *wanted)
{
    static const uint32_t lengths[] = {50, 90, 20, 70};

    REPORTS_EACH_POLICY(policy)
    {
        struct skrull_plan *plan;
        struct fixture fixture;

        fixture_init(&fixture, 1, 1, 90);
        fixture.input.options.align = 45; /* no two fit in two slots of 45 */
        fixture.input.options.micro_batch_order = order;
        fixture.input.options.equal_micro_batches = true;
        plan = reports_plan(&fixture, *policy, lengths, REPORTS_COUNT(lengths));
        for (uint32_t m = 0; m < 4; m++) {
            assert_int_equal(reports_segments(plan, 0, m)->sequence_length, wanted[m]);
        }
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

/* An allocator that meets the largest first need not grow in steps. */
static void test_R31__the_largest_can_come_first(void **state)
{
    static const uint32_t wanted[] = {90, 70, 50, 20};

    (void)state;
    expect_order(SKRULL_MICRO_BATCH_ORDER_LARGEST_FIRST, wanted);
}

/* A pipeline fills and drains beside light ones. */
static void test_R31__the_heaviest_can_stand_in_the_middle(void **state)
{
    static const uint32_t wanted[] = {50, 90, 70, 20};

    (void)state;
    expect_order(SKRULL_MICRO_BATCH_ORDER_HEAVY_MIDDLE, wanted);
}

/* Five full micro-batches, or one, on pipelines of four stages with groups of four: eight, or four,
 * on every rank. */
static void test_R34__counts_are_multiples_and_no_fewer_than_stages(void **state)
{
    static const uint32_t lengths[] = {100, 100, 100, 100, 100, 100, 100, 100, 100};

    (void)state;
    for (int few = 0; few < 2; few++) {
        REPORTS_EACH_POLICY(policy)
        {
            struct skrull_plan *plan;
            struct fixture fixture;

            fixture_init(&fixture, 2, 1, 100);
            fixture.input.options.equal_micro_batches = true;
            fixture.input.options.micro_batch_multiple = 4;
            fixture.input.options.micro_batch_min = 4;
            plan = reports_plan(&fixture, *policy, lengths, few ? 1 : REPORTS_COUNT(lengths));
            expect_equal_counts(plan);
            assert_int_equal(plan->ranks[0].n_micro_batches, few ? 4 : 8);
            assert_int_equal(all_dummies(plan), 7);
            skrull_plan_free(plan);
            fixture_deinit(&fixture);
        }
    }
}

/* Gradient accumulation of eight steps is fixed in the trainer; four cannot hold five. */
static void test_R34__an_exact_count_is_kept_or_refused_by_its_need(void **state)
{
    static const uint32_t lengths[] = {100, 100, 100, 100, 100};
    static const char *const words[] = {"batch.micro_batches: 4", "needs 5"};

    (void)state;
    REPORTS_EACH_POLICY(policy)
    {
        struct skrull_plan *plan;
        struct fixture fixture;

        fixture_init(&fixture, 1, 1, 100);
        fixture.input.options.micro_batches = 8;
        plan = reports_plan(&fixture, *policy, lengths, REPORTS_COUNT(lengths));
        expect_equal_counts(plan);
        assert_int_equal(plan->ranks[0].n_micro_batches, 8);
        assert_int_equal(all_dummies(plan), 3);
        skrull_plan_free(plan);
        fixture.input.options.micro_batches = 4;
        reports_refuse(&fixture, *policy, lengths, REPORTS_COUNT(lengths), words,
                       REPORTS_COUNT(words));
        fixture_deinit(&fixture);
    }
}

static void test_R38__the_wait_of_an_idle_rank_is_in_the_plan(void **state)
{
    static const uint32_t lengths[] = {4000, 40};

    (void)state;
    REPORTS_EACH_POLICY(policy)
    {
        const struct skrull_estimate *slow, *fast;
        struct skrull_plan *plan;
        struct fixture fixture;

        fixture_init(&fixture, 2, 1, 4096);
        plan = reports_plan(&fixture, *policy, lengths, 2);
        slow = &plan->ranks[reports_find(plan, 100)->group_first].estimate;
        fast = &plan->ranks[reports_find(plan, 101)->group_first].estimate;
        assert_int_equal(slow->idle_ns, 0);
        assert_int_equal(fast->idle_ns, slow->comp_ns - fast->comp_ns);
        assert_true(fast->idle_ns > 0);
        assert_int_equal(plan->estimate.idle_ns, fast->idle_ns / 2);
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

/* Experts are spread over all data ranks, so the count holds over cp and dp alike. */
static void test_R45__counts_are_equal_over_every_data_rank(void **state)
{
    static const uint32_t lengths[] = {90, 180, 20, 70, 160, 10, 95};

    (void)state;
    REPORTS_EACH_POLICY(policy)
    {
        struct skrull_plan *plan;
        struct fixture fixture;

        fixture_init(&fixture, 4, 2, 100);
        fixture.input.options.equal_micro_batches = true;
        plan = reports_plan(&fixture, *policy, lengths, REPORTS_COUNT(lengths));
        assert_int_equal(plan->n_ranks, 8);
        expect_equal_counts(plan);
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_R3__five_of_95_and_five_of_20_give_both_ranks_the_same_count),
        cmocka_unit_test(test_R4__a_rank_with_too_few_samples_gets_marked_dummies),
        cmocka_unit_test(test_R5__no_empty_bins_at_the_end_of_a_rank),
        cmocka_unit_test(test_R9__twenty_one_full_micro_batches_are_six_on_each_of_four_ranks),
        cmocka_unit_test(test_R10__no_empty_micro_batch_before_a_long_sequence),
        cmocka_unit_test(test_R10__ranks_without_work_are_marked),
        cmocka_unit_test(test_R11__any_grid_is_planned),
        cmocka_unit_test(test_R12__groups_of_six_ranks_are_aligned),
        cmocka_unit_test(test_R12__six_ranks_take_all_of_401_to_600),
        cmocka_unit_test(test_R31__the_largest_can_come_first),
        cmocka_unit_test(test_R31__the_heaviest_can_stand_in_the_middle),
        cmocka_unit_test(test_R34__counts_are_multiples_and_no_fewer_than_stages),
        cmocka_unit_test(test_R34__an_exact_count_is_kept_or_refused_by_its_need),
        cmocka_unit_test(test_R38__the_wait_of_an_idle_rank_is_in_the_plan),
        cmocka_unit_test(test_R45__counts_are_equal_over_every_data_rank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
