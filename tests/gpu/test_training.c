/*
 * Training on GPUs follows the CPU's: on one over 20 steps, and where there are more, on up to
 * eight, a thread each, that exchange by NCCL. Losses, relative, in bfloat16.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gpu.h"
#include "ranks.h"

#define TOLERANCE 1e-2

static int open_nccl(struct skrull_comm *host, struct skrull_comm **ret_comm,
                     struct skrull_error *err)
{
    return skrull_comm_nccl(host, (int)skrull_comm_rank(host), 0, ret_comm, err);
}

static void end_thread(void)
{
}

static const struct ranks_backend gpus = {
    .name = "cuda", .dtype = SKRULL_DTYPE_BF16, .open = open_nccl, .end = end_thread};

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

static void expect_like_cpu(const char *name, struct ranks_run run)
{
    struct ranks_result cpu, gpu;
    double most = 0;

    ranks_train(&run, &cpu);
    run.backend = &gpus;
    ranks_train(&run, &gpu);
    for (uint32_t s = 0; s < run.n_steps; s++) {
        double difference = fabs(gpu.losses[s] - cpu.losses[s]) / fabs(cpu.losses[s]);

        most = difference <= most ? most : difference; /* not a number counts */
    }
    print_message("# %s: losses differ by %.2g\n", name, most);
    assert_true(most <= TOLERANCE);
    ranks_result_free(&cpu);
    ranks_result_free(&gpu);
}

static void test_training_step__one_gpu(void **state)
{
    (void)state;
    expect_like_cpu("one GPU", base);
}

static void test_training_step__all_gpus(void **state)
{
    uint32_t n = gpu_count();
    struct ranks_run run = base;

    (void)state;
    run.cp = n < RANKS_MAX ? n : RANKS_MAX;
    if (run.cp < 2) {
        skip();
    }
    run.longest = 128;
    expect_like_cpu("all GPUs, gather", run);
    run.exchange = SKRULL_EXCHANGE_RING;
    run.is_sharded = true;
    expect_like_cpu("all GPUs, ring", run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training_step__one_gpu),
        cmocka_unit_test(test_training_step__all_gpus),
    };

    return gpu_count() ? cmocka_run_group_tests(tests, NULL, NULL) : GPU_SKIPPED;
}
