/* Moves rows by a map. No state, any thread. */
#include "ref.h"

int REF(pack_rows)(const struct skrull_rows *rows, void *stream, struct skrull_error *err)
{
    size_t width = rows->width, in_stride = ref_stride(rows->in_stride, width);
    size_t out_stride = ref_stride(rows->out_stride, width);
    const float *in = rows->in;
    float *out = rows->out;
    int rc = ref_check_dtype(rows->dtype, err);

    (void)stream;
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; i < rows->n_rows; i++) {
        if (rows->row[i] >= 0) {
            memcpy(out + i * out_stride, in + (size_t)rows->row[i] * in_stride,
                   width * sizeof(float));
        } else {
            memset(out + i * out_stride, 0, width * sizeof(float));
        }
    }
    return 0;
}

int REF(unpack_rows)(const struct skrull_rows *rows, void *stream, struct skrull_error *err)
{
    size_t width = rows->width, in_stride = ref_stride(rows->in_stride, width);
    size_t out_stride = ref_stride(rows->out_stride, width);
    const float *in = rows->in;
    float *out = rows->out;
    int rc = ref_check_dtype(rows->dtype, err);

    (void)stream;
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; i < rows->n_rows; i++) {
        if (rows->row[i] >= 0) {
            memcpy(out + (size_t)rows->row[i] * out_stride, in + i * in_stride,
                   width * sizeof(float));
        }
    }
    return 0;
}
