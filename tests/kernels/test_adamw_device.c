/* AdamW as a kernel, against its definition in double. */
#include <math.h>

#include "kernels/typed.h"

/* A model's weights with their copy in the dtype of the next step. */
struct adam {
    size_t n;
    bool has_copy;
};

/* Three steps of one weight in double; the gradient is divided by 4. */
static void step_weight(double *w, double *m, double *v, double gradient, double step)
{
    double rate = (double)1e-2F, beta1 = (double)0.9F, beta2 = (double)0.95F;
    double g = gradient / 4;

    *m = beta1 * *m + (1 - beta1) * g;
    *v = beta2 * *v + (1 - beta2) * g * g;
    *w -= rate * (double)0.1F * *w;
    *w -= rate * *m / (1 - pow(beta1, step)) / (sqrt(*v / (1 - pow(beta2, step))) + (double)1e-6F);
}

static void hold_steps(struct typed *t, const void *arg)
{
    const struct adam *adam = arg;
    size_t n = adam->n;
    uint64_t seed = 9;
    double *w = typed_random_floats(&seed, n, 1), *g = typed_random_floats(&seed, n, 8);
    double *m = kernel_zeros_double(n), *v = kernel_zeros_double(n);
    struct skrull_adamw adamw = {.n = n,
                                 .weight = typed_floats(t, w, n),
                                 .m = typed_floats(t, m, n),
                                 .v = typed_floats(t, v, n),
                                 .gradient = typed_floats(t, g, n),
                                 .gradient_scale = 0.25F,
                                 .learning_rate = 1e-2F,
                                 .beta1 = 0.9F,
                                 .beta2 = 0.95F,
                                 .eps = 1e-6F,
                                 .weight_decay = 0.1F,
                                 .copy_dtype = t->dtype,
                                 .copy = adam->has_copy ? typed_tensor(t, NULL, n) : NULL};

    for (adamw.step = 1; adamw.step <= 3; adamw.step++) {
        TYPED_RUN(t, adamw, &adamw);
        for (size_t i = 0; i < n; i++) {
            step_weight(&w[i], &m[i], &v[i], g[i], (double)adamw.step);
        }
    }
    if (adam->has_copy) {
        typed_assert(t, "copy", adamw.copy, w, n);
    }
    t->tolerance = 2e-6; /* the state is float whatever the copy is */
    typed_assert_floats(t, "weight", adamw.weight, w, n);
    typed_assert_floats(t, "m", adamw.m, m, n);
    typed_assert_floats(t, "v", adamw.v, v, n);
    free(w);
    free(g);
    free(m);
    free(v);
}

static void test_adamw__every_copy_and_size(void **state)
{
    static const struct adam cases[] = {{0, true},     {1, true},    {8, false},   {9, true},
                                        {2047, false}, {2048, true}, {2049, true}, {5003, true}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        typed_hold("adamw", hold_steps, &cases[i], false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adamw__every_copy_and_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
