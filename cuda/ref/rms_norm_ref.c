/*
 * Root mean square normalisation (arXiv 1910.07467). Backward, with g = dout x weight:
 *     din = rstd (g - in rstd^2 mean(g in));  dweight += dout in rstd
 * No state, any thread.
 */
#include <math.h>

#include "ref.h"

int REF(rms_norm_forward)(const struct skrull_rms_norm *norm, void *stream,
                          struct skrull_error *err)
{
    size_t width = norm->width;
    const float *weight = norm->weight;
    int rc = ref_check_dtype(norm->dtype, err);

    (void)stream;
    if (rc < 0) {
        return rc;
    }
    for (size_t row = 0; row < norm->n_rows; row++) {
        const float *in = (const float *)norm->in + row * width;
        float *out = (float *)norm->out + row * width;
        float rstd = 1.0F / sqrtf(ref_dot(in, in, width) / (float)width + norm->eps);

        for (size_t i = 0; i < width; i++) {
            out[i] = in[i] * rstd * weight[i];
        }
        norm->rstd[row] = rstd;
    }
    return 0;
}

/* The sum of dout x weight x in over a row. */
static float dot3(const float *dout, const float *weight, const float *in, size_t width)
{
    float lanes[REF_LANES] = {0};
    size_t i = 0;

    for (; i + REF_LANES <= width; i += REF_LANES) {
        for (size_t l = 0; l < REF_LANES; l++) {
            lanes[l] += dout[i + l] * weight[i + l] * in[i + l];
        }
    }
    for (size_t l = 0; i < width; i++, l++) {
        lanes[l] += dout[i] * weight[i] * in[i];
    }
    return ref_sum_lanes(lanes);
}

int REF(rms_norm_backward)(const struct skrull_rms_norm_backward *norm, void *stream,
                           struct skrull_error *err)
{
    size_t width = norm->width;
    const float *weight = norm->weight;
    int rc = ref_check_dtype(norm->dtype, err);

    (void)stream;
    if (rc < 0) {
        return rc;
    }
    for (size_t row = 0; row < norm->n_rows; row++) {
        const float *in = (const float *)norm->in + row * width;
        const float *dout = (const float *)norm->dout + row * width;
        float *din = (float *)norm->din + row * width;
        float rstd = norm->rstd[row];
        float shift = rstd * rstd * dot3(dout, weight, in, width) / (float)width;

        for (size_t i = 0; i < width; i++) {
            norm->dweight[i] += dout[i] * in[i] * rstd;
        }
        for (size_t i = 0; i < width; i++) {
            din[i] = rstd * (dout[i] * weight[i] - in[i] * shift);
        }
    }
    return 0;
}
