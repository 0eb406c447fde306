/* Numbers times a factor. */
#include "kernels/kernel.h"

static void test_scale__also_in_place(void **state)
{
    (void)state;
    KERNEL_FOR_BACKENDS(ops)
    {
        uint64_t seed = 1;
        size_t n = 1003;
        float *in = kernel_random(&seed, n);
        double *should = kernel_double(in, n);
        struct skrull_scale scale = {
            .dtype = SKRULL_DTYPE_F32, .n = n, .factor = 0.25F, .in = in, .out = in};

        for (size_t i = 0; i < n; i++) {
            should[i] *= 0.25;
        }
        KERNEL_RUN(ops, scale, &scale);
        kernel_assert_close("out", in, should, n, 1e-7);
        free(in);
        free(should);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scale__also_in_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
