/*
 * Attention backward by tiles: FlashAttention-2 (arXiv 2307.08691, algorithm 2) in two launches, so
 * that every sum has one owner and one order: no atomics, the same bits each time. With p the
 * probabilities, delta = dout . out - dlse:  ds = p (dout v^T - delta);  dq += scale ds k;  dv +=
 * p^T dout;  dk += scale ds^T q. Scores are computed in both launches: 7 products instead of 5.
 *
 * Queries: as in attention.cu, 128 a block of 4 warps, walking over tiles of 64 keys (DIM 64) or
 * 32. Keys: 128 of one key head a block of 8 warps, walking over the tiles of 64 queries that see
 * any, head by head of the group. Two warps share 32 keys: each computes the scores of half of the
 * queries and, after a barrier, half of the dimensions of dk and dv, whose sums fill its registers.
 *
 * q, dout, out [n_q][heads][DIM], k, v [n_k][kv_heads][DIM], T, rows aligned to 16 bytes; lse, dlse
 * [n_q][heads], dq [n_q][heads][DIM], dk, dv [n_k][kv_heads][DIM] float. Grid: tiles x sequences x
 * heads (of keys). Shared memory, queries and keys: DIM 64: 66, 99 KB; 96: 74, 131 KB; 128: 98, 163
 * KB. Tolerance, relative to the largest: bf16 1e-2, fp16 2e-3.
 */
#include "dev.h"

#include <skrull/cuda.h>

#include "attention_check.h"
#include "attention_tile.h"

namespace
{
/* out . dout - dlse of a row, by four neighbouring lanes; all get it. */
template <class T, int DIM>
__device__ __forceinline__ float delta_of(const skrull_attention_backward &p, int row, int head,
                                          bool is_token)
{
    const size_t at = (size_t)row, in_row = (size_t)head * DIM;
    const T *out = static_cast<const T *>(p.forward.out) + at * p.forward.out_stride + in_row;
    const T *dout = static_cast<const T *>(p.dout) + at * p.dout_stride + in_row;
    float delta = 0.0F;

    if (is_token) {
        SK_UNROLL
        for (int chunk = lane_id() % 4; chunk < DIM / 8; chunk += 4) {
            float a[8], b[8];

            load<8>(out + 8 * chunk, a);
            load<8>(dout + 8 * chunk, b);
            SK_UNROLL
            for (int i = 0; i < 8; i++) {
                delta += a[i] * b[i];
            }
        }
    }
    delta += shfl_xor(delta, 1);
    delta += shfl_xor(delta, 2);
    if (is_token && p.dlse) {
        delta -= p.dlse[at * p.forward.heads + (size_t)head];
    }
    return delta;
}

/* The log-sum-exp of a row in base 2; inf, so that probabilities are 0, where it saw nothing. */
__device__ __forceinline__ float lse_of(const skrull_attention &p, int row, int head, bool is_token)
{
    const float lse = is_token ? p.lse[(size_t)row * p.heads + (size_t)head] : -INFINITY;

    return lse == -INFINITY ? INFINITY : lse * log2_e;
}

/* Adds two neighbouring sums to a gradient. */
__device__ __forceinline__ void add_two(float *gradient, float factor, float x, float y)
{
    float2 &two = *reinterpret_cast<float2 *>(gradient);

    two = make_float2(two.x + factor * x, two.y + factor * y);
}

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

template <class T, int DIM>
int backward_launch(const skrull_attention_backward &p, void *stream, struct skrull_error *err)
{
    const skrull_attention &f = p.forward;
    const uint64_t q_blocks = attention_blocks(f, f.heads, f.max_q_rows, of_queries::n_queries);
    const uint64_t k_blocks = attention_blocks(f, f.kv_heads, f.max_k_rows, of_keys::n_keys);
    int rc = 0;

    if (q_blocks > 0 && k_blocks > 0) {
        rc =
            launch(of_queries::kernel<T, DIM>, dim3((unsigned)q_blocks),
                   dim3(of_queries::n_threads), sizeof(of_queries::shared<T, DIM>), stream, err, p);
        rc = rc ? rc
                : launch(of_keys::kernel<T, DIM>, dim3((unsigned)k_blocks),
                         dim3(of_keys::n_threads), sizeof(of_keys::shared<T, DIM>), stream, err, p);
    }
    return rc;
}

template <class T>
int backward_typed(const skrull_attention_backward &p, void *stream, struct skrull_error *err)
{
    switch (p.forward.head_dim) {
    case 64:
        return backward_launch<T, 64>(p, stream, err);
    case 96:
        return backward_launch<T, 96>(p, stream, err);
    default:
        return backward_launch<T, 128>(p, stream, err);
    }
}
} // namespace

extern "C" int SK_ENTRY(attention_backward)(const struct skrull_attention_backward *params,
                                            void *stream, struct skrull_error *err)
{
    skrull_attention_backward p = *params;
    int rc = attention_prepare(params->forward, &p.forward, err);

    p.dout_stride =
        params->dout_stride ? params->dout_stride : (size_t)p.forward.heads * p.forward.head_dim;
    rc = rc ? rc : attention_check_rows("dout", p.dout, p.dout_stride, err);
    rc = rc ? rc : attention_check_rows("dq", p.dq, 0, err);
    rc = rc ? rc : attention_check_rows("dk", p.dk, 0, err);
    rc = rc ? rc : attention_check_rows("dv", p.dv, 0, err);
    if (rc < 0) {
        return rc;
    }
    return p.forward.dtype == SKRULL_DTYPE_BF16 ? backward_typed<bf16>(p, stream, err)
                                                : backward_typed<fp16>(p, stream, err);
}
