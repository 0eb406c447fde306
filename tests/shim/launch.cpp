/* A launch: its limits, its blocks one by one, their shared memory. */
#include "shim/block.h"

#include <cstdlib>
#include <cstring>
#include <memory>

#include "shim/sanitizer.h"

namespace shim
{
namespace
{
constexpr uint32_t most_threads = 1024, most_grid_yz = 65535;
constexpr size_t most_smem_bytes = 227 * 1024; /* sm_90 */
constexpr size_t guard_bytes = 1024;           /* on each side; also the alignment */
constexpr unsigned char guard_byte = 0xa5;

/* Fibers of this OS thread, kept from launch to launch. */
struct fiber_pool {
    std::vector<std::unique_ptr<struct fiber>> fibers;

    struct fiber *at(size_t i)
    {
        while (fibers.size() <= i) {
            fibers.push_back(std::make_unique<struct fiber>());
            fiber_open(fibers.back().get());
        }
        return fibers[i].get();
    }

    ~fiber_pool()
    {
        for (auto &fiber : fibers) {
            fiber_close(fiber.get());
        }
    }
};

thread_local fiber_pool pool;
thread_local int wanted_order = -1;
thread_local uint64_t n_launches;

/* What is set, else what the environment says, else by turns. */
int order_now()
{
    const char *said = getenv("SHIM_ORDER");

    if (wanted_order >= 0) {
        return wanted_order % 3;
    }
    return said ? (int)(strtoul(said, nullptr, 10) % 3) : (int)(n_launches % 3);
}

uint64_t seed_now()
{
    const char *said = getenv("SHIM_SEED");

    return (said ? strtoull(said, nullptr, 10) : 1) * UINT64_C(0x9e3779b97f4a7c15) + n_launches + 1;
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

/* Shared memory between two guards. */
struct shared_block {
    unsigned char *memory, *start;
    size_t bytes, after;

    explicit shared_block(size_t bytes_) : bytes(bytes_)
    {
        after = guard_bytes + (guard_bytes - bytes % guard_bytes) % guard_bytes;
        memory =
            static_cast<unsigned char *>(aligned_alloc(guard_bytes, guard_bytes + bytes + after));
        if (memory == nullptr) {
            fault("no memory for shared memory");
        }
        start = memory + guard_bytes;
        memset(memory, guard_byte, guard_bytes);
        memset(start + bytes, guard_byte, after);
        sanitizer_poison(memory, guard_bytes);
        sanitizer_poison(start + bytes, after);
    }

    ~shared_block()
    {
        sanitizer_unpoison(memory, guard_bytes + bytes + after);
        free(memory);
    }

    void check() const
    {
        for (size_t i = 0; i < after; i++) {
            if (start[bytes + i] != guard_byte) {
                fault("a block wrote %zu bytes behind its %zu bytes of shared memory", i, bytes);
            }
        }
        for (size_t i = 1; i <= guard_bytes; i++) {
            if (start[-(ptrdiff_t)i] != guard_byte) {
                fault("a block wrote %zu bytes before its shared memory", i);
            }
        }
    }
};

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
        thread->fiber = pool.at(i);
    }
}

void run_blocks(struct block *b)
{
    const dim3 grid = b->shape.grid;
    const uint64_t n_blocks = (uint64_t)grid.x * grid.y * grid.z;
    const shared_block shared(b->shape.smem_bytes);

    b->smem = shared.start;
    for (uint64_t i = 0; i < n_blocks; i++) {
        const uint64_t at = b->order == 1 ? n_blocks - 1 - i : i;

        b->idx = {(uint32_t)(at % grid.x), (uint32_t)(at / grid.x % grid.y),
                  (uint32_t)(at / grid.x / grid.y)};
        memset(b->smem, 0xff, b->shape.smem_bytes); /* NaN in every format */
        block_run();
        shared.check();
    }
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
    b.shape = shape;
    b.body = body;
    b.arg = arg;
    b.order = order_now();
    b.random = seed_now() | 1;
    fiber_open_main(&b.main);
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
