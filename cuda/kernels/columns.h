/*
 * Sums of columns of a tall matrix, for gradients of what all rows share: sum [width] += the sum
 * over rows of f(row, column). 32 columns a block of 1,024 threads; row i goes to threadIdx.y i mod
 * 32, whose sums are added in order: the same bits each time, no memory but shared memory.
 */
#pragma once

#include "entry.h"

namespace sk
{
inline namespace SK_BUILD
{
constexpr unsigned COLUMNS = 32; /* of a block, and its rows of threads */

struct column_sums {
    float of[COLUMNS][COLUMNS];
};

/* Runs in a kernel launched by columns_grid, COLUMNS x COLUMNS threads and sizeof(column_sums). */
template <class F>
__device__ __forceinline__ void add_columns(size_t n_rows, size_t width, float *sum, F f)
{
    SK_SMEM(column_sums, shared);
    const size_t column = blockIdx.x * (size_t)COLUMNS + threadIdx.x;
    float mine = 0.0F;

    for (size_t row = threadIdx.y; row < n_rows && column < width; row += COLUMNS) {
        mine += f(row, column);
    }
    shared.of[threadIdx.y][threadIdx.x] = mine;
    __syncthreads();
    if (threadIdx.y == 0 && column < width) {
        for (unsigned i = 1; i < COLUMNS; i++) {
            mine += shared.of[i][threadIdx.x];
        }
        sum[column] += mine;
    }
}

/* Widths are below 2^32: the grid's limit is far. */
inline dim3 columns_grid(size_t n_rows, uint32_t width)
{
    return dim3(n_rows == 0 ? 0 : width / COLUMNS + (width % COLUMNS != 0));
}
} // namespace SK_BUILD
} // namespace sk
