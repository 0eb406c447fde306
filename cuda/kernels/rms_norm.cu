/*
 * Root mean square normalisation (arXiv 1910.07467). Backward, with g = dout x weight:
 *     din = rstd (g - in rstd^2 mean(g in));  dweight += dout in rstd
 * A row [width] by a warp, or by 256 threads where it is wide: two passes, sums in fp32, in one
 * order. dweight in a launch of its own before din, which may overwrite dout. One rounding to T.
 */
#include <math.h>

#include "columns.h"
#include "entry.h"
#include "reduce.h"

namespace
{
using namespace sk;

template <class T, int N> __global__ void rms_norm_forward_kernel(struct skrull_rms_norm p)
{
    SK_SMEM(warp_values<float>, shared);
    const size_t width = p.width;
    const T *weight = static_cast<const T *>(p.weight);

    for (size_t round = blockIdx.x * (size_t)blockDim.y; round < p.n_rows; round += row_step()) {
        const bool is_row = round + threadIdx.y < p.n_rows;
        const size_t row = is_row ? round + threadIdx.y : 0;
        const T *in = static_cast<const T *>(p.in) + row * width;
        T *out = static_cast<T *>(p.out) + row * width;
        float squares = 0.0F;

        each_of_row<N>(is_row ? width : 0, [=, &squares](auto many, size_t i) {
            constexpr int n_here = decltype(many)::value;
            float x[n_here];

            load<n_here>(in + i, x);
            SK_UNROLL
            for (int j = 0; j < n_here; j++) {
                squares += x[j] * x[j];
            }
        });
        squares = join_row<plus>(squares, shared);
        const float rstd = 1.0F / sqrtf(squares / (float)width + p.eps);

        each_of_row<N>(is_row ? width : 0, [=](auto many, size_t i) {
            constexpr int n_here = decltype(many)::value;
            float x[n_here], w[n_here];

            load<n_here>(in + i, x);
            load<n_here>(weight + i, w);
            SK_UNROLL
            for (int j = 0; j < n_here; j++) {
                x[j] = x[j] * rstd * w[j];
            }
            store<n_here>(out + i, x);
        });
        if (is_row && threadIdx.x == 0) {
            p.rstd[row] = rstd;
        }
    }
}

template <class T, int N> __global__ void rms_norm_din_kernel(struct skrull_rms_norm_backward p)
{
    SK_SMEM(warp_values<float>, shared);
    const size_t width = p.width;
    const T *weight = static_cast<const T *>(p.weight);

    for (size_t round = blockIdx.x * (size_t)blockDim.y; round < p.n_rows; round += row_step()) {
        const bool is_row = round + threadIdx.y < p.n_rows;
        const size_t row = is_row ? round + threadIdx.y : 0;
        const T *in = static_cast<const T *>(p.in) + row * width;
        const T *dout = static_cast<const T *>(p.dout) + row * width;
        T *din = static_cast<T *>(p.din) + row * width;
        const float rstd = p.rstd[row];
        float product = 0.0F;

        each_of_row<N>(is_row ? width : 0, [=, &product](auto many, size_t i) {
            constexpr int n_here = decltype(many)::value;
            float x[n_here], w[n_here], d[n_here];

            load<n_here>(in + i, x);
            load<n_here>(weight + i, w);
            load<n_here>(dout + i, d);
            SK_UNROLL
            for (int j = 0; j < n_here; j++) {
                product += d[j] * w[j] * x[j];
            }
        });
        const float shift = rstd * rstd * join_row<plus>(product, shared) / (float)width;

        each_of_row<N>(is_row ? width : 0, [=](auto many, size_t i) {
            constexpr int n_here = decltype(many)::value;
            float x[n_here], w[n_here], d[n_here];

            load<n_here>(in + i, x);
            load<n_here>(weight + i, w);
            load<n_here>(dout + i, d);
            SK_UNROLL
            for (int j = 0; j < n_here; j++) {
                d[j] = rstd * (d[j] * w[j] - x[j] * shift);
            }
            store<n_here>(din + i, d);
        });
    }
}

template <class T> __global__ void rms_norm_dweight_kernel(struct skrull_rms_norm_backward p)
{
    const T *in = static_cast<const T *>(p.in), *dout = static_cast<const T *>(p.dout);
    const size_t width = p.width;
    const float *rstd = p.rstd;

    add_columns(p.n_rows, width, p.dweight, [=](size_t row, size_t column) {
        return f32(dout[row * width + column]) * f32(in[row * width + column]) * rstd[row];
    });
}
} // namespace

extern "C" int SK_ENTRY(rms_norm_forward)(const struct skrull_rms_norm *p, void *stream,
                                          struct skrull_error *err)
{
    const row_shape shape = joined_shape_of(p->width == 0 ? 0 : p->n_rows, p->width);

    return with_dtype("rms_norm", p->dtype, err, [&](auto type) {
        using T = decltype(type);
        const bool aligned = is_aligned<T>(p->in, p->width) && is_aligned<T>(p->weight) &&
                             is_aligned<T>(p->out, p->width);

        return with_vectors(aligned, [&](auto n) {
            return launch(rms_norm_forward_kernel<T, decltype(n)::value>, shape.grid, shape.block,
                          sizeof(warp_values<float>), stream, err, *p);
        });
    });
}

extern "C" int SK_ENTRY(rms_norm_backward)(const struct skrull_rms_norm_backward *p, void *stream,
                                           struct skrull_error *err)
{
    const row_shape shape = joined_shape_of(p->width == 0 ? 0 : p->n_rows, p->width);

    return with_dtype("rms_norm", p->dtype, err, [&](auto type) {
        using T = decltype(type);
        const size_t width = p->width;
        const bool aligned = is_aligned<T>(p->in, width) && is_aligned<T>(p->weight) &&
                             is_aligned<T>(p->dout, width) && is_aligned<T>(p->din, width);
        const int rc = launch(rms_norm_dweight_kernel<T>, columns_grid(p->n_rows, p->width),
                              dim3(COLUMNS, COLUMNS), sizeof(column_sums), stream, err, *p);

        return rc < 0 ? rc : with_vectors(aligned, [&](auto n) {
            return launch(rms_norm_din_kernel<T, decltype(n)::value>, shape.grid, shape.block,
                          sizeof(warp_values<float>), stream, err, *p);
        });
    });
}
