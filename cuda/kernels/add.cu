/*
 * Sums elementwise: out [n] = a [n] + b [n], T, aligned to T. Grid: 1,024 elements a block of 128
 * threads, which take every 128th; no shared memory; deterministic. Tolerance against the
 * reference: one rounding to T.
 */
#include "dev.h"

#include <skrull/cuda.h>

namespace
{
using namespace sk;

constexpr unsigned n_threads = 128, n_each = 8;

template <class T>
__global__ __launch_bounds__(n_threads) void add_kernel(size_t n, const T *a, const T *b, T *out)
{
    const size_t first = (size_t)blockIdx.x * (n_threads * n_each) + threadIdx.x;

    SK_UNROLL
    for (unsigned j = 0; j < n_each; j++) {
        const size_t i = first + j * n_threads;

        if (i < n) {
            out[i] = to<T>(f32(a[i]) + f32(b[i]));
        }
    }
}

template <class T> int add_typed(const struct skrull_add *p, void *stream, struct skrull_error *err)
{
    const size_t n_blocks = (p->n + n_threads * n_each - 1) / (n_threads * n_each);

    if (n_blocks > INT32_MAX) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "add: %zu elements are too many for one launch", p->n);
    }
    return launch(add_kernel<T>, dim3((unsigned)n_blocks), dim3(n_threads), 0, stream, err, p->n,
                  static_cast<const T *>(p->a), static_cast<const T *>(p->b),
                  static_cast<T *>(p->out));
}
} // namespace

extern "C" int SK_ENTRY(add)(const struct skrull_add *p, void *stream, struct skrull_error *err)
{
    switch (p->dtype) {
    case SKRULL_DTYPE_F32:
        return add_typed<float>(p, stream, err);
    case SKRULL_DTYPE_BF16:
        return add_typed<bf16>(p, stream, err);
    case SKRULL_DTYPE_F16:
        return add_typed<fp16>(p, stream, err);
    }
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "add: dtype %d is unknown",
                            (int)p->dtype);
}
