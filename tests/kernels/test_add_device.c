/* Elementwise sums as a kernel. */
#include "kernels/typed.h"

/* Of a vector of 8, a block of 256 x 8, and beside them. */
static const size_t sizes[] = {0, 1, 7, 8, 9, 2047, 2048, 2049, 30011};

static void hold_sum(struct typed *t, const void *arg)
{
    size_t n = *(const size_t *)arg;
    uint64_t seed = 4;
    double *a = typed_random(t, &seed, n, 2), *b = typed_random(t, &seed, n, 2);
    void *a_tensor = typed_tensor(t, a, n), *out = typed_tensor(t, NULL, n);
    struct skrull_add add = {
        .dtype = t->dtype, .n = n, .a = a_tensor, .b = typed_tensor(t, b, n), .out = out};

    TYPED_RUN(t, add, &add);
    add.out = a_tensor;
    TYPED_RUN(t, add, &add);
    for (size_t i = 0; i < n; i++) {
        a[i] += b[i];
    }
    typed_assert(t, "out", out, a, n);
    typed_assert(t, "a", a_tensor, a, n);
    free(a);
    free(b);
}

static void test_add__every_dtype_and_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        typed_hold("add", hold_sum, &sizes[i], false);
    }
}

static void test_add__refuses_unknown_dtypes(void **state)
{
    (void)state;
    KERNEL_FOR_DEVICES(device)
    {
        struct skrull_add add = {.dtype = (enum skrull_dtype)9};
        struct skrull_error err = {0};

        assert_int_equal(device->ops->add(&add, NULL, &err), SKRULL_ERR_UNIMPLEMENTED);
        assert_non_null(strstr(err.message, "dtype 9"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add__every_dtype_and_size),
        cmocka_unit_test(test_add__refuses_unknown_dtypes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
