/* Numbers times a factor as a kernel. */
#include "kernels/typed.h"

static const size_t sizes[] = {0, 1, 7, 8, 9, 2047, 2048, 2049, 30011};

static void hold_scaled(struct typed *t, const void *arg)
{
    size_t n = *(const size_t *)arg;
    uint64_t seed = 4;
    double *in = typed_random(t, &seed, n, 2);
    void *tensor = typed_tensor(t, in, n), *out = typed_tensor(t, NULL, n);
    struct skrull_scale scale = {
        .dtype = t->dtype, .n = n, .factor = -1.7F, .in = tensor, .out = out};

    TYPED_RUN(t, scale, &scale);
    scale.out = tensor;
    TYPED_RUN(t, scale, &scale);
    for (size_t i = 0; i < n; i++) {
        in[i] *= (double)-1.7F;
    }
    typed_assert(t, "out", out, in, n);
    typed_assert(t, "in", tensor, in, n);
    free(in);
}

static void test_scale__every_dtype_and_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        typed_hold("scale", hold_scaled, &sizes[i], false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scale__every_dtype_and_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
