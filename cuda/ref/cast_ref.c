/* Numbers of one dtype as those of another. No state, any thread. */
#include "ref.h"

int REF(cast)(const struct skrull_cast *cast, void *stream, struct skrull_error *err)
{
    int rc = ref_check_dtype(cast->in_dtype, err);

    (void)stream;
    if (rc == 0) {
        rc = ref_check_dtype(cast->out_dtype, err);
    }
    if (rc == 0 && cast->n) {
        memcpy(cast->out, cast->in, cast->n * sizeof(float));
    }
    return rc;
}
