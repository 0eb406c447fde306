/* The least of n keys under single changes: a tournament tree. Ties go to the lower place. */
#pragma once

#include <stdint.h>

struct arena;

struct least {
    int64_t *keys;     /* [n] */
    uint32_t *winners; /* [2 x n_leaves]; node i has children 2i and 2i + 1; the root is 1 */
    uint32_t n, n_leaves;
};

/* `n` keys of 0 in `arena`. Returns 0, or RESOURCE_EXHAUSTED. */
int least_init(struct least *least, uint32_t n, struct arena *arena);

/* Sets all keys. O(n). */
void least_fill(struct least *least, int64_t key);

/* Sets one key. O(log n). */
void least_set(struct least *least, uint32_t i, int64_t key);

/* Place of the least key. */
static inline uint32_t least_first(const struct least *least)
{
    return least->winners[1];
}
