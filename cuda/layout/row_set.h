/* Fills a skrull_row_set, sequence by sequence. */
#pragma once

#include <skrull/layout.h>

struct arena;

struct row_set {
    struct skrull_row_set set; /* counts so far */
    int32_t *cu_rows, *cu_tokens, *position;
};

/* Room for exactly this much in `arena`. RESOURCE_EXHAUSTED: out of memory. */
int row_set_init(struct row_set *rows, struct arena *arena, uint32_t n_sequences, uint32_t n_rows);

/* Appends a range's rows to the sequence that is being filled; first_row is not looked at. */
void row_set_add(struct row_set *rows, const struct skrull_range *range);

/* Ends the sequence that is being filled. */
void row_set_end_sequence(struct row_set *rows);

/* The finished set; it lives in the arena. */
struct skrull_row_set row_set_finish(const struct row_set *rows);
