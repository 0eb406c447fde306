/*
 * Rotary embedding (RoFormer, arXiv 2104.09864), halves as pairs. A thread has N pairs of a token
 * for all heads that threadIdx.y leaves it, so an angle's sine is computed once for several heads.
 * Angles are reduced to a turn in double: position x frequency has more digits than a float. Reads
 * both halves before it writes them: out may be in. One rounding to T.
 */
#include "entry.h"

namespace
{
using namespace sk;

constexpr double turns_a_radian = 0.15915494309189533577; /* 1 / (2 pi) */

/* Cosine and sine of `side` position x frequency. */
template <int N>
__device__ __forceinline__ void turn(int32_t position, const float *frequency, float side,
                                     float (&cosine)[N], float (&sine)[N])
{
    SK_UNROLL
    for (int j = 0; j < N; j++) {
        const double turns = (double)position * ((double)frequency[j] * turns_a_radian);
        const float half_turns = (float)(2.0 * (turns - rint(turns)));

        sincospif(side * half_turns, &sine[j], &cosine[j]);
    }
}

/* All heads' pairs i to i + N - 1 of a row. */
template <class T, int N>
__device__ __forceinline__ void turn_pairs(const struct skrull_rotary &p, size_t row, size_t i,
                                           float side)
{
    const int32_t position = p.position[row];
    const size_t half = p.head_dim / 2;
    const T *in = static_cast<const T *>(p.in) + row * p.in_stride + i;
    T *out = static_cast<T *>(p.out) + row * p.out_stride + i;
    float cosine[N], sine[N];

    turn<N>(position < 0 ? 0 : position, p.frequency + i, side, cosine, sine);
    for (size_t head = threadIdx.y; head < p.heads; head += blockDim.y) {
        const size_t at = head * p.head_dim;
        float a[N], b[N], x[N], y[N];

        load<N>(in + at, a);
        load<N>(in + at + half, b);
        SK_UNROLL
        for (int j = 0; j < N; j++) {
            x[j] = a[j] * cosine[j] - b[j] * sine[j];
            y[j] = b[j] * cosine[j] + a[j] * sine[j];
        }
        store<N>(out + at, x);
        store<N>(out + at + half, y);
    }
}

template <class T, int N> __global__ void rotary_kernel(struct skrull_rotary p, float side)
{
    const size_t half = p.head_dim / 2, step = (size_t)gridDim.x * blockDim.z;

    for (size_t row = blockIdx.x * (size_t)blockDim.z + threadIdx.z; row < p.n_rows; row += step) {
        for (size_t i = (size_t)threadIdx.x * N; i < half; i += (size_t)blockDim.x * N) {
            turn_pairs<T, N>(p, row, i, side);
        }
    }
}

/* Threads: x over the pairs of a head, y over heads, z over rows. */
row_shape rotary_shape(const struct skrull_rotary *p, int n)
{
    const size_t parts = p->head_dim / 2 / (size_t)n;
    const dim3 pairs = row_shape_of(1, parts).block;
    unsigned heads = 1;

    while (heads * 4 < p->heads && heads < pairs.y) {
        heads *= 2; /* so that a thread has up to 4 heads */
    }
    const unsigned rows = pairs.y / heads;

    return row_shape{grid_of(parts == 0 || p->heads == 0 ? 0 : (p->n_rows + rows - 1) / rows),
                     dim3(pairs.x, heads, rows)};
}

int rotate(const struct skrull_rotary *rotary, float side, void *stream, struct skrull_error *err)
{
    struct skrull_rotary p = *rotary;

    if (p.head_dim % 2 != 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "rotary embedding: head dimension %u is odd", p.head_dim);
    }
    p.in_stride = stride_or(p.in_stride, (size_t)p.heads * p.head_dim);
    p.out_stride = stride_or(p.out_stride, (size_t)p.heads * p.head_dim);
    return with_dtype("rotary embedding", p.dtype, err, [&](auto type) {
        using T = decltype(type);
        const bool aligned = p.head_dim / 2 % VECTOR == 0 && is_aligned<T>(p.in, p.in_stride) &&
                             is_aligned<T>(p.out, p.out_stride);

        return with_vectors(aligned, [&](auto n) {
            constexpr int N = decltype(n)::value;
            const row_shape shape = rotary_shape(&p, N);

            return launch(rotary_kernel<T, N>, shape.grid, shape.block, 0, stream, err, p, side);
        });
    });
}
} // namespace

extern "C" int SK_ENTRY(rotary_forward)(const struct skrull_rotary *p, void *stream,
                                        struct skrull_error *err)
{
    return rotate(p, 1.0F, stream, err);
}

extern "C" int SK_ENTRY(rotary_backward)(const struct skrull_rotary *p, void *stream,
                                         struct skrull_error *err)
{
    return rotate(p, -1.0F, stream, err);
}
