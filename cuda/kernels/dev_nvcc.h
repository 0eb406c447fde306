/*
 * The body of dev.h for nvcc: PTX of sm_80 and up. Only dev.h includes it. PTX ISA 8: cp.async,
 * ldmatrix (section 9.7.14), mma.m16n8k16 (9.7.14.5.8).
 */
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

/* Older devices compile, as nvcc's default target asks, and trap. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define SK_ASM(...) __trap()
#else
#define SK_ASM(...) asm volatile(__VA_ARGS__)
#endif

#define SK_BUILD cuda_build
#define SK_ENTRY(name) name##_cuda
#define SK_UNROLL _Pragma("unroll")
#define SK_SMEM(type, name)                                                                        \
    extern __shared__ __align__(1024) unsigned char sk_shared_memory[];                            \
    type &name = *reinterpret_cast<type *>(sk_shared_memory)

namespace sk
{
inline namespace SK_BUILD
{
/* The line of a call, for reports of the shim. Nothing here. */
struct where {
};

template <class T> __device__ __forceinline__ T to(float x);

__device__ __forceinline__ float f32(float x)
{
    return x;
}

__device__ __forceinline__ float f32(bf16 x)
{
    return __bfloat162float(__ushort_as_bfloat16(x.bits));
}

__device__ __forceinline__ float f32(fp16 x)
{
    return __half2float(__ushort_as_half(x.bits));
}

template <> __device__ __forceinline__ float to<float>(float x)
{
    return x;
}

template <> __device__ __forceinline__ bf16 to<bf16>(float x)
{
    return bf16{__bfloat16_as_ushort(__float2bfloat16_rn(x))};
}

template <> __device__ __forceinline__ fp16 to<fp16>(float x)
{
    return fp16{__half_as_ushort(__float2half_rn(x))};
}

template <class T> __device__ __forceinline__ uint32_t pack2(float lo, float hi);

template <> __device__ __forceinline__ uint32_t pack2<bf16>(float lo, float hi)
{
    uint32_t bits = 0;

    SK_ASM("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(hi), "f"(lo));
    return bits;
}

template <> __device__ __forceinline__ uint32_t pack2<fp16>(float lo, float hi)
{
    uint32_t bits = 0;

    SK_ASM("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(hi), "f"(lo));
    return bits;
}

__device__ __forceinline__ float ex2(float x)
{
    float y = 0;

    SK_ASM("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float lg2(float x)
{
    float y = 0;

    SK_ASM("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

template <class T> __device__ __forceinline__ T shfl_xor(T x, int lanes, where = where())
{
    return __shfl_xor_sync(~0u, x, lanes);
}

template <class T> __device__ __forceinline__ T shfl_down(T x, unsigned lanes, where = where())
{
    return __shfl_down_sync(~0u, x, lanes);
}

template <class T> __device__ __forceinline__ T shfl_up(T x, unsigned lanes, where = where())
{
    return __shfl_up_sync(~0u, x, lanes);
}

template <class T> __device__ __forceinline__ T shfl(T x, int lane, where = where())
{
    return __shfl_sync(~0u, x, lane);
}

__device__ __forceinline__ void block_sync(where = where())
{
    __syncthreads();
}

__device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ __forceinline__ void cp16(void *dst, const void *src, bool valid)
{
    SK_ASM("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(dst)), "l"(src),
           "r"(valid ? 16 : 0)
           : "memory");
}

__device__ __forceinline__ void cp_commit()
{
    SK_ASM("cp.async.commit_group;" ::: "memory");
}

template <int N> __device__ __forceinline__ void cp_wait()
{
    SK_ASM("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

__device__ __forceinline__ void ldm4(uint32_t (&r)[4], const void *p)
{
    SK_ASM("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
           : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
           : "r"(shared_address(p))
           : "memory");
}

__device__ __forceinline__ void ldm4t(uint32_t (&r)[4], const void *p)
{
    SK_ASM("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
           : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
           : "r"(shared_address(p))
           : "memory");
}

template <class T>
__device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                    uint32_t b1);

template <>
__device__ __forceinline__ void mma<bf16>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                          uint32_t b1)
{
    SK_ASM("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
           "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
           : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
           : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <>
__device__ __forceinline__ void mma<fp16>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                          uint32_t b1)
{
    SK_ASM("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
           "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
           : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
           : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <class T, int N>
__device__ __forceinline__ void mma_row(float (*c)[4], const uint32_t (&a)[4], const uint32_t *b)
{
    SK_UNROLL
    for (int n = 0; n < N; n++) {
        mma<T>(c[n], a, b[2 * n], b[2 * n + 1]);
    }
}

/* The error of a launch as one of ours. */
inline int launch_failed(cudaError_t error, dim3 grid, dim3 block, size_t smem_bytes,
                         struct skrull_error *err)
{
    const bool is_absent = error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver;

    return skrull_error_set(err, is_absent ? SKRULL_ERR_UNAVAILABLE : SKRULL_ERR_INTERNAL,
                            "CUDA: launch of %u x %u x %u blocks of %u threads with %zu bytes of "
                            "shared memory: %s",
                            grid.x, grid.y, grid.z, block.x * block.y * block.z, smem_bytes,
                            cudaGetErrorString(error));
}

/* Keeps a parameter out of deduction: arguments are converted to what the kernel takes. */
template <class T> struct same {
    using type = T;
};

template <class... P>
int launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t smem_bytes, void *stream,
           struct skrull_error *err, typename same<P>::type... args)
{
    void *pointers[] = {(void *)&args...};
    cudaError_t error = cudaSuccess;

    if (grid.x == 0 || grid.y == 0 || grid.z == 0) {
        return 0;
    }
    if (smem_bytes > 48 * 1024) { /* beyond this only on request */
        error = cudaFuncSetAttribute((const void *)kernel,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, (int)smem_bytes);
    }
    if (error == cudaSuccess) {
        error = cudaLaunchKernel((const void *)kernel, grid, block, pointers, smem_bytes,
                                 (cudaStream_t)stream);
    }
    return error == cudaSuccess ? 0 : launch_failed(error, grid, block, smem_bytes, err);
}
} // namespace SK_BUILD
} // namespace sk
