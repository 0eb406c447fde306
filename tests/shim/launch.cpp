/* A launch: its limits, its blocks one by one, their shared memory. */
#include "shim/block.h"

#include <cstdlib>
#include <memory>

#include "shim/sanitizer.h"
#include "shim/shared_memory.h"
#include "shim/trace.h"

namespace shim
{
namespace
{
constexpr uint32_t most_threads = 1024, most_grid_yz = 65535;
constexpr size_t most_smem_bytes = 227 * 1024; /* sm_90 */

/* A fiber and room for its copies, kept by this OS thread from launch to launch. */
struct pool_slot {
    struct fiber fiber;
    copy copies[most_copies];
};

struct fiber_pool {
    struct fiber main;
    std::vector<std::unique_ptr<pool_slot>> slots;

    fiber_pool()
    {
        fiber_open_main(&main); /* asks the kernel for all mappings: once */
    }

    pool_slot *at(size_t i)
    {
        while (slots.size() <= i) {
            slots.emplace_back(new pool_slot);
            fiber_open(&slots.back()->fiber);
        }
        return slots[i].get();
    }

    ~fiber_pool()
    {
        for (auto &slot : slots) {
            fiber_close(&slot->fiber);
        }
    }
};

thread_local fiber_pool pool;
thread_local int wanted_order = -1;
thread_local uint64_t n_launches;

/* A number of this launch, the same in every run of a program (splitmix64, by Sebastiano Vigna). */
uint64_t seed_now()
{
    const char *said = getenv("SHIM_SEED");
    uint64_t z = (said ? strtoull(said, nullptr, 10) : 0) + n_launches + 1;

    z *= UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* What is set, else what the environment says, else one or the other. */
int order_now()
{
    const char *said = getenv("SHIM_ORDER");

    if (wanted_order >= 0) {
        return wanted_order % 3;
    }
    return (int)((said ? strtoull(said, nullptr, 10) : seed_now() >> 8) % 3);
}

int check_shape(const launch_shape &shape, struct skrull_error *err)
{
    const uint64_t n_threads = (uint64_t)shape.block.x * shape.block.y * shape.block.z;

    if (n_threads == 0 || n_threads > most_threads) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "launch of %llu threads a block; devices take 1 to %u",
                                (unsigned long long)n_threads, most_threads);
    }
    if (shape.grid.x > INT32_MAX || shape.grid.y > most_grid_yz || shape.grid.z > most_grid_yz) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "launch of %u x %u x %u blocks; devices take 2147483647 x %u x %u",
                                shape.grid.x, shape.grid.y, shape.grid.z, most_grid_yz,
                                most_grid_yz);
    }
    if (shape.smem_bytes > most_smem_bytes) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "launch with %zu bytes of shared memory; devices have %zu a block",
                                shape.smem_bytes, most_smem_bytes);
    }
    return 0;
}

void init_threads(struct block *b)
{
    const dim3 size = b->shape.block;

    b->threads.resize((size_t)size.x * size.y * size.z);
    b->warps.resize((b->threads.size() + n_lanes - 1) / n_lanes);
    for (size_t i = 0; i < b->threads.size(); i++) {
        struct thread *thread = &b->threads[i];

        thread->view = {{(uint32_t)(i % size.x), (uint32_t)(i / size.x % size.y),
                         (uint32_t)(i / size.x / size.y)},
                        {},
                        size,
                        b->shape.grid,
                        (unsigned)(i % n_lanes)};
        thread->warp = &b->warps[i / n_lanes];
    }
}

/* Which thread runs on which fiber. A race checker knows a thread by its fiber, so they move on
 * from block to block: thread 0 of one and thread 0 of the next are not the same to it. */
void place_threads(struct block *b, uint64_t i_block)
{
    constexpr uint64_t step = n_lanes + 1;
    const uint64_t first = sanitizer_sees_races() ? i_block * step : 0;
    const uint64_t n_fibers = b->threads.size() + (sanitizer_sees_races() ? n_lanes - 1 : 0);

    for (size_t i = 0; i < b->threads.size(); i++) {
        pool_slot *slot = pool.at((first + i) % n_fibers);

        b->threads[i].fiber = &slot->fiber;
        b->threads[i].copies = slot->copies;
    }
}

void run_blocks(struct block *b)
{
    const dim3 grid = b->shape.grid;
    const uint64_t n_blocks = (uint64_t)grid.x * grid.y * grid.z;
    struct shared_arena shared;

    shared_open(&shared, b->shape.smem_bytes, n_blocks);
    for (uint64_t i = 0; i < n_blocks; i++) {
        const uint64_t at = b->order == 1 ? n_blocks - 1 - i : i;

        b->idx = {(uint32_t)(at % grid.x), (uint32_t)(at / grid.x % grid.y),
                  (uint32_t)(at / grid.x / grid.y)};
        if (i > 0 && i % shared.n_slots == 0) {
            sanitizer_acquire(&b->end_point); /* memory is used again: all before is over */
        }
        b->smem = shared_start(&shared, i);
        b->edge_points = shared_edge_points(b->smem);
        place_threads(b, i);
        block_run();
        shared_check(&shared, b->smem);
    }
    sanitizer_acquire(&b->end_point);
    shared_close(&shared);
}
} // namespace

void *shared_memory(size_t bytes, where at)
{
    if (bytes > running->shape.smem_bytes) {
        fault("%s:%d uses %zu bytes of shared memory, the launch gave %zu", at.file, at.line, bytes,
              running->shape.smem_bytes);
    }
    return running->smem;
}

int run(const launch_shape &shape, void (*body)(void *arg), void *arg, struct skrull_error *err)
{
    struct block b = {};
    int rc = check_shape(shape, err);

    if (rc < 0 || (uint64_t)shape.grid.x * shape.grid.y * shape.grid.z == 0) {
        return rc;
    }
    trace_launch(shape);
    b.shape = shape;
    b.body = body;
    b.arg = arg;
    b.order = order_now();
    b.random = seed_now() | 1;
    b.main = &pool.main;
    running = &b;
    init_threads(&b);
    run_blocks(&b);
    running = nullptr;
    n_launches++;
    stats.launches++;
    return 0;
}
} // namespace shim

struct shim_stats shim_stats_take(void)
{
    const struct shim_stats taken = shim::stats;

    shim::stats = {};
    return taken;
}

void shim_set_order(int order)
{
    shim::wanted_order = order;
}
