/* The gate of an MLP as kernels, against double. */
#include <math.h>

#include "kernels/typed.h"

static double silu(double x)
{
    return x / (1.0 + exp(-x));
}

/* Every dtype; gate and up in one tensor or two, gradients in place of them or not. */
struct typed_gate {
    uint32_t n_rows, width;
    size_t in_stride, out_stride;
    bool in_place;
};

struct gate_doubles {
    double *gate, *up, *dout, *out, *dgate, *dup;
};

static void gate_doubles_init(struct gate_doubles *d, struct typed *t, size_t n_in, size_t n_out)
{
    uint64_t seed = 14;

    *d = (struct gate_doubles){.gate = typed_random(t, &seed, n_in, 9),
                               .up = typed_random(t, &seed, n_in, 2),
                               .dout = typed_random(t, &seed, n_out, 1),
                               .out = kernel_zeros_double(n_out),
                               .dgate = kernel_zeros_double(n_in),
                               .dup = kernel_zeros_double(n_in)};
    if (n_in > 2) {
        d->gate[0] = 200.0; /* far beyond where e^x is a float */
        d->gate[1] = -200.0;
    }
}

static void gate_doubles_deinit(struct gate_doubles *d)
{
    free(d->gate);
    free(d->up);
    free(d->dout);
    free(d->out);
    free(d->dgate);
    free(d->dup);
}

/* Where no row is, outputs stay what they were: NaN, or gate and up. */
static void gate_answer(struct gate_doubles *d, const struct typed_gate *c, size_t in_stride,
                        size_t out_stride)
{
    for (size_t i = 0; i < c->n_rows * out_stride; i++) {
        d->out[i] = (double)NAN;
    }
    for (size_t i = 0; i < c->n_rows * in_stride; i++) {
        d->dgate[i] = c->in_place ? d->gate[i] : (double)NAN;
        d->dup[i] = c->in_place ? d->up[i] : (double)NAN;
    }
    for (size_t at = 0; at < (size_t)c->n_rows * c->width; at++) {
        size_t row = at / c->width, i = at % c->width;
        size_t from = row * in_stride + i, to = row * out_stride + i;
        double x = d->gate[from], s = 1 / (1 + exp(-x));

        d->out[to] = silu(x) * d->up[from];
        d->dgate[from] = d->dout[to] * d->up[from] * s * (1 + x * (1 - s));
        d->dup[from] = d->dout[to] * x * s;
    }
}

static void hold_gate(struct typed *t, const void *arg)
{
    const struct typed_gate *c = arg;
    size_t in_stride = c->in_stride ? c->in_stride : c->width;
    size_t out_stride = c->out_stride ? c->out_stride : c->width;
    size_t n_in = c->n_rows * in_stride, n_out = c->n_rows * out_stride;
    struct gate_doubles d;
    struct skrull_swiglu forward;
    struct skrull_swiglu_backward backward;

    gate_doubles_init(&d, t, n_in, n_out);
    gate_answer(&d, c, in_stride, out_stride);
    forward = (struct skrull_swiglu){.dtype = t->dtype,
                                     .n_rows = c->n_rows,
                                     .width = c->width,
                                     .gate = typed_tensor(t, d.gate, n_in),
                                     .up = typed_tensor(t, d.up, n_in),
                                     .out = typed_tensor(t, NULL, n_out),
                                     .in_stride = c->in_stride,
                                     .out_stride = c->out_stride};
    TYPED_RUN(t, swiglu_forward, &forward);
    typed_assert(t, "out", forward.out, d.out, n_out);
    backward =
        (struct skrull_swiglu_backward){.dtype = t->dtype,
                                        .n_rows = c->n_rows,
                                        .width = c->width,
                                        .gate = forward.gate,
                                        .up = forward.up,
                                        .dout = typed_tensor(t, d.dout, n_out),
                                        .dgate = typed_tensor(t, c->in_place ? d.gate : NULL, n_in),
                                        .dup = typed_tensor(t, c->in_place ? d.up : NULL, n_in),
                                        .in_stride = c->in_stride,
                                        .out_stride = c->out_stride};
    if (c->in_place) {
        backward.gate = backward.dgate;
        backward.up = backward.dup;
    }
    TYPED_RUN(t, swiglu_backward, &backward);
    typed_assert(t, "dgate", backward.dgate, d.dgate, n_in);
    typed_assert(t, "dup", backward.dup, d.dup, n_in);
    gate_doubles_deinit(&d);
}

static void test_swiglu__every_dtype_and_width(void **state)
{
    static const struct typed_gate cases[] = {
        {0, 8, 0, 0, false},      {1, 1, 0, 0, false},    {3, 8, 16, 8, false},
        {5, 9, 24, 16, true},     {33, 64, 128, 0, true}, {3, 255, 0, 256, false},
        {2, 2049, 4098, 0, true}, {4, 2048, 0, 0, true},  {3, 3584, 7168, 0, false}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        typed_hold("swiglu", hold_gate, &cases[i], false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_swiglu__every_dtype_and_width),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
