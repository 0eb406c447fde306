/*
 * Radix sort of bare lengths, one byte a pass from the lowest; passes in which all bytes are alike
 * are left out.
 */
#include <string.h>

#include "arena.h"
#include "plan/sort.h"

#define N_BYTES 4
#define N_VALUES 256

static void pass(const uint32_t *from, uint32_t *to, uint32_t n, unsigned shift)
{
    uint32_t starts[N_VALUES] = {0}, before = 0;

    for (uint32_t i = 0; i < n; i++) {
        starts[from[i] >> shift & (N_VALUES - 1)]++;
    }
    for (uint32_t value = 0; value < N_VALUES; value++) {
        const uint32_t count = starts[value];

        starts[value] = before;
        before += count;
    }
    for (uint32_t i = 0; i < n; i++) {
        to[starts[from[i] >> shift & (N_VALUES - 1)]++] = from[i];
    }
}

int sort_lengths(uint32_t *lengths, uint32_t n, struct arena *arena)
{
    uint32_t *const other = ARENA_ARRAY(arena, uint32_t, n);
    uint32_t *from = lengths, *to = other, *swap, varying = 0;

    if (!other) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (uint32_t i = 1; i < n; i++) {
        varying |= lengths[i] ^ lengths[0];
    }
    for (unsigned byte = 0; byte < N_BYTES; byte++) {
        if ((varying >> (8 * byte) & (N_VALUES - 1)) == 0) {
            continue;
        }
        pass(from, to, n, 8 * byte);
        swap = from;
        from = to;
        to = swap;
    }
    if (from != lengths) {
        memcpy(lengths, from, n * sizeof(*lengths));
    }
    return 0;
}
