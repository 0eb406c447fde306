/*
 * The host side of a kernel file: which template to launch, and on what grid. No state, any thread.
 */
#pragma once

#include <skrull/cuda.h>

#include "each.h"

namespace sk
{
inline namespace SK_BUILD
{
constexpr unsigned BLOCK = 256; /* threads */
constexpr unsigned MAX_BLOCKS =
    8192; /* several times what a GPU holds; kernels loop over the rest */

/* The row stride that a caller means: 0 is dense. */
inline size_t stride_or(size_t stride, size_t dense)
{
    return stride ? stride : dense;
}

/* May rows of T be read 16 bytes at a time? */
template <class T> bool is_aligned(const void *at, size_t stride = 0)
{
    return reinterpret_cast<uintptr_t>(at) % 16 == 0 && stride * sizeof(T) % 16 == 0;
}

inline dim3 grid_of(size_t n_blocks)
{
    return dim3(n_blocks < MAX_BLOCKS ? (unsigned)n_blocks : MAX_BLOCKS);
}

/* For each_of_range, with blocks of BLOCK threads. */
inline dim3 range_grid(size_t n)
{
    const size_t of_block = (size_t)BLOCK * VECTOR;

    return grid_of(n / of_block + (n % of_block != 0));
}

struct row_shape {
    dim3 grid, block;
};

inline row_shape shape_of(size_t n_rows, unsigned threads)
{
    const unsigned of_block = BLOCK / threads;

    return row_shape{grid_of((n_rows + of_block - 1) / of_block), dim3(threads, of_block)};
}

/* Rows of which `n` parts are taken one by one, by a power of two of at most `most` threads. */
inline row_shape row_shape_of(size_t n_rows, size_t n, unsigned most = BLOCK)
{
    unsigned threads = 1;

    while (threads < n && threads < most) {
        threads *= 2;
    }
    return shape_of(n_rows, threads);
}

/* Rows that join_row sums up: by a warp where that is enough. */
inline row_shape joined_shape_of(size_t n_rows, size_t width)
{
    return shape_of(n_rows, width <= 2048 ? 32 : BLOCK);
}

/* f(a number of the dtype), which launches. */
template <class F>
int with_dtype(const char *name, enum skrull_dtype dtype, struct skrull_error *err, F f)
{
    switch (dtype) {
    case SKRULL_DTYPE_F32:
        return f(float());
    case SKRULL_DTYPE_BF16:
        return f(bf16());
    case SKRULL_DTYPE_F16:
        return f(fp16());
    }
    return skrull_error_set(err, SKRULL_ERR_UNIMPLEMENTED, "%s: dtype %d is unknown", name,
                            (int)dtype);
}

/* f(count<VECTOR>) or f(count<1>), which launches. */
template <class F> int with_vectors(bool aligned, F f)
{
    return aligned ? f(count<VECTOR>()) : f(count<1>());
}
} // namespace SK_BUILD
} // namespace sk
