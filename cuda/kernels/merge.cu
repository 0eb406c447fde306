/*
 * Merging by log-sum-exp (Ring Attention, arXiv 2310.01889): lse = log(e^lse + e^part_lse).
 * Backward, of one part: dpart = w dout;  dlse_part = w (dout . (part - out) + dlse) with
 * w = e^(part_lse - lse). Items [n_rows x heads][head_dim], all dense, each by up to 32 lanes of a
 * warp; sums within an item by shuffles, in one order. out is float: one rounding a step.
 */
#include <math.h>

#include "entry.h"
#include "reduce.h"

namespace
{
using namespace sk;

/* What an item was multiplied by, and the part; 1 and 0 where the part has seen no key. */
struct weights {
    float here, there, lse;
};

__device__ __forceinline__ weights weigh(float lse, float part_lse)
{
    const float most = part_lse > lse ? part_lse : lse;
    const float here = expf(lse - most), there = expf(part_lse - most), total = here + there;

    if (isinf(part_lse)) {
        return weights{1.0F, 0.0F, lse};
    }
    return weights{here / total, there / total, most + logf(total)};
}

template <class T, int N>
__global__ void merge_forward_kernel(size_t n_items, struct skrull_merge p)
{
    const size_t dim = p.head_dim;

    /* The whole block takes part in every round: lanes wait for each other in it. */
    for (size_t round = blockIdx.x * (size_t)blockDim.y; round < n_items; round += row_step()) {
        const size_t item = round + threadIdx.y;
        const bool is_item = item < n_items;
        const float part_lse = is_item ? p.part_lse[item] : -INFINITY;
        const weights w = weigh(is_item ? p.lse[item] : 0.0F, part_lse);
        const T *part = static_cast<const T *>(p.part_out) + item * dim;
        float *out = p.out + item * dim;

        __syncwarp();
        if (!is_item || isinf(part_lse)) {
            continue;
        }
        if (threadIdx.x == 0) {
            p.lse[item] = w.lse;
        }
        each_of_row<N>(dim, [=](auto many, size_t i) {
            constexpr int n_here = decltype(many)::value;
            float x[n_here], y[n_here];

            load<n_here>(out + i, x);
            load<n_here>(part + i, y);
            SK_UNROLL
            for (int j = 0; j < n_here; j++) {
                x[j] = x[j] * w.here + y[j] * w.there;
            }
            store<n_here>(out + i, x);
        });
    }
}

template <class T, int N>
__global__ void merge_backward_kernel(size_t n_items, struct skrull_merge_backward p)
{
    const size_t dim = p.head_dim;

    for (size_t round = blockIdx.x * (size_t)blockDim.y; round < n_items; round += row_step()) {
        const bool is_item = round + threadIdx.y < n_items;
        const size_t item = is_item ? round + threadIdx.y : 0;
        const float part_lse = p.part_lse[item];
        const float w = isinf(part_lse) ? 0.0F : expf(part_lse - p.lse[item]);
        const T *part = static_cast<const T *>(p.part_out) + item * dim;
        T *dpart = static_cast<T *>(p.dpart_out) + item * dim;
        const float *out = p.out + item * dim, *dout = p.dout + item * dim;
        float gain = 0.0F;

        each_of_row<N>(is_item ? dim : 0, [=, &gain](auto many, size_t i) {
            constexpr int n_here = decltype(many)::value;
            float x[n_here], y[n_here], d[n_here];

            load<n_here>(out + i, x);
            load<n_here>(part + i, y);
            load<n_here>(dout + i, d);
            SK_UNROLL
            for (int j = 0; j < n_here; j++) {
                gain += d[j] * (y[j] - x[j]);
                d[j] *= w;
            }
            store<n_here>(dpart + i, d);
        });
        gain = join_lanes<plus>(gain, blockDim.x);
        if (is_item && threadIdx.x == 0) {
            p.dpart_lse[item] = w * (gain + (p.dlse ? p.dlse[item] : 0.0F));
        }
    }
}

row_shape items_shape(size_t n_items, size_t head_dim, int n)
{
    return row_shape_of(n_items, head_dim / (size_t)n, 32);
}
} // namespace

extern "C" int SK_ENTRY(merge_forward)(const struct skrull_merge *p, void *stream,
                                       struct skrull_error *err)
{
    const size_t n_items = (size_t)p->n_rows * p->heads;

    return with_dtype("merge", p->dtype, err, [&](auto type) {
        using T = decltype(type);
        const bool aligned =
            is_aligned<T>(p->part_out, p->head_dim) && is_aligned<float>(p->out, p->head_dim);

        return with_vectors(aligned, [&](auto n) {
            constexpr int N = decltype(n)::value;
            const row_shape shape = items_shape(n_items, p->head_dim, N);

            return launch(merge_forward_kernel<T, N>, shape.grid, shape.block, 0, stream, err,
                          n_items, *p);
        });
    });
}

extern "C" int SK_ENTRY(merge_backward)(const struct skrull_merge_backward *p, void *stream,
                                        struct skrull_error *err)
{
    const size_t n_items = (size_t)p->n_rows * p->heads;

    return with_dtype("merge", p->dtype, err, [&](auto type) {
        using T = decltype(type);
        const size_t dim = p->head_dim;
        const bool aligned = is_aligned<T>(p->part_out, dim) && is_aligned<float>(p->out, dim) &&
                             is_aligned<float>(p->dout, dim) && is_aligned<T>(p->dpart_out, dim);

        return with_vectors(aligned, [&](auto n) {
            constexpr int N = decltype(n)::value;
            const row_shape shape = items_shape(n_items, dim, N);

            return launch(merge_backward_kernel<T, N>, shape.grid, shape.block, 0, stream, err,
                          n_items, *p);
        });
    });
}
