/*
 * Looks token embeddings up, and sums their gradients without atomics: the first row of a token
 * adds up all rows of it, in their order, so the bits are the same each time. That row's warps, one
 * for 1,024 columns, find the others by ballots over the tokens; warps of other rows stop at the
 * first earlier row of their token. Tokens are not checked here, where nobody waits for the device:
 * one beyond the vocabulary gives NaN, and no gradient.
 */
#include <math.h>

#include "entry.h"

namespace
{
using namespace sk;

template <class T, int N> __global__ void embedding_forward_kernel(struct skrull_embedding p)
{
    const size_t width = p.width;

    for (size_t row = first_row(); row < p.n_rows; row += row_step()) {
        const int32_t token = p.token[row];
        const bool is_known = token >= 0 && (uint32_t)token < p.vocabulary;
        const T *from = static_cast<const T *>(p.table) + (is_known ? (size_t)token : 0) * width;
        T *out = static_cast<T *>(p.out) + row * width;
        const float other = token < 0 ? 0.0F : NAN;

        each_of_row<N>(width, [=](auto many, size_t i) {
            constexpr int n_here = decltype(many)::value;
            float x[n_here];

            if (is_known) {
                load<n_here>(from + i, x);
            } else {
                SK_UNROLL
                for (int j = 0; j < n_here; j++) {
                    x[j] = other;
                }
            }
            store<n_here>(out + i, x);
        });
    }
}

constexpr int SUMS = 4;                          /* vectors of a lane */
constexpr unsigned SUMMED = 32u * VECTOR * SUMS; /* columns of a warp */

/* Is `row` the first of its token? Of a whole warp. */
__device__ __forceinline__ bool is_first(const int32_t *token, size_t row)
{
    for (size_t round = 0; round < row; round += 32) {
        const size_t other = round + threadIdx.x;

        if (__any_sync(0xffffffffu, other < row && token[other] == token[row])) {
            return false;
        }
    }
    return true;
}

/* A lane's columns of one row: N at a time, the next ones 32 lanes further. */
template <class T, int N>
__device__ __forceinline__ void add_row(const T *dout, size_t width, size_t first,
                                        float (&sums)[SUMS * VECTOR])
{
    SK_UNROLL
    for (int k = 0; k < SUMS * VECTOR / N; k++) {
        const size_t at = first + (size_t)k * 32 * N;
        float x[N];

        if (at + N <= width) {
            load<N>(dout + at, x);
            SK_UNROLL
            for (int j = 0; j < N; j++) {
                sums[k * N + j] += x[j];
            }
        }
    }
}

template <class T, int N>
__device__ __forceinline__ void add_token(const struct skrull_embedding_backward &p, size_t row,
                                          size_t first)
{
    const T *dout = static_cast<const T *>(p.dout);
    const int32_t token = p.token[row];
    const size_t width = p.width;
    float *dtable = p.dtable + (size_t)token * width;
    float sums[SUMS * VECTOR] = {0.0F};

    for (size_t round = row / 32 * 32; round < p.n_rows; round += 32) {
        const size_t other = round + threadIdx.x;
        unsigned same = __ballot_sync(0xffffffffu, other < p.n_rows && p.token[other] == token);

        for (; same != 0; same &= same - 1) {
            add_row<T, N>(dout + (round + (size_t)__popc((same & (0u - same)) - 1)) * width, width,
                          first, sums);
        }
    }
    SK_UNROLL
    for (int k = 0; k < SUMS * VECTOR / N; k++) {
        const size_t at = first + (size_t)k * 32 * N;

        SK_UNROLL
        for (int j = 0; j < N; j++) {
            if (at + j < width) {
                dtable[at + j] += sums[k * N + j];
            }
        }
    }
}

/* A warp is threadIdx.y; blockIdx.y is the range of columns. */
template <class T, int N>
__global__ void embedding_backward_kernel(struct skrull_embedding_backward p)
{
    const size_t first = blockIdx.y * (size_t)SUMMED + threadIdx.x * (size_t)N;

    for (size_t row = first_row(); row < p.n_rows; row += row_step()) {
        const int32_t token = p.token[row];

        if (token >= 0 && (uint32_t)token < p.vocabulary && is_first(p.token, row)) {
            add_token<T, N>(p, row, first);
        }
    }
}
} // namespace

extern "C" int SK_ENTRY(embedding_forward)(const struct skrull_embedding *p, void *stream,
                                           struct skrull_error *err)
{
    return with_dtype("embedding", p->dtype, err, [&](auto type) {
        using T = decltype(type);
        const bool aligned = is_aligned<T>(p->table, p->width) && is_aligned<T>(p->out, p->width);

        return with_vectors(aligned, [&](auto n) {
            constexpr int N = decltype(n)::value;
            const row_shape shape =
                row_shape_of(p->width == 0 ? 0 : p->n_rows, p->width / (unsigned)N);

            return launch(embedding_forward_kernel<T, N>, shape.grid, shape.block, 0, stream, err,
                          *p);
        });
    });
}

extern "C" int SK_ENTRY(embedding_backward)(const struct skrull_embedding_backward *p, void *stream,
                                            struct skrull_error *err)
{
    row_shape shape = shape_of(p->n_rows, 32);

    shape.grid.y = p->width / SUMMED + (p->width % SUMMED != 0);
    if (shape.grid.y > UINT16_MAX) {
        return skrull_error_set(err, SKRULL_ERR_UNIMPLEMENTED,
                                "embedding: %u columns; at most %u have a kernel", p->width,
                                UINT16_MAX * SUMMED);
    }
    return with_dtype("embedding", p->dtype, err, [&](auto type) {
        using T = decltype(type);
        /* Rows with a rest behind the last vector are taken in single numbers. */
        const bool aligned = p->width % VECTOR == 0 && is_aligned<T>(p->dout, p->width);

        return with_vectors(aligned, [&](auto n) {
            return launch(embedding_backward_kernel<T, decltype(n)::value>, shape.grid, shape.block,
                          0, stream, err, *p);
        });
    });
}
