/*
 * What the kernels of attention share: who sees whom by position, rows of a tensor as swizzled
 * tiles in shared memory, tiles as operands of mma, and the walk over tiles of keys that both the
 * forward pass and the gradient of queries make.
 *
 * A row's reach is an interval of positions: one subtraction and one comparison mask causality, the
 * window and padding (position -1) alike. Rows of padding are zeros in shared memory, whatever they
 * hold in the tensor, since 0 x NaN would be NaN.
 */
#pragma once

#include "dev.h"

#include <skrull/cuda.h>
#include <skrull/layout.h>

namespace
{
using namespace sk;

constexpr float log2_e = 1.44269504088896341F, ln_2 = 0.69314718055994531F;

/* First and last of what is meant: positions, or rows; last < first: none. */
struct span {
    int32_t first, last;
};

constexpr span no_span = {INT32_MAX, -1};

/* Positions that the query at `position` sees, or that any of several positions `queries` does. */
__device__ __forceinline__ span keys_of(const skrull_attention &p, span queries)
{
    const int32_t beside = p.window > 0 ? (int32_t)p.window - 1 : INT32_MAX;

    if (queries.last < queries.first || queries.last < 0) {
        return no_span;
    }
    return {max(queries.first - beside, 0),
            p.causal ? queries.last : queries.last + min(beside, INT32_MAX - queries.last)};
}

/* Positions of queries that see any of the positions `keys`. */
__device__ __forceinline__ span queries_of(const skrull_attention &p, span keys)
{
    const int32_t beside = p.window > 0 ? (int32_t)p.window - 1 : INT32_MAX;

    if (keys.last < keys.first || keys.last < 0) {
        return no_span;
    }
    return {p.causal ? keys.first : max(keys.first - beside, 0),
            keys.last + min(beside, INT32_MAX - keys.last)};
}

__device__ __forceinline__ bool has(span s, int32_t position)
{
    return s.first <= position && position <= s.last;
}

/* The span of all of a warp's, or of a block's threads. `part` is shared memory, free again after
 * the block's next barrier. */
__device__ __forceinline__ span warp_span(span s)
{
    SK_UNROLL
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        s.first = min(s.first, shfl_xor(s.first, lanes));
        s.last = max(s.last, shfl_xor(s.last, lanes));
    }
    return s;
}

template <int WARPS> __device__ __forceinline__ span block_span(span s, span (&part)[WARPS])
{
    s = warp_span(s);
    if (lane_id() == 0) {
        part[threadIdx.x / 32] = s;
    }
    block_sync();
    for (int i = 0; i < WARPS; i++) {
        s.first = min(s.first, part[i].first);
        s.last = max(s.last, part[i].last);
    }
    return s;
}

/* The position of row i of n, padding beyond the end. */
__device__ __forceinline__ int32_t position_at(const int32_t *position, int i, int n)
{
    return i < n ? position[i] : SKRULL_NO_POSITION;
}

/* Of n rows those whose position is in `seen`, as a span of rows. Positions ascend, so that only
 * padding lies between them. */
__device__ __forceinline__ span rows_in(span seen, const int32_t *position, int n, int thread,
                                        int n_threads)
{
    span s = no_span;

    for (int i = thread; i < n; i += n_threads) {
        if (has(seen, position[i])) {
            s.first = min(s.first, i);
            s.last = i;
        }
    }
    return s;
}

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
 * Operands of mma m16n8k16 (PTX ISA, "matrix fragments for mma.m16n8k16"). Step k is columns
 * [16 k, 16 k + 16) of the sum; a tile holds [row][column].
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

/* What a warp's rows see: `any` of them, and `all` of them but padding, of which nothing is
 * written. */
struct warp_reach {
    span any, all;
};

__device__ __forceinline__ warp_reach reach_of_warp(const skrull_attention &p, int32_t position)
{
    const span mine = keys_of(p, {position, position});
    const bool is_token = position >= 0;
    const span outside =
        warp_span({is_token ? -mine.first : 0, is_token ? -mine.last : -INT32_MAX});

    return {warp_span(mine), {-outside.first, -outside.last}};
}

/* Is any of the tile's keys seen by any of the warp's rows; are all seen by all? */
struct sight {
    bool is_any, is_all;
};

template <int KEYS>
__device__ __forceinline__ sight sight_of(const warp_reach &reach, const int32_t *position)
{
    bool is_any = false, is_all = true;

    SK_UNROLL
    for (int i = 0; i < KEYS; i += 32) {
        if (i + lane_id() < KEYS) {
            const int32_t at = position[i + lane_id()];

            is_any = is_any || has(reach.any, at);
            is_all = is_all && has(reach.all, at);
        }
    }
    is_any = __any_sync(~0u, is_any);
    is_all = __all_sync(~0u, is_all);
    return {is_any, is_all};
}

/* The keys and values of one sequence and key head that a block walks over, in shared memory: two
 * tiles in turn. Positions are a tile ahead of the rows, as they say which rows to copy. */
template <class T, int DIM, int KEYS> struct key_tiles {
    alignas(256) T k[2][KEYS * DIM];
    alignas(256) T v[2][KEYS * DIM];
    int32_t position[3][KEYS];
};

/* Where they come from: the first row that is seen, and how many rows there are from it on. */
template <class T> struct key_rows {
    const T *k, *v;
    const int32_t *position;
    size_t k_stride, v_stride;
    int n;
};

