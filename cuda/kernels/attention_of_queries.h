/*
 * Gradients of queries: 128 a block of 4 warps, 32 a warp, as in attention.cu. The block walks over
 * the tiles of 64 keys (DIM 64) or 32 that any of its queries sees.
 */
#pragma once

#include "dev.h"

#include <skrull/cuda.h>

#include "attention_sums.h"
#include "attention_tile.h"

namespace
{
namespace of_queries
{
constexpr int n_warps = 4, n_threads = 32 * n_warps;
constexpr int m_tiles = 2, warp_rows = 16 * m_tiles, n_queries = warp_rows * n_warps;

template <int DIM> constexpr int block_keys = DIM == 64 ? 64 : 32;

template <class T, int DIM> struct shared {
    alignas(256) T q[n_queries * DIM];
    alignas(256) T dout[n_queries * DIM];
    key_tiles<T, DIM, block_keys<DIM>> keys;
    block_queries<n_queries> queries;
    float lse[n_queries], delta[n_queries];
};

template <int DIM> using score_tile = float[m_tiles][block_keys<DIM> / 8][4];

/* Scores s and dp = dout v^T become gradients of scores, in dp. */
template <class T, int DIM>
__device__ __forceinline__ void differentiate(const shared<T, DIM> &sm, int warp_row, float scale,
                                              const score_tile<DIM> &s, score_tile<DIM> &dp)
{
    SK_UNROLL
    for (int row = 0; row < 2 * m_tiles; row++) {
        const int m = row / 2, j = row % 2, at = warp_row + 8 * row + lane_id() / 4;
        const float lse = sm.lse[at], delta = sm.delta[at];

        SK_UNROLL
        for (int n = 0; n < block_keys<DIM> / 8; n++) {
            SK_UNROLL
            for (int i = 2 * j; i < 2 * j + 2; i++) {
                dp[m][n][i] = ex2(s[m][n][i] * scale - lse) * (dp[m][n][i] - delta);
            }
        }
    }
}

/* One tile of keys, for one warp. */
template <class T, int DIM>
__device__ __forceinline__ void differentiate_tile(const skrull_attention &p, shared<T, DIM> &sm,
                                                   float (&dq)[m_tiles][DIM / 8][4], int t)
{
    const int warp = (int)(threadIdx.x / 32), row = warp * warp_rows;
    const int32_t *k_position = sm.keys.position[t % 3];
    const sight sight = sight_of<block_keys<DIM>>(sm.queries.reach[warp], k_position);
    score_tile<DIM> s, dp;

    if (!sight.is_any) {
        return;
    }
    multiply_transposed<T, DIM, 4>(s, sm.q, row, sm.keys.k[t & 1], 0);
    if (!sight.is_all) {
        mask(p, s, sm.queries.position + row, k_position);
    }
    multiply_transposed<T, DIM, 4>(dp, sm.dout, row, sm.keys.v[t & 1], 0);
    differentiate(sm, row, p.scale * log2_e, s, dp);
    multiply_along<T, DIM, 4>(dq, dp, sm.keys.k[t & 1], 0);
}

template <class T, int DIM>
__device__ __forceinline__ void add_out(const skrull_attention_backward &p,
                                        const shared<T, DIM> &sm,
                                        const float (&dq)[m_tiles][DIM / 8][4], int first, int head)
{
    SK_UNROLL
    for (int row = 0; row < 2 * m_tiles; row++) {
        const int m = row / 2, j = row % 2;
        const int at = (int)(threadIdx.x / 32) * warp_rows + 8 * row + lane_id() / 4;
        float *out = p.dq + ((size_t)(first + at) * p.forward.heads + (size_t)head) * DIM +
                     lane_id() % 4 * 2;

        SK_UNROLL
        for (int n = 0; n < DIM / 8 && sm.queries.position[at] >= 0; n++) {
            add_two(out + 8 * n, p.forward.scale, dq[m][n][2 * j], dq[m][n][2 * j + 1]);
        }
    }
}

/* Log-sum-exps and deltas of the block's queries. */
template <class T, int DIM>
__device__ __forceinline__ void load_sums(const skrull_attention_backward &p, shared<T, DIM> &sm,
                                          int first, int head)
{
    for (int row = (int)(threadIdx.x / 4); row < n_queries; row += n_threads / 4) {
        const bool is_token = sm.queries.position[row] >= 0;
        const float delta = delta_of<T, DIM>(p, first + row, head, is_token);

        if (lane_id() % 4 == 0) {
            sm.delta[row] = delta;
            sm.lse[row] = lse_of(p.forward, first + row, head, is_token);
        }
    }
}

template <class T, int DIM>
__global__ __launch_bounds__(n_threads, 2) void kernel(const skrull_attention_backward p)
{
    using memory = shared<T, DIM>;
    SK_SMEM(memory, sm);
    const block_place place =
        place_of_block(p.forward.heads, p.forward.n_sequences, p.forward.causal);
    const int first = p.forward.q_cu_rows[place.sequence] + place.tile * n_queries;
    const int n = min(n_queries, p.forward.q_cu_rows[place.sequence + 1] - first);
    if (n <= 0) {
        return;
    }
    const key_rows<T> keys = seen_keys<T>(p.forward, sm.queries, place, first, n, DIM);
    const int n_tiles = (keys.n + block_keys<DIM> - 1) / block_keys<DIM>;
    const size_t at = (size_t)first, in_row = (size_t)place.head * DIM;
    float dq[m_tiles][DIM / 8][4];
    if (n_tiles == 0) {
        return;
    }
    clear(dq);
    begin_keys(sm.keys, keys);
    block_sync();
    load_tile<T, DIM, n_queries, n_threads>(
        sm.q, static_cast<const T *>(p.forward.q) + at * p.forward.q_stride + in_row,
        p.forward.q_stride, sm.queries.position);
    load_tile<T, DIM, n_queries, n_threads>(
        sm.dout, static_cast<const T *>(p.dout) + at * p.dout_stride + in_row, p.dout_stride,
        sm.queries.position);
    load_keys<n_threads>(sm.keys, keys, 0);
    cp_commit();
    load_sums(p, sm, first, place.head);
    for (int t = 0; t < n_tiles; t++) {
        cp_wait<0>();
        block_sync(); /* tile t has come; everybody is done with tile t - 1 */
        if (t + 1 < n_tiles) {
            load_keys<n_threads>(sm.keys, keys, t + 1);
            cp_commit();
        }
        const int32_t later = later_position(sm.keys, keys, t);

        differentiate_tile(p.forward, sm, dq, t);
        keep_position(sm.keys, t, later);
    }
    add_out(p, sm, dq, first, place.head);
}
} // namespace of_queries
} // namespace
