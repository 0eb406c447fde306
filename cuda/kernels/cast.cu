/*
 * Numbers of one dtype as those of another, through float: out [n] = in [n], to nearest even. 16 or
 * 32 bytes a thread where both are aligned to 16, else single numbers. Deterministic.
 */
#include "entry.h"

namespace
{
using namespace sk;

template <class From, class To, int N>
__global__ void cast_kernel(size_t n, const From *in, To *out)
{
    each_of_range<N>(n, [=](auto many, size_t i) {
        constexpr int n_here = decltype(many)::value;
        float x[n_here];

        load<n_here>(in + i, x);
        store<n_here>(out + i, x);
    });
}
} // namespace

extern "C" int SK_ENTRY(cast)(const struct skrull_cast *p, void *stream, struct skrull_error *err)
{
    return with_dtype("cast", p->in_dtype, err, [&](auto from) {
        using From = decltype(from);

        return with_dtype("cast", p->out_dtype, err, [&](auto into) {
            using To = decltype(into);

            return with_vectors(is_aligned<From>(p->in) && is_aligned<To>(p->out), [&](auto n) {
                return launch(cast_kernel<From, To, decltype(n)::value>, range_grid(p->n),
                              dim3(BLOCK), 0, stream, err, p->n, static_cast<const From *>(p->in),
                              static_cast<To *>(p->out));
            });
        });
    });
}
