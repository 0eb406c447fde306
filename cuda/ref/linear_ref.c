/*
 * Linear layers as three products: out = in w^T + bias;  din = dout w;  dw += dout^T in. No state,
 * any thread.
 */
#include "gemm.h"

int REF(linear_forward)(const struct skrull_linear *linear, void *stream, struct skrull_error *err)
{
    size_t n_in = linear->n_in, n_out = linear->n_out;
    size_t out_stride = ref_stride(linear->out_stride, n_out);
    const float *bias = linear->bias;
    struct gemm_matrix weight = {linear->weight, 1, n_in};
    struct gemm_product product = {.m = linear->n_rows,
                                   .n = n_out,
                                   .k = n_in,
                                   .a = {linear->in, ref_stride(linear->in_stride, n_in), 1},
                                   .c = linear->out,
                                   .c_row = out_stride};
    int rc = ref_check_dtype(linear->dtype, err);

    (void)stream;
    if (rc == 0) {
        rc = REF(gemm)(&product, &weight, err);
    }
    for (size_t row = 0; rc == 0 && bias && row < linear->n_rows; row++) {
        float *out = (float *)linear->out + row * out_stride;

        for (size_t i = 0; i < n_out; i++) {
            out[i] += bias[i];
        }
    }
    return rc;
}

static int differentiate_in(const struct skrull_linear_backward *linear, struct skrull_error *err)
{
    size_t n_in = linear->n_in, n_out = linear->n_out;
    struct gemm_matrix weight = {linear->weight, n_in, 1};
    struct gemm_product product = {.m = linear->n_rows,
                                   .n = n_in,
                                   .k = n_out,
                                   .a = {linear->dout, ref_stride(linear->dout_stride, n_out), 1},
                                   .c = linear->din,
                                   .c_row = ref_stride(linear->din_stride, n_in),
                                   .add = linear->add_din};

    return REF(gemm)(&product, &weight, err);
}

static int differentiate_weight(const struct skrull_linear_backward *linear,
                                struct skrull_error *err)
{
    size_t n_in = linear->n_in, n_out = linear->n_out;
    struct gemm_matrix in = {linear->in, ref_stride(linear->in_stride, n_in), 1};
    struct gemm_product product = {.m = n_out,
                                   .n = n_in,
                                   .k = linear->n_rows,
                                   .a = {linear->dout, 1, ref_stride(linear->dout_stride, n_out)},
                                   .c = linear->dweight,
                                   .c_row = n_in,
                                   .add = true};

    return REF(gemm)(&product, &in, err);
}

int REF(linear_backward)(const struct skrull_linear_backward *linear, void *stream,
                         struct skrull_error *err)
{
    size_t dout_stride = ref_stride(linear->dout_stride, linear->n_out);
    int rc = ref_check_dtype(linear->dtype, err);

    (void)stream;
    if (rc == 0 && linear->din) {
        rc = differentiate_in(linear, err);
    }
    if (rc == 0 && linear->dweight) {
        rc = differentiate_weight(linear, err);
    }
    for (size_t row = 0; rc == 0 && linear->dbias && row < linear->n_rows; row++) {
        const float *dout = (const float *)linear->dout + row * dout_stride;

        for (size_t i = 0; i < linear->n_out; i++) {
            linear->dbias[i] += dout[i];
        }
    }
    return rc;
}
