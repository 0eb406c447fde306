/* AdamW against its definition in double, over some steps. */
#include <math.h>

#include "kernels/kernel.h"

#define N 1003

static void test_adamw__is_its_definition(void **state)
{
    const double rate = (double)1e-3F, beta1 = (double)0.9F, beta2 = (double)0.95F;
    const double eps = (double)1e-6F, decay = (double)0.1F;

    (void)state;
    KERNEL_FOR_BACKENDS(ops)
    {
        uint64_t seed = 3;
        float *weight = kernel_random(&seed, N), *m = kernel_zeros(N), *v = kernel_zeros(N);
        float *copy = kernel_zeros(N);
        double *w = kernel_double(weight, N), *dm = kernel_double(m, N), *dv = kernel_double(v, N);

        for (uint64_t step = 1; step <= 5; step++) {
            float *gradient = kernel_random(&seed, N);
            struct skrull_adamw adamw = {.n = N,
                                         .weight = weight,
                                         .m = m,
                                         .v = v,
                                         .gradient = gradient,
                                         .gradient_scale = 0.5F,
                                         .learning_rate = 1e-3F,
                                         .beta1 = 0.9F,
                                         .beta2 = 0.95F,
                                         .eps = 1e-6F,
                                         .weight_decay = 0.1F,
                                         .step = step,
                                         .copy_dtype = SKRULL_DTYPE_F32,
                                         .copy = copy};

            KERNEL_RUN(ops, adamw, &adamw);
            for (size_t i = 0; i < N; i++) {
                double g = (double)gradient[i] * 0.5;

                w[i] -= rate * decay * w[i];
                dm[i] = beta1 * dm[i] + (1 - beta1) * g;
                dv[i] = beta2 * dv[i] + (1 - beta2) * g * g;
                w[i] -= rate * dm[i] / (1 - pow(beta1, (double)step)) /
                        (sqrt(dv[i] / (1 - pow(beta2, (double)step))) + eps);
            }
            free(gradient);
        }
        kernel_assert_close("weight", weight, w, N, 1e-6);
        kernel_assert_close("m", m, dm, N, 1e-6);
        kernel_assert_close("v", v, dv, N, 1e-6);
        assert_memory_equal(copy, weight, N * sizeof(float));
        free(weight);
        free(m);
        free(v);
        free(copy);
        free(w);
        free(dm);
        free(dv);
    }
}

static void test_adamw__steps_count_from_one(void **state)
{
    (void)state;
    KERNEL_FOR_BACKENDS(ops)
    {
        struct skrull_adamw adamw = {.beta1 = 0.9F, .beta2 = 0.9F};

        assert_int_equal(ops->adamw(&adamw, NULL, NULL), SKRULL_ERR_INVALID_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adamw__is_its_definition),
        cmocka_unit_test(test_adamw__steps_count_from_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
