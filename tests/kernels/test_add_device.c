/* The kernel of elementwise sums. */
#include "kernels/device.h"

static void check_sum(const struct device *device, enum skrull_dtype dtype, size_t n)
{
    uint64_t seed = n + 1;
    float *a = kernel_random(&seed, n), *b = kernel_random(&seed, n), *out;
    double *should;
    struct skrull_add add = {.dtype = dtype, .n = n};

    dtype_round(dtype, a, n);
    dtype_round(dtype, b, n);
    should = kernel_double(a, n);
    for (size_t i = 0; i < n; i++) {
        should[i] += (double)b[i];
    }
    add.a = device_put_floats(device, dtype, a, n);
    add.b = device_put_floats(device, dtype, b, n);
    add.out = device_put_floats(device, dtype, NULL, n);
    KERNEL_RUN(device->ops, add, &add);
    free(a);
    a = NULL;
    out = device_get_floats(device, dtype, add.out, n);
    kernel_assert_near(dtype_name(dtype), out, should, n, dtype_tolerance(dtype) / 2);
    device_free(device, (void *)(uintptr_t)add.a);
    device_free(device, (void *)(uintptr_t)add.b);
    device_free(device, add.out);
    free(b);
    free(out);
    free(should);
}

static void test_add__every_dtype_at_edges_of_blocks(void **state)
{
    static const size_t sizes[] = {0, 1, 127, 128, 129, 1023, 1024, 1025, 5000};

    (void)state;
    KERNEL_FOR_DEVICES(device)
    {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            for (int dtype = SKRULL_DTYPE_F32; dtype <= SKRULL_DTYPE_F16; dtype++) {
                check_sum(device, (enum skrull_dtype)dtype, sizes[i]);
            }
        }
    }
}

static void test_add__refuses_unknown_dtypes(void **state)
{
    (void)state;
    KERNEL_FOR_DEVICES(device)
    {
        struct skrull_add add = {.dtype = (enum skrull_dtype)9};
        struct skrull_error err = {0};

        assert_int_equal(device->ops->add(&add, NULL, &err), SKRULL_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "dtype 9"));
    }
}

static void test_add__sums_in_place(void **state)
{
    (void)state;
    KERNEL_FOR_DEVICES(device)
    {
        const float a[3] = {1, 2, 3}, b[3] = {10, 20, 30};
        const double should[3] = {11, 22, 33};
        struct skrull_add add = {.dtype = SKRULL_DTYPE_BF16, .n = 3};
        float *out;

        add.a = add.out = device_put_floats(device, add.dtype, a, 3);
        add.b = device_put_floats(device, add.dtype, b, 3);
        KERNEL_RUN(device->ops, add, &add);
        out = device_get_floats(device, add.dtype, add.out, 3);
        kernel_assert_near("out", out, should, 3, 1e-9);
        device_free(device, add.out);
        device_free(device, (void *)(uintptr_t)add.b);
        free(out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add__every_dtype_at_edges_of_blocks),
        cmocka_unit_test(test_add__refuses_unknown_dtypes),
        cmocka_unit_test(test_add__sums_in_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
