/*
 * AdamW (arXiv 1711.05101, algorithm 2; decay by the learning rate) of fp32 weights [n], with their
 * copy in the dtype of the model for the next step. Elementwise, two vectors of 16 bytes a thread
 * where all are aligned; the corrections of both biases are computed on the host, in double.
 */
#include <math.h>

#include "entry.h"

namespace
{
using namespace sk;

struct step {
    float gradient_scale, beta1, beta2, eps;
    float keep;    /* 1 - learning rate x decay */
    float rate;    /* learning rate, bias of m corrected */
    float unbias2; /* of v */
};

template <class T, int N> __global__ void adamw_kernel(struct skrull_adamw p, struct step s)
{
    T *copy = static_cast<T *>(p.copy);

    each_of_range<N>(p.n, [=](auto many, size_t i) {
        constexpr int n_here = decltype(many)::value;
        float g[n_here], w[n_here], m[n_here], v[n_here];

        load<n_here>(p.gradient + i, g);
        load<n_here>(p.weight + i, w);
        load<n_here>(p.m + i, m);
        load<n_here>(p.v + i, v);
        SK_UNROLL
        for (int j = 0; j < n_here; j++) {
            g[j] *= s.gradient_scale;
            m[j] = s.beta1 * m[j] + (1.0F - s.beta1) * g[j];
            v[j] = s.beta2 * v[j] + (1.0F - s.beta2) * g[j] * g[j];
            w[j] = w[j] * s.keep - s.rate * m[j] / (sqrtf(v[j] * s.unbias2) + s.eps);
        }
        store<n_here>(p.weight + i, w);
        store<n_here>(p.m + i, m);
        store<n_here>(p.v + i, v);
        if (copy) {
            store<n_here>(copy + i, w);
        }
    });
}

struct step step_of(const struct skrull_adamw *p)
{
    const double step = (double)p->step;
    const float unbias1 = (float)(1.0 / (1.0 - pow((double)p->beta1, step)));
    const float unbias2 = (float)(1.0 / (1.0 - pow((double)p->beta2, step)));

    return {p->gradient_scale,
            p->beta1,
            p->beta2,
            p->eps,
            1.0F - p->learning_rate * p->weight_decay,
            p->learning_rate * unbias1,
            unbias2};
}
} // namespace

extern "C" int SK_ENTRY(adamw)(const struct skrull_adamw *p, void *stream, struct skrull_error *err)
{
    const enum skrull_dtype dtype = p->copy ? p->copy_dtype : SKRULL_DTYPE_F32;

    if (p->step == 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "AdamW: steps count from 1");
    }
    return with_dtype("AdamW", dtype, err, [&](auto type) {
        using T = decltype(type);
        const bool aligned = is_aligned<float>(p->weight) && is_aligned<float>(p->m) &&
                             is_aligned<float>(p->v) && is_aligned<float>(p->gradient) &&
                             is_aligned<T>(p->copy);

        return with_vectors(aligned, [&](auto n) {
            return launch(adamw_kernel<T, decltype(n)::value>, range_grid(p->n), dim3(BLOCK), 0,
                          stream, err, *p, step_of(p));
        });
    });
}
