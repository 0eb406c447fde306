/* The gate alone, and a whole gated MLP built of operators, against double and its slopes. */
#include <math.h>

#include "kernels/kernel.h"

static double silu(double x)
{
    return x / (1.0 + exp(-x));
}

struct gate {
    size_t n;
    double *gate, *up;
    const float *dout;
};

static double gate_objective(void *arg)
{
    const struct gate *g = arg;
    double sum = 0;

    for (size_t i = 0; i < g->n; i++) {
        sum += silu(g->gate[i]) * g->up[i] * (double)g->dout[i];
    }
    return sum;
}

static void test_swiglu__is_its_definition_and_slope(void **state)
{
    uint64_t seed = 6;
    size_t n = 3 * 37;
    float *gate = kernel_random(&seed, n), *up = kernel_random(&seed, n);
    float *dout = kernel_random(&seed, n), *out = kernel_zeros(n);
    float *dgate = kernel_zeros(n), *dup = kernel_zeros(n);
    double *should = kernel_zeros_double(n);
    struct gate g = {.n = n, .dout = dout};

    (void)state;
    gate[0] = 200.0F; /* far beyond where e^x is a float */
    gate[1] = -200.0F;
    gate[2] = 0.0F;
    for (size_t i = 3; i < n; i++) {
        gate[i] *= 8.0F;
    }
    g.gate = kernel_double(gate, n);
    g.up = kernel_double(up, n);
    for (size_t i = 0; i < n; i++) {
        should[i] = silu(g.gate[i]) * g.up[i];
    }
    KERNEL_FOR_BACKENDS(ops)
    {
        struct skrull_swiglu forward = {.dtype = SKRULL_DTYPE_F32,
                                        .n_rows = 3,
                                        .width = 37,
                                        .gate = gate,
                                        .up = up,
                                        .out = out};
        struct skrull_swiglu_backward backward = {.dtype = SKRULL_DTYPE_F32,
                                                  .n_rows = 3,
                                                  .width = 37,
                                                  .gate = gate,
                                                  .up = up,
                                                  .dout = dout,
                                                  .dgate = dgate,
                                                  .dup = dup};

        KERNEL_RUN(ops, swiglu_forward, &forward);
        kernel_assert_close("out", out, should, n, 1e-6);
        KERNEL_RUN(ops, swiglu_backward, &backward);
        kernel_assert_slopes("dgate", gate_objective, &g, g.gate, dgate, n, 1e-5);
        kernel_assert_slopes("dup", gate_objective, &g, g.up, dup, n, 1e-5);
    }
    free(gate);
    free(up);
    free(dout);
    free(out);
    free(dgate);
    free(dup);
    free(should);
    free(g.gate);
    free(g.up);
}

/* out = down (silu(gate x) * up x), gate and up in one tensor of twice the width. */
#define ROWS 4
#define WIDTH 5
#define HIDDEN 6

struct mlp {
    double x[ROWS * WIDTH], in_weight[2 * HIDDEN * WIDTH], down[WIDTH * HIDDEN];
    float dout[ROWS * WIDTH];
};

static double mlp_objective(void *arg)
{
    const struct mlp *m = arg;
    double sum = 0;

    for (size_t row = 0; row < ROWS; row++) {
        double hidden[HIDDEN];

        for (size_t h = 0; h < HIDDEN; h++) {
            double gate = 0, up = 0;

            for (size_t i = 0; i < WIDTH; i++) {
                gate += m->x[row * WIDTH + i] * m->in_weight[h * WIDTH + i];
                up += m->x[row * WIDTH + i] * m->in_weight[(h + HIDDEN) * WIDTH + i];
            }
            hidden[h] = silu(gate) * up;
        }
        for (size_t i = 0; i < WIDTH; i++) {
            double out = 0;

            for (size_t h = 0; h < HIDDEN; h++) {
                out += hidden[h] * m->down[i * HIDDEN + h];
            }
            sum += out * (double)m->dout[row * WIDTH + i];
        }
    }
    return sum;
}

static void fill(uint64_t *state, double *to, size_t n)
{
    float *values = kernel_random(state, n);

    for (size_t i = 0; i < n; i++) {
        to[i] = (double)values[i];
    }
    free(values);
}

