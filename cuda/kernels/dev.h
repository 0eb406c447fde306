/*
 * All that a kernel may include beside <skrull/cuda.h> and its own helpers. One source, two bodies:
 * nvcc compiles it for the GPU (dev_nvcc.h, where the PTX is), a C++ compiler for the tests' CPU
 * shim (tests/shim/dev_shim.h, which executes the same kernel, lane by lane, and finds faults). So
 * a kernel has no asm, no triple brackets, no __shared__, no CUDA header; .ci/check-banned looks.
 *
 * A kernel file exports its operators and nothing else:
 *
 *     namespace {
 *     struct shared { float part[32]; };
 *     __global__ void name_kernel(skrull_name p) { SK_SMEM(shared, sm); ... }
 *     } // namespace
 *     extern "C" int SK_ENTRY(name)(const struct skrull_name *p, void *stream,
 *                                   struct skrull_error *err)
 *     {
 *         return launch(name_kernel, grid, block, sizeof(shared), stream, err, *p);
 *     }
 *
 * From CUDA it may use threadIdx, blockIdx, blockDim, gridDim, dim3, the vector types and make_*,
 * __syncthreads, __syncwarp, __shfl_{xor,up,down}_sync, __shfl_sync, __ballot_sync, __any_sync,
 * __all_sync, atomicAdd/Max/CAS, __threadfence, min, max, rsqrtf, sincospif, the float functions of
 * <math.h>, __ldg. From namespace sk, in both bodies:
 *
 *     SK_ENTRY(name)      the name of an operator's entry in this build: name_cuda, name_shim
 *     SK_SMEM(type, name) the block's shared memory as `type &name`; size given at launch
 *     SK_UNROLL           before a loop of constant count: unroll all of it
 *     launch(kernel, grid, block, smem_bytes, stream, err, arguments...)
 *                         0, or negative with a message; without a block nothing is launched
 *     f32(x), to<T>(x)    between float and T = float, bf16, fp16; to nearest even
 *     pack2<T>(lo, hi)    two floats as T in 32 bits, lo in the low half
 *     unpack2<T>(bits)    and back
 *     ex2(x), lg2(x)      2^x and log2(x), approximate, subnormals are zero
 *     lane_id()           threadIdx.x & 31
 *     shfl_xor, shfl_down, shfl_up, shfl (value, lanes) of a full warp
 *     warp_sum(x), warp_max(x)
 *                         of a full warp, known to all its lanes
 *     block_sum(x, part), block_max(x, part)
 *                         of a block of full warps; float part[32] in shared memory, free for
 *                         another use after the block's next barrier
 *     block_sync()        __syncthreads()
 *     load<N>(p, out), store<N>(p, in)
 *                         float[N] from and to N T at p, aligned to their size, at most 16 bytes
 *     cp16(dst, src, valid)
 *                         16 bytes from global to shared memory, asynchronous; zeros if !valid
 *     cp_commit()         closes a group
 *     cp_wait<N>()        waits until at most the N latest groups are under way
 *     ldm4(r, p), ldm4t(r, p)
 *                         ldmatrix .x4 (.trans): lane l gives row l & 7 of matrix l >> 3
 *     mma<T>(c, a, b0, b1)
 *                         mma.sync m16n8k16, T x T + float
 *     mma_row<T, N>(c, a, b)
 *                         N of these side by side, b[2 n] and b[2 n + 1] for c[n]
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <skrull/error.h>

namespace sk
{
struct bf16 {
    uint16_t bits;
};
struct fp16 {
    uint16_t bits;
};
} // namespace sk

#ifdef __CUDACC__
#include "dev_nvcc.h"
#else
#include "shim/dev_shim.h"
#endif
#include "dev_common.h"
