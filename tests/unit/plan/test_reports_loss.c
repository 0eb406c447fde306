/* Reports about losses that are not the mean that was meant: denominators, weights, targets. */
#include "unit/plan/reports.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Loss of one token, made up; what a model would give wherever the token is computed. */
typedef double (*token_loss_fn)(uint64_t sample, uint32_t position);

static double some_loss(uint64_t sample, uint32_t position)
{
    return (double)((sample * 31 + (uint64_t)position * 17) % 101) / 100.0;
}

/* What all data ranks sum up: each real token's loss times its segment's weight. */
static double loss_of(const struct skrull_plan *plan, token_loss_fn token_loss)
{
    double sum = 0;

    for (size_t i = 0; i < plan->n_segments; i++) {
        const struct skrull_segment *segment = &plan->segments[i];

        for (uint32_t t = segment->token_begin; t < segment->token_end; t++) {
            sum += segment->loss_weight * token_loss(segment->sample, t);
        }
    }
    return sum;
}

static void assert_close(double a, double b)
{
    const double gap = a > b ? a - b : b - a;

    if (gap > 1e-12) {
        fail_msg("%.17g and %.17g", a, b);
    }
}

static double one(uint64_t sample, uint32_t position)
{
    (void)sample;
    (void)position;
    return 1;
}

static void set_loss_tokens(struct fixture *fixture, const uint32_t *loss_tokens, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fixture->sequences[i].loss_tokens = loss_tokens[i];
    }
}

/* Eight ranks share each sequence; the batch still has as many tokens as it has, once. */
static void test_R21__denominators_do_not_depend_on_cp(void **state)
{
    static const uint32_t lengths[] = {1000, 37, 512, 3};

    (void)state;
    for (uint32_t cp = 1; cp <= 8; cp *= 2) {
        REPORTS_EACH_POLICY(policy)
        {
            struct skrull_plan *plan;
            struct fixture fixture;

            fixture_init(&fixture, 1, cp, 1024);
            fixture.input.options.min_degree = cp;
            plan = reports_plan(&fixture, *policy, lengths, REPORTS_COUNT(lengths));
            assert_int_equal(plan->totals.sequences, 4);
            assert_int_equal(plan->totals.tokens, 1552);
            assert_int_equal(plan->totals.loss_tokens, 1552);
            for (size_t i = 0; i < plan->n_segments; i++) {
                const double wanted = 1.0 / 1552;

                assert_memory_equal(&plan->segments[i].loss_weight, &wanted, sizeof(wanted));
            }
            assert_close(loss_of(plan, one), 1);
            skrull_plan_free(plan);
            fixture_deinit(&fixture);
        }
    }
}

