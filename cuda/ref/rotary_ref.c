/*
 * Rotary embedding (RoFormer, arXiv 2104.09864) with halves as pairs, as Llama and Qwen have it.
 * Angles are products in double: position x frequency has more digits than a float from 2^24 / 2 pi
 * on, and loses some long before. No state, any thread.
 */
#include <math.h>

#include "ref.h"

/* Turns pair `i` of all heads of one row. */
static void turn_pair(const struct skrull_rotary *rotary, const float *in, float *out, size_t i,
                      double angle)
{
    size_t dim = rotary->head_dim, half = dim / 2;
    float cosine = (float)cos(angle), sine = (float)sin(angle);

    for (size_t h = 0; h < rotary->heads; h++) {
        float a = in[h * dim + i], b = in[h * dim + i + half];

        out[h * dim + i] = a * cosine - b * sine;
        out[h * dim + i + half] = b * cosine + a * sine;
    }
}

static int turn(const struct skrull_rotary *rotary, double side, struct skrull_error *err)
{
    size_t dense = (size_t)rotary->heads * rotary->head_dim;
    size_t in_stride = ref_stride(rotary->in_stride, dense);
    size_t out_stride = ref_stride(rotary->out_stride, dense);

    if (rotary->head_dim % 2 != 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "rotary embedding: head dimension %u is odd", rotary->head_dim);
    }
    for (size_t row = 0; row < rotary->n_rows; row++) {
        const float *in = (const float *)rotary->in + row * in_stride;
        float *out = (float *)rotary->out + row * out_stride;

        if (rotary->position[row] < 0) {
            memmove(out, in, dense * sizeof(float));
            continue;
        }
        for (size_t i = 0; i < rotary->head_dim / 2; i++) {
            double angle = (double)rotary->position[row] * (double)rotary->frequency[i];

            turn_pair(rotary, in, out, i, side * angle);
        }
    }
    return 0;
}

int REF(rotary_forward)(const struct skrull_rotary *rotary, void *stream, struct skrull_error *err)
{
    int rc = ref_check_dtype(rotary->dtype, err);

    (void)stream;
    return rc < 0 ? rc : turn(rotary, 1.0, err);
}

int REF(rotary_backward)(const struct skrull_rotary *rotary, void *stream, struct skrull_error *err)
{
    int rc = ref_check_dtype(rotary->dtype, err);

    (void)stream;
    return rc < 0 ? rc : turn(rotary, -1.0, err);
}
