/* RMSNorm against its definition in double and its slopes. */
#include <math.h>

#include "kernels/kernel.h"

#define ROWS 3u

struct fixture {
    size_t width;
    float *in, *weight, *dout;
    double *x, *w; /* the same in double */
};

static const float eps = 1e-5F;

static double norm_at(const struct fixture *f, size_t row, size_t i)
{
    double squares = 0;

    for (size_t j = 0; j < f->width; j++) {
        squares += f->x[row * f->width + j] * f->x[row * f->width + j];
    }
    return f->x[row * f->width + i] * f->w[i] / sqrt(squares / (double)f->width + (double)eps);
}

static double objective(void *arg)
{
    const struct fixture *f = arg;
    double sum = 0;

    for (size_t at = 0; at < ROWS * f->width; at++) {
        sum += norm_at(f, at / f->width, at % f->width) * (double)f->dout[at];
    }
    return sum;
}

static void fixture_init(struct fixture *f, size_t width)
{
    uint64_t seed = 2;

    f->width = width;
    f->in = kernel_random(&seed, ROWS * width);
    f->weight = kernel_random(&seed, width);
    f->dout = kernel_random(&seed, ROWS * width);
    f->x = kernel_double(f->in, ROWS * width);
    f->w = kernel_double(f->weight, width);
}

static void fixture_deinit(struct fixture *f)
{
    free(f->in);
    free(f->weight);
    free(f->dout);
    free(f->x);
    free(f->w);
}

static void hold(const struct ops *ops, struct fixture *f)
{
    size_t n = ROWS * f->width;
    float *out = kernel_zeros(n), *din = kernel_zeros(n), *dweight = kernel_zeros(f->width);
    float rstd[ROWS];
    double *should = kernel_zeros_double(n);
    struct skrull_rms_norm forward = {.dtype = SKRULL_DTYPE_F32,
                                      .n_rows = ROWS,
                                      .width = (uint32_t)f->width,
                                      .eps = eps,
                                      .in = f->in,
                                      .weight = f->weight,
                                      .out = out,
                                      .rstd = rstd};
    struct skrull_rms_norm_backward backward = {.dtype = SKRULL_DTYPE_F32,
                                                .n_rows = ROWS,
                                                .width = (uint32_t)f->width,
                                                .in = f->in,
                                                .weight = f->weight,
                                                .dout = f->dout,
                                                .rstd = rstd,
                                                .din = din,
                                                .dweight = dweight};

    for (size_t at = 0; at < n; at++) {
        should[at] = norm_at(f, at / f->width, at % f->width);
    }
    KERNEL_RUN(ops, rms_norm_forward, &forward);
    kernel_assert_close("out", out, should, n, 1e-6);
    KERNEL_RUN(ops, rms_norm_backward, &backward);
    kernel_assert_slopes("din", objective, f, f->x, din, n, 1e-5);
    kernel_assert_slopes("dweight", objective, f, f->w, dweight, f->width, 1e-5);
    /* In place, and weights' gradients add up. */
    memcpy(out, f->dout, n * sizeof(float));
    backward.dout = out;
    backward.din = out;
    KERNEL_RUN(ops, rms_norm_backward, &backward);
    kernel_assert_slopes("din", objective, f, f->x, out, n, 1e-5);
    for (size_t i = 0; i < f->width; i++) {
        dweight[i] /= 2;
    }
    kernel_assert_slopes("dweight", objective, f, f->w, dweight, f->width, 1e-5);
    free(out);
    free(din);
    free(dweight);
    free(should);
}

static void test_rms_norm__is_its_definition_and_slope(void **state)
{
    static const size_t widths[] = {1, 16, 37};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct fixture f;

        fixture_init(&f, widths[i]);
        KERNEL_FOR_BACKENDS(ops)
        {
            hold(ops, &f);
        }
        fixture_deinit(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rms_norm__is_its_definition_and_slope),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