/* Five tokens on one rank, one on the other: every token weighs 1/6, not 1/10 and 1/2. */
static void test_R22__five_tokens_and_one_weigh_the_same_each(void **state)
{
    static const uint32_t lengths[] = {5, 1};
    const double sixth = 1.0 / 6;

    (void)state;
    REPORTS_EACH_POLICY(policy)
    {
        struct skrull_plan *plan;
        struct fixture fixture;

        fixture_init(&fixture, 2, 1, 8);
        plan = reports_plan(&fixture, *policy, lengths, 2);
        assert_int_not_equal(reports_find(plan, 100)->group_first,
                             reports_find(plan, 101)->group_first);
        assert_memory_equal(&reports_find(plan, 100)->loss_weight, &sixth, sizeof(sixth));
        assert_memory_equal(&reports_find(plan, 101)->loss_weight, &sixth, sizeof(sixth));
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

/* Advantages +1 for the first sample, -1 for the second. */
static double plus_and_minus(uint64_t sample, uint32_t position)
{
    (void)position;
    return sample == 100 ? 1 : -1;
}

/* Lengths 1 and 3 in one micro-batch or in two: the same loss. */
static void test_R22__the_loss_does_not_depend_on_the_micro_batch_size(void **state)
{
    static const struct {
        enum skrull_loss loss;
        double wanted;
    } rows[] = {{SKRULL_LOSS_TOKEN_MEAN, -0.5}, {SKRULL_LOSS_SEQUENCE_MEAN, 0}};
    static const uint32_t lengths[] = {1, 3};

    (void)state;
    for (size_t i = 0; i < REPORTS_COUNT(rows); i++) {
        for (uint32_t cap = 3; cap <= 4; cap++) {
            struct skrull_plan *plan;
            struct fixture fixture;

            fixture_init(&fixture, 1, 1, cap);
            fixture.input.options.loss = rows[i].loss;
            plan = reports_plan(&fixture, "skrull", lengths, 2);
            assert_int_equal(plan->ranks[0].n_micro_batches, cap == 3 ? 2 : 1);
            assert_close(loss_of(plan, plus_and_minus), rows[i].wanted);
            skrull_plan_free(plan);
            fixture_deinit(&fixture);
        }
    }
}

/* The loss as its definition says, from the sequences alone. */
static double plain_loss(const struct fixture *fixture)
{
    const struct skrull_sequence *sequences = fixture->sequences;
    const size_t n = fixture->input.n_sequences;
    double sum = 0, tokens = 0, means = 0;

    for (size_t i = 0; i < n; i++) {
        double own = 0;

        for (uint32_t t = 0; t < sequences[i].length; t++) {
            own += some_loss(sequences[i].sample, t);
        }
        sum += own;
        tokens += sequences[i].length;
        means += own / sequences[i].length;
    }
    return fixture->input.options.loss == SKRULL_LOSS_TOKEN_MEAN ? sum / tokens : means / (double)n;
}

/* Packed, split or one by one: the same loss as without any packing. */
static void test_R23__packed_and_unpacked_losses_are_equal(void **state)
{
    static const uint32_t lengths[] = {30000, 10000, 12490, 20, 300, 17000, 1, 25000, 11111, 999};

    (void)state;
    for (int loss = SKRULL_LOSS_TOKEN_MEAN; loss <= SKRULL_LOSS_SEQUENCE_MEAN; loss++) {
        REPORTS_EACH_POLICY(policy)
        {
            struct skrull_plan *plan;
            struct fixture fixture;

            fixture_init(&fixture, 2, 4, 16384);
            fixture.input.options.loss = (enum skrull_loss)loss;
            plan = reports_plan(&fixture, *policy, lengths, REPORTS_COUNT(lengths));
            assert_close(loss_of(plan, some_loss), plain_loss(&fixture));
            skrull_plan_free(plan);
            fixture_deinit(&fixture);
        }
    }
}

/* A step is five sequences, however many micro-batches hold them. */
static void test_R33__a_step_counts_sequences_tokens_and_targets(void **state)
{
    static const uint32_t lengths[] = {7, 7, 7, 7, 2}, loss_tokens[] = {5, 7, 0, 1, 2};

    (void)state;
    REPORTS_EACH_POLICY(policy)
    {
        for (uint32_t cap = 8; cap <= 64; cap *= 2) {
            struct skrull_plan *plan;
            struct fixture fixture;

            fixture_init(&fixture, 1, 1, cap);
            fixture_set(&fixture, lengths, 5);
            set_loss_tokens(&fixture, loss_tokens, 5);
            plan = reports_replan(&fixture, *policy);
            assert_int_equal(plan->totals.sequences, 5);
            assert_int_equal(plan->totals.tokens, 30);
            assert_int_equal(plan->totals.loss_tokens, 15);
            skrull_plan_free(plan);
            fixture_deinit(&fixture);
        }
    }
}

/* Labels are shifted before the split: each sequence has one target less, not each shard. */
static void test_R42__targets_are_counted_before_the_split(void **state)
{
    static const uint32_t lengths[] = {100, 64, 8}, targets[] = {99, 63, 7};
    const double wanted = 1.0 / 169;

    (void)state;
    for (uint32_t cp = 1; cp <= 8; cp *= 2) {
        struct skrull_plan *plan;
        struct fixture fixture;

        fixture_init(&fixture, 1, cp, 256);
        fixture.input.options.min_degree = cp;
        fixture_set(&fixture, lengths, 3);
        set_loss_tokens(&fixture, targets, 3);
        plan = reports_replan(&fixture, "skrull");
        assert_int_equal(plan->totals.loss_tokens, 169);
        assert_memory_equal(&reports_find(plan, 100)->loss_weight, &wanted, sizeof(wanted));
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

/* 200 and 7,900 targets of 8,000 tokens each: one a rank, since they compute the same; and every
 * target weighs the same. */
static void test_R43__balance_is_of_compute_and_weights_are_of_targets(void **state)
{
    static const uint32_t lengths[] = {8000, 8000}, targets[] = {200, 7900}, turned[] = {7900, 200};
    const double wanted = 1.0 / 8100;

    (void)state;
    REPORTS_EACH_POLICY(policy)
    {
        struct skrull_plan *plan, *other;
        struct fixture fixture;

        fixture_init(&fixture, 2, 1, 16384);
        fixture_set(&fixture, lengths, 2);
        set_loss_tokens(&fixture, targets, 2);
        plan = reports_replan(&fixture, *policy);
        assert_int_equal(plan->ranks[0].n_micro_batches, 1);
        assert_int_equal(plan->ranks[1].n_micro_batches, 1);
        assert_memory_equal(&reports_find(plan, 100)->loss_weight, &wanted, sizeof(wanted));
        assert_memory_equal(&reports_find(plan, 101)->loss_weight, &wanted, sizeof(wanted));
        set_loss_tokens(&fixture, turned, 2);
        other = reports_replan(&fixture, *policy);
        assert_memory_equal(plan->digest, other->digest, SKRULL_DIGEST_SIZE);
        skrull_plan_free(other);
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_R21__denominators_do_not_depend_on_cp),
        cmocka_unit_test(test_R22__five_tokens_and_one_weigh_the_same_each),
        cmocka_unit_test(test_R22__the_loss_does_not_depend_on_the_micro_batch_size),
        cmocka_unit_test(test_R23__packed_and_unpacked_losses_are_equal),
        cmocka_unit_test(test_R33__a_step_counts_sequences_tokens_and_targets),
        cmocka_unit_test(test_R42__targets_are_counted_before_the_split),
        cmocka_unit_test(test_R43__balance_is_of_compute_and_weights_are_of_targets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
