/* Reports about capacity: what a micro-batch may hold, and what is refused before it starts. */
#include "unit/plan/reports.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MAX_LENGTHS 512

static void fill(uint32_t *lengths, size_t n, uint32_t length)
{
    for (size_t i = 0; i < n; i++) {
        lengths[i] = length;
    }
}

/* `n` sequences of `length` on one rank: how many micro-batches, by every policy? */
static void expect_micro_batches(uint32_t cap, uint32_t length, size_t n, uint32_t expected)
{
    uint32_t lengths[MAX_LENGTHS];

    fill(lengths, n, length);
    REPORTS_EACH_POLICY(policy)
    {
        struct skrull_plan *plan;
        struct fixture fixture;

        fixture_init(&fixture, 1, 1, cap);
        plan = reports_plan(&fixture, *policy, lengths, n);
        assert_int_equal(plan->ranks[0].n_micro_batches, expected);
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

static void test_R1__eight_lengths_of_7_under_a_cap_of_8_need_eight(void **state)
{
    (void)state;
    expect_micro_batches(8, 7, 8, 8);
}

static void test_R1__sixteen_lengths_of_30720_under_a_cap_of_32768_need_sixteen(void **state)
{
    (void)state;
    expect_micro_batches(32768, 30720, 16, 16);
}

static void test_R2__a_single_sequence_above_the_cap_is_refused(void **state)
{
    static const uint32_t lengths[] = {3, 9, 4};
    static const char *const words[] = {"sample 101", "9 tokens", "at most 8 fit", "bucket_tokens"};

    (void)state;
    REPORTS_EACH_POLICY(policy)
    {
        struct fixture fixture;

        fixture_init(&fixture, 1, 1, 8);
        reports_refuse(&fixture, *policy, lengths, 3, words, REPORTS_COUNT(words));
        fixture_deinit(&fixture);
    }
}

/* By squared lengths 30000 weighs more than all others together; by tokens these are 1.1 caps. */
static void test_R2__balance_by_work_never_breaks_the_cap(void **state)
{
    uint32_t lengths[13] = {30000};

    (void)state;
    fill(&lengths[1], 12, 3000);
    REPORTS_EACH_POLICY(policy)
    {
        struct skrull_plan *plan;
        struct fixture fixture;

        fixture_init(&fixture, 2, 1, 32768);
        plan = reports_plan(&fixture, *policy, lengths, 13);
        assert_true(reports_working(plan, 0) + reports_working(plan, 1) >= 3);
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

/* A prompt of 400 and an answer: up to 3,696 tokens fit whole, more on two ranks, 8,192 do not. */
static void test_R6__a_sequence_above_one_rank_is_split_or_refused(void **state)
{
    static const uint32_t fits[] = {400 + 3696}, split[] = {400 + 3697}, too_long[] = {400 + 8192};
    static const char *const one_rank[] = {"4097 tokens", "at most 4096 fit", "over_length"};
    static const char *const two_ranks[] = {"8592 tokens", "at most 8192 fit", "over_length"};
    struct skrull_plan *plan;
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 1, 1, 4096);
    skrull_plan_free(reports_plan(&fixture, "skrull", fits, 1));
    reports_refuse(&fixture, "skrull", split, 1, one_rank, REPORTS_COUNT(one_rank));
    fixture.input.options.cp = 2;
    plan = reports_plan(&fixture, "skrull", split, 1);
    assert_int_equal(reports_find(plan, 100)->group_size, 2);
    assert_int_equal(reports_most_micro_batches(plan), 1);
    skrull_plan_free(plan);
    reports_refuse(&fixture, "skrull", too_long, 1, two_ranks, REPORTS_COUNT(two_ranks));
    fixture_deinit(&fixture);
}

static void test_R7__21_tokens_on_a_ring_of_2_with_a_cap_of_10_are_refused(void **state)
{
    static const uint32_t fits[] = {20}, too_long[] = {21};
    static const char *const words[] = {"21 tokens", "at most 20 fit", "bucket_tokens 10", "cp 2"};

    (void)state;
    for (int shard = SKRULL_SHARD_ZIGZAG; shard <= SKRULL_SHARD_CONTIGUOUS; shard++) {
        REPORTS_EACH_POLICY(policy)
        {
            struct fixture fixture;

            fixture_init(&fixture, 1, 2, 10);
            fixture.input.options.shard = (enum skrull_shard)shard;
            fixture.input.options.policy = *policy;
            assert_int_equal(skrull_planner_longest(&fixture.input.options), 20);
            skrull_plan_free(reports_plan(&fixture, *policy, fits, 1));
            reports_refuse(&fixture, *policy, too_long, 1, words, REPORTS_COUNT(words));
            fixture_deinit(&fixture);
        }
    }
}

/* 17 tokens are 32 with align 16: two fill a bucket of 64, though three have 51 tokens. */
static void test_R20__capacity_counts_padded_tokens(void **state)
{
    static const uint32_t lengths[] = {17, 17, 17, 17};

    (void)state;
    REPORTS_EACH_POLICY(policy)
    {
        struct skrull_plan *plan;
        struct fixture fixture;

        fixture_init(&fixture, 1, 1, 64);
        fixture.input.options.align = 16;
        plan = reports_plan(&fixture, *policy, lengths, 4);
        assert_true(reports_most_micro_batches(plan) >= 2);
        if (strcmp(*policy, "skrull") == 0 || strcmp(*policy, "joint") == 0) {
            assert_int_equal(reports_most_micro_batches(plan), 2);
            assert_int_equal(reports_micro_batch(plan, 0, 0)->padded_tokens, 64);
            assert_int_equal(reports_micro_batch(plan, 0, 0)->tokens, 34);
        }
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

/* Alignment and chunks both divide a slot, also where neither divides the other. */
static void test_R20__a_shard_is_a_multiple_of_align_in_each_chunk(void **state)
{
    static const uint32_t lengths[] = {5504, 184, 1, 1000};

    (void)state;
    for (uint32_t align = 1; align <= 128; align += align < 16 ? 1 : 16) {
        struct skrull_plan *plan;
        struct fixture fixture;

        fixture_init(&fixture, 1, 4, 4096);
        fixture.input.options.align = align;
        fixture.input.options.min_degree = 4;
        plan = reports_plan(&fixture, "skrull", lengths, 4);
        for (size_t i = 0; i < plan->n_segments; i++) {
            assert_int_equal(plan->segments[i].padded_tokens % align, 0);
        }
        for (size_t i = 0; i < plan->n_micro_batches; i++) {
            assert_int_equal(plan->micro_batches[i].padded_tokens % (2 * align), 0);
        }
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

static void test_R35__align_512_leaves_eight_shapes_of_slots(void **state)
{
    uint32_t lengths[200];
    struct skrull_plan *plan;
    struct fixture fixture;

    (void)state;
    for (uint32_t i = 0; i < 200; i++) {
        lengths[i] = 1 + i * 4095 / 199;
    }
    fixture_init(&fixture, 2, 1, 8192);
    fixture.input.options.align = 512;
    plan = reports_plan(&fixture, "skrull", lengths, 200);
    for (size_t i = 0; i < plan->n_segments; i++) {
        assert_int_equal(plan->segments[i].padded_tokens % 512, 0);
        assert_in_range(plan->segments[i].padded_tokens / 512, 1, 8);
    }
    skrull_plan_free(plan);
    fixture_deinit(&fixture);
}

/* 300 short ones weigh about as much as the long one, and are 7.3 caps of tokens. */
static void test_R36__the_cap_holds_while_work_is_balanced(void **state)
{
    uint32_t lengths[301] = {4096};

    (void)state;
    fill(&lengths[1], 300, 100);
    REPORTS_EACH_POLICY(policy)
    {
        struct skrull_plan *plan;
        struct fixture fixture;

        fixture_init(&fixture, 2, 1, 4096);
        fixture.input.options.equal_micro_batches = true;
        plan = reports_plan(&fixture, *policy, lengths, 301);
        assert_true(reports_working(plan, 0) + reports_working(plan, 1) >= 9);
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

/* Eight long ones come first: those who deal in order give them all to one rank. */
static void test_R37__long_sequences_are_spread_over_the_ranks(void **state)
{
    static const char *const policies[] = {"skrull", "round_robin", "joint"};
    uint32_t lengths[64];

    (void)state;
    fill(lengths, 8, 4000);
    fill(&lengths[8], 56, 10);
    for (size_t i = 0; i < REPORTS_COUNT(policies); i++) {
        struct skrull_plan *plan;
        struct fixture fixture;

        fixture_init(&fixture, 4, 1, 8192);
        plan = reports_plan(&fixture, policies[i], lengths, 64);
        for (uint32_t r = 0; r < 4; r++) {
            uint32_t n_long = 0;

            for (uint64_t sample = 100; sample < 108; sample++) {
                n_long += reports_find(plan, sample)->group_first == r;
            }
            assert_int_equal(n_long, 2);
        }
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

/* 10,000 and a hundred of 100 are 20,000: packed they fill one micro-batch to the last token. */
static void test_R46__packed_capacity_is_a_sum_not_a_rectangle(void **state)
{
    static const char *const policies[] = {"skrull", "round_robin", "joint"};
    uint32_t lengths[101] = {10000};

    (void)state;
    fill(&lengths[1], 100, 100);
    for (size_t i = 0; i < REPORTS_COUNT(policies); i++) {
        struct skrull_plan *plan;
        struct fixture fixture;

        fixture_init(&fixture, 1, 1, 20000);
        plan = reports_plan(&fixture, policies[i], lengths, 101);
        assert_int_equal(plan->ranks[0].n_micro_batches, 1);
        assert_int_equal(plan->micro_batches[0].padded_tokens, 20000);
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

static void test_R48__settings_are_judged_before_any_batch(void **state)
{
    static const struct {
        struct skrull_planner_options options;
        const char *words;
    } rows[] = {
        {{.dp = 0, .cp = 1, .bucket_tokens = 8}, "dp 0"},
        {{.dp = 1, .cp = 0, .bucket_tokens = 8}, "cp 0"},
        {{.dp = 65536, .cp = 65536, .bucket_tokens = 8}, "dp 65536 x cp 65536"},
        {{.dp = 1, .cp = 1, .bucket_tokens = 0}, "bucket_tokens"},
        {{.dp = 1, .cp = 2, .bucket_tokens = 31, .align = 16}, "batch.bucket_tokens: 31"},
        {{.dp = 1, .cp = 2, .bucket_tokens = 8, .policy = "magic"}, "unknown policy magic"},
        {{.dp = 1, .cp = 8, .bucket_tokens = 8, .min_degree = 9}, "min_degree"},
        {{.dp = 1, .cp = 8, .bucket_tokens = 8, .min_degree = 2, .max_degree = 7}, "max_degree"},
    };

    (void)state;
    for (size_t i = 0; i < REPORTS_COUNT(rows); i++) {
        struct skrull_error err = {0};

        assert_int_equal(skrull_planner_check_options(&rows[i].options, &err),
                         SKRULL_ERR_INVALID_ARGUMENT);
        if (!strstr(err.message, rows[i].words)) {
            fail_msg("row %zu: '%s' is not in: %s", i, rows[i].words, err.message);
        }
    }
}

static void test_R48__40960_tokens_under_a_cap_of_16384_name_both(void **state)
{
    static const uint32_t lengths[] = {40960};
    static const char *const words[] = {"40960 tokens", "at most 16384 fit"};
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 4, 1, 16384);
    reports_refuse(&fixture, "skrull", lengths, 1, words, REPORTS_COUNT(words));
    fixture_deinit(&fixture);
}

static void test_R48__the_fill_of_each_micro_batch_is_in_the_plan(void **state)
{
    static const uint32_t lengths[] = {100, 200};
    struct skrull_plan *plan;
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 1, 1, 512);
    fixture.input.options.align = 128;
    plan = reports_plan(&fixture, "skrull", lengths, 2);
    assert_int_equal(plan->ranks[0].n_micro_batches, 1);
    assert_int_equal(plan->micro_batches[0].tokens, 300);
    assert_int_equal(plan->micro_batches[0].padded_tokens, 128 + 256);
    skrull_plan_free(plan);
    fixture_deinit(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_R1__eight_lengths_of_7_under_a_cap_of_8_need_eight),
        cmocka_unit_test(test_R1__sixteen_lengths_of_30720_under_a_cap_of_32768_need_sixteen),
        cmocka_unit_test(test_R2__a_single_sequence_above_the_cap_is_refused),
        cmocka_unit_test(test_R2__balance_by_work_never_breaks_the_cap),
        cmocka_unit_test(test_R6__a_sequence_above_one_rank_is_split_or_refused),
        cmocka_unit_test(test_R7__21_tokens_on_a_ring_of_2_with_a_cap_of_10_are_refused),
        cmocka_unit_test(test_R20__capacity_counts_padded_tokens),
        cmocka_unit_test(test_R20__a_shard_is_a_multiple_of_align_in_each_chunk),
        cmocka_unit_test(test_R35__align_512_leaves_eight_shapes_of_slots),
        cmocka_unit_test(test_R36__the_cap_holds_while_work_is_balanced),
        cmocka_unit_test(test_R37__long_sequences_are_spread_over_the_ranks),
        cmocka_unit_test(test_R46__packed_capacity_is_a_sum_not_a_rectangle),
        cmocka_unit_test(test_R48__settings_are_judged_before_any_batch),
        cmocka_unit_test(test_R48__40960_tokens_under_a_cap_of_16384_name_both),
        cmocka_unit_test(test_R48__the_fill_of_each_micro_batch_is_in_the_plan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
