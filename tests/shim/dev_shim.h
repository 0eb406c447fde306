/* The body of dev.h for the CPU shim: one call of the runtime for what is one PTX instruction. */
#pragma once

#include "shim/language.h"

#define SK_BUILD shim_build
#define SK_ENTRY(name) name##_shim
#define SK_UNROLL
#define SK_SMEM(type, name)                                                                        \
    type &name = *static_cast<type *>(shim::shared_memory(sizeof(type), shim::where()))

namespace sk
{
inline namespace SK_BUILD
{
using where = shim::where;

template <class T> T to(float x);

inline float f32(float x)
{
    return x;
}

inline float f32(bf16 x)
{
    return shim::float_of_bf16(x.bits);
}

inline float f32(fp16 x)
{
    return shim::float_of_fp16(x.bits);
}

template <> inline float to<float>(float x)
{
    return x;
}

template <> inline bf16 to<bf16>(float x)
{
    return bf16{shim::bf16_of_float(x)};
}

template <> inline fp16 to<fp16>(float x)
{
    return fp16{shim::fp16_of_float(x)};
}

template <class T> inline uint32_t pack2(float lo, float hi)
{
    return to<T>(lo).bits | (uint32_t)to<T>(hi).bits << 16;
}

inline float ex2(float x)
{
    const float y = exp2f(x);

    return y < 0x1p-126F ? 0.0F : y;
}

inline float lg2(float x)
{
    return log2f(fabsf(x) < 0x1p-126F ? 0.0F : x);
}

template <class T> inline T shfl_xor(T x, int lanes, where at = where())
{
    return __shfl_xor_sync(~0u, x, lanes, 32, at);
}

template <class T> inline T shfl_down(T x, unsigned lanes, where at = where())
{
    return __shfl_down_sync(~0u, x, lanes, 32, at);
}

template <class T> inline T shfl_up(T x, unsigned lanes, where at = where())
{
    return __shfl_up_sync(~0u, x, lanes, 32, at);
}

template <class T> inline T shfl(T x, int lane, where at = where())
{
    return __shfl_sync(~0u, x, lane, 32, at);
}

inline void block_sync(where at = where())
{
    shim::block_barrier(at);
}

inline void cp16(void *dst, const void *src, bool valid, where at = where())
{
    shim::copy_issue(dst, src, valid, at);
}

inline void cp_commit()
{
    shim::copy_commit();
}

template <int N> inline void cp_wait(where at = where())
{
    shim::copy_wait(N, at);
}

inline void ldm4(uint32_t (&r)[4], const void *p, where at = where())
{
    shim::load_matrices(r, p, false, at);
}

inline void ldm4t(uint32_t (&r)[4], const void *p, where at = where())
{
    shim::load_matrices(r, p, true, at);
}

template <class T, int N>
inline void mma_row(float (*c)[4], const uint32_t (&a)[4], const uint32_t *b, where at = where())
{
    static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, fp16>, "mma takes 16-bit floats");
    shim::multiply_fragments(std::is_same_v<T, bf16> ? shim::FRAGMENT_BF16 : shim::FRAGMENT_FP16, N,
                             c, a, b, at);
}

template <class T>
inline void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, where at = where())
{
    const uint32_t b[2] = {b0, b1};

    mma_row<T, 1>(&c, a, b, at);
}

template <class... P>
int launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t smem_bytes,
           void * /* over on return */, struct skrull_error *err, std::type_identity_t<P>... args)
{
    auto body = [=] { kernel(args...); };

    return shim::run(
        {reinterpret_cast<const void *>(kernel), grid, block, smem_bytes},
        [](void *arg) { (*static_cast<decltype(body) *>(arg))(); }, &body, err);
}
} // namespace SK_BUILD
} // namespace sk
