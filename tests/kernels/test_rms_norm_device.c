/* RMSNorm as kernels, against its definition in double. */
#include <math.h>

#include "kernels/typed.h"

static const float eps = 1e-5F;

/* Rows of every width: of one lane, a warp, a block. */
struct typed_norm {
    uint32_t n_rows, width;
};

struct norm_doubles {
    size_t n_rows, width;
    double *in, *weight, *dout, *dweight; /* dweight: before, then after */
    double *out, *rstd, *din;
};

static void normalise(struct norm_doubles *d)
{
    for (size_t row = 0; row < d->n_rows; row++) {
        const double *in = d->in + row * d->width, *dout = d->dout + row * d->width;
        double squares = 0, product = 0, rstd;

        for (size_t i = 0; i < d->width; i++) {
            squares += in[i] * in[i];
            product += in[i] * dout[i] * d->weight[i];
        }
        rstd = 1 / sqrt(squares / (double)d->width + (double)eps);
        d->rstd[row] = rstd;
        for (size_t i = 0; i < d->width; i++) {
            d->out[row * d->width + i] = in[i] * rstd * d->weight[i];
            d->dweight[i] += dout[i] * in[i] * rstd;
            d->din[row * d->width + i] =
                rstd * (dout[i] * d->weight[i] - in[i] * rstd * rstd * product / (double)d->width);
        }
    }
}

static void norm_doubles_init(struct norm_doubles *d, const struct typed *t,
                              const struct typed_norm *c)
{
    size_t n = (size_t)c->n_rows * c->width;
    uint64_t seed = 12;

    *d = (struct norm_doubles){.n_rows = c->n_rows,
                               .width = c->width,
                               .in = typed_random(t, &seed, n, 3),
                               .weight = typed_random(t, &seed, c->width, 2),
                               .dout = typed_random(t, &seed, n, 1),
                               .dweight = typed_random_floats(&seed, c->width, 1),
                               .out = kernel_zeros_double(n),
                               .rstd = kernel_zeros_double(c->n_rows),
                               .din = kernel_zeros_double(n)};
}

static void norm_doubles_deinit(struct norm_doubles *d)
{
    free(d->in);
    free(d->weight);
    free(d->dout);
    free(d->dweight);
    free(d->out);
    free(d->rstd);
    free(d->din);
}

static void hold_norm(struct typed *t, const void *arg)
{
    const struct typed_norm *c = arg;
    size_t n = (size_t)c->n_rows * c->width;
    struct norm_doubles d;

    norm_doubles_init(&d, t, c);
    {
        void *in = typed_tensor(t, d.in, n), *weight = typed_tensor(t, d.weight, c->width);
        void *dout = typed_tensor(t, d.dout, n);
        struct skrull_rms_norm forward = {.dtype = t->dtype,
                                          .n_rows = c->n_rows,
                                          .width = c->width,
                                          .eps = eps,
                                          .in = in,
                                          .weight = weight,
                                          .out = typed_tensor(t, NULL, n),
                                          .rstd = typed_floats(t, NULL, c->n_rows)};
        struct skrull_rms_norm_backward backward = {
            .dtype = t->dtype,
            .n_rows = c->n_rows,
            .width = c->width,
            .in = in,
            .weight = weight,
            .dout = dout,
            .rstd = forward.rstd,
            .din = c->n_rows % 2 ? dout : typed_tensor(t, NULL, n), /* in place, too */
            .dweight = typed_floats(t, d.dweight, c->width)};

        TYPED_RUN(t, rms_norm_forward, &forward);
        TYPED_RUN(t, rms_norm_backward, &backward);
        normalise(&d);
        typed_assert(t, "out", forward.out, d.out, n);
        typed_assert_floats(t, "rstd", forward.rstd, d.rstd, c->n_rows);
        typed_assert(t, "din", backward.din, d.din, n);
        typed_assert_floats(t, "dweight", backward.dweight, d.dweight, c->width);
    }
    norm_doubles_deinit(&d);
}

static void test_rms_norm__every_dtype_and_width(void **state)
{
    static const struct typed_norm cases[] = {{0, 64},  {1, 2},    {2, 7},   {9, 8},    {31, 33},
                                              {8, 128}, {65, 128}, {3, 255}, {17, 257}, {4, 520}};
    static const struct typed_norm big[] = {{3, 2047}, {5, 2048}, {3, 2049}, {4, 3584}, {1, 8192}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        typed_hold("rms_norm", hold_norm, &cases[i], false);
    }
    for (size_t i = 0; i < sizeof(big) / sizeof(big[0]); i++) {
        typed_hold("rms_norm", hold_norm, &big[i], true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rms_norm__every_dtype_and_width),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
