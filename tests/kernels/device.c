/* Copies to devices and back, and the dtypes as IEEE 754 defines them. */
#include "kernels/device.h"

#include <math.h>

/* Bits of mantissa and exponent. */
struct layout {
    int mantissa, exponent;
};

static struct layout layout_of(enum skrull_dtype dtype)
{
    assert_true(dtype == SKRULL_DTYPE_BF16 || dtype == SKRULL_DTYPE_F16);
    return dtype == SKRULL_DTYPE_BF16 ? (struct layout){7, 8} : (struct layout){10, 5};
}

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
    const struct layout layout = layout_of(dtype);
    const int bias = (1 << (layout.exponent - 1)) - 1;
    const uint32_t infinite = ((1U << layout.exponent) - 1) << layout.mantissa;
    const uint32_t sign = signbit(value) ? 0x8000 : 0;
    const double size = fabs((double)value);
    int exponent = 1 - bias;
    uint32_t bits;

    if (isnan(value)) {
        return 0x7fff;
    }
    if (isinf(value)) {
        return (uint16_t)(sign | infinite);
    }
    if (size > ldexp(1, exponent)) {
        exponent = ilogb(size);
    }
    bits = ((uint32_t)(exponent + bias - 1) << layout.mantissa) +
           (uint32_t)nearbyint(ldexp(size, layout.mantissa - exponent));
    return (uint16_t)(sign | (bits < infinite ? bits : infinite));
}

float dtype_decode(enum skrull_dtype dtype, uint16_t bits)
{
    const struct layout layout = layout_of(dtype);
    const int bias = (1 << (layout.exponent - 1)) - 1, most = (1 << layout.exponent) - 1;
    const int exponent = bits >> layout.mantissa & most;
    const int mantissa = bits & ((1 << layout.mantissa) - 1);
    double size = exponent ? ldexp((1 << layout.mantissa) + mantissa, exponent - bias)
                           : ldexp(mantissa, 1 - bias);

    size = ldexp(size, -layout.mantissa);
    if (exponent == most) {
        size = mantissa ? (double)NAN : HUGE_VAL;
    }
    return (float)(bits & 0x8000 ? -size : size);
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
