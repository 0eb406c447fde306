/* Shared memory: guards before and behind it, which nobody may write. */
#include "shim/shared_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "shim/block.h"
#include "shim/sanitizer.h"

namespace shim
{
namespace
{
constexpr size_t guard_bytes = 1024; /* on each side at least; also the alignment */
constexpr size_t most_arena_bytes = (size_t)64 << 20;
constexpr unsigned char guard_byte = 0xa5;

static_assert(n_edge_points <= guard_bytes);

size_t bytes_after(const struct shared_arena *arena)
{
    return arena->stride - guard_bytes - arena->bytes;
}
} // namespace

void shared_open(struct shared_arena *arena, size_t bytes, uint64_t n_blocks)
{
    arena->bytes = bytes;
    arena->stride = (bytes + 3 * guard_bytes - 1) / guard_bytes * guard_bytes;
    arena->n_slots =
        sanitizer_sees_races() ? std::min<uint64_t>(n_blocks, most_arena_bytes / arena->stride) : 1;
    arena->memory =
        static_cast<unsigned char *>(aligned_alloc(guard_bytes, arena->n_slots * arena->stride));
    if (arena->memory == nullptr) {
        fault("no memory for shared memory");
    }
    memset(arena->memory, guard_byte, arena->n_slots * arena->stride);
    for (uint64_t i = 0; i < arena->n_slots; i++) {
        unsigned char *slot = arena->memory + i * arena->stride;

        sanitizer_poison(slot, guard_bytes);
        sanitizer_poison(slot + guard_bytes + bytes, bytes_after(arena));
    }
}

void shared_close(struct shared_arena *arena)
{
    sanitizer_unpoison(arena->memory, arena->n_slots * arena->stride);
    free(arena->memory);
}

unsigned char *shared_start(struct shared_arena *arena, uint64_t i_block)
{
    unsigned char *start = arena->memory + i_block % arena->n_slots * arena->stride + guard_bytes;

    memset(start, 0xff, arena->bytes); /* NaN in every format */
    return start;
}

void shared_check(const struct shared_arena *arena, const unsigned char *start)
{
    for (size_t i = 0; i < bytes_after(arena); i++) {
        if (start[arena->bytes + i] != guard_byte) {
            fault("a block wrote %zu bytes behind its %zu bytes of shared memory", i, arena->bytes);
        }
    }
    for (size_t i = 1; i <= guard_bytes; i++) {
        if (start[-(ptrdiff_t)i] != guard_byte) {
            fault("a block wrote %zu bytes before its shared memory", i);
        }
    }
}

char *shared_edge_points(unsigned char *start)
{
    return reinterpret_cast<char *>(start) - guard_bytes;
}
} // namespace shim
