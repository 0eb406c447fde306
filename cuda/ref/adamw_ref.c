/* AdamW (arXiv 1711.05101, algorithm 2; decay by the learning rate). No state, any thread. */
#include <math.h>

#include "ref.h"

int REF(adamw)(const struct skrull_adamw *adamw, void *stream, struct skrull_error *err)
{
    float beta1 = adamw->beta1, beta2 = adamw->beta2, eps = adamw->eps;
    float keep = 1.0F - adamw->learning_rate * adamw->weight_decay;
    double step = (double)adamw->step;
    float unbias1 = (float)(1.0 / (1.0 - pow((double)beta1, step)));
    float unbias2 = (float)(1.0 / (1.0 - pow((double)beta2, step)));
    float rate = adamw->learning_rate * unbias1;
    float *weight = adamw->weight, *m = adamw->m, *v = adamw->v;

    (void)stream;
    if (adamw->step == 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "AdamW: steps count from 1");
    }
    for (size_t i = 0; i < adamw->n; i++) {
        float gradient = adamw->gradient[i] * adamw->gradient_scale;

        m[i] = beta1 * m[i] + (1.0F - beta1) * gradient;
        v[i] = beta2 * v[i] + (1.0F - beta2) * gradient * gradient;
        weight[i] = weight[i] * keep - rate * m[i] / (sqrtf(v[i] * unbias2) + eps);
    }
    if (adamw->copy) {
        int rc = ref_check_dtype(adamw->copy_dtype, err);

        if (rc < 0) {
            return rc;
        }
        memcpy(adamw->copy, weight, adamw->n * sizeof(float));
    }
    return 0;
}
