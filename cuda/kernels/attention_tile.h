/*
 * What the kernels of attention share: who sees whom by position, and the walk over tiles of keys
 * that both the forward pass and the gradient of queries make.
 *
 * A row's reach is an interval of positions: one subtraction and one comparison mask causality, the
 * window and padding (position -1) alike. Rows of padding are zeros in shared memory, whatever they
 * hold in the tensor, since 0 x NaN would be NaN.
 */
#pragma once

#include "dev.h"

#include <skrull/cuda.h>
#include <skrull/layout.h>

#include "attention_mma.h"

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
