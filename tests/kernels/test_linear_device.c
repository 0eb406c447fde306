/* Linear layers on the device, against sums in double. */
#include <math.h>

#include "kernels/typed.h"

/* Every dtype; parts of wider rows, with and without a bias, gradients added to others. */
struct typed_linear {
    uint32_t n_rows, n_in, n_out;
    size_t in_stride, out_stride; /* of in and din; of out and dout */
    bool has_bias, add_din;
};

struct linear_doubles {
    size_t n_in, n_out; /* elements with strides */
    double *in, *weight, *bias, *dout;
    double *out, *din, *dweight, *dbias;
};

static void linear_doubles_init(struct linear_doubles *d, struct typed *t,
                                const struct typed_linear *c)
{
    size_t n_in = c->n_rows * (c->in_stride ? c->in_stride : c->n_in);
    size_t n_out = c->n_rows * (c->out_stride ? c->out_stride : c->n_out);
    uint64_t seed = 21;

    *d = (struct linear_doubles){.n_in = n_in,
                                 .n_out = n_out,
                                 .in = typed_random(t, &seed, n_in, 1),
                                 .weight = typed_random(t, &seed, (size_t)c->n_in * c->n_out, 1),
                                 .bias = typed_random(t, &seed, c->n_out, 1),
                                 .dout = typed_random(t, &seed, n_out, 1),
                                 .out = kernel_zeros_double(n_out),
                                 .din = typed_random(t, &seed, n_in, 1),
                                 .dweight =
                                     typed_random_floats(&seed, (size_t)c->n_in * c->n_out, 1),
                                 .dbias = typed_random_floats(&seed, c->n_out, 1)};
}

static void linear_doubles_deinit(struct linear_doubles *d)
{
    free(d->in);
    free(d->weight);
    free(d->bias);
    free(d->dout);
    free(d->out);
    free(d->din);
    free(d->dweight);
    free(d->dbias);
}

/* din, dweight and dbias become what they are afterwards. */
static void linear_answer(struct linear_doubles *d, const struct typed_linear *c)
{
    size_t in_stride = c->in_stride ? c->in_stride : c->n_in;
    size_t out_stride = c->out_stride ? c->out_stride : c->n_out;

    for (size_t i = 0; i < d->n_out; i++) {
        d->out[i] = (double)NAN;
    }
    for (size_t at = 0; at < (size_t)c->n_rows * c->n_in && !c->add_din; at++) {
        d->din[at / c->n_in * in_stride + at % c->n_in] = 0.0;
    }
    for (size_t at = 0; at < (size_t)c->n_rows * c->n_out; at++) {
        size_t row = at / c->n_out, o = at % c->n_out;
        double dout = d->dout[row * out_stride + o], sum = c->has_bias ? d->bias[o] : 0.0;

        for (size_t i = 0; i < c->n_in; i++) {
            sum += d->in[row * in_stride + i] * d->weight[o * c->n_in + i];
            d->din[row * in_stride + i] += dout * d->weight[o * c->n_in + i];
            d->dweight[o * c->n_in + i] += dout * d->in[row * in_stride + i];
        }
        d->out[row * out_stride + o] = sum;
        d->dbias[o] += dout;
    }
}

static void hold_linear(struct typed *t, const void *arg)
{
    const struct typed_linear *c = arg;
    size_t n_weight = (size_t)c->n_in * c->n_out;
    struct linear_doubles d;
    struct skrull_linear forward;
    struct skrull_linear_backward backward;

    linear_doubles_init(&d, t, c);
    forward = (struct skrull_linear){.dtype = t->dtype,
                                     .n_rows = c->n_rows,
                                     .n_in = c->n_in,
                                     .n_out = c->n_out,
                                     .in = typed_tensor(t, d.in, d.n_in),
                                     .weight = typed_tensor(t, d.weight, n_weight),
                                     .bias = c->has_bias ? typed_tensor(t, d.bias, c->n_out) : NULL,
                                     .out = typed_tensor(t, NULL, d.n_out),
                                     .in_stride = c->in_stride,
                                     .out_stride = c->out_stride};
    backward = (struct skrull_linear_backward){.dtype = t->dtype,
                                               .n_rows = c->n_rows,
                                               .n_in = c->n_in,
                                               .n_out = c->n_out,
                                               .in = forward.in,
                                               .weight = forward.weight,
                                               .dout = typed_tensor(t, d.dout, d.n_out),
                                               .in_stride = c->in_stride,
                                               .dout_stride = c->out_stride,
                                               .din_stride = c->in_stride,
                                               .din = typed_tensor(t, d.din, d.n_in),
                                               .add_din = c->add_din,
                                               .dweight = typed_floats(t, d.dweight, n_weight),
                                               .dbias = typed_floats(t, d.dbias, c->n_out)};
    TYPED_RUN(t, linear_forward, &forward);
    TYPED_RUN(t, linear_backward, &backward);
    linear_answer(&d, c);
    typed_assert(t, "out", forward.out, d.out, d.n_out);
    typed_assert(t, "din", backward.din, d.din, d.n_in);
    typed_assert_floats(t, "dweight", backward.dweight, d.dweight, n_weight);
    typed_assert_floats(t, "dbias", backward.dbias, d.dbias, c->n_out);
    backward.din = NULL;
    backward.dweight = NULL;
    backward.dbias = NULL;
    TYPED_RUN(t, linear_backward, &backward);
    linear_doubles_deinit(&d);
}

static void test_linear__every_dtype_and_size(void **state)
{
    static const struct typed_linear cases[] = {
        {0, 4, 4, 0, 0, true, false},     {1, 1, 1, 0, 0, true, true},
        {5, 17, 15, 0, 0, false, false},  {9, 33, 257, 40, 300, true, true},
        {33, 64, 31, 0, 64, true, false}, {300, 7, 5, 9, 0, false, true},
        {3, 0, 6, 0, 8, true, false},     {3, 0, 6, 0, 8, false, false},
        {4, 5, 0, 8, 0, false, false},    {4, 5, 0, 8, 0, false, true},
        {2, 3584, 24, 0, 0, true, false}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        typed_hold("linear", hold_linear, &cases[i], false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear__every_dtype_and_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
