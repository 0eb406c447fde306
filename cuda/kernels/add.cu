/*
 * Sums elementwise: out [n] = a [n] + b [n], T, 16 bytes a thread where all are aligned to it, else
 * single numbers. out may be a or b: a thread reads a number before it writes it. Deterministic;
 * one rounding to T.
 */
#include "entry.h"

namespace
{
using namespace sk;

template <class T, int N> __global__ void add_kernel(size_t n, const T *a, const T *b, T *out)
{
    each_of_range<N>(n, [=](auto many, size_t i) {
        constexpr int n_here = decltype(many)::value;
        float x[n_here], y[n_here];

        load<n_here>(a + i, x);
        load<n_here>(b + i, y);
        SK_UNROLL
        for (int j = 0; j < n_here; j++) {
            x[j] += y[j];
        }
        store<n_here>(out + i, x);
    });
}
} // namespace

extern "C" int SK_ENTRY(add)(const struct skrull_add *p, void *stream, struct skrull_error *err)
{
    return with_dtype("add", p->dtype, err, [&](auto type) {
        using T = decltype(type);
        const bool aligned = is_aligned<T>(p->a) && is_aligned<T>(p->b) && is_aligned<T>(p->out);

        return with_vectors(aligned, [&](auto n) {
            return launch(add_kernel<T, decltype(n)::value>, range_grid(p->n), dim3(BLOCK), 0,
                          stream, err, p->n, static_cast<const T *>(p->a),
                          static_cast<const T *>(p->b), static_cast<T *>(p->out));
        });
    });
}
