/*
 * The gate of an MLP (arXiv 2002.05202): silu(gate) x up with silu(x) = x s, s = 1 / (1 + e^-x),
 * whose derivative is s (1 + x (1 - s)). [n_rows][width] by strides, elementwise in fp32, 16 bytes
 * a thread where aligned. A thread reads its numbers before it writes: gradients may replace what
 * they are of. One rounding to T.
 */
#include <math.h>

#include "entry.h"

namespace
{
using namespace sk;

template <class T, int N> __global__ void swiglu_forward_kernel(struct skrull_swiglu p)
{
    for (size_t row = first_row(); row < p.n_rows; row += row_step()) {
        const T *gate = static_cast<const T *>(p.gate) + row * p.in_stride;
        const T *up = static_cast<const T *>(p.up) + row * p.in_stride;
        T *out = static_cast<T *>(p.out) + row * p.out_stride;

        each_of_row<N>(p.width, [=](auto many, size_t i) {
            constexpr int n_here = decltype(many)::value;
            float x[n_here], u[n_here];

            load<n_here>(gate + i, x);
            load<n_here>(up + i, u);
            SK_UNROLL
            for (int j = 0; j < n_here; j++) {
                x[j] = x[j] / (1.0F + expf(-x[j])) * u[j];
            }
            store<n_here>(out + i, x);
        });
    }
}

template <class T, int N> __global__ void swiglu_backward_kernel(struct skrull_swiglu_backward p)
{
    for (size_t row = first_row(); row < p.n_rows; row += row_step()) {
        const T *gate = static_cast<const T *>(p.gate) + row * p.in_stride;
        const T *up = static_cast<const T *>(p.up) + row * p.in_stride;
        const T *dout = static_cast<const T *>(p.dout) + row * p.out_stride;
        T *dgate = static_cast<T *>(p.dgate) + row * p.in_stride;
        T *dup = static_cast<T *>(p.dup) + row * p.in_stride;

        each_of_row<N>(p.width, [=](auto many, size_t i) {
            constexpr int n_here = decltype(many)::value;
            float x[n_here], u[n_here], d[n_here];

            load<n_here>(gate + i, x);
            load<n_here>(up + i, u);
            load<n_here>(dout + i, d);
            SK_UNROLL
            for (int j = 0; j < n_here; j++) {
                const float s = 1.0F / (1.0F + expf(-x[j]));
                const float of_gate = d[j] * u[j] * s * (1.0F + x[j] * (1.0F - s));

                u[j] = d[j] * x[j] * s;
                x[j] = of_gate;
            }
            store<n_here>(dgate + i, x);
            store<n_here>(dup + i, u);
        });
    }
}

row_shape gate_shape(uint32_t n_rows, uint32_t width, int n)
{
    return row_shape_of(width == 0 ? 0 : n_rows, width / (unsigned)n);
}
} // namespace

extern "C" int SK_ENTRY(swiglu_forward)(const struct skrull_swiglu *swiglu, void *stream,
                                        struct skrull_error *err)
{
    struct skrull_swiglu p = *swiglu;

    p.in_stride = stride_or(p.in_stride, p.width);
    p.out_stride = stride_or(p.out_stride, p.width);
    return with_dtype("swiglu", p.dtype, err, [&](auto type) {
        using T = decltype(type);
        const bool aligned = is_aligned<T>(p.gate, p.in_stride) &&
                             is_aligned<T>(p.up, p.in_stride) && is_aligned<T>(p.out, p.out_stride);

        return with_vectors(aligned, [&](auto n) {
            constexpr int N = decltype(n)::value;
            const row_shape shape = gate_shape(p.n_rows, p.width, N);

            return launch(swiglu_forward_kernel<T, N>, shape.grid, shape.block, 0, stream, err, p);
        });
    });
}

extern "C" int SK_ENTRY(swiglu_backward)(const struct skrull_swiglu_backward *swiglu, void *stream,
                                         struct skrull_error *err)
{
    struct skrull_swiglu_backward p = *swiglu;

    p.in_stride = stride_or(p.in_stride, p.width);
    p.out_stride = stride_or(p.out_stride, p.width);
    return with_dtype("swiglu", p.dtype, err, [&](auto type) {
        using T = decltype(type);
        const bool aligned =
            is_aligned<T>(p.gate, p.in_stride) && is_aligned<T>(p.up, p.in_stride) &&
            is_aligned<T>(p.dgate, p.in_stride) && is_aligned<T>(p.dup, p.in_stride) &&
            is_aligned<T>(p.dout, p.out_stride);

        return with_vectors(aligned, [&](auto n) {
            constexpr int N = decltype(n)::value;
            const row_shape shape = gate_shape(p.n_rows, p.width, N);

            return launch(swiglu_backward_kernel<T, N>, shape.grid, shape.block, 0, stream, err, p);
        });
    });
}
