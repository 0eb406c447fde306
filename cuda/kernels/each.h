/*
 * How the threads of a grid share rows and ranges of numbers. A kernel is a template of the dtype
 * and of N, the numbers that a thread takes at a time: VECTOR (16 bytes of a short dtype) where
 * everything is aligned, else 1. Grids are bounded, so kernels loop: by row_step(), or in each().
 */
#pragma once

#include "dev.h"

namespace sk
{
inline namespace SK_BUILD
{
constexpr int VECTOR = 8;

/* N in a type. */
template <int N> struct count {
    static constexpr int value = N;
};

/* f(count<N>, i) for the numbers [i, i + N) of [0, n) that are thread `first` of `step`'s, and
 * f(count<1>, i) for what the whole vectors leave. */
template <int N, class F>
__device__ __forceinline__ void each(size_t first, size_t step, size_t n, F f)
{
    const size_t whole = n / N;

    for (size_t i = first; i < whole; i += step) {
        f(count<N>(), i * N);
    }
    if constexpr (N > 1) {
        for (size_t i = whole * N + first; i < n; i += step) {
            f(count<1>(), i);
        }
    }
}

/* The numbers of a row of n that blockDim.x threads share. */
template <int N, class F> __device__ __forceinline__ void each_of_row(size_t n, F f)
{
    each<N>(threadIdx.x, blockDim.x, n, f);
}

/* The numbers of a range that the whole grid shares. */
template <int N, class F> __device__ __forceinline__ void each_of_range(size_t n, F f)
{
    each<N>(blockIdx.x * (size_t)blockDim.x + threadIdx.x, (size_t)gridDim.x * blockDim.x, n, f);
}

/* The first row of those that threadIdx.y of the block has, and the way to the next. */
__device__ __forceinline__ size_t first_row()
{
    return blockIdx.x * (size_t)blockDim.y + threadIdx.y;
}

__device__ __forceinline__ size_t row_step()
{
    return (size_t)gridDim.x * blockDim.y;
}
} // namespace SK_BUILD
} // namespace sk
