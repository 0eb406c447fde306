/*
 * Numbers times a factor: out [n] = in [n] x factor, T, in fp32. Elementwise; out may be in.
 * Deterministic; one rounding to T.
 */
#include "entry.h"

namespace
{
using namespace sk;

template <class T, int N> __global__ void scale_kernel(size_t n, const T *in, T *out, float factor)
{
    each_of_range<N>(n, [=](auto many, size_t i) {
        constexpr int n_here = decltype(many)::value;
        float x[n_here];

        load<n_here>(in + i, x);
        SK_UNROLL
        for (int j = 0; j < n_here; j++) {
            x[j] *= factor;
        }
        store<n_here>(out + i, x);
    });
}
} // namespace

extern "C" int SK_ENTRY(scale)(const struct skrull_scale *p, void *stream, struct skrull_error *err)
{
    return with_dtype("scale", p->dtype, err, [&](auto type) {
        using T = decltype(type);

        return with_vectors(is_aligned<T>(p->in) && is_aligned<T>(p->out), [&](auto n) {
            return launch(scale_kernel<T, decltype(n)::value>, range_grid(p->n), dim3(BLOCK), 0,
                          stream, err, p->n, static_cast<const T *>(p->in),
                          static_cast<T *>(p->out), p->factor);
        });
    });
}
