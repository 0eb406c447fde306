/*
 * Faults that kernels have, one each, as small as can be; test_faults.c sees each one caught in all
 * three orders. Rows with no report are sound: whoever makes the shim stricter must let them pass.
 */
#include "dev.h"

#include "shim/faulty.h"

#include <memory>

namespace
{
using namespace sk;

constexpr int n = 128;

struct floats {
    alignas(16) float x[n];
};

alignas(16) float in[2 * n];
alignas(16) float out[2 * n];

/* Launches with in[i] = i + 1; returns how many of out[0..count) are not in[(i + shift) % n]. */
template <class... P>
int wrong(int count, int shift, size_t smem_bytes, void (*kernel)(P...), P... args)
{
    int n_wrong = 0;

    for (int i = 0; i < 2 * n; i++) {
        in[i] = (float)(i + 1);
        out[i] = 0;
    }
    if (launch(kernel, dim3(1), dim3((unsigned)std::min(count, n)), smem_bytes, nullptr, nullptr,
               args...)) {
        return -1;
    }
    for (int i = 0; i < count; i++) {
        n_wrong += !(out[i] == in[(i + shift) % count]);
    }
    return n_wrong;
}

/* ---- order between threads ---- */

enum ring_order { NO_ORDER, BARRIER, WARP_BARRIER };

/* Each thread passes its value to the one before it. */
__global__ void ring(ring_order order)
{
    SK_SMEM(floats, sm);
    const unsigned i = threadIdx.x;

    sm.x[i] = in[i];
    if (order == BARRIER) {
        __syncthreads();
    } else if (order == WARP_BARRIER) {
        __syncwarp();
    }
    out[i] = sm.x[(i + 1) % blockDim.x];
}

/* Twice through the same memory, with a barrier on one side only. */
__global__ void ring_twice(bool is_sound)
{
    SK_SMEM(floats, sm);
    const unsigned i = threadIdx.x;
    float x = in[i];

    for (int round = 0; round < 2; round++) {
        sm.x[i] = x;
        __syncthreads();
        x = sm.x[(i + 1) % blockDim.x];
        if (is_sound) {
            __syncthreads();
        }
    }
    out[i] = x;
}

__global__ void count_blocks(bool is_atomic)
{
    if (is_atomic) {
        atomicAdd(&out[0], 1.0F);
    } else {
        out[0] = out[0] + 1.0F;
    }
}

int run_blocks(bool is_atomic)
{
    out[0] = 0;
    return launch(count_blocks, dim3(4), dim3(1), 0, nullptr, nullptr, is_atomic) || out[0] != 4.0F;
}

/* ---- threads that do not come ---- */

__global__ void leaves_early()
{
    if (threadIdx.x == 40) {
        return;
    }
    __syncthreads();
    out[threadIdx.x] = in[threadIdx.x];
}

__global__ void two_barriers()
{
    if (threadIdx.x < 64) {
        __syncthreads();
    } else {
        __syncthreads();
    }
}

__global__ void warp_waits_for_block()
{
    if (threadIdx.x % 32 == 7) {
        __syncwarp();
    }
    __syncthreads();
}

__global__ void half_shuffles()
{
    float x = in[threadIdx.x];

    if (threadIdx.x % 32 < 16) {
        x += __shfl_xor_sync(~0u, x, 1);
    }
    out[threadIdx.x] = x;
}

__global__ void divergent_shuffles()
{
    float x = in[threadIdx.x];

    if (threadIdx.x % 2 == 0) {
        x += __shfl_xor_sync(~0u, x, 1);
    } else {
        x += __shfl_xor_sync(~0u, x, 3);
    }
    out[threadIdx.x] = x;
}

__global__ void masks_differ()
{
    __syncwarp(threadIdx.x % 32 == 0 ? 0xffu : 0xffffffffu);
}

__global__ void own_mask_without_me()
{
    __syncwarp(~(1u << threadIdx.x % 32));
}

__global__ void shuffle_from_outside()
{
    if (threadIdx.x % 32 < 16) {
        out[threadIdx.x] = __shfl_sync(0xffffu, in[threadIdx.x], 20);
    }
}

/* Sound: halves of a warp each on their own. */
__global__ void halves_alone()
{
    const unsigned lane = threadIdx.x % 32;
    float x;

    if (lane < 16) {
        x = __shfl_sync(0xffffu, in[threadIdx.x], (int)(lane + 1) % 16);
        __syncwarp(0xffffu);
    } else {
        x = __shfl_sync(0xffff0000u, in[threadIdx.x], (int)(16 + (lane + 1) % 16));
    }
    __syncwarp();
    x = __shfl_sync(~0u, x, lane % 16 == 15 ? (int)(lane + 16) % 32 : (int)lane);
    out[threadIdx.x] = x;
}

/* ---- memory ---- */

/* Writes or reads float `at` of the shared memory; beyond it is a fault. */
__global__ void touches(int at)
{
    SK_SMEM(floats, sm);
    float *x = sm.x;

    if (threadIdx.x == 0) {
        x[at] = 1.0F;
    }
    out[threadIdx.x] = in[threadIdx.x];
}

__global__ void reads_unset_shared()
{
    SK_SMEM(floats, sm);

    out[threadIdx.x] = in[threadIdx.x] + 0.0F * sm.x[threadIdx.x];
}

__global__ void reads_unset_local(int n_set)
{
    float part[4];

    for (int i = 0; i < n_set; i++) {
        part[i] = 0.0F;
    }
    out[threadIdx.x] = in[threadIdx.x] + part[0] + part[1] + part[2] + part[3];
}

__global__ void reads_heap(const float *p)
{
    out[threadIdx.x] = p[threadIdx.x];
}

int run_heap(int n_floats)
{
    std::unique_ptr<float[]> heap(new float[(size_t)n_floats]());

    wrong(n, 0, 0, reads_heap, static_cast<const float *>(heap.get()));
    return 0;
}

/* ---- asynchronous copies ---- */

enum copy_fault {
    COPY_SOUND,
    COPY_READ_FIRST,
    COPY_NO_COMMIT,
    COPY_NO_WAIT,
    COPY_NO_BARRIER,
    COPY_WAIT_FOR_LESS
};

/* 32 threads copy four floats each, in two groups of one half. */
__global__ void copies(copy_fault fault, const float *from)
{
    SK_SMEM(floats, sm);
    const unsigned i = threadIdx.x * 4;

    cp16(&sm.x[i % 64 + (i & 64)], from + i, true);
    if (fault != COPY_NO_COMMIT) {
        cp_commit();
    }
    if (fault == COPY_READ_FIRST) {
        for (unsigned j = i; j < i + 4; j++) {
            out[j] = sm.x[j];
        }
        cp_wait<0>();
        return;
    }
    if (fault == COPY_WAIT_FOR_LESS) {
        cp_wait<1>();
    } else if (fault != COPY_NO_WAIT) {
        cp_wait<0>();
    }
    if (fault != COPY_NO_BARRIER) {
        __syncthreads();
    }
    for (unsigned j = 0; j < 4; j++) {
        out[(i + j)] = sm.x[(i + j + 4) % n];
    }
    if (fault == COPY_WAIT_FOR_LESS) {
        cp_wait<0>();
    }
}

int run_copies(copy_fault fault)
{
    int n_wrong = 0;

    for (int i = 0; i < n; i++) {
        in[i] = (float)(i + 1);
    }
    if (launch(copies, dim3(1), dim3(32), sizeof(floats), nullptr, nullptr, fault,
               static_cast<const float *>(in))) {
        return -1;
    }
    for (int i = 0; i < n; i++) {
        n_wrong += !(out[i] == in[(i + 4) % n]);
    }
    return n_wrong;
}

int run_copies_heap()
{
    std::unique_ptr<float[]> heap(new float[n - 4]());

    return launch(copies, dim3(1), dim3(32), sizeof(floats), nullptr, nullptr, COPY_SOUND,
                  static_cast<const float *>(heap.get())) != 0;
}

__global__ void copies_to(float *to, const float *from)
{
    SK_SMEM(floats, sm);

    cp16(to ? to : &sm.x[1], from, true);
    cp_commit();
    cp_wait<0>();
}

/* ---- ldmatrix ---- */

__global__ void loads(size_t shift, const void *elsewhere)
{
    SK_SMEM(floats, sm);
    uint32_t r[4];

    ldm4(r, elsewhere ? elsewhere : reinterpret_cast<char *>(&sm) + lane_id() * 16 % 512 + shift);
    out[threadIdx.x] = in[threadIdx.x] + 0.0F * (float)(r[0] + r[1] + r[2] + r[3]);
}

__global__ void half_loads()
{
    SK_SMEM(floats, sm);
    uint32_t r[4] = {};

    if (threadIdx.x % 32 != 3) {
        ldm4(r, &sm);
    }
    out[threadIdx.x] = (float)r[0];
}

/* ---- sound, a little of all ---- */

__global__ void sums()
{
    SK_SMEM(floats, sm);
    const float sum = block_sum(in[threadIdx.x], sm.x), most = block_max(in[threadIdx.x], sm.x);

    out[threadIdx.x] = sum == 8256.0F && most == 128.0F ? in[threadIdx.x] : 0.0F;
}

#define SAME(report)                                                                               \
    {                                                                                              \
        report, report, report                                                                     \
    }
#define RACE                                                                                       \
    {                                                                                              \
        "", "", "data race"                                                                        \
    }
#define SOUND                                                                                      \
    {                                                                                              \
        nullptr, nullptr, nullptr                                                                  \
    }
} // namespace

