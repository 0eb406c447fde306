/* Packed arrays, read in pieces. Thread-safe: a reader has one owner. */
#include "index/array_reader.h"

#include <assert.h>
#include <stdlib.h>

int array_reader_open(struct array_reader *reader, const struct index_source *source,
                      uint64_t offset, uint64_t count, size_t item_size, struct skrull_error *err)
{
    *reader = (struct array_reader){
        .source = source,
        .offset = offset,
        .bytes_left = count * item_size,
        .item_size = item_size,
        .buffer = malloc(ARRAY_READER_BUFFER),
    };
    return reader->buffer ? 0
                          : skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                             "%s: out of memory", source->path);
}

void array_reader_close(struct array_reader *reader)
{
    free(reader->buffer);
    reader->buffer = NULL;
}

int array_reader_fill(struct array_reader *reader, struct skrull_error *err)
{
    size_t size =
        reader->bytes_left < ARRAY_READER_BUFFER ? (size_t)reader->bytes_left : ARRAY_READER_BUFFER;
    int status;

    assert(size > 0);
    status = index_source_read(reader->source, reader->buffer, size, reader->offset, err);
    if (status < 0) {
        return status;
    }
    reader->offset += size;
    reader->bytes_left -= size;
    reader->at = 0;
    reader->size = size;
    return 0;
}
