/*
 * Inside of the index stage: rows that a reader takes out of a file, in memory, up to the limit.
 * One array of u32: lengths, or loss tokens. Growth is by doubling, so a count in a file is never
 * trusted for an allocation unless the file's size bears it out.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>

#include "index/format.h"

struct rows {
    const struct index_source *source; /* borrowed; for the limit and for messages */
    uint32_t *items;                   /* [count], owned */
    uint64_t count, room;
    uint64_t sum;
};

/* Room for `n` rows in all, or for as many as are allowed, or believed at once: a large, sparse
 * file may claim any number. */
int rows_reserve(struct rows *rows, uint64_t n, struct skrull_error *err);

/* Room for one more at least. RESOURCE_EXHAUSTED: the limit, or no memory. */
int rows_grow(struct rows *rows, struct skrull_error *err);

/* Adds a row; its value is the caller's matter. */
static inline int rows_add(struct rows *rows, uint32_t value, struct skrull_error *err)
{
    if (rows->count >= rows->room) {
        int status = rows_grow(rows, err);

        if (status < 0) {
            return status;
        }
    }
    rows->items[rows->count++] = value;
    rows->sum += value;
    return 0;
}

/* Adds a length. INVALID_ARGUMENT: 0, or over 2^32 - 1; names the row, from 0. */
int rows_add_length(struct rows *rows, uint64_t length, struct skrull_error *err);

void rows_free(struct rows *rows);

/*
 * Gives the rows to `ret_file`, and `loss_tokens` ([as many], NULL or without rows: none); both are
 * empty then. INVALID_ARGUMENT: `lengths` has no row. Whatever comes of it, nothing is left to
 * free.
 */
int rows_hand_over(struct rows *lengths, struct rows *loss_tokens, struct index_file *ret_file,
                   struct skrull_error *err);
