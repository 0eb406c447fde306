/*
 * A plan changes nothing but the time: training by plans on eight ranks, threads here, gives the
 * losses and weights of one rank that knows no plan. And what would change training is noticed:
 * faults are planted one by one, each must be seen in the same comparison.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "faults.h"
#include "ranks.h"

#define TOLERANCE 1e-5

/* Eight steps are enough to see a fault, and the long sequence is in one of them. */
static const struct ranks_run base = {.policy = "skrull",
                                      .dp = 2,
                                      .cp = 4,
                                      .cp_mode = SKRULL_CP_MODE_FIXED,
                                      .shard = SKRULL_SHARD_ZIGZAG,
                                      .exchange = SKRULL_EXCHANGE_GATHER,
                                      .loss = SKRULL_LOSS_TOKEN_MEAN,
                                      .n_steps = 8,
                                      .n_sequences = 12,
                                      .longest = 192};

static double difference_of(const struct ranks_run *run)
{
    struct ranks_result scheduled, alone;
    double difference;

    ranks_train(run, &scheduled);
    ranks_train_alone(run, &alone);
    /* Training must move, or all would be equal. */
    assert_true(alone.losses[run->n_steps - 1] < 0.995 * alone.losses[0]);
    difference = ranks_difference(&scheduled, &alone, run);
    ranks_result_free(&scheduled);
    ranks_result_free(&alone);
    return difference;
}

static void expect_equal(const char *name, const struct ranks_run *run)
{
    double difference = difference_of(run);

    print_message("# %s: %.2g\n", name, difference);
    assert_true(difference <= TOLERANCE);
}

static void test_training_step__equals_one_rank(void **state)
{
    struct ranks_run run;

    (void)state;
    expect_equal("<2,4> gather zigzag", &base);
    run = base;
    run.exchange = SKRULL_EXCHANGE_RING;
    run.is_sharded = true;
    expect_equal("<2,4> ring zigzag, states sharded", &run);
    run = base;
    run.dp = 1;
    run.cp = 8;
    run.policy = "uniform";
    run.exchange = SKRULL_EXCHANGE_RING;
    run.shard = SKRULL_SHARD_CONTIGUOUS;
    run.loss = SKRULL_LOSS_SEQUENCE_MEAN;
    expect_equal("<1,8> uniform, ring contiguous, sequence_mean", &run);
    run = base;
    run.dp = 4;
    run.cp = 2;
    run.policy = "round_robin";
    run.align = 16;
    run.recompute = true;
    run.window = 50;
    expect_equal("<4,2> round_robin, align 16, recompute, window", &run);
    run.exchange = SKRULL_EXCHANGE_RING;
    run.policy = "uniform";
    expect_equal("<4,2> uniform, ring, align 16, recompute, window", &run);
}

/* Groups of eight, four and two ranks, and local sequences, in one micro-batch. */
static void test_training_step__equals_one_rank_with_nested_groups(void **state)
{
    struct ranks_run run = base;

    (void)state;
    run.policy = NULL;
    run.n_sequences = 24;
    expect_equal("nested groups, gather zigzag", &run);
    run.exchange = SKRULL_EXCHANGE_RING;
    run.align = 4;
    run.recompute = true;
    expect_equal("nested groups, ring zigzag, align 4", &run);
    run.shard = SKRULL_SHARD_CONTIGUOUS;
    run.exchange = SKRULL_EXCHANGE_GATHER;
    expect_equal("nested groups, gather contiguous, align 4", &run);
    run = base;
    run.policy = "joint";
    run.cp_mode = SKRULL_CP_MODE_ELASTIC;
    run.exchange = SKRULL_EXCHANGE_RING;
    expect_equal("<2,4> joint elastic, ring", &run);
}

/* What is computed again, and states that are sharded, give the same bits. */
static void test_training_step__same_bits_with_less_memory(void **state)
{
    struct ranks_run run = base;
    struct ranks_result whole, less;

    (void)state;
    ranks_train(&run, &whole);
    run.recompute = run.is_sharded = true;
    ranks_train(&run, &less);
    assert_true(ranks_difference(&whole, &less, &run) <= 0.0);
    assert_true(less.peak_bytes < whole.peak_bytes);
    ranks_result_free(&whole);
    ranks_result_free(&less);
}

static void test_training_step__notices_faults(void **state)
{
    struct ranks_run run = base;

    (void)state;
    run.align = 8; /* padding is there to be misused */
    expect_equal("no fault", &run);
    for (const struct fault *fault = faults; fault->name; fault++) {
        double difference;

        run.plant = fault->plant;
        difference = difference_of(&run);
        print_message("# %s: %.2g\n", fault->name, difference);
        if (difference <= 10 * TOLERANCE) {
            fail_msg("%s was not noticed", fault->name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training_step__equals_one_rank),
        cmocka_unit_test(test_training_step__equals_one_rank_with_nested_groups),
        cmocka_unit_test(test_training_step__same_bits_with_less_memory),
        cmocka_unit_test(test_training_step__notices_faults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
