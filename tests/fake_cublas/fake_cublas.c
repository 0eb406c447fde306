/*
 * cuBLAS on the CPU, as far as skrull calls it: products at once, on memory of the host, each sum
 * rounded to float once. It holds every argument to cuBLAS's rules and to ours (a handle in use,
 * its stream set, sums in float without reductions in the short dtype) and aborts with a line that
 * says what is wrong. Handles may be used by one thread at a time. Its headers stand in include/,
 * so that no toolkit is needed; where there is one, the same source compiles against its own.
 */
#include "fake_cublas/fake_cublas.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <cublas_v2.h>

#include "short_float.h"

#define LIVE UINT64_C(0x68616e646c652121)

struct cublasContext {
    uint64_t live;
    bool has_stream;
    cudaStream_t stream;
    cublasMath_t mode;
};

static _Atomic long n_handles;
static _Atomic long n_until_failure = -1; /* calls of cublasGemmEx; below 0: never */

long fake_cublas_handles(void)
{
    return n_handles;
}

void fake_cublas_fail_after(long n_products)
{
    n_until_failure = n_products;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error)
{
    (void)error;
    return "an error";
}

static void hold(bool is_so, const char *what)
{
    if (!is_so) {
        fprintf(stderr, "fake cuBLAS: %s\n", what);
        abort();
    }
}

static void hold_handle(cublasHandle_t handle)
{
    hold(handle != NULL, "no handle");
    hold(handle->live == LIVE, "the handle was destroyed, or never created");
}

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    hold(handle != NULL, "no place for a handle");
    *handle = calloc(1, sizeof(**handle));
    if (!*handle) {
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    (*handle)->live = LIVE;
    n_handles++;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    hold_handle(handle);
    handle->live = 0;
    free(handle);
    n_handles--;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    hold_handle(handle);
    handle->has_stream = true;
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    hold_handle(handle);
    handle->mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_EXECUTION_FAILED ? "the product failed" : "a status";
}

static size_t size_of(cudaDataType type)
{
    return type == CUDA_R_32F ? 4 : 2;
}

static float element(const void *at, cudaDataType type, size_t i)
{
    uint16_t bits;

    if (type == CUDA_R_32F) {
        return ((const float *)at)[i];
    }
    bits = ((const uint16_t *)at)[i];
    return (float)(type == CUDA_R_16BF ? bf16_value(bits) : fp16_value(bits));
}

static void set_element(void *at, cudaDataType type, size_t i, float value)
{
    if (type == CUDA_R_32F) {
        ((float *)at)[i] = value;
        return;
    }
    ((uint16_t *)at)[i] = type == CUDA_R_16BF ? bf16_bits((double)value) : fp16_bits((double)value);
}

/* A matrix by columns, as it lies: `rows` x `columns`, `ld` from column to column. */
static void hold_matrix(const void *at, cudaDataType type, int rows, int ld, const char *name)
{
    char what[64];

    (void)snprintf(what, sizeof(what), "matrix %s is NULL or not aligned to its type", name);
    hold(at != NULL && (uintptr_t)at % size_of(type) == 0, what);
    (void)snprintf(what, sizeof(what), "matrix %s: %d rows, leading dimension %d", name, rows, ld);
    hold(ld >= (rows > 1 ? rows : 1), what);
    hold(type == CUDA_R_32F || type == CUDA_R_16F || type == CUDA_R_16BF, "an unknown type");
}

struct product {
    bool a_transposed, b_transposed, add;
    size_t m, n, k, lda, ldb, ldc;
    const void *a, *b;
    void *c;
    cudaDataType type, c_type;
};

/* Column j of c from the columns of a, as floats [k][m]. */
static void multiply_column(const struct product *p, const float *a, size_t j, double *sums)
{
    for (size_t i = 0; i < p->m; i++) {
        sums[i] = 0.0;
    }
    for (size_t q = 0; q < p->k; q++) {
        double b =
            (double)element(p->b, p->type, p->b_transposed ? q * p->ldb + j : j * p->ldb + q);
        const float *column = a + q * p->m;

        for (size_t i = 0; i < p->m; i++) {
            sums[i] += (double)column[i] * b;
        }
    }
    for (size_t i = 0; i < p->m; i++) {
        size_t at = j * p->ldc + i;
        float before = p->add ? element(p->c, p->c_type, at) : 0.0F; /* else c is not read */

        set_element(p->c, p->c_type, at, before + (float)sums[i]);
    }
}

static void multiply(const struct product *p)
{
    float *a = malloc(p->m * p->k * sizeof(*a));
    double *sums = malloc(p->m * sizeof(*sums));

    hold(a != NULL && sums != NULL, "out of memory");
    for (size_t q = 0; q < p->k; q++) {
        for (size_t i = 0; i < p->m; i++) {
            a[q * p->m + i] =
                element(p->a, p->type, p->a_transposed ? i * p->lda + q : q * p->lda + i);
        }
    }
    for (size_t j = 0; j < p->n; j++) {
        multiply_column(p, a, j, sums);
    }
    free(a);
    free(sums);
}

static void hold_scalars(const void *alpha, const void *beta)
{
    hold(alpha != NULL && beta != NULL, "alpha or beta is NULL");
    hold(*(const float *)alpha > 0.99F && *(const float *)alpha < 1.01F, "alpha is not 1");
    hold(*(const float *)beta >= 0.0F && *(const float *)beta <= 1.0F, "beta is neither 0 nor 1");
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void *alpha,
                            const void *a, cudaDataType a_type, int lda, const void *b,
                            cudaDataType b_type, int ldb, const void *beta, void *c,
                            cudaDataType c_type, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algo)
{
    bool ta = transa == CUBLAS_OP_T, tb = transb == CUBLAS_OP_T;

    hold_handle(handle);
    hold(handle->has_stream, "the handle's stream was never set");
    hold((handle->mode & CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) != 0,
         "sums could be reduced in the short dtype");
    hold(m > 0 && n > 0 && k > 0, "a size is not above 0");
    hold((ta || transa == CUBLAS_OP_N) && (tb || transb == CUBLAS_OP_N), "an unknown operation");
    hold(a_type == b_type && (c_type == a_type || c_type == CUDA_R_32F),
         "types do not go together");
    hold(compute == CUBLAS_COMPUTE_32F && algo == CUBLAS_GEMM_DEFAULT, "sums are not in float");
    hold_matrix(a, a_type, ta ? k : m, lda, "a");
    hold_matrix(b, b_type, tb ? n : k, ldb, "b");
    hold_matrix(c, c_type, m, ldc, "c");
    hold_scalars(alpha, beta);
    if (n_until_failure >= 0 && n_until_failure-- == 0) {
        return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    multiply(&(struct product){ta, tb, *(const float *)beta > 0.5F, (size_t)m, (size_t)n, (size_t)k,
                               (size_t)lda, (size_t)ldb, (size_t)ldc, a, b, c, a_type, c_type});
    return CUBLAS_STATUS_SUCCESS;
}
