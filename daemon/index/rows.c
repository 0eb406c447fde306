/*
 * Growing arrays of rows with a limit: what every format that is parsed, not mapped, fills.
 * Thread-safe: the state is the caller's.
 */
#include "index/rows.h"

#include <inttypes.h>
#include <stdlib.h>

#define FIRST_ROOM 1024
#define MAX_FIRST_ROOM ((uint64_t)1 << 24) /* 64 MiB */

static int no_memory(const struct rows *rows, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "%s: out of memory at row %" PRIu64,
                            rows->source->path, rows->count);
}

static int set_room(struct rows *rows, uint64_t room, struct skrull_error *err)
{
    uint32_t *items;

    room = room < rows->source->max_count ? room : rows->source->max_count;
    items = room <= SIZE_MAX / sizeof(*items) ? realloc(rows->items, (size_t)room * sizeof(*items))
                                              : NULL;
    if (!items) {
        return no_memory(rows, err);
    }
    rows->items = items;
    rows->room = room;
    return 0;
}

int rows_reserve(struct rows *rows, uint64_t n, struct skrull_error *err)
{
    n = n < MAX_FIRST_ROOM ? n : MAX_FIRST_ROOM;
    return n > rows->room ? set_room(rows, n, err) : 0;
}

int rows_add_length(struct rows *rows, uint64_t length, struct skrull_error *err)
{
    if (length == 0 || length > UINT32_MAX) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: row %" PRIu64 " has length %" PRIu64
                                "; lengths are 1 to 4294967295",
                                rows->source->path, rows->count, length);
    }
    return rows_add(rows, (uint32_t)length, err);
}

int rows_grow(struct rows *rows, struct skrull_error *err)
{
    if (rows->count >= rows->source->max_count) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "%s: more than %" PRIu64
                                " rows, the limit of an index that is read into memory; convert it "
                                "to .skx in parts, or list it as several data sets",
                                rows->source->path, rows->source->max_count);
    }
    return set_room(rows, rows->room < FIRST_ROOM ? FIRST_ROOM : rows->room * 2, err);
}

void rows_free(struct rows *rows)
{
    free(rows->items);
    *rows = (struct rows){.source = rows->source};
}

int rows_hand_over(struct rows *lengths, struct rows *loss_tokens, struct index_file *ret_file,
                   struct skrull_error *err)
{
    struct length_index *idx = &ret_file->idx;

    if (lengths->count == 0) {
        rows_free(lengths);
        if (loss_tokens) {
            rows_free(loss_tokens);
        }
        return index_refuse_empty(lengths->source->path, err);
    }
    idx->lengths = ret_file->parsed = lengths->items;
    idx->count = lengths->count;
    idx->tokens = lengths->sum;
    *lengths = (struct rows){.source = lengths->source};
    if (loss_tokens && loss_tokens->count > 0) {
        idx->loss_tokens = ret_file->parsed_loss = loss_tokens->items;
        idx->n_loss_tokens = loss_tokens->sum;
        *loss_tokens = (struct rows){.source = loss_tokens->source};
    }
    return 0;
}
