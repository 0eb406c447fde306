/*
 * The gate of an MLP (arXiv 2002.05202): silu(gate) x up with silu(x) = x s, s = 1 / (1 + e^-x),
 * whose derivative is s (1 + x (1 - s)). No state, any thread.
 */
#include "ref.h"

static void swiglu_row(const float *gate, const float *up, float *out, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        out[i] = gate[i] / (1.0F + ref_exp(-gate[i])) * up[i];
    }
}

int REF(swiglu_forward)(const struct skrull_swiglu *swiglu, void *stream, struct skrull_error *err)
{
    size_t width = swiglu->width, in_stride = ref_stride(swiglu->in_stride, width);
    size_t out_stride = ref_stride(swiglu->out_stride, width);
    int rc = ref_check_dtype(swiglu->dtype, err);

    (void)stream;
    for (size_t row = 0; rc == 0 && row < swiglu->n_rows; row++) {
        swiglu_row((const float *)swiglu->gate + row * in_stride,
                   (const float *)swiglu->up + row * in_stride,
                   (float *)swiglu->out + row * out_stride, width);
    }
    return rc;
}

int REF(swiglu_backward)(const struct skrull_swiglu_backward *swiglu, void *stream,
                         struct skrull_error *err)
{
    size_t width = swiglu->width, in_stride = ref_stride(swiglu->in_stride, width);
    size_t out_stride = ref_stride(swiglu->out_stride, width);
    int rc = ref_check_dtype(swiglu->dtype, err);

    (void)stream;
    for (size_t row = 0; rc == 0 && row < swiglu->n_rows; row++) {
        const float *gate = (const float *)swiglu->gate + row * in_stride;
        const float *up = (const float *)swiglu->up + row * in_stride;
        const float *dout = (const float *)swiglu->dout + row * out_stride;
        float *dgate = (float *)swiglu->dgate + row * in_stride;
        float *dup = (float *)swiglu->dup + row * in_stride;

        for (size_t i = 0; i < width; i++) {
            float x = gate[i], u = up[i], d = dout[i];
            float s = 1.0F / (1.0F + ref_exp(-x));

            dgate[i] = d * u * s * (1.0F + x * (1.0F - s));
            dup[i] = d * x * s;
        }
    }
    return rc;
}
