/*
 * Gradients of keys and values: 128 of one key head a block of 8 warps, which walks over the tiles
 * of 64 queries that see any of them, head by head of the group. Two warps share 32 keys: each
 * computes the scores of half of the queries and, after a barrier, half of the dimensions of dk and
 * dv, whose sums fill its registers.
 */
#pragma once

#include "dev.h"

#include <skrull/cuda.h>

#include "attention_sums.h"
#include "attention_tile.h"

namespace
{
namespace of_keys
{
constexpr int n_warps = 8, n_threads = 32 * n_warps;
constexpr int m_tiles = 2, warp_keys = 16 * m_tiles, n_keys = warp_keys * n_warps / 2;
constexpr int n_queries = 64, n_halves = n_queries / 16; /* tiles of 8 queries of a warp's half */

/* What a block walks over: tiles of the queries that see any of its keys, for each head. */
struct walk {
    int first, n, n_tiles; /* rows */
    int first_head, n_heads;
};

template <class T, int DIM> struct shared {
    alignas(256) T k[n_keys * DIM];
    alignas(256) T v[n_keys * DIM];
    alignas(256) T q[2][n_queries * DIM];
    alignas(256) T dout[2][n_queries * DIM];
    alignas(256) T p[n_keys * n_queries];
    alignas(256) T ds[n_keys * n_queries];
    int32_t k_position[n_keys], q_position[3][n_queries];
    float lse[2][n_queries], delta[2][n_queries];
    span positions[n_warps], rows[n_warps];
    struct walk walk; /* kept here, as registers are short */
};

static_assert(sizeof(shared<bf16, 128>) <= 163 * 1024, "what a multiprocessor of sm_80 has");

using score_tile = float[m_tiles][n_halves][4];

/* A step of it. */
struct step {
    int row, n, head;
};

__device__ __forceinline__ step step_at(const walk &w, int i)
{
    const int tile = i % w.n_tiles * n_queries;

    return {w.first + tile, w.n - tile, w.first_head + i / w.n_tiles};
}

__device__ __forceinline__ int32_t step_position(const skrull_attention &p, const walk &w, int i,
                                                 int row)
{
    const step s = step_at(w, i);

    return position_at(p.q_position + s.row, row, s.n);
}

template <class T, int DIM>
__device__ __forceinline__ void load_queries(const skrull_attention_backward &p, shared<T, DIM> &sm,
                                             int i)
{
    const step s = step_at(sm.walk, i);
    const size_t at = (size_t)s.row, in_row = (size_t)s.head * DIM;

    load_tile<T, DIM, n_queries, n_threads>(
        sm.q[i & 1], static_cast<const T *>(p.forward.q) + at * p.forward.q_stride + in_row,
        p.forward.q_stride, sm.q_position[i % 3]);
    load_tile<T, DIM, n_queries, n_threads>(
        sm.dout[i & 1], static_cast<const T *>(p.dout) + at * p.dout_stride + in_row, p.dout_stride,
        sm.q_position[i % 3]);
    cp_commit();
}

/* Log-sum-exps and deltas of step i. */
template <class T, int DIM>
__device__ __forceinline__ void load_sums(const skrull_attention_backward &p, shared<T, DIM> &sm,
                                          int i)
{
    const step s = step_at(sm.walk, i);
    const int row = (int)(threadIdx.x / 4);
    const bool is_token = sm.q_position[i % 3][row] >= 0;
    const float delta = delta_of<T, DIM>(p, s.row + row, s.head, is_token);

    if (lane_id() % 4 == 0) {
        sm.delta[i & 1][row] = delta;
        sm.lse[i & 1][row] = lse_of(p.forward, s.row + row, s.head, is_token);
    }
}

/* Scores [keys][queries] of what is not seen become -inf. */
__device__ __forceinline__ void mask(const skrull_attention &p, score_tile &s,
                                     const int32_t *k_position, const int32_t *q_position)
{
    SK_UNROLL
    for (int column = 0; column < 2 * n_halves; column++) {
        const int n = column / 2, i = column % 2;
        const int32_t position = q_position[8 * n + lane_id() % 4 * 2 + i];
        const span seen = keys_of(p, {position, position});

        SK_UNROLL
        for (int row = 0; row < 2 * m_tiles; row++) {
            float &score = s[row / 2][n][row % 2 * 2 + i];

            score = has(seen, k_position[8 * row + lane_id() / 4]) ? score : -INFINITY;
        }
    }
}

/* Two neighbouring results of a row as T where the next product reads them. */
template <class T>
__device__ __forceinline__ void put_two(T *tile, int row, int chunk, float x, float y)
{
    *reinterpret_cast<uint32_t *>(tile + chunk_at<n_queries>(row, chunk) + lane_id() % 4 * 2) =
        pack2<T>(x, y);
}

/* The warp's probabilities and gradients of scores of step i, into shared memory. */
template <class T, int DIM>
__device__ __forceinline__ void differentiate(const skrull_attention &p, shared<T, DIM> &sm,
                                              span keys, int i)
{
    const int warp = (int)(threadIdx.x / 32), row = warp / 2 * warp_keys;
    const int half = warp % 2 * (n_queries / 2), stage = i & 1;
    const int32_t *q_position = sm.q_position[i % 3] + half;
    const int32_t position = q_position[lane_id()];
    const span seen = keys_of(p, {position, position});
    const float scale = p.scale * log2_e;
    score_tile s, dp;

    multiply_transposed<T, DIM, n_halves>(s, sm.k, row, sm.q[stage], half);
    if (!__all_sync(~0u, seen.first <= keys.first && keys.last <= seen.last)) {
        mask(p, s, sm.k_position + row, q_position);
    }
    multiply_transposed<T, DIM, n_halves>(dp, sm.v, row, sm.dout[stage], half);
    SK_UNROLL
    for (int n = 0; n < n_halves; n++) {
        const int column = half + 8 * n + lane_id() % 4 * 2;
        const float lse0 = sm.lse[stage][column], lse1 = sm.lse[stage][column + 1];
        const float delta0 = sm.delta[stage][column], delta1 = sm.delta[stage][column + 1];

        SK_UNROLL
        for (int r = 0; r < 2 * m_tiles; r++) {
            const int m = r / 2, j = r % 2 * 2, at = row + 8 * r + lane_id() / 4;
            const float p0 = ex2(s[m][n][j] * scale - lse0);
            const float p1 = ex2(s[m][n][j + 1] * scale - lse1);

            put_two(sm.p, at, half / 8 + n, p0, p1);
            put_two(sm.ds, at, half / 8 + n, p0 * (dp[m][n][j] - delta0),
                    p1 * (dp[m][n][j + 1] - delta1));
        }
    }
}

/* c += the warp's rows of a [keys][queries] x its half of the columns of b [queries][DIM] */
template <class T, int DIM>
__device__ __forceinline__ void accumulate(float (&c)[m_tiles][DIM / 16][4], const T *a, const T *b)
{
    constexpr int near = DIM == 96 ? 2 : 4;
    const int warp = (int)(threadIdx.x / 32), row = warp / 2 * warp_keys;
    const int chunk = warp % 2 * (DIM / 16);

    SK_UNROLL
    for (int k = 0; k < n_queries / 16; k++) {
        uint32_t lefts[m_tiles][4];

        SK_UNROLL
        for (int m = 0; m < m_tiles; m++) {
            left<n_queries>(lefts[m], a, row + 16 * m, k);
        }
        SK_UNROLL
        for (int n = 0; n < DIM / 16; n += near) {
            uint32_t rights[2 * near];

            right_along<DIM, near>(rights, b, chunk + n, k);
            SK_UNROLL
            for (int m = 0; m < m_tiles; m++) {
                mma_row<T, near>(c[m] + n, lefts[m], rights);
            }
        }
    }
}

template <class T, int DIM>
__device__ __forceinline__ void add_out(const shared<T, DIM> &sm, float *gradient, size_t stride,
                                        float factor, const float (&c)[m_tiles][DIM / 16][4])
{
    const int warp = (int)(threadIdx.x / 32);

    SK_UNROLL
    for (int r = 0; r < 2 * m_tiles; r++) {
        const int m = r / 2, j = r % 2 * 2, row = warp / 2 * warp_keys + 8 * r + lane_id() / 4;
        float *out = gradient + (size_t)row * stride + warp % 2 * (DIM / 2) + lane_id() % 4 * 2;

        SK_UNROLL
        for (int n = 0; n < DIM / 16 && sm.k_position[row] >= 0; n++) {
            add_two(out + 8 * n, factor, c[m][n][j], c[m][n][j + 1]);
        }
    }
}

/* Finds the queries that see any of the block's keys; its barriers publish the keys' positions. */
template <class T, int DIM>
__device__ __forceinline__ walk walk_of(const skrull_attention &p, shared<T, DIM> &sm,
                                        const block_place &place, int first, int n)
{
    const int thread = (int)threadIdx.x, q_first = p.q_cu_rows[place.sequence];
    const int per_key = (int)(p.heads / p.kv_heads);
    const int32_t position =
        thread < n_keys ? position_at(p.k_position + first, thread, n) : SKRULL_NO_POSITION;

    if (thread < n_keys) {
        sm.k_position[thread] = position;
    }
    const span positions =
        block_span(position < 0 ? no_span : span{position, position}, sm.positions);
    const span rows =
        block_span(rows_in(queries_of(p, positions), p.q_position + q_first,
                           p.q_cu_rows[place.sequence + 1] - q_first, thread, n_threads),
                   sm.rows);
    const int begin = min(rows.first, rows.last + 1), n_rows = rows.last + 1 - begin;

    return {q_first + begin, n_rows, (n_rows + n_queries - 1) / n_queries, place.head * per_key,
            per_key};
}

template <class T, int DIM>
__global__ __launch_bounds__(n_threads, 1) void kernel(const skrull_attention_backward p)
{
    using memory = shared<T, DIM>;
    SK_SMEM(memory, sm);
    const skrull_attention &forward = p.forward;
    const block_place place = place_of_block(forward.kv_heads, forward.n_sequences, false);
    const int first = forward.k_cu_rows[place.sequence] + place.tile * n_keys;
    const int n = min(n_keys, forward.k_cu_rows[place.sequence + 1] - first);
    if (n <= 0) {
        return;
    }
    const walk w = walk_of(forward, sm, place, first, n);
    const int n_steps = w.n_tiles * w.n_heads, thread = (int)threadIdx.x;
    const size_t at = (size_t)first, in_row = (size_t)place.head * DIM;
    if (n_steps == 0) {
        return;
    }
    const int32_t key = sm.k_position[thread / 64 * warp_keys + lane_id()];
    const span keys = warp_span(key < 0 ? no_span : span{key, key});
    float dk[m_tiles][DIM / 16][4], dv[m_tiles][DIM / 16][4];

    clear(dk);
    clear(dv);
    if (thread == 0) {
        sm.walk = w;
    }
    if (thread < n_queries) {
        sm.q_position[0][thread] = step_position(forward, w, 0, thread);
        sm.q_position[1][thread] = step_position(forward, w, 1, thread);
    }
    block_sync();
    load_tile<T, DIM, n_keys, n_threads>(
        sm.k, static_cast<const T *>(forward.k) + at * forward.k_stride + in_row, forward.k_stride,
        sm.k_position);
    load_tile<T, DIM, n_keys, n_threads>(
        sm.v, static_cast<const T *>(forward.v) + at * forward.v_stride + in_row, forward.v_stride,
        sm.k_position);
    load_queries(p, sm, 0);
    load_sums(p, sm, 0);
    for (int i = 0; i < n_steps; i++) {
        int32_t later = SKRULL_NO_POSITION;

        cp_wait<0>();
        block_sync(); /* step i has come; everybody is done with step i - 1 */
        if (i + 1 < n_steps) {
            load_queries(p, sm, i + 1);
            load_sums(p, sm, i + 1);
        }
        if (i + 2 < n_steps && thread < n_queries) {
            later = step_position(forward, sm.walk, i + 2, thread);
        }
        differentiate(forward, sm, keys, i);
        if (thread < n_queries) {
            sm.q_position[(i + 2) % 3][thread] = later;
        }
        block_sync(); /* all of p and ds is there */
        accumulate<T, DIM>(dv, sm.p, sm.dout[i & 1]);
        accumulate<T, DIM>(dk, sm.ds, sm.q[i & 1]);
    }
    const size_t stride = (size_t)forward.kv_heads * DIM;
    add_out(sm, p.dk + at * stride + in_row, stride, forward.scale, dk);
    add_out(sm, p.dv + at * stride + in_row, stride, 1.0F, dv);
}
} // namespace of_keys
} // namespace
