/* Copies to devices and back, and the dtypes as IEEE 754 defines them. */
#include "kernels/device.h"

#include <math.h>

#include "short_float.h"

bool kernel_is_quick(void)
{
    const char *said = getenv("SKRULL_KERNEL_QUICK");

    return said && *said;
}

size_t dtype_bytes(enum skrull_dtype dtype)
{
    return dtype == SKRULL_DTYPE_F32 ? sizeof(float) : sizeof(uint16_t);
}

const char *dtype_name(enum skrull_dtype dtype)
{
    static const char *const names[] = {"?", "float", "bf16", "fp16"};

    return names[dtype];
}

double dtype_tolerance(enum skrull_dtype dtype)
{
    static const double tolerances[] = {0, 1e-5, 1e-2, 2e-3};

    return tolerances[dtype];
}

uint16_t dtype_encode(enum skrull_dtype dtype, float value)
{
    assert_true(dtype == SKRULL_DTYPE_BF16 || dtype == SKRULL_DTYPE_F16);
    return dtype == SKRULL_DTYPE_BF16 ? bf16_bits((double)value) : fp16_bits((double)value);
}

float dtype_decode(enum skrull_dtype dtype, uint16_t bits)
{
    assert_true(dtype == SKRULL_DTYPE_BF16 || dtype == SKRULL_DTYPE_F16);
    return (float)(dtype == SKRULL_DTYPE_BF16 ? bf16_value(bits) : fp16_value(bits));
}

void dtype_round(enum skrull_dtype dtype, float *values, size_t n)
{
    for (size_t i = 0; i < n && dtype != SKRULL_DTYPE_F32; i++) {
        values[i] = dtype_decode(dtype, dtype_encode(dtype, values[i]));
    }
}

void *device_put(const struct device *device, const void *from, size_t bytes)
{
    void *p = device->alloc(bytes), *poison = NULL;

    assert_non_null(p);
    if (from == NULL && bytes > 0) {
        poison = malloc(bytes);
        assert_non_null(poison);
        from = memset(poison, 0xff, bytes);
    }
    assert_int_equal(bytes ? device->copy(p, from, bytes) : 0, 0);
    free(poison);
    return p;
}

void *device_put_floats(const struct device *device, enum skrull_dtype dtype, const float *values,
                        size_t n)
{
    uint16_t *halves;
    void *p;

    if (values == NULL || dtype == SKRULL_DTYPE_F32) {
        return device_put(device, values, n * dtype_bytes(dtype));
    }
    halves = malloc(n * sizeof(*halves) + 1);
    assert_non_null(halves);
    for (size_t i = 0; i < n; i++) {
        halves[i] = dtype_encode(dtype, values[i]);
    }
    p = device_put(device, halves, n * sizeof(*halves));
    free(halves);
    return p;
}

void device_free(const struct device *device, void *p)
{
    device->free(p);
}

void device_get(const struct device *device, void *to, const void *from, size_t bytes)
{
    assert_int_equal(bytes ? device->copy(to, from, bytes) : 0, 0);
}

float *device_get_floats(const struct device *device, enum skrull_dtype dtype, const void *from,
                         size_t n)
{
    float *values = kernel_zeros(n);
    uint16_t *halves;

    if (dtype == SKRULL_DTYPE_F32) {
        device_get(device, values, from, n * sizeof(*values));
        return values;
    }
    halves = malloc(n * sizeof(*halves) + 1);
    assert_non_null(halves);
    device_get(device, halves, from, n * sizeof(*halves));
    for (size_t i = 0; i < n; i++) {
        values[i] = dtype_decode(dtype, halves[i]);
    }
    free(halves);
    return values;
}

void kernel_assert_near(const char *what, const float *is, const double *should, size_t n,
                        double tolerance)
{
    double largest = 0, worst = -1;
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        largest = isfinite(should[i]) ? fmax(largest, fabs(should[i])) : largest;
    }
    for (size_t i = 0; i < n; i++) {
        double error = fabs((double)is[i] - should[i]);

        if (isinf(should[i]) && isinf(is[i]) && (should[i] > 0) == (is[i] > 0)) {
            continue;
        }
        error = isnan(error) ? HUGE_VAL : error;
        if (error > worst) {
            worst = error;
            at = i;
        }
    }
    if (worst > tolerance * largest) {
        fail_msg("%s[%zu of %zu] is %.9g, not %.9g: off by %.3g of the largest", what, at, n,
                 (double)is[at], should[at], worst / largest);
    }
}
