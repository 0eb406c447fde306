/*
 * Inside of the index stage: a byte_stream one byte at a time, for parsers. A failure of the stream
 * looks like the end of the file until it is asked for: cursor->status.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>

#include "index/byte_stream.h"

#define CURSOR_END (-1)

struct byte_cursor {
    struct byte_stream *stream; /* owned */
    const unsigned char *at, *end;
    uint64_t consumed; /* bytes in pieces before this one */
    const unsigned char *begin;
    int status; /* negative: the stream failed */
    struct skrull_error *err;
};

/* Opens a stream over `source`; closed by cursor_close whatever comes of it. */
int cursor_open(struct byte_cursor *cursor, const struct index_source *source,
                struct skrull_error *err);

void cursor_close(struct byte_cursor *cursor);

/* The next piece; 0: there is none. All bytes at hand have been taken. */
int cursor_fill(struct byte_cursor *cursor);

/* 1: there is a byte at cursor->at. */
static inline int cursor_has(struct byte_cursor *cursor)
{
    return cursor->at < cursor->end || cursor_fill(cursor);
}

/* The next byte, or CURSOR_END; it stays. */
static inline int cursor_peek(struct byte_cursor *cursor)
{
    return cursor_has(cursor) ? *cursor->at : CURSOR_END;
}

/* The offset of the next byte, from 0, in what the stream gives. */
static inline uint64_t cursor_offset(const struct byte_cursor *cursor)
{
    return cursor->consumed + (uint64_t)(cursor->at - cursor->begin);
}
