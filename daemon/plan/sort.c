/*
 * Radix sort of lengths, one byte a pass from the lowest: stable, so ties keep the order of the
 * batch, and free of the memory and the whims of qsort. Passes in which all bytes are alike are
 * left out.
 */
#include "plan/sort.h"

#include <stdbool.h>
#include <string.h>

#include "arena.h"

#define N_BYTES 4
#define N_VALUES 256

struct counts {
    uint32_t of[N_BYTES][N_VALUES];
};

static uint32_t byte_of(uint32_t length, unsigned byte)
{
    return length >> (8 * byte) & (N_VALUES - 1);
}

static void count_bytes(struct counts *counts, const struct skrull_sequence *sequences, uint32_t n)
{
    memset(counts, 0, sizeof(*counts));
    for (uint32_t k = 0; k < n; k++) {
        for (unsigned byte = 0; byte < N_BYTES; byte++) {
            counts->of[byte][byte_of(sequences[k].length, byte)]++;
        }
    }
}

static bool is_alike(const uint32_t counts[N_VALUES], uint32_t n)
{
    uint32_t value = 0;

    while (counts[value] == 0) {
        value++;
    }
    return counts[value] == n;
}

uint32_t *sort_by_length(const struct skrull_sequence *sequences, uint32_t n, struct arena *arena)
{
    uint32_t *from = ARENA_ARRAY(arena, uint32_t, n), *to = ARENA_ARRAY(arena, uint32_t, n), *swap;
    struct counts counts;

    if (!from || !to) {
        return NULL;
    }
    count_bytes(&counts, sequences, n);
    for (uint32_t k = 0; k < n; k++) {
        from[k] = k;
    }
    for (unsigned byte = 0; byte < N_BYTES; byte++) {
        uint32_t starts[N_VALUES], before = 0;

        if (n == 0 || is_alike(counts.of[byte], n)) {
            continue;
        }
        for (uint32_t value = 0; value < N_VALUES; value++) {
            starts[value] = before;
            before += counts.of[byte][value];
        }
        for (uint32_t i = 0; i < n; i++) {
            to[starts[byte_of(sequences[from[i]].length, byte)]++] = from[i];
        }
        swap = from;
        from = to;
        to = swap;
    }
    return from;
}
