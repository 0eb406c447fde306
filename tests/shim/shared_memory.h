/*
 * Shared memory of the blocks of a launch: between two guards, NaN at first. Without a race checker
 * all blocks use one; with one each has its own, for as many as there is room, because what two
 * blocks do is ordered by nothing and the same bytes would look like a race.
 */
#pragma once

#include <cstddef>
#include <cstdint>

namespace shim
{
struct shared_arena {
    unsigned char *memory;
    size_t bytes, stride; /* of one block; with its guards */
    uint64_t n_slots;
};

/* Ends the process where there is no memory. */
void shared_open(struct shared_arena *arena, size_t bytes, uint64_t n_blocks);
void shared_close(struct shared_arena *arena);

/* The memory of block i, filled. Blocks that are n_slots apart share it. */
unsigned char *shared_start(struct shared_arena *arena, uint64_t i_block);

/* Faults if the block wrote beyond. */
void shared_check(const struct shared_arena *arena, const unsigned char *start);

/* Addresses of its own for each block, never written: what orders its threads is tied to them. */
constexpr size_t n_edge_points = 512;
char *shared_edge_points(unsigned char *start);
} // namespace shim
