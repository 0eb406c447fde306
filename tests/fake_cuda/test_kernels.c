/*
 * Training in bfloat16 with the kernels themselves, which the CPU shim runs on fake streams: one
 * GPU follows the CPU's float training over 20 steps, and several follow the one, by gather and
 * ring.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "fake.h"
#include "ranks.h"

#define TOLERANCE 1e-2

static int open_nccl(struct skrull_comm *host, struct skrull_comm **ret_comm,
                     struct skrull_error *err)
{
    return skrull_comm_nccl(host, (int)skrull_comm_rank(host), 0, ret_comm, err);
}

static const struct ranks_backend fake_gpu = {
    .name = "cuda", .dtype = SKRULL_DTYPE_BF16, .open = open_nccl, .end = fake_thread_end};

static const struct ranks_run base = {.policy = "uniform",
                                      .dp = 1,
                                      .cp = 1,
                                      .cp_mode = SKRULL_CP_MODE_FIXED,
                                      .shard = SKRULL_SHARD_ZIGZAG,
                                      .loss = SKRULL_LOSS_TOKEN_MEAN,
                                      .model = "tiny64",
                                      .n_steps = 20,
                                      .n_sequences = 24,
                                      .longest = 32}; /* four times that fits one rank */

static void train_on_gpus(struct ranks_run run, struct ranks_result *ret)
{
    run.backend = &fake_gpu;
    fake_use("shim");
    fake_begin(7, run.dp * run.cp, run.dp * run.cp);
    ranks_train(&run, ret);
    assert_string_equal(fake_end(), "");
}

/* The largest difference of a step's loss, relative to it. */
static double loss_difference(const struct ranks_result *a, const struct ranks_result *b,
                              uint32_t n_steps)
{
    double most = 0;

    for (uint32_t s = 0; s < n_steps; s++) {
        double difference = fabs(a->losses[s] - b->losses[s]) / fabs(b->losses[s]);

        most = difference <= most ? most : difference; /* not a number counts */
    }
    return most;
}

static void test_training_step__one_gpu_follows_the_cpu(void **state)
{
    struct ranks_result cpu, gpu;
    double difference, first = 0, last = 0;

    (void)state;
    ranks_train(&base, &cpu);
    train_on_gpus(base, &gpu);
    difference = loss_difference(&gpu, &cpu, base.n_steps);
    for (int i = 0; i < 5; i++) {
        first += cpu.losses[i] / 5;
        last += cpu.losses[base.n_steps - 1 - (uint32_t)i] / 5;
    }
    print_message("# losses of 20 steps differ by %.2g; they fall from %.3f to %.3f\n", difference,
                  first, last);
    assert_true(difference <= TOLERANCE);
    assert_true(last < (1.0 - 2.0 * TOLERANCE) * first); /* training does more than that */
    ranks_result_free(&cpu);
    ranks_result_free(&gpu);
}

static void test_training_step__several_gpus_follow_the_cpu(void **state)
{
    static const enum skrull_exchange exchanges[] = {SKRULL_EXCHANGE_GATHER, SKRULL_EXCHANGE_RING};

    (void)state;
    for (int e = 0; e < 2; e++) {
        struct ranks_run run = base;
        struct ranks_result cpu, gpu;
        double difference;

        run.cp = 3;
        run.n_steps = 4;
        run.n_sequences = 6;
        run.exchange = exchanges[e];
        run.is_sharded = e == 1;
        run.recompute = e == 0;
        ranks_train(&run, &cpu);
        train_on_gpus(run, &gpu);
        difference = loss_difference(&gpu, &cpu, run.n_steps);
        print_message("# exchange %d: losses differ by %.2g\n", e, difference);
        assert_true(difference <= TOLERANCE);
        ranks_result_free(&cpu);
        ranks_result_free(&gpu);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training_step__one_gpu_follows_the_cpu),
        cmocka_unit_test(test_training_step__several_gpus_follow_the_cpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
