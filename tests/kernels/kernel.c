/* What tests of operators share. Slopes are of functions in double: their error is some 1e-10. */
#include "kernels/kernel.h"

#include <math.h>
#include <stdio.h>

const char *const kernel_backends[] = {"ref", "cpu", NULL};

/* splitmix64, by Sebastiano Vigna (public domain). */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint32_t kernel_below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)((next(state) >> 32) * limit >> 32);
}

float *kernel_zeros(size_t n)
{
    float *values = calloc(n + 1, sizeof(float));

    assert_non_null(values);
    return values;
}

double *kernel_zeros_double(size_t n)
{
    double *values = calloc(n + 1, sizeof(double));

    assert_non_null(values);
    return values;
}

float *kernel_random(uint64_t *state, size_t n)
{
    float *values = kernel_zeros(n);

    for (size_t i = 0; i < n; i++) {
        values[i] = (float)(int32_t)(next(state) >> 40) / 8388608.0F - 1.0F;
    }
    return values;
}

double *kernel_double(const float *values, size_t n)
{
    double *copy = kernel_zeros_double(n);

    for (size_t i = 0; i < n; i++) {
        copy[i] = (double)values[i];
    }
    return copy;
}

void kernel_assert_close(const char *what, const float *is, const double *should, size_t n,
                         double tolerance)
{
    double worst = -1.0;
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        double error = fabs((double)is[i] - should[i]) / (1.0 + fabs(should[i]));

        if (isinf(should[i]) && isinf(is[i]) && (should[i] > 0) == (is[i] > 0)) {
            continue;
        }
        error = isnan(error) ? HUGE_VAL : error;
        if (error > worst) {
            worst = error;
            at = i;
        }
    }
    if (worst > tolerance) {
        fail_msg("%s[%zu of %zu] is %.9g, not %.9g", what, at, n, (double)is[at], should[at]);
    }
}

double kernel_slope(double (*f)(void *arg), void *arg, double *x)
{
    double at = *x, h = isnan(at) ? 1e-5 : 1e-5 * (1.0 + fabs(at)), above, below;

    *x = at + h;
    above = f(arg);
    *x = at - h;
    below = f(arg);
    *x = at;
    return (above - below) / (2.0 * h);
}

void kernel_assert_slopes(const char *what, double (*f)(void *arg), void *arg, double *x,
                          const float *gradient, size_t n, double tolerance)
{
    double *slopes = kernel_zeros_double(n);

    for (size_t i = 0; i < n; i++) {
        slopes[i] = kernel_slope(f, arg, &x[i]);
    }
    kernel_assert_close(what, gradient, slopes, n, tolerance);
    free(slopes);
}
