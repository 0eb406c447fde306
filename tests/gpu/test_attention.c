/*
 * How fast attention is: one causal sequence of 16,384 tokens, 16 heads of 128 dimensions, bf16, as
 * a share of the rate of a cuBLAS product of 8,192^3 in the same run. Forward counts 4 x pairs x
 * dimensions, backward 2.5 times that, whatever the kernels compute twice. Medians of several
 * tries.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "gpu.h"
#include "ops.h"

#define ROWS 16384
#define HEADS 16
#define DIM 128
#define PRODUCT 8192
#define N_TRIES 7
#define N_EACH 10
#define FORWARD_AT_LEAST 0.40
#define BACKWARD_AT_LEAST 0.30

struct bench {
    const struct ops *ops;
    cublasHandle_t blas;
    cudaEvent_t began, ended;
    struct skrull_attention_backward attention;
    void *a, *b, *c; /* [PRODUCT][PRODUCT] */
};

static void *allocate(size_t bytes)
{
    void *p = NULL;

    assert_int_equal(cudaMalloc(&p, bytes), cudaSuccess);
    assert_int_equal(cudaMemset(p, 0, bytes), cudaSuccess);
    return p;
}

/* Random bf16 in +-[2^-3, 2^1): zeros would draw less power, and so run faster. */
static void *allocate_random(size_t n)
{
    uint16_t *values = malloc(n * sizeof(*values));
    uint32_t state = 1;
    void *p = allocate(n * sizeof(*values));

    assert_non_null(values);
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525 + 1013904223;
        values[i] = (uint16_t)(0x3e00 + (state >> 23) + (state & 0x8000));
    }
    assert_int_equal(cudaMemcpy(p, values, n * sizeof(*values), cudaMemcpyHostToDevice),
                     cudaSuccess);
    free(values);
    return p;
}

static int32_t *allocate_rows(void)
{
    int32_t *rows = malloc((ROWS + 2) * sizeof(*rows)), *p = allocate((ROWS + 2) * sizeof(*rows));

    assert_non_null(rows);
    for (int32_t i = 0; i < ROWS; i++) {
        rows[i] = i;
    }
    rows[ROWS] = 0;
    rows[ROWS + 1] = ROWS;
    assert_int_equal(cudaMemcpy(p, rows, (ROWS + 2) * sizeof(*rows), cudaMemcpyHostToDevice),
                     cudaSuccess);
    free(rows);
    return p;
}

static void open_bench(struct bench *bench)
{
    const size_t n = (size_t)ROWS * HEADS * DIM, product = (size_t)PRODUCT * PRODUCT;
    const int32_t *rows = allocate_rows();

    bench->ops = ops_find("cuda");
    assert_non_null(bench->ops);
    assert_int_equal(cublasCreate(&bench->blas), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(cudaEventCreate(&bench->began), cudaSuccess);
    assert_int_equal(cudaEventCreate(&bench->ended), cudaSuccess);
    bench->a = allocate_random(product);
    bench->b = allocate_random(product);
    bench->c = allocate(product * sizeof(uint16_t));
    bench->attention = (struct skrull_attention_backward){
        .forward = {.dtype = SKRULL_DTYPE_BF16,
                    .n_sequences = 1,
                    .q_cu_rows = rows + ROWS,
                    .k_cu_rows = rows + ROWS,
                    .q_position = rows,
                    .k_position = rows,
                    .max_q_rows = ROWS,
                    .max_k_rows = ROWS,
                    .heads = HEADS,
                    .kv_heads = HEADS,
                    .head_dim = DIM,
                    .scale = 0.088388F,
                    .causal = true,
                    .q = allocate_random(n),
                    .k = allocate_random(n),
                    .v = allocate_random(n),
                    .out = allocate(n * sizeof(uint16_t)),
                    .lse = allocate((size_t)ROWS * HEADS * sizeof(float))},
        .dout = allocate_random(n),
        .dq = allocate(n * sizeof(float)),
        .dk = allocate(n * sizeof(float)),
        .dv = allocate(n * sizeof(float))};
}

static void run_product(struct bench *bench)
{
    const float one = 1, zero = 0;

    assert_int_equal(cublasGemmEx(bench->blas, CUBLAS_OP_T, CUBLAS_OP_N, PRODUCT, PRODUCT, PRODUCT,
                                  &one, bench->a, CUDA_R_16BF, PRODUCT, bench->b, CUDA_R_16BF,
                                  PRODUCT, &zero, bench->c, CUDA_R_16BF, PRODUCT,
                                  CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                     CUBLAS_STATUS_SUCCESS);
}

static void run_forward(struct bench *bench)
{
    assert_int_equal(bench->ops->attention_forward(&bench->attention.forward, NULL, NULL), 0);
}

static void run_backward(struct bench *bench)
{
    assert_int_equal(bench->ops->attention_backward(&bench->attention, NULL, NULL), 0);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Operations a second. */
static double rate_of(struct bench *bench, void (*run)(struct bench *bench), double operations)
{
    double rates[N_TRIES];
    float ms = 0;

    run(bench);
    for (size_t i = 0; i < N_TRIES; i++) {
        assert_int_equal(cudaEventRecord(bench->began, NULL), cudaSuccess);
        for (int j = 0; j < N_EACH; j++) {
            run(bench);
        }
        assert_int_equal(cudaEventRecord(bench->ended, NULL), cudaSuccess);
        assert_int_equal(cudaEventSynchronize(bench->ended), cudaSuccess);
        assert_int_equal(cudaEventElapsedTime(&ms, bench->began, bench->ended), cudaSuccess);
        rates[i] = operations * N_EACH / ((double)ms / 1e3);
    }
    qsort(rates, N_TRIES, sizeof(rates[0]), by_size);
    return rates[N_TRIES / 2];
}

static void test_attention__share_of_a_product(void **state)
{
    const double pairs = (double)ROWS * (ROWS + 1) / 2 * HEADS;
    struct bench bench = {0};
    double product, forward, backward;

    (void)state;
    open_bench(&bench);
    product = rate_of(&bench, run_product, 2.0 * PRODUCT * PRODUCT * PRODUCT);
    forward = rate_of(&bench, run_forward, 4 * pairs * DIM);
    backward = rate_of(&bench, run_backward, 10 * pairs * DIM);
    print_message(
        "cuBLAS %.0f TFLOP/s, attention forward %.0f (%.0f %%), backward %.0f (%.0f %%)\n",
        product / 1e12, forward / 1e12, forward / product * 100, backward / 1e12,
        backward / product * 100);
    assert_true(forward >= FORWARD_AT_LEAST * product);
    assert_true(backward >= BACKWARD_AT_LEAST * product);
    cublasDestroy(bench.blas);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention__share_of_a_product),
    };

    if (gpu_count() == 0) {
        return GPU_SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
