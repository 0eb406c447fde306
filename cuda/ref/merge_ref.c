/*
 * Merges attention over two sets of keys: with w = exp(lse_part - lse), out = sum of w x part and
 * lse = log of the sum of exp(lse_part) (Ring Attention, arXiv 2310.01889). Backward, of one part:
 *     dpart = w dout;  dlse_part = w (dout . (part - out) + dlse)
 * No state, any thread.
 */
#include <math.h>

#include "ref.h"

static void merge_row(float *out, float *lse, const float *part, float part_lse, size_t dim)
{
    float max = part_lse > *lse ? part_lse : *lse, here, there, total;

    if (isinf(part_lse)) {
        return; /* the part has seen no key */
    }
    here = ref_exp(*lse - max);
    there = ref_exp(part_lse - max);
    total = here + there;
    for (size_t d = 0; d < dim; d++) {
        out[d] = (out[d] * here + part[d] * there) / total;
    }
    *lse = max + logf(total);
}

int REF(merge_forward)(const struct skrull_merge *merge, void *stream, struct skrull_error *err)
{
    size_t n = (size_t)merge->n_rows * merge->heads, dim = merge->head_dim;
    const float *part_out = merge->part_out;
    int rc = ref_check_dtype(merge->dtype, err);

    (void)stream;
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; i < n; i++) {
        merge_row(merge->out + i * dim, &merge->lse[i], part_out + i * dim, merge->part_lse[i],
                  dim);
    }
    return 0;
}

int REF(merge_backward)(const struct skrull_merge_backward *merge, void *stream,
                        struct skrull_error *err)
{
    size_t n = (size_t)merge->n_rows * merge->heads, dim = merge->head_dim;
    const float *part_out = merge->part_out;
    float *dpart_out = merge->dpart_out;
    int rc = ref_check_dtype(merge->dtype, err);

    (void)stream;
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; i < n; i++) {
        const float *dout = merge->dout + i * dim, *out = merge->out + i * dim;
        const float *part = part_out + i * dim;
        float weight =
            isinf(merge->part_lse[i]) ? 0.0F : ref_exp(merge->part_lse[i] - merge->lse[i]);
        float dlse = merge->dlse ? merge->dlse[i] : 0.0F;
        float gain = ref_dot(dout, part, dim) - ref_dot(dout, out, dim) + dlse;

        for (size_t d = 0; d < dim; d++) {
            dpart_out[i * dim + d] = weight * dout[d];
        }
        merge->dpart_lse[i] = weight * gain;
    }
    return 0;
}