const struct faulty faulty_kernels[] = {
    {"no barrier", [] { return wrong(n, 1, sizeof(floats), ring, NO_ORDER); }, RACE, 0},
    {"a barrier", [] { return wrong(n, 1, sizeof(floats), ring, BARRIER); }, SOUND, 0},
    {"no __syncwarp", [] { return wrong(32, 1, sizeof(floats), ring, NO_ORDER); }, RACE, 0},
    {"a __syncwarp", [] { return wrong(32, 1, sizeof(floats), ring, WARP_BARRIER); }, SOUND, 0},
    {"a __syncwarp for a barrier",
     [] { return wrong(n, 1, sizeof(floats), ring, WARP_BARRIER); },
     {"-", "-", "data race"},
     0},
    {"no barrier before the memory is used again",
     [] { return wrong(n, 2, sizeof(floats), ring_twice, false); }, RACE, 0},
    {"a barrier before the memory is used again",
     [] { return wrong(n, 2, sizeof(floats), ring_twice, true); }, SOUND, 0},
    {"blocks race", [] { return run_blocks(false); }, {nullptr, nullptr, "data race"}, 0},
    {"blocks meet atomically", [] { return run_blocks(true); }, SOUND, 0},

    {"a thread leaves early", [] { return wrong(n, 0, 0, leaves_early); }, SAME("__syncthreads"),
     1},
    {"two barriers", [] { return wrong(n, 0, 0, two_barriers); }, SAME("different __syncthreads"),
     2},
    {"a warp waits for its block", [] { return wrong(n, 0, 0, warp_waits_for_block); },
     SAME("others never come"), 2},
    {"half a warp shuffles", [] { return wrong(n, 0, 0, half_shuffles); }, SAME("have left"), 1},
    {"lanes shuffle in two branches", [] { return wrong(n, 0, 0, divergent_shuffles); },
     SAME("meet in different operations"), 2},
    {"lanes with two masks", [] { return wrong(n, 0, 0, masks_differ); },
     SAME("meet in different operations"), 2},
    {"a mask without its lane", [] { return wrong(n, 0, 0, own_mask_without_me); },
     SAME("is not in the mask"), 1},
    {"a shuffle from outside its mask", [] { return wrong(n, 0, 0, shuffle_from_outside); },
     SAME("reads lane 20"), 1},
    {"halves of a warp", [] { return wrong(32, 1, 0, halves_alone); }, SOUND, 0},

    {"writes behind shared memory",
     [] { return wrong(n, 0, sizeof(floats), touches, n); },
     {"0 bytes behind", "use-after-poison", "0 bytes behind"},
     0},
    {"writes before shared memory",
     [] { return wrong(n, 0, sizeof(floats), touches, -1); },
     {"bytes before", "use-after-poison", "bytes before"},
     0},
    {"more shared memory than launched", [] { return wrong(n, 0, 64, touches, 0); },
     SAME("uses 512 bytes of shared memory, the launch gave 64"), 1},
    {"shared memory that nobody set",
     [] { return wrong(n, 0, sizeof(floats), reads_unset_shared); }, SAME(""), 0},
    {"a local that nobody set", [] { return wrong(n, 0, 0, reads_unset_local, 3); }, SAME(""), 0},
    {"locals that are set", [] { return wrong(n, 0, 0, reads_unset_local, 4); }, SOUND, 0},
    {"reads behind global memory",
     [] { return run_heap(n - 1); },
     {nullptr, "heap-buffer-overflow", nullptr},
     0},
    {"reads all of global memory", [] { return run_heap(n); }, SOUND, 0},

    {"reads a copy before the wait", [] { return run_copies(COPY_READ_FIRST); }, SAME(""), 0},
    {"a copy without commit", [] { return run_copies(COPY_NO_COMMIT); }, SAME("under way"), 1},
    {"a copy without wait", [] { return run_copies(COPY_NO_WAIT); }, SAME("under way"), 1},
    {"a wait without barrier", [] { return run_copies(COPY_NO_BARRIER); }, RACE, 0},
    {"a wait for all but the last",
     [] { return run_copies(COPY_WAIT_FOR_LESS); },
     {"", "", "data race"},
     0},
    {"copies", [] { return run_copies(COPY_SOUND); }, SOUND, 0},
    {"a copy from behind global memory",
     [] { return run_copies_heap(); },
     {nullptr, "heap-buffer-overflow", nullptr},
     0},
    {"a copy to an odd place",
     [] {
         return launch(copies_to, dim3(1), dim3(1), sizeof(floats), nullptr, nullptr, nullptr, in);
     },
     SAME("not aligned to 16"), 1},
    {"a copy from an odd place",
     [] {
         return launch(copies_to, dim3(1), dim3(1), sizeof(floats), nullptr, nullptr, nullptr,
                       in + 1);
     },
     SAME("not aligned to 16"), 1},
    {"a copy to global memory",
     [] { return launch(copies_to, dim3(1), dim3(1), sizeof(floats), nullptr, nullptr, out, in); },
     SAME("from global to shared"), 1},

    {"ldmatrix of odd rows",
     [] {
         return wrong(32, 0, sizeof(floats), loads, (size_t)8, static_cast<const void *>(nullptr));
     },
     SAME("not aligned to 16"), 1},
    {"ldmatrix behind shared memory",
     [] {
         return wrong(32, 0, sizeof(floats), loads, sizeof(floats) - 496,
                      static_cast<const void *>(nullptr));
     },
     SAME("not in shared memory"), 1},
    {"ldmatrix of global memory",
     [] { return wrong(32, 0, sizeof(floats), loads, (size_t)0, static_cast<const void *>(in)); },
     SAME("not in shared memory"), 1},
    {"ldmatrix by 31 lanes", [] { return wrong(32, 0, sizeof(floats), half_loads); },
     SAME("have left"), 1},

    {"sums of a block", [] { return wrong(n, 0, sizeof(floats), sums); }, SOUND, 0},
};
const size_t n_faulty_kernels = sizeof(faulty_kernels) / sizeof(faulty_kernels[0]);
