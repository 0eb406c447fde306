/* Sums elementwise. No state, any thread. */
#include "ref.h"

int REF(add)(const struct skrull_add *add, void *stream, struct skrull_error *err)
{
    const float *a = add->a, *b = add->b;
    float *out = add->out;
    int rc = ref_check_dtype(add->dtype, err);

    (void)stream;
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; i < add->n; i++) {
        out[i] = a[i] + b[i];
    }
    return 0;
}
