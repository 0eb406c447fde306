/* Pieces of a stream for a parser that looks at bytes. Thread-safe: a cursor has one owner. */
#include "index/byte_cursor.h"

int cursor_open(struct byte_cursor *cursor, const struct index_source *source,
                struct skrull_error *err)
{
    static const unsigned char none[1];

    *cursor = (struct byte_cursor){.begin = none, .at = none, .end = none, .err = err};
    cursor->status = byte_stream_open(source, &cursor->stream, err);
    return cursor->status;
}

void cursor_close(struct byte_cursor *cursor)
{
    byte_stream_close(cursor->stream);
    cursor->stream = NULL;
}

int cursor_fill(struct byte_cursor *cursor)
{
    const unsigned char *bytes;
    size_t size = 0;

    if (cursor->status == 0) {
        cursor->status = byte_stream_next(cursor->stream, &bytes, &size, cursor->err);
    }
    if (cursor->status < 0 || size == 0) {
        return 0;
    }
    cursor->consumed += (uint64_t)(cursor->end - cursor->begin);
    cursor->begin = cursor->at = bytes;
    cursor->end = bytes + size;
    return 1;
}
