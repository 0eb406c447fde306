/* Numbers times a factor. No state, any thread. */
#include "ref.h"

int REF(scale)(const struct skrull_scale *scale, void *stream, struct skrull_error *err)
{
    const float *in = scale->in;
    float *out = scale->out;
    int rc = ref_check_dtype(scale->dtype, err);

    (void)stream;
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; i < scale->n; i++) {
        out[i] = in[i] * scale->factor;
    }
    return 0;
}
