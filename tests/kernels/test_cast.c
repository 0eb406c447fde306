/* Casts: from float to float, in the backends whose memory is the host's. */
#include "kernels/kernel.h"

static void test_cast__copies_floats(void **state)
{
    uint64_t dice = 1;
    float *in = kernel_random(&dice, 77), *out = kernel_zeros(78);

    (void)state;
    KERNEL_FOR_BACKENDS(ops)
    {
        const struct skrull_cast cast = {.n = 77,
                                         .in_dtype = SKRULL_DTYPE_F32,
                                         .out_dtype = SKRULL_DTYPE_F32,
                                         .in = in,
                                         .out = out};

        out[77] = 5.0F;
        KERNEL_RUN(ops, cast, &cast);
        assert_memory_equal(out, in, 77 * sizeof(float));
        assert_true(out[77] >= 5.0F && out[77] <= 5.0F);
    }
    free(in);
    free(out);
}

static void test_cast__refuses_other_dtypes(void **state)
{
    (void)state;
    KERNEL_FOR_BACKENDS(ops)
    {
        struct skrull_cast cast = {.in_dtype = SKRULL_DTYPE_BF16, .out_dtype = SKRULL_DTYPE_F32};
        struct skrull_error err = {0};

        assert_int_equal(ops->cast(&cast, NULL, &err), SKRULL_ERR_UNIMPLEMENTED);
        cast.in_dtype = SKRULL_DTYPE_F32;
        cast.out_dtype = SKRULL_DTYPE_F16;
        assert_int_equal(ops->cast(&cast, NULL, &err), SKRULL_ERR_UNIMPLEMENTED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cast__copies_floats),
        cmocka_unit_test(test_cast__refuses_other_dtypes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
