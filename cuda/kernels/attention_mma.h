/*
 * Tiles of rows in shared memory and their products on tensor cores (mma.sync m16n8k16): how a tile
 * is swizzled, copied, read as an operand and multiplied. Layouts of fragments: PTX ISA, "matrix
 * fragments for mma.m16n8k16".
 */
#pragma once

#include "dev.h"

namespace
{
using namespace sk;

/* Where the 16-byte chunk of a row lies in a tile [rows][DIM], in elements. Eight rows of one chunk
 * lie in eight different sets of four banks: neither ldmatrix nor a store of fragments meets a
 * conflict. */
template <int DIM> __device__ __forceinline__ int chunk_at(int row, int chunk)
{
    static_assert(DIM % 64 == 0 || DIM == 96, "a swizzle is known for these rows only");

    return row * DIM + (chunk ^ (DIM == 96 ? row >> 1 & 3 : row & 7)) * 8;
}

/* From a lane's place `at` in chunk 0 or 1 of a row to the same `chunks` further on, an even
 * number. One exclusive or, so that places need not be kept in registers. */
template <int DIM> __device__ __forceinline__ int further(int at, int chunks)
{
    return DIM == 96 ? (at ^ (chunks & 2) * 8) + (chunks & ~3) * 8 : at ^ chunks * 8;
}

/* Begins to copy ROWS rows of a tensor into a tile; those of padding become zeros. */
template <class T, int DIM, int ROWS, int THREADS>
__device__ __forceinline__ void load_tile(T *tile, const T *rows, size_t stride,
                                          const int32_t *position)
{
    constexpr int abreast = DIM == 96 ? 4 : DIM / 8, step = THREADS / abreast; /* of a row */
    const int row = (int)(threadIdx.x / abreast), chunk = (int)(threadIdx.x % abreast);
    const T *from = rows + (size_t)row * stride + chunk * 8;
    T *to = tile + chunk_at<DIM>(row, chunk);

    static_assert(ROWS % step == 0 && step % 8 == 0, "every thread copies equally much");
    SK_UNROLL
    for (int j = 0; j < ROWS / step; j++) {
        const bool is_token = position[row + j * step] >= 0;

        SK_UNROLL
        for (int i = 0; i < DIM / 8 / abreast; i++) {
            cp16(to + j * step * DIM + i * abreast * 8, from + i * abreast * 8, is_token);
        }
        from += step * stride;
    }
}

/*
 * Operands. Step k is [16 k, 16 k + 16) of the sum; a tile holds [row][column].
 *
 * left: rows [row, row + 16) of a tile, its columns summed over.
 * right: N x 8 rows from `row` on, their columns summed over (product with the transposed tile).
 * right_along: N x 8 columns from chunk `chunk` on, the tile's rows summed over.
 */
template <int DIM, class T>
__device__ __forceinline__ void left(uint32_t (&a)[4], const T *tile, int row, int k)
{
    const int lane = lane_id(), at = chunk_at<DIM>(lane & 15, lane >> 4);

    ldm4(a, tile + row * DIM + further<DIM>(at, 2 * k));
}

template <int DIM, int N, class T>
__device__ __forceinline__ void right(uint32_t (&b)[2 * N], const T *tile, int row, int k)
{
    const int lane = lane_id(), at = chunk_at<DIM>((lane & 7) + (lane >> 4) * 8, lane >> 3 & 1);

    static_assert(N % 2 == 0, "one ldmatrix fetches two");
    SK_UNROLL
    for (int n = 0; n < N / 2; n++) {
        uint32_t four[4];

        ldm4(four, tile + (row + n * 16) * DIM + further<DIM>(at, 2 * k));
        SK_UNROLL
        for (int i = 0; i < 4; i++) {
            b[4 * n + i] = four[i];
        }
    }
}

template <int DIM, int N, class T>
__device__ __forceinline__ void right_along(uint32_t (&b)[2 * N], const T *tile, int chunk, int k)
{
    const int lane = lane_id(), at = chunk_at<DIM>(lane & 15, lane >> 4);

    static_assert(N % 2 == 0, "one ldmatrix fetches two");
    SK_UNROLL
    for (int n = 0; n < N / 2; n++) {
        uint32_t four[4];

        ldm4t(four, tile + 16 * k * DIM + further<DIM>(at, chunk + 2 * n));
        SK_UNROLL
        for (int i = 0; i < 4; i++) {
            b[4 * n + i] = four[i];
        }
    }
}

/* Two neighbouring results [16][8] as the left operand of one step of the next product. */
template <class T>
__device__ __forceinline__ void left_of(uint32_t (&a)[4], const float (&c0)[4],
                                        const float (&c1)[4])
{
    a[0] = pack2<T>(c0[0], c0[1]);
    a[1] = pack2<T>(c0[2], c0[3]);
    a[2] = pack2<T>(c1[0], c1[1]);
    a[3] = pack2<T>(c1[2], c1[3]);
}

template <int M, int N> __device__ __forceinline__ void clear(float (&c)[M][N][4])
{
    SK_UNROLL
    for (int m = 0; m < M; m++) {
        SK_UNROLL
        for (int n = 0; n < N; n++) {
            SK_UNROLL
            for (int i = 0; i < 4; i++) {
                c[m][n][i] = 0.0F;
            }
        }
    }
}

/* c [16 M][8 N] = (rows [row_a, + 16 M) of a) (rows [row_b, + 8 N) of b)^T, NEAR tiles of 8 columns
 * in registers at a time. */
template <class T, int DIM, int NEAR, int M, int N>
__device__ __forceinline__ void multiply_transposed(float (&c)[M][N][4], const T *a, int row_a,
                                                    const T *b, int row_b)
{
    static_assert(N % NEAR == 0, "whole pieces");
    clear(c);
    SK_UNROLL
    for (int k = 0; k < DIM / 16; k++) {
        uint32_t lefts[M][4];

        SK_UNROLL
        for (int m = 0; m < M; m++) {
            left<DIM>(lefts[m], a, row_a + 16 * m, k);
        }
        SK_UNROLL
        for (int n = 0; n < N; n += NEAR) {
            uint32_t rights[2 * NEAR];

            right<DIM, NEAR>(rights, b, row_b + 8 * n, k);
            SK_UNROLL
            for (int m = 0; m < M; m++) {
                mma_row<T, NEAR>(c[m] + n, lefts[m], rights);
            }
        }
    }
}

/* c [16 M][8 N] += a [16 M][16 K] b, where b is the N chunks of columns from `chunk` on. At most
 * NEAR chunks are in registers at a time. */
template <class T, int DIM, int NEAR, int M, int N, int K2>
__device__ __forceinline__ void multiply_along(float (&c)[M][N][4], const float (&a)[M][K2][4],
                                               const T *b, int chunk)
{
    static_assert(N % NEAR == 0 && K2 % 2 == 0, "whole pieces");
    SK_UNROLL
    for (int k = 0; k < K2 / 2; k++) {
        uint32_t lefts[M][4];

        SK_UNROLL
        for (int m = 0; m < M; m++) {
            left_of<T>(lefts[m], a[m][2 * k], a[m][2 * k + 1]);
        }
        SK_UNROLL
        for (int n = 0; n < N; n += NEAR) {
            uint32_t rights[2 * NEAR];

            right_along<DIM, NEAR>(rights, b, chunk + n, k);
            SK_UNROLL
            for (int m = 0; m < M; m++) {
                mma_row<T, NEAR>(c[m] + n, lefts[m], rights);
            }
        }
    }
}

} // namespace
