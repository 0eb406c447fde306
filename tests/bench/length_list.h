/* Length lists for the benches: read, over-long rows dropped, shuffled by a seed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/planner.h>

struct length_list {
    uint32_t *lengths; /* [n], owned */
    size_t n;
};

/* Reads one integer a line; rows above `limit` are dropped, the rest shuffled by `seed` (0: as
 * they are). Exits on failure: this is for programs. */
struct length_list length_list_read(const char *path, uint64_t limit, uint64_t seed);
void length_list_free(struct length_list *list);

/* The batch of a step: the next `n` rows, from the start again at the end. */
void length_list_batch(const struct length_list *list, uint64_t step, struct skrull_sequence *batch,
                       size_t n);