/* Positions of the first two tiles; the caller's barrier follows, then load_keys of tile 0. */
template <class T, int DIM, int KEYS>
__device__ __forceinline__ void begin_keys(key_tiles<T, DIM, KEYS> &tiles, const key_rows<T> &rows)
{
    if ((int)threadIdx.x < KEYS) {
        SK_UNROLL
        for (int t = 0; t < 2; t++) {
            tiles.position[t][threadIdx.x] =
                position_at(rows.position, t * KEYS + (int)threadIdx.x, rows.n);
        }
    }
}

template <int THREADS, class T, int DIM, int KEYS>
__device__ __forceinline__ void load_keys(key_tiles<T, DIM, KEYS> &tiles, const key_rows<T> &rows,
                                          int t)
{
    const size_t first = (size_t)t * KEYS;

    load_tile<T, DIM, KEYS, THREADS>(tiles.k[t & 1], rows.k + first * rows.k_stride, rows.k_stride,
                                     tiles.position[t % 3]);
    load_tile<T, DIM, KEYS, THREADS>(tiles.v[t & 1], rows.v + first * rows.v_stride, rows.v_stride,
                                     tiles.position[t % 3]);
}

/* The position of the thread's row of tile t + 2, asked for early and kept when tile t is done. */
template <class T, int DIM, int KEYS>
__device__ __forceinline__ int32_t later_position(const key_tiles<T, DIM, KEYS> &,
                                                  const key_rows<T> &rows, int t)
{
    return (int)threadIdx.x < KEYS
               ? position_at(rows.position, (t + 2) * KEYS + (int)threadIdx.x, rows.n)
               : SKRULL_NO_POSITION;
}

template <class T, int DIM, int KEYS>
__device__ __forceinline__ void keep_position(key_tiles<T, DIM, KEYS> &tiles, int t, int32_t later)
{
    if ((int)threadIdx.x < KEYS) {
        tiles.position[(t + 2) % 3][threadIdx.x] = later;
    }
}

/* What a block computes: a head, and a tile of one side's rows of a sequence. */
struct block_place {
    int head, sequence, tile;
};

/* Heads vary fastest, so that those of one key head meet in the cache; then sequences; tiles come
 * last, from the end if `from_end`: where the mask is causal, the longest work begins first. */
__device__ __forceinline__ block_place place_of_block(uint32_t heads, uint32_t n_sequences,
                                                      bool from_end)
{
    const uint32_t in_tile = heads * n_sequences, tile = blockIdx.x / in_tile;

    return {(int)(blockIdx.x % heads), (int)(blockIdx.x % in_tile / heads),
            (int)(from_end ? gridDim.x / in_tile - 1 - tile : tile)};
}
/* A block's queries, one a thread, and what they see. */
template <int QUERIES> struct block_queries {
    int32_t position[QUERIES];
    span positions[QUERIES / 32], rows[QUERIES / 32];
    warp_reach reach[QUERIES / 32];
};

/* Finds the keys that the block's `n` queries from row `first` on see, and what each warp's see. A
 * barrier must follow before other warps' positions are read. */
template <class T, int QUERIES>
__device__ __forceinline__ key_rows<T>
seen_keys(const skrull_attention &p, block_queries<QUERIES> &queries, const block_place &place,
          int first, int n, size_t dim)
{
    const int thread = (int)threadIdx.x, k_first = p.k_cu_rows[place.sequence];
    const int n_k = p.k_cu_rows[place.sequence + 1] - k_first;
    const int32_t position = position_at(p.q_position + first, thread, n);
    const size_t kv_head = (size_t)(place.head / (int)(p.heads / p.kv_heads)) * dim;
    const warp_reach reach = reach_of_warp(p, position);

    queries.position[thread] = position;
    if (lane_id() == 0) {
        queries.reach[thread / 32] = reach;
    }
    const span positions =
        block_span(position < 0 ? no_span : span{position, position}, queries.positions);
    const span rows = block_span(
        rows_in(keys_of(p, positions), p.k_position + k_first, n_k, thread, QUERIES), queries.rows);
    const int begin = min(rows.first, rows.last + 1);
    const size_t row = (size_t)(k_first + begin);

    return {static_cast<const T *>(p.k) + row * p.k_stride + kv_head,
            static_cast<const T *>(p.v) + row * p.v_stride + kv_head,
            p.k_position + row,
            p.k_stride,
            p.v_stride,
            rows.last + 1 - begin};
}

/* Scores of what is not seen become -inf: those of queries, of which q_position is the lane's
 * warp's first, and of a tile of keys. */
template <int M, int N>
__device__ __forceinline__ void mask(const skrull_attention &p, float (&s)[M][N][4],
                                     const int32_t *q_position, const int32_t *k_position)
{
    const int lane = lane_id();
    span seen[M][2];

    SK_UNROLL
    for (int row = 0; row < 2 * M; row++) {
        const int32_t position = q_position[8 * row + lane / 4];

        seen[row / 2][row % 2] = keys_of(p, {position, position});
    }
    SK_UNROLL
    for (int column = 0; column < 2 * N; column++) {
        const int n = column / 2, i = column % 2;
        const int32_t position = k_position[8 * n + lane % 4 * 2 + i];

        SK_UNROLL
        for (int row = 0; row < 2 * M; row++) {
            float &score = s[row / 2][n][row % 2 * 2 + i];

            score = has(seen[row / 2][row % 2], position) ? score : -INFINITY;
        }
    }
}
} // namespace
