/* Sequences by length. */
#pragma once

#include <stdint.h>

#include <skrull/planner.h>

struct arena;

/* Places 0 to n - 1 by ascending length, ties by place (that is, by sample), in `arena`; NULL: out
 * of memory. O(n). */
uint32_t *sort_by_length(const struct skrull_sequence *sequences, uint32_t n, struct arena *arena);

/* Sorts lengths ascending, with scratch memory from `arena`. Returns 0, or RESOURCE_EXHAUSTED.
 * O(n). */
int sort_lengths(uint32_t *lengths, uint32_t n, struct arena *arena);
