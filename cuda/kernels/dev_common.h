/*
 * The part of dev.h that is the same in both bodies: what their primitives compose to. Only dev.h
 * includes it.
 */
#pragma once

#include <cstring>

namespace sk
{
inline namespace SK_BUILD
{
__device__ __forceinline__ int lane_id()
{
    return (int)(threadIdx.x & 31);
}

template <class T> __device__ __forceinline__ float2 unpack2(uint32_t bits)
{
    return make_float2(f32(T{(uint16_t)bits}), f32(T{(uint16_t)(bits >> 16)}));
}

template <class T> __device__ __forceinline__ T warp_sum(T x, where at = where())
{
    SK_UNROLL
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        x += shfl_xor(x, lanes, at);
    }
    return x;
}

__device__ __forceinline__ float warp_max(float x, where at = where())
{
    SK_UNROLL
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        x = fmaxf(x, shfl_xor(x, lanes, at));
    }
    return x;
}

__device__ __forceinline__ float block_sum(float x, float *part, where at = where())
{
    const int n_warps = (int)(blockDim.x / 32);

    x = warp_sum(x, at);
    block_sync(at);
    if (lane_id() == 0) {
        part[threadIdx.x / 32] = x;
    }
    block_sync(at);
    return warp_sum(lane_id() < n_warps ? part[lane_id()] : 0.0F, at);
}

__device__ __forceinline__ float block_max(float x, float *part, where at = where())
{
    const int n_warps = (int)(blockDim.x / 32);

    x = warp_max(x, at);
    block_sync(at);
    if (lane_id() == 0) {
        part[threadIdx.x / 32] = x;
    }
    block_sync(at);
    return warp_max(part[lane_id() < n_warps ? lane_id() : 0], at);
}

/* The widest piece, at most 16 bytes, that `Bytes` consist of. */
template <int Bytes>
using piece =
    std::conditional_t<Bytes % 16 == 0, uint4,
                       std::conditional_t<Bytes % 8 == 0, uint2,
                                          std::conditional_t<Bytes % 4 == 0, uint32_t, uint16_t>>>;

template <int N, class T> __device__ __forceinline__ void load(const T *p, float (&out)[N])
{
    using wide = piece<N *(int)sizeof(T)>;
    constexpr int in_wide = (int)(sizeof(wide) / sizeof(T));

    SK_UNROLL
    for (int i = 0; i < N / in_wide; i++) {
        const wide bits = reinterpret_cast<const wide *>(p)[i];
        T values[in_wide];

        memcpy(values, &bits, sizeof(bits));
        SK_UNROLL
        for (int j = 0; j < in_wide; j++) {
            out[i * in_wide + j] = f32(values[j]);
        }
    }
}

template <int N, class T> __device__ __forceinline__ void store(T *p, const float (&in)[N])
{
    using wide = piece<N *(int)sizeof(T)>;
    constexpr int in_wide = (int)(sizeof(wide) / sizeof(T));

    SK_UNROLL
    for (int i = 0; i < N / in_wide; i++) {
        T values[in_wide];
        wide bits;

        SK_UNROLL
        for (int j = 0; j < in_wide; j++) {
            values[j] = to<T>(in[i * in_wide + j]);
        }
        memcpy(&bits, values, sizeof(bits));
        reinterpret_cast<wide *>(p)[i] = bits;
    }
}
} // namespace SK_BUILD
} // namespace sk
