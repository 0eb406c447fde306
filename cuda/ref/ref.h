/*
 * Shared by the reference operators. The folder is built once for any machine and, where the
 * compiler can, once more for wider vectors: REF(name) is the name in the build at hand, and no
 * name without it leaves a file. Loops are written so that compilers vectorise them; sums run in 16
 * lanes, in an order that depends on the row's length alone, so a row's result does not depend on
 * its neighbours.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include <skrull/cuda.h>

#include "ops.h"

#ifndef REF_BUILD
#define REF_BUILD ref
#endif
#define REF_JOIN_NOW(name, build) name##_##build
#define REF_JOIN(name, build) REF_JOIN_NOW(name, build)
#define REF(name) REF_JOIN(name, REF_BUILD)

#define OP(file, name, params)                                                                     \
    int REF(name)(const struct params *params, void *stream, struct skrull_error *err);
#include "ops.def"
#undef OP

/* The table of this build. */
const struct ops *REF(ops_table)(void);

#define REF_LANES 16

/* 0, or UNIMPLEMENTED: the references compute in float. */
static inline int ref_check_dtype(enum skrull_dtype dtype, struct skrull_error *err)
{
    return dtype == SKRULL_DTYPE_F32
               ? 0
               : skrull_error_set(err, SKRULL_ERR_UNIMPLEMENTED,
                                  "the CPU backend computes in float32 only (dtype %d)",
                                  (int)dtype);
}

static inline int ref_out_of_memory(struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                            "out of memory for an operator's scratch");
}

/* The row stride that a caller means: 0 is dense. */
static inline size_t ref_stride(size_t stride, size_t dense)
{
    return stride ? stride : dense;
}

/* e^x to 2 units in the last place; 0 below -87.3, clamped above 88, NaN of NaN. Cephes' expf
 * (netlib), without branches, so that loops over it vectorise. */
static inline float ref_exp(float x)
{
    const float magic = 12582912.0F; /* 1.5 x 2^23: adding it rounds to a whole number */
    float y = x > 88.0F ? 88.0F : x, whole = x < 88.0F ? x : 88.0F; /* NaN: y is NaN, whole is 88 */
    float n, r, p, scale;
    uint32_t bits;

    y = y < -87.3F ? -87.3F : y;
    whole = whole < -87.3F ? -87.3F : whole;
    n = (whole * 1.44269504088896341F + magic) - magic;
    r = (y - n * 0.693359375F) - n * -2.12194440e-4F;
    p = 1.9875691500e-4F;
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * r * r + r + 1.0F;
    bits = (uint32_t)((int32_t)n + 127) << 23;
    memcpy(&scale, &bits, sizeof(scale));
    return x < -87.3F ? 0.0F : p * scale;
}

static inline float ref_sum_lanes(const float *lanes)
{
    float sum = 0;

    for (int l = 0; l < REF_LANES; l++) {
        sum += lanes[l];
    }
    return sum;
}

static inline float ref_dot(const float *a, const float *b, size_t n)
{
    float lanes[REF_LANES] = {0};
    size_t i = 0;

    for (; i + REF_LANES <= n; i += REF_LANES) {
        for (size_t l = 0; l < REF_LANES; l++) {
            lanes[l] += a[i + l] * b[i + l];
        }
    }
    for (size_t l = 0; i < n; i++, l++) {
        lanes[l] += a[i] * b[i];
    }
    return ref_sum_lanes(lanes);
}

static inline float ref_sum(const float *a, size_t n)
{
    float lanes[REF_LANES] = {0};
    size_t i = 0;

    for (; i + REF_LANES <= n; i += REF_LANES) {
        for (size_t l = 0; l < REF_LANES; l++) {
            lanes[l] += a[i + l];
        }
    }
    for (size_t l = 0; i < n; i++, l++) {
        lanes[l] += a[i];
    }
    return ref_sum_lanes(lanes);
}

/* The largest of a row, at least `floor`. */
static inline float ref_max(const float *a, size_t n, float floor)
{
    float lanes[REF_LANES], max = floor;
    size_t i = 0;

    for (size_t l = 0; l < REF_LANES; l++) {
        lanes[l] = floor;
    }
    for (; i + REF_LANES <= n; i += REF_LANES) {
        for (size_t l = 0; l < REF_LANES; l++) {
            lanes[l] = a[i + l] > lanes[l] ? a[i + l] : lanes[l];
        }
    }
    for (; i < n; i++) {
        max = a[i] > max ? a[i] : max;
    }
    for (size_t l = 0; l < REF_LANES; l++) {
        max = lanes[l] > max ? lanes[l] : max;
    }
    return max;
}
