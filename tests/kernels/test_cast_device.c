/* Casts of every dtype to every dtype as kernels. */
#include "kernels/typed.h"

struct typed_cast {
    size_t n;
    enum skrull_dtype in_dtype;
};

/* From one dtype to that of the run. */
static void hold_cast(struct typed *t, const void *arg)
{
    const struct typed_cast *c = arg;
    enum skrull_dtype out_dtype = t->dtype;
    uint64_t seed = 2;
    double *in = typed_random_floats(&seed, c->n, 300);
    struct skrull_cast cast = {.n = c->n, .in_dtype = c->in_dtype, .out_dtype = out_dtype};

    if (c->n > 1) {
        in[0] = 0.0;
        in[1] = c->in_dtype == SKRULL_DTYPE_F32 ? 1.0 + 1.0 / 256 : 1.0; /* a tie, to even */
    }
    t->dtype = c->in_dtype;
    cast.in = typed_tensor(t, in, c->n);
    free(in);
    in = typed_read(t, cast.in, c->n);
    t->dtype = out_dtype;
    cast.out = typed_tensor(t, NULL, c->n);
    TYPED_RUN(t, cast, &cast);
    typed_round(t, in, c->n);
    t->tolerance = 0.0; /* exactly as the tests round */
    typed_assert(t, "out", cast.out, in, c->n);
    free(in);
}

static void test_cast__every_dtype_and_size(void **state)
{
    static const size_t sizes[] = {0, 1, 7, 8, 9, 2047, 2048, 2049, 5003};

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (int dtype = SKRULL_DTYPE_F32; dtype <= SKRULL_DTYPE_F16; dtype++) {
            struct typed_cast c = {sizes[i], (enum skrull_dtype)dtype};

            typed_hold("cast", hold_cast, &c, false);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cast__every_dtype_and_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
