/*
 * Cases of kernels: functions that put tensors on a device, run operators and compare with doubles.
 * typed_hold runs a case on every device, in every dtype, with tensors aligned and not, and on the
 * shim in its three orders of threads: all must give the same bits.
 *
 * An output is right if |is - should| <= tolerance x max |should|: 1e-2 in bf16, 2e-3 in fp16, 1e-5
 * in float. What nobody has written is NaN, and so is the space around every tensor, where nothing
 * may change.
 */
#pragma once

#include "kernels/device.h"

struct typed_block;

struct typed {
    const struct device *device;
    enum skrull_dtype dtype;
    double tolerance;
    size_t shift; /* elements that tensors are off their alignment */
    struct typed_block *blocks;
    double worst; /* error / tolerance so far */
};

/* `is_big`: aligned and in one order only, and not under sanitizers. */
void typed_hold(const char *what, void (*hold)(struct typed *t, const void *arg), const void *arg,
                bool is_big);

/* [n] numbers in (-scale, scale), of the dtype or of float; freed by the caller. */
double *typed_random(const struct typed *t, uint64_t *seed, size_t n, double scale);
double *typed_random_floats(uint64_t *seed, size_t n, double scale);

/* To what the dtype holds. */
void typed_round(const struct typed *t, double *values, size_t n);

/* Tensors on the device, of the dtype or another type; NULL: NaN. They live until the case ends. */
void *typed_tensor(struct typed *t, const double *values, size_t n);
float *typed_floats(struct typed *t, const double *values, size_t n);
int32_t *typed_ints(struct typed *t, const int32_t *values, size_t n);
double *typed_doubles(struct typed *t, const double *values, size_t n);

/* Copies, freed by the caller. */
double *typed_read(const struct typed *t, const void *tensor, size_t n);
double *typed_read_floats(const struct typed *t, const float *tensor, size_t n);
void typed_read_double(const struct typed *t, const double *tensor, double *ret);

/* Fail unless a tensor is right. What should be NaN or infinite must be so. */
void typed_assert(struct typed *t, const char *what, const void *tensor, const double *should,
                  size_t n);
void typed_assert_floats(struct typed *t, const char *what, const float *tensor,
                         const double *should, size_t n);

#define TYPED_RUN(t, name, params) KERNEL_RUN((t)->device->ops, name, params)
