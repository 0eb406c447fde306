/*
 * What the host body of dev.h calls: one thread block at a time, its threads as fibers on the
 * caller's OS thread (any number of these may launch at once). All faults that it finds end the
 * process with a report on stderr: which rule, which thread of which block, which lines.
 */
#pragma once

#include <cstddef>
#include <cstdint>

#include <skrull/error.h>

#include "shim/where.h"

struct uint3 {
    uint32_t x, y, z;
};

struct dim3 {
    uint32_t x, y, z;

    constexpr dim3(uint32_t x_ = 1, uint32_t y_ = 1, uint32_t z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};

namespace shim
{
/* What a kernel sees of itself. */
struct kernel_thread {
    uint3 thread_idx, block_idx;
    dim3 block_dim, grid_dim;
    unsigned lane;
};

/* The kernel thread that runs on this OS thread. constinit: no wrapper around each use. */
extern constinit thread_local const kernel_thread *self;

/* __syncthreads: all threads of the block, at one line; none may have left. */
void block_barrier(where at);

/* The warp's operations. The lanes of `mask` must all come, to the same operation, with the same
 * mask, at the same line. */
void warp_sync(uint32_t mask, where at);
uint32_t warp_ballot(uint32_t mask, bool predicate, where at);

/* The value (size bytes, at most 8) of lane `source` into *value; out of 0..31: stays. */
void warp_shuffle(uint32_t mask, void *value, unsigned size, int source, where at);

/* ldmatrix .x4. Row addresses are aligned to 16 bytes; bank conflicts are counted. */
void load_matrices(uint32_t *r, const void *row, bool is_transposed, where at);

/* n mma.sync m16n8k16 beside each other; b[2 i], b[2 i + 1] belong to c[i]. */
enum fragment_type { FRAGMENT_BF16, FRAGMENT_FP16 };
void multiply_fragments(fragment_type type, int n, float (*c)[4], const uint32_t *a,
                        const uint32_t *b, where at);

/* cp.async of 16 bytes. Nothing arrives before the wait; until then the target is NaN. */
void copy_issue(void *dst, const void *src, bool is_valid, where at);
void copy_commit(void);
void copy_wait(unsigned n_left, where at);

/* The block's shared memory, NaN in all formats at first. */
void *shared_memory(size_t bytes, where at);

struct launch_shape {
    const void *kernel; /* its address, for lists of launches */
    dim3 grid, block;
    size_t smem_bytes;
};

/* Runs the body in every thread. INVALID_ARGUMENT: the shape is beyond what devices allow. */
int run(const launch_shape &shape, void (*body)(void *arg), void *arg, struct skrull_error *err);
} // namespace shim
