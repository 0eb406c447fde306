/* Elementwise sums. */
#include "kernels/kernel.h"

static void test_add__sums_also_in_place(void **state)
{
    (void)state;
    KERNEL_FOR_BACKENDS(ops)
    {
        uint64_t seed = 1;
        size_t n = 1003;
        float *a = kernel_random(&seed, n), *b = kernel_random(&seed, n);
        double *should = kernel_double(a, n);
        struct skrull_add add = {.dtype = SKRULL_DTYPE_F32, .n = n, .a = a, .b = b, .out = a};

        for (size_t i = 0; i < n; i++) {
            should[i] += (double)b[i];
        }
        KERNEL_RUN(ops, add, &add);
        kernel_assert_close("out", a, should, n, 1e-7);
        free(a);
        free(b);
        free(should);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_add__sums_also_in_place)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
