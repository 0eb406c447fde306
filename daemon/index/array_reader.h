/*
 * Inside of the index stage: the items of a packed array in a file, one after the other, through a
 * buffer of fixed size. The caller has held the array's place and size against the file's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <skrull/error.h>

#include "index/format.h"

#define ARRAY_READER_BUFFER ((size_t)1 << 16)

struct array_reader {
    const struct index_source *source; /* borrowed */
    uint64_t offset;                   /* of the next bytes to read */
    uint64_t bytes_left;               /* to read from there */
    size_t item_size;                  /* 1, 2, 4 or 8 */
    size_t at, size;                   /* of the buffer: the next item, the bytes that are in */
    unsigned char *buffer;             /* owned */
};

/* The array [offset, offset + count * item_size) of the file. Closed by array_reader_close whatever
 * comes of it. */
int array_reader_open(struct array_reader *reader, const struct index_source *source,
                      uint64_t offset, uint64_t count, size_t item_size, struct skrull_error *err);

void array_reader_close(struct array_reader *reader);

/* Reads on; at least one item is left in the array. */
int array_reader_fill(struct array_reader *reader, struct skrull_error *err);

/* The next item's bytes; the caller counts them. */
static inline int array_reader_next(struct array_reader *reader, void *item,
                                    struct skrull_error *err)
{
    if (reader->at >= reader->size) {
        int status = array_reader_fill(reader, err);

        if (status < 0) {
            return status;
        }
    }
    memcpy(item, reader->buffer + reader->at, reader->item_size);
    reader->at += reader->item_size;
    return 0;
}
