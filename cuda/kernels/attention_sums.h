/*
 * What both launches of attention backward need of a query: its log-sum-exp in base 2, and delta;
 * and how sums are added to a gradient.
 */
#pragma once

#include "dev.h"

#include <skrull/cuda.h>

#include "attention_tile.h"

namespace
{
/* out . dout - dlse of a row, by four neighbouring lanes; all get it. */
template <class T, int DIM>
__device__ __forceinline__ float delta_of(const skrull_attention_backward &p, int row, int head,
                                          bool is_token)
{
    const size_t at = (size_t)row, in_row = (size_t)head * DIM;
    const T *out = static_cast<const T *>(p.forward.out) + at * p.forward.out_stride + in_row;
    const T *dout = static_cast<const T *>(p.dout) + at * p.dout_stride + in_row;
    float delta = 0.0F;

    if (is_token) {
        SK_UNROLL
        for (int chunk = lane_id() % 4; chunk < DIM / 8; chunk += 4) {
            float a[8], b[8];

            load<8>(out + 8 * chunk, a);
            load<8>(dout + 8 * chunk, b);
            SK_UNROLL
            for (int i = 0; i < 8; i++) {
                delta += a[i] * b[i];
            }
        }
    }
    delta += shfl_xor(delta, 1);
    delta += shfl_xor(delta, 2);
    if (is_token && p.dlse) {
        delta -= p.dlse[at * p.forward.heads + (size_t)head];
    }
    return delta;
}

/* The log-sum-exp of a row in base 2; inf, so that probabilities are 0, where it saw nothing. */
__device__ __forceinline__ float lse_of(const skrull_attention &p, int row, int head, bool is_token)
{
    const float lse = is_token ? p.lse[(size_t)row * p.heads + (size_t)head] : -INFINITY;

    return lse == -INFINITY ? INFINITY : lse * log2_e;
}

/* Adds two neighbouring sums to a gradient. */
__device__ __forceinline__ void add_two(float *gradient, float factor, float x, float y)
{
    float2 &two = *reinterpret_cast<float2 *>(gradient);

    two = make_float2(two.x + factor * x, two.y + factor * y);
}
} // namespace