static void narrow(const double *from, float *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = (float)from[i];
    }
}

static void hold_mlp(const struct ops *ops, struct mlp *m)
{
    float x[ROWS * WIDTH], in_weight[2 * HIDDEN * WIDTH], down[WIDTH * HIDDEN];
    float both[ROWS * 2 * HIDDEN], hidden[ROWS * HIDDEN], dhidden[ROWS * HIDDEN];
    float dboth[ROWS * 2 * HIDDEN], dx[ROWS * WIDTH];
    float din_weight[2 * HIDDEN * WIDTH] = {0}, ddown[WIDTH * HIDDEN] = {0};
    struct skrull_linear in = {.dtype = SKRULL_DTYPE_F32,
                               .n_rows = ROWS,
                               .n_in = WIDTH,
                               .n_out = 2 * HIDDEN,
                               .in = x,
                               .weight = in_weight,
                               .out = both};
    struct skrull_swiglu gate = {.dtype = SKRULL_DTYPE_F32,
                                 .n_rows = ROWS,
                                 .width = HIDDEN,
                                 .gate = both,
                                 .up = both + HIDDEN,
                                 .in_stride = 2 * HIDDEN,
                                 .out = hidden};
    struct skrull_linear_backward down_back = {.dtype = SKRULL_DTYPE_F32,
                                               .n_rows = ROWS,
                                               .n_in = HIDDEN,
                                               .n_out = WIDTH,
                                               .in = hidden,
                                               .weight = down,
                                               .dout = m->dout,
                                               .din = dhidden,
                                               .dweight = ddown};
    struct skrull_swiglu_backward gate_back = {.dtype = SKRULL_DTYPE_F32,
                                               .n_rows = ROWS,
                                               .width = HIDDEN,
                                               .gate = both,
                                               .up = both + HIDDEN,
                                               .in_stride = 2 * HIDDEN,
                                               .dout = dhidden,
                                               .dgate = dboth,
                                               .dup = dboth + HIDDEN};
    struct skrull_linear_backward in_back = {.dtype = SKRULL_DTYPE_F32,
                                             .n_rows = ROWS,
                                             .n_in = WIDTH,
                                             .n_out = 2 * HIDDEN,
                                             .in = x,
                                             .weight = in_weight,
                                             .dout = dboth,
                                             .din = dx,
                                             .dweight = din_weight};

    narrow(m->x, x, ROWS * WIDTH);
    narrow(m->in_weight, in_weight, 2 * HIDDEN * WIDTH);
    narrow(m->down, down, WIDTH * HIDDEN);
    KERNEL_RUN(ops, linear_forward, &in);
    KERNEL_RUN(ops, swiglu_forward, &gate);
    KERNEL_RUN(ops, linear_backward, &down_back);
    KERNEL_RUN(ops, swiglu_backward, &gate_back);
    KERNEL_RUN(ops, linear_backward, &in_back);
    kernel_assert_slopes("dx", mlp_objective, m, m->x, dx, ROWS * WIDTH, 1e-5);
    kernel_assert_slopes("dgate and dup", mlp_objective, m, m->in_weight, din_weight,
                         2 * HIDDEN * WIDTH, 1e-5);
    kernel_assert_slopes("ddown", mlp_objective, m, m->down, ddown, WIDTH * HIDDEN, 1e-5);
}

static void test_swiglu__gated_mlp_is_its_slope(void **state)
{
    uint64_t seed = 12;
    struct mlp m;
    float *dout = kernel_random(&seed, ROWS * WIDTH);

    (void)state;
    fill(&seed, m.x, ROWS * WIDTH);
    fill(&seed, m.in_weight, 2 * HIDDEN * WIDTH);
    fill(&seed, m.down, WIDTH * HIDDEN);
    memcpy(m.dout, dout, sizeof(m.dout));
    free(dout);
    KERNEL_FOR_BACKENDS(ops)
    {
        hold_mlp(ops, &m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_swiglu__is_its_definition_and_slope),
        cmocka_unit_test(test_swiglu__gated_mlp_is_its_slope),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
