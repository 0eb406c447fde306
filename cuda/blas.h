/*
 * Matrix products on the device, for the operators that consist of them. Built twice: for the GPU
 * (blas_gemm_cuda, by cuBLAS) and for the tests' shim (blas_gemm_shim, the same source by a cuBLAS
 * of the tests').
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skrull/cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

/* c [m][n] = a [m][k] b [k][n], row-major, summed up in float; written, or added to if `add`. */
struct blas_gemm {
    enum skrull_dtype dtype;   /* of a and b */
    enum skrull_dtype c_dtype; /* the same, or F32 */
    uint32_t m, n, k;
    const void *a, *b;
    void *c;
    size_t a_stride, b_stride, c_stride; /* of the rows as they lie in memory */
    bool a_transposed;                   /* a lies as [k][m] */
    bool b_transposed;                   /* b lies as [n][k] */
    bool add;
};

/*
 * On `stream` of the current device; m, n and k are above 0. The same bits each time. Any thread:
 * each has handles of its own, made at its first call for a stream, which may wait for the device.
 * UNIMPLEMENTED: sizes above 2^31 - 1. UNAVAILABLE: no device. RESOURCE_EXHAUSTED: no memory for a
 * handle. INTERNAL: cuBLAS.
 */
int blas_gemm_cuda(const struct blas_gemm *gemm, void *stream, struct skrull_error *err);
int blas_gemm_shim(const struct blas_gemm *gemm, void *stream, struct skrull_error *err);

#ifdef __cplusplus
}
#endif
