/*
 * One thread block under way. Of its threads one runs; the others are ready, wait for lanes of
 * their warp, wait at the block's barrier, or have left. Who runs next is a choice that the GPU
 * does not promise anything about, so the shim makes it in three orders.
 */
#pragma once

#include <vector>

#include "shim/fiber.h"
#include "shim/runtime.h"
#include "shim/shim.h"

namespace shim
{
enum thread_state { THREAD_READY, THREAD_AT_WARP, THREAD_AT_BARRIER, THREAD_GONE };

constexpr int n_lanes = 32;

/* An operation that lanes do together: the last to arrive runs it for all. */
struct warp_operation {
    const char *name;
    void (*run)(void *const data[n_lanes], uint32_t mask);
};

struct copy {
    void *dst;
    const void *src;
    bool is_valid;
    uint32_t group;
    where at;
};

struct thread {
    kernel_thread view; /* first: `self` points here */
    struct fiber *fiber;
    struct warp *warp;
    thread_state state;

    /* What it waits at, or was last at. */
    const warp_operation *operation;
    uint32_t mask;
    void *data; /* on its own stack */
    where at;

    /* cp.async: the open group, what is under way. */
    uint32_t group;
    size_t n_copies;
    copy *copies; /* [most_copies] */
};

constexpr size_t most_copies = 128;

/* Orders __syncwarps of one mask: two points by turns, so that a lane which is one ahead gives
 * nothing to those that have still to pass the last. */
struct warp_edge {
    uint32_t mask;
    unsigned turn;
};

constexpr size_t n_warp_edges = 4;

struct warp {
    struct thread *lanes; /* [32], fewer in the last warp */
    uint32_t ready, alive, arrived;
    warp_edge edges[n_warp_edges];
};

struct block {
    launch_shape shape;
    void (*body)(void *arg);
    void *arg;
    uint3 idx;
    std::vector<thread> threads;
    std::vector<warp> warps;
    struct fiber *main;
    unsigned n_alive, n_at_barrier;
    where barrier_at; /* of the first that came */
    unsigned barrier_turn;
    unsigned char *smem; /* shape.smem_bytes */
    char *edge_points;   /* two of the barrier, then n_warp_edges times two of each warp */
    char start_point, end_point;
    int order;
    uint64_t random;
};

/* The block of this OS thread. */
extern constinit thread_local struct block *running;
extern constinit thread_local struct shim_stats stats;

/* The thread that runs. */
inline struct thread *this_thread()
{
    return reinterpret_cast<struct thread *>(const_cast<kernel_thread *>(self));
}

/* Whether all these bytes are the block's shared memory. */
inline bool is_shared(const void *p, size_t bytes)
{
    const size_t at = (size_t)(static_cast<const unsigned char *>(p) - running->smem);

    return at < running->shape.smem_bytes && bytes <= running->shape.smem_bytes - at;
}

/* Runs all threads of `running` to their end. */
void block_run();

/* Lets others run: if this thread is not ready, until it is. Keeps to its warp where it can. */
void give_way(struct warp *warp);

/* Ends the process: "shim: MESSAGE", the thread that runs, the block. */
[[noreturn]] void fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same and where all other threads are. */
[[noreturn]] void fault_with_threads(const char *format, ...) __attribute__((format(printf, 1, 2)));
} // namespace shim
