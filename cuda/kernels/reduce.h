/*
 * Sums and maxima over the threads that share a row, in an order that the number of threads alone
 * decides: the same bits each time. A row has part of a warp (a power of two of lanes), a warp
 * (blockDim.x 32) or the whole block (blockDim.y 1).
 */
#pragma once

#include "dev.h"

namespace sk
{
inline namespace SK_BUILD
{
struct plus {
    template <class T> __device__ __forceinline__ T operator()(T a, T b) const
    {
        return a + b;
    }
};

struct larger {
    __device__ __forceinline__ float operator()(float a, float b) const
    {
        return a > b ? a : b;
    }
};

/* Over groups of `lanes` neighbours; every lane of the warp calls and knows its group's. */
template <class Join, class T>
__device__ __forceinline__ T join_lanes(T x, unsigned lanes, where at = where())
{
    for (unsigned other = lanes / 2; other > 0; other /= 2) {
        x = Join()(x, shfl_xor(x, (int)other, at));
    }
    return x;
}

/* One number a warp, in shared memory. */
template <class T> struct warp_values {
    T of[32];
};

/* Over the blockDim.x (a multiple of 32) threads of a row; all of them call and know it. */
template <class Join, class T>
__device__ __forceinline__ T join_row(T x, warp_values<T> &shared, where at = where())
{
    const unsigned n_warps = blockDim.x / 32;

    x = join_lanes<Join>(x, 32, at);
    if (n_warps == 1) {
        return x;
    }
    if (threadIdx.x % 32 == 0) {
        shared.of[threadIdx.x / 32] = x;
    }
    block_sync(at);
    x = shared.of[0];
    for (unsigned i = 1; i < n_warps; i++) {
        x = Join()(x, shared.of[i]);
    }
    block_sync(at); /* until here the next call may not write */
    return x;
}
} // namespace SK_BUILD
} // namespace sk
