/*
 * Attention forward by tiles: FlashAttention-2 (arXiv 2307.08691, algorithm 1) on mma.sync.
 *
 * q [n_q][heads][DIM], k and v [n_k][kv_heads][DIM], T, rows aligned to 16 bytes; out [n_q][heads]
 * [DIM] T; lse [n_q][heads] float. A block of 4 warps has 128 queries of one head, a warp 32 of
 * them: half the shared memory traffic that 16 would cause, with sums just fitting the registers.
 * It walks over the tiles of 64 keys (DIM 128: 48) that any of its queries sees, the next one under
 * way while it computes. Grid: tiles of queries x sequences x heads; blocks beyond a sequence's end
 * return. Shared memory: DIM 64: 50 KB, 96: 74 KB, 128: 82 KB, so that two blocks share a
 * multiprocessor of Hopper. Deterministic. Tolerance, relative to the largest: bf16 1e-2, fp16
 * 2e-3.
 */
#include "dev.h"

#include <skrull/cuda.h>

#include "attention_check.h"
#include "attention_tile.h"

namespace
{
constexpr int n_warps = 4, n_threads = 32 * n_warps;
constexpr int m_tiles = 2, warp_rows = 16 * m_tiles, n_queries = warp_rows * n_warps;

/* 64 keys of 128 dimensions would be a few registers too many. */
template <int DIM> constexpr int block_keys = DIM == 128 ? 48 : 64;

template <class T, int DIM> struct shared {
    alignas(256) T q[n_queries * DIM];
    key_tiles<T, DIM, block_keys<DIM>> keys;
    block_queries<n_threads> queries;
};

/* A warp's running softmax: a lane's rows are lane / 4 and 8 more of each of its tiles of 16. */
template <int DIM> struct sums {
    float out[m_tiles][DIM / 8][4];
    float max[m_tiles][2], total[m_tiles][2]; /* raw scores; total: this lane's columns only */
};

template <int DIM> using score_tile = float[m_tiles][block_keys<DIM> / 8][4];

/* A row's maximum as what exponents are relative to; 0 where nothing was seen yet: no NaN. */
__device__ __forceinline__ float base_of(float most, float scale)
{
    return most == -INFINITY ? 0.0F : most * scale;
}

/* The maximum moves on; where it did, in few tiles, what was summed is rescaled. */
template <int DIM>
__device__ __forceinline__ void raise_maximum(sums<DIM> &sum, const score_tile<DIM> &s, float scale)
{
    float rescale[m_tiles][2];
    bool is_raised = false;

    SK_UNROLL
    for (int row = 0; row < 2 * m_tiles; row++) {
        const int m = row / 2, j = row % 2;
        float most = sum.max[m][j];

        SK_UNROLL
        for (int n = 0; n < block_keys<DIM> / 8; n++) {
            most = fmaxf(most, fmaxf(s[m][n][2 * j], s[m][n][2 * j + 1]));
        }
        most = fmaxf(most, shfl_xor(most, 1));
        most = fmaxf(most, shfl_xor(most, 2));
        rescale[m][j] = ex2(sum.max[m][j] * scale - base_of(most, scale));
        is_raised = is_raised || most > sum.max[m][j];
        sum.max[m][j] = most;
    }
    if (!__any_sync(~0u, is_raised)) {
        return;
    }
    SK_UNROLL
    for (int row = 0; row < 2 * m_tiles; row++) {
        const int m = row / 2, j = row % 2;

        sum.total[m][j] *= rescale[m][j];
        SK_UNROLL
        for (int n = 0; n < DIM / 8; n++) {
            sum.out[m][n][2 * j] *= rescale[m][j];
            sum.out[m][n][2 * j + 1] *= rescale[m][j];
        }
    }
}

/* Scores become exponentials. */
template <int DIM>
__device__ __forceinline__ void soften(sums<DIM> &sum, score_tile<DIM> &s, float scale)
{
    SK_UNROLL
    for (int row = 0; row < 2 * m_tiles; row++) {
        const int m = row / 2, j = row % 2;
        const float base = base_of(sum.max[m][j], scale);

        SK_UNROLL
        for (int n = 0; n < block_keys<DIM> / 8; n++) {
            SK_UNROLL
            for (int i = 2 * j; i < 2 * j + 2; i++) {
                s[m][n][i] = ex2(s[m][n][i] * scale - base);
                sum.total[m][j] += s[m][n][i];
            }
        }
    }
}

/* One tile of keys, for one warp. */
template <class T, int DIM>
__device__ __forceinline__ void attend(const skrull_attention &p, shared<T, DIM> &sm,
                                       sums<DIM> &sum, int t)
{
    const int warp = (int)(threadIdx.x / 32), row = warp * warp_rows;
    const int32_t *k_position = sm.keys.position[t % 3];
    const float scale = p.scale * log2_e;
    const sight sight = sight_of<block_keys<DIM>>(sm.queries.reach[warp], k_position);
    score_tile<DIM> s;

    if (!sight.is_any) {
        return;
    }
    multiply_transposed<T, DIM, block_keys<DIM> % 32 ? 6 : 4>(s, sm.q, row, sm.keys.k[t & 1], 0);
    if (!sight.is_all) {
        mask(p, s, sm.queries.position + row, k_position);
    }
    raise_maximum(sum, s, scale);
    soften(sum, s, scale);
    multiply_along<T, DIM, 4>(sum.out, s, sm.keys.v[t & 1], 0);
}

/* The block's `n` rows from `first` on: sums over totals, and log-sum-exp. */
template <class T, int DIM>
__device__ __forceinline__ void write_out(const skrull_attention &p, const shared<T, DIM> &sm,
                                          const sums<DIM> &sum, int first, int n, int head)
{
    const int warp_row = (int)(threadIdx.x / 32 * warp_rows), lane = lane_id();

    SK_UNROLL
    for (int m = 0; m < m_tiles; m++) {
        SK_UNROLL
        for (int j = 0; j < 2; j++) {
            const int row = warp_row + 16 * m + 8 * j + lane / 4;
            float total = sum.total[m][j], factor;

            total += shfl_xor(total, 1);
            total += shfl_xor(total, 2);
            if (row >= n) {
                continue;
            }
            const bool is_empty = sm.queries.position[row] < 0 || total == 0.0F;
            const size_t at = (size_t)(first + row);
            T *out = static_cast<T *>(p.out) + at * p.out_stride + (size_t)head * DIM;

            factor = 1.0F / total;
            SK_UNROLL
            for (int n8 = 0; n8 < DIM / 8; n8++) {
                const uint32_t two =
                    pack2<T>(sum.out[m][n8][2 * j] * factor, sum.out[m][n8][2 * j + 1] * factor);

                *reinterpret_cast<uint32_t *>(out + 8 * n8 + lane % 4 * 2) = is_empty ? 0 : two;
            }
            if (lane % 4 == 0) {
                p.lse[at * p.heads + (size_t)head] =
                    is_empty ? -INFINITY : (sum.max[m][j] * (p.scale * log2_e) + lg2(total)) * ln_2;
            }
        }
    }
}

template <class T, int DIM>
__global__ __launch_bounds__(n_threads, 2) void attention_kernel(const skrull_attention p)
{
    using memory = shared<T, DIM>;
    SK_SMEM(memory, sm);
    const block_place place = place_of_block(p.heads, p.n_sequences, p.causal);
    const int first = p.q_cu_rows[place.sequence] + place.tile * n_queries;
    const int n = min(n_queries, p.q_cu_rows[place.sequence + 1] - first);
    if (n <= 0) {
        return;
    }
    const key_rows<T> keys = seen_keys<T>(p, sm.queries, place, first, n, DIM);
    const int n_tiles = (keys.n + block_keys<DIM> - 1) / block_keys<DIM>;
    sums<DIM> sum;

    clear(sum.out);
    SK_UNROLL
    for (int m = 0; m < m_tiles; m++) {
        sum.max[m][0] = sum.max[m][1] = -INFINITY;
        sum.total[m][0] = sum.total[m][1] = 0.0F;
    }
    begin_keys(sm.keys, keys);
    block_sync();
    if (n_tiles > 0) {
        load_tile<T, DIM, n_queries, n_threads>(
            sm.q,
            static_cast<const T *>(p.q) + (size_t)first * p.q_stride + (size_t)place.head * DIM,
            p.q_stride, sm.queries.position);
        load_keys<n_threads>(sm.keys, keys, 0);
        cp_commit();
    }
    for (int t = 0; t < n_tiles; t++) {
        cp_wait<0>();
        block_sync(); /* tile t has come; everybody is done with tile t - 1 */
        if (t + 1 < n_tiles) {
            load_keys<n_threads>(sm.keys, keys, t + 1);
            cp_commit();
        }
        const int32_t later = later_position(sm.keys, keys, t);

        attend(p, sm, sum, t);
        keep_position(sm.keys, t, later);
    }
    write_out(p, sm, sum, first, n, place.head);
}

template <class T, int DIM>
int attention_launch(const skrull_attention &p, void *stream, struct skrull_error *err)
{
    const uint64_t n_blocks = attention_blocks(p, p.heads, p.max_q_rows, n_queries);

    return launch(attention_kernel<T, DIM>, dim3((unsigned)n_blocks), dim3(n_threads),
                  sizeof(shared<T, DIM>), stream, err, p);
}

template <class T>
int attention_typed(const skrull_attention &p, void *stream, struct skrull_error *err)
{
    switch (p.head_dim) {
    case 64:
        return attention_launch<T, 64>(p, stream, err);
    case 96:
        return attention_launch<T, 96>(p, stream, err);
    default:
        return attention_launch<T, 128>(p, stream, err);
    }
}
} // namespace

extern "C" int SK_ENTRY(attention_forward)(const struct skrull_attention *params, void *stream,
                                           struct skrull_error *err)
{
    skrull_attention p;
    const int rc = attention_prepare(*params, &p, err);

    if (rc < 0) {
        return rc;
    }
    return p.dtype == SKRULL_DTYPE_BF16 ? attention_typed<bf16>(p, stream, err)
                                        : attention_typed<fp16>(p, stream, err);
}
