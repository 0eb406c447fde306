/*
 * Products by cublasGemmEx: short dtypes with float sums (no reductions in the short dtype), floats
 * as floats. cuBLAS takes columns where we have rows, so it is asked for c^T = b^T a^T.
 *
 * A thread has a handle for each of the streams that it used last: cuBLAS gives the same bits each
 * time only where a handle's workspace is not shared between streams (its documentation, "results
 * reproducibility"). Operators have no context that could hold them, so they are the thread's, by a
 * key of the process, and go with it.
 */
#include "blas.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#ifndef BLAS_GEMM
#define BLAS_GEMM blas_gemm_cuda
#endif

struct handle {
    int device;
    void *stream;
    cublasHandle_t cublas; /* NULL: free */
};

enum { N_HANDLES = 4 }; /* streams of a thread that multiply: one, in training */

struct handles {
    struct handle of[N_HANDLES];
    unsigned next; /* to be replaced */
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int key_failed; /* errno of the key */

static void free_handles(void *arg)
{
    struct handles *handles = arg;

    for (size_t i = 0; i < N_HANDLES; i++) {
        if (handles->of[i].cublas) {
            (void)cublasDestroy(handles->of[i].cublas);
        }
    }
    free(handles);
}

static void make_key(void)
{
    key_failed = pthread_key_create(&key, free_handles);
}

/* Those of the thread, or NULL: no memory. */
static struct handles *handles_of_thread(void)
{
    struct handles *handles;

    if (pthread_once(&once, make_key) || key_failed) {
        return NULL;
    }
    handles = pthread_getspecific(key);
    if (!handles) {
        handles = calloc(1, sizeof(*handles));
        if (handles && pthread_setspecific(key, handles)) {
            free(handles);
            handles = NULL;
        }
    }
    return handles;
}

static int check(cublasStatus_t status, const char *call, struct skrull_error *err)
{
    int code = SKRULL_ERR_INTERNAL;

    if (status == CUBLAS_STATUS_SUCCESS) {
        return 0;
    }
    if (status == CUBLAS_STATUS_ALLOC_FAILED) {
        code = SKRULL_ERR_RESOURCE_EXHAUSTED;
    } else if (status == CUBLAS_STATUS_NOT_INITIALIZED) {
        code = SKRULL_ERR_UNAVAILABLE;
    }
    return skrull_error_set(err, code, "%s: %s", call, cublasGetStatusString(status));
}

/* A handle for the stream, in the place of the oldest. */
static int open_handle(struct handles *handles, int device, void *stream, struct handle **ret,
                       struct skrull_error *err)
{
    struct handle *handle = &handles->of[handles->next];
    int rc;

    if (handle->cublas) {
        (void)cublasDestroy(handle->cublas);
        handle->cublas = NULL;
    }
    rc = check(cublasCreate(&handle->cublas), "cublasCreate", err);
    if (rc < 0) {
        handle->cublas = NULL;
        return rc;
    }
    rc = check(
        cublasSetMathMode(handle->cublas,
                          CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
        "cublasSetMathMode", err);
    if (rc < 0) {
        (void)cublasDestroy(handle->cublas);
        handle->cublas = NULL;
        return rc;
    }
    handle->device = device;
    handle->stream = stream;
    handles->next = (handles->next + 1) % N_HANDLES;
    *ret = handle;
    return 0;
}

static int handle_for(void *stream, cublasHandle_t *ret, struct skrull_error *err)
{
    struct handles *handles = handles_of_thread();
    struct handle *handle = NULL;
    int device = 0, rc;
    cudaError_t code = cudaGetDevice(&device);

    if (code != cudaSuccess) {
        return skrull_error_set(err, SKRULL_ERR_UNAVAILABLE, "no GPU for a product: %s",
                                cudaGetErrorString(code));
    }
    if (!handles) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "out of memory for the handles of cuBLAS");
    }
    for (size_t i = 0; i < N_HANDLES; i++) {
        if (handles->of[i].cublas && handles->of[i].device == device &&
            handles->of[i].stream == stream) {
            handle = &handles->of[i];
        }
    }
    rc = handle ? 0 : open_handle(handles, device, stream, &handle, err);
    if (rc == 0) {
        rc = check(cublasSetStream(handle->cublas, (cudaStream_t)stream), "cublasSetStream", err);
    }
    if (rc == 0) {
        *ret = handle->cublas;
    }
    return rc;
}

static int type_of(enum skrull_dtype dtype, cudaDataType_t *ret, struct skrull_error *err)
{
    switch (dtype) {
    case SKRULL_DTYPE_F32:
        *ret = CUDA_R_32F;
        return 0;
    case SKRULL_DTYPE_BF16:
        *ret = CUDA_R_16BF;
        return 0;
    case SKRULL_DTYPE_F16:
        *ret = CUDA_R_16F;
        return 0;
    }
    return skrull_error_set(err, SKRULL_ERR_UNIMPLEMENTED, "matrix product: dtype %d is unknown",
                            (int)dtype);
}

static int check_sizes(const struct blas_gemm *g, struct skrull_error *err)
{
    if (g->m > INT_MAX || g->n > INT_MAX || g->k > INT_MAX || g->a_stride > INT_MAX ||
        g->b_stride > INT_MAX || g->c_stride > INT_MAX) {
        return skrull_error_set(err, SKRULL_ERR_UNIMPLEMENTED,
                                "matrix product of %" PRIu32 " x %" PRIu32 " x %" PRIu32
                                ", rows of %zu, %zu and %zu: cuBLAS takes sizes below 2^31",
                                g->m, g->n, g->k, g->a_stride, g->b_stride, g->c_stride);
    }
    return 0;
}

int BLAS_GEMM(const struct blas_gemm *gemm, void *stream, struct skrull_error *err)
{
    const float one = 1.0F, before = gemm->add ? 1.0F : 0.0F;
    cublasHandle_t handle = NULL;
    cudaDataType_t type = CUDA_R_32F, c_type = CUDA_R_32F;
    int rc = check_sizes(gemm, err);

    if (rc == 0) {
        rc = type_of(gemm->dtype, &type, err);
    }
    if (rc == 0) {
        rc = type_of(gemm->c_dtype, &c_type, err);
    }
    if (rc == 0) {
        rc = handle_for(stream, &handle, err);
    }
    if (rc < 0) {
        return rc;
    }
    return check(cublasGemmEx(handle, gemm->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                              gemm->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, (int)gemm->n,
                              (int)gemm->m, (int)gemm->k, &one, gemm->b, type, (int)gemm->b_stride,
                              gemm->a, type, (int)gemm->a_stride, &before, gemm->c, c_type,
                              (int)gemm->c_stride, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                 "cublasGemmEx", err);
}
