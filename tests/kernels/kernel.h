/* What tests of operators share: backends, random tensors, comparison with doubles, slopes. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ops.h"

/* Backends whose memory is the host's, NULL at the end. */
extern const char *const kernel_backends[];

#define KERNEL_FOR_BACKENDS(ops)                                                                   \
    for (const char *const *name_ = kernel_backends; *name_; name_++)                              \
        for (const struct ops *ops = ops_find(*name_); ops; ops = NULL)

/* Runs an operator; a failure fails the test with the operator's message. */
#define KERNEL_RUN(ops, name, params)                                                              \
    do {                                                                                           \
        struct skrull_error err_ = {0};                                                            \
        if ((ops)->name((params), NULL, &err_)) {                                                  \
            fail_msg("%s: %s", #name, err_.message);                                               \
        }                                                                                          \
    } while (0)

/* [n] numbers in (-1, 1), or zeros; freed by the caller; asserts memory. */
float *kernel_random(uint64_t *state, size_t n);
float *kernel_zeros(size_t n);
double *kernel_zeros_double(size_t n);
uint32_t kernel_below(uint64_t *state, uint32_t limit);

/* A copy in double. */
double *kernel_double(const float *values, size_t n);

/* Fails unless |is - should| <= tolerance x (1 + |should|) everywhere; names `what` and the worst.
 */
void kernel_assert_close(const char *what, const float *is, const double *should, size_t n,
                         double tolerance);

/* The slope of f along *x by central differences. */
double kernel_slope(double (*f)(void *arg), void *arg, double *x);

/* Fails unless gradient[i] is the slope of f along x[i], for all i. */
void kernel_assert_slopes(const char *what, double (*f)(void *arg), void *arg, double *x,
                          const float *gradient, size_t n, double tolerance);
