/*
 * Kernels where they run: on the CPU shim, and on a GPU where there is one. Their tensors are of
 * any dtype in memory of the device; a test puts floats there and gets floats back.
 *
 *     KERNEL_FOR_DEVICES(device) { ... KERNEL_RUN(device->ops, add, &add); ... }
 */
#pragma once

#include "kernels/kernel.h"

struct device {
    const struct ops *ops;
    void *(*alloc)(size_t bytes); /* NULL: no memory */
    void (*free)(void *p);
    int (*copy)(void *dst, const void *src,
                size_t bytes); /* any way, after all that was launched */
};

/* Device i, or NULL behind the last. */
const struct device *device_at(size_t i);

#define KERNEL_FOR_DEVICES(device)                                                                 \
    for (size_t i_device_ = 0; device_at(i_device_); i_device_++)                                  \
        for (const struct device *device = device_at(i_device_); device; device = NULL)

/* Only a few small cases, please: a sanitizer watches. SKRULL_KERNEL_QUICK=1 says so. */
bool kernel_is_quick(void);

/* Copies to the device, freed by device_free; asserts memory. NULL: poisoned, which is NaN in all
 * dtypes. */
void *device_put(const struct device *device, const void *from, size_t bytes);
void *device_put_floats(const struct device *device, enum skrull_dtype dtype, const float *values,
                        size_t n);
void device_free(const struct device *device, void *p);

/* Copies back; the floats are freed by the caller. */
void device_get(const struct device *device, void *to, const void *from, size_t bytes);
float *device_get_floats(const struct device *device, enum skrull_dtype dtype, const void *from,
                         size_t n);

/* The two 16-bit dtypes and float, by plain arithmetic; to nearest even. */
size_t dtype_bytes(enum skrull_dtype dtype);
const char *dtype_name(enum skrull_dtype dtype);
uint16_t dtype_encode(enum skrull_dtype dtype, float value);
float dtype_decode(enum skrull_dtype dtype, uint16_t bits);

/* Rounds values to what the dtype holds, so that a reference starts from the same. */
void dtype_round(enum skrull_dtype dtype, float *values, size_t n);

/* What a kernel may be off, relative to the largest value: bf16 1e-2, fp16 2e-3, float 1e-5. */
double dtype_tolerance(enum skrull_dtype dtype);

/* Fails unless |is - should| <= tolerance x max |should| everywhere; names `what` and the worst. */
void kernel_assert_near(const char *what, const float *is, const double *should, size_t n,
                        double tolerance);
