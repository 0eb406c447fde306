/* The words of CUDA C++ that kernels use, for a C++ compiler. dev.h names them. */
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "shim/floats.h"
#include "shim/runtime.h"

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __restrict__ __restrict

#define threadIdx (shim::self->thread_idx)
#define blockIdx (shim::self->block_idx)
#define blockDim (shim::self->block_dim)
#define gridDim (shim::self->grid_dim)

#define SHIM_VECTOR2(name, type)                                                                   \
    struct alignas(2 * sizeof(type)) name {                                                        \
        type x, y;                                                                                 \
    };                                                                                             \
    inline name make_##name(type x, type y)                                                        \
    {                                                                                              \
        return name{x, y};                                                                         \
    }
#define SHIM_VECTOR4(name, type)                                                                   \
    struct alignas(16) name {                                                                      \
        type x, y, z, w;                                                                           \
    };                                                                                             \
    inline name make_##name(type x, type y, type z, type w)                                        \
    {                                                                                              \
        return name{x, y, z, w};                                                                   \
    }
SHIM_VECTOR2(int2, int32_t)
SHIM_VECTOR2(uint2, uint32_t)
SHIM_VECTOR2(float2, float)
SHIM_VECTOR2(double2, double)
SHIM_VECTOR4(int4, int32_t)
SHIM_VECTOR4(uint4, uint32_t)
SHIM_VECTOR4(float4, float)

using std::max;
using std::min;

inline void __syncthreads(shim::where at = shim::where())
{
    shim::block_barrier(at);
}

inline void __syncwarp(uint32_t mask = ~0u, shim::where at = shim::where())
{
    shim::warp_sync(mask, at);
}

template <class T>
inline T __shfl_sync(uint32_t mask, T x, int lane, int = 32, shim::where at = shim::where())
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 4 or 8 bytes");
    shim::warp_shuffle(mask, &x, sizeof(x), lane & 31, at);
    return x;
}

template <class T>
inline T __shfl_xor_sync(uint32_t mask, T x, int lanes, int = 32, shim::where at = shim::where())
{
    return __shfl_sync(mask, x, (int)shim::self->lane ^ (lanes & 31), 32, at);
}

template <class T>
inline T __shfl_down_sync(uint32_t mask, T x, unsigned lanes, int = 32,
                          shim::where at = shim::where())
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 4 or 8 bytes");
    shim::warp_shuffle(mask, &x, sizeof(x), (int)(shim::self->lane + lanes), at);
    return x;
}

template <class T>
inline T __shfl_up_sync(uint32_t mask, T x, unsigned lanes, int = 32,
                        shim::where at = shim::where())
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 4 or 8 bytes");
    shim::warp_shuffle(mask, &x, sizeof(x), (int)shim::self->lane - (int)lanes, at);
    return x;
}

inline uint32_t __ballot_sync(uint32_t mask, int predicate, shim::where at = shim::where())
{
    return shim::warp_ballot(mask, predicate != 0, at);
}

inline int __any_sync(uint32_t mask, int predicate, shim::where at = shim::where())
{
    return shim::warp_ballot(mask, predicate != 0, at) != 0;
}

inline int __all_sync(uint32_t mask, int predicate, shim::where at = shim::where())
{
    return shim::warp_ballot(mask, predicate == 0, at) == 0;
}

/* Atomics order nothing else, as on the GPU. */
template <class T> inline T atomicAdd(T *p, std::type_identity_t<T> x)
{
    T old, sum;

    __atomic_load(p, &old, __ATOMIC_RELAXED);
    do {
        sum = old + x;
    } while (!__atomic_compare_exchange(p, &old, &sum, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}

template <class T> inline T atomicMax(T *p, std::type_identity_t<T> x)
{
    static_assert(std::is_integral_v<T>, "CUDA has it for integers");
    T old = __atomic_load_n(p, __ATOMIC_RELAXED);

    while (old < x &&
           !__atomic_compare_exchange_n(p, &old, x, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return old;
}

template <class T>
inline T atomicCAS(T *p, std::type_identity_t<T> expected, std::type_identity_t<T> x)
{
    __atomic_compare_exchange_n(p, &expected, x, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}

inline void __threadfence()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

template <class T> inline T __ldg(const T *p)
{
    return *p;
}

inline float rsqrtf(float x)
{
    return 1.0F / sqrtf(x);
}

/* Of pi x. */
inline void sincospif(float x, float *sine, float *cosine)
{
    *sine = (float)sin(3.14159265358979323846 * (double)x);
    *cosine = (float)cos(3.14159265358979323846 * (double)x);
}

inline float __uint_as_float(uint32_t bits)
{
    return shim::float_of_bits(bits);
}

inline uint32_t __float_as_uint(float x)
{
    return shim::bits_of_float(x);
}

inline int __popc(uint32_t bits)
{
    return __builtin_popcount(bits);
}
