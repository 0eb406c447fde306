/*
 * Inside of the index stage: a file's bytes from the first to the last, in pieces, read rather than
 * mapped (a file cut meanwhile is an error, no SIGBUS), inflated where the file is gzip or zstd.
 * Constant memory, whatever the file says of itself.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>

#include "index/format.h"

/* Opens at the first byte behind a UTF-8 byte order mark; `source` is borrowed until closing. */
struct byte_stream;
int byte_stream_open(const struct index_source *source, struct byte_stream **ret_stream,
                     struct skrull_error *err);

/* NULL is fine. */
void byte_stream_close(struct byte_stream *stream);

/*
 * The next bytes, at least one, good until the next call; *ret_size 0: the end, and then the file
 * is whole and was not written to meanwhile. DATA_LOSS: compressed data that is damaged or cut.
 * FAILED_PRECONDITION: the file changed. RESOURCE_EXHAUSTED: it inflates past the limit.
 */
int byte_stream_next(struct byte_stream *stream, const unsigned char **ret_bytes, size_t *ret_size,
                     struct skrull_error *err);

/* The decoder for what the file begins with; NULL: not compressed. */
const struct decoder *byte_stream_decoder(const struct index_source *source);

/* Fills the head of a compressed source with the first bytes inside. */
int byte_stream_read_head(struct index_source *source, struct skrull_error *err);

/* One way of compression; decode_gzip.c, decode_zstd.c. */
struct decode_io {
    const unsigned char *in;
    size_t in_size;
    unsigned char *out;
    size_t out_room;
};

enum { DECODE_MORE, DECODE_BETWEEN };

struct decoder {
    const char *name, *undo;                                /* "gzip", "gunzip" */
    int (*matches)(const unsigned char *head, size_t size); /* 1: a file that begins so */
    void *(*create)(void);                                  /* NULL: no memory */
    void (*destroy)(void *state);
    /* Moves `io` on. DECODE_BETWEEN: between two members or frames, where the file may end. Else a
     * message is in `err`, without the path. */
    int (*run)(void *state, struct decode_io *io, struct skrull_error *err);
};

extern const struct decoder decoder_gzip;
extern const struct decoder decoder_zstd;
