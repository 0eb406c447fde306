/*
 * A file's bytes in pieces of 256 KiB, inflated on the way where it is compressed. Two buffers of
 * fixed size; what comes out is counted, and refused past a limit, so that a small file cannot keep
 * a reader busy for ever. Thread-safe: a stream has one owner.
 */
#include "index/byte_stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_SIZE ((size_t)1 << 18)

struct byte_stream {
    const struct index_source *source; /* borrowed */
    void *state;                       /* of source->decoder; owned */
    struct decode_io io;
    uint64_t offset;  /* of the next byte to read */
    uint64_t decoded; /* bytes that came out */
    int is_begun;
    int is_between;          /* the decoder, two members or frames */
    int is_full;             /* the decoder may hold more output */
    unsigned char *in, *out; /* [PIECE_SIZE], owned; `out` only with a decoder */
};

static const struct decoder *const decoders[] = {&decoder_gzip, &decoder_zstd};

#define N_DECODERS (sizeof(decoders) / sizeof(decoders[0]))

const struct decoder *byte_stream_decoder(const struct index_source *source)
{
    for (size_t i = 0; i < N_DECODERS; i++) {
        if (decoders[i]->matches(source->head, source->head_size)) {
            return decoders[i];
        }
    }
    return NULL;
}

int byte_stream_open(const struct index_source *source, struct byte_stream **ret_stream,
                     struct skrull_error *err)
{
    struct byte_stream *stream = calloc(1, sizeof(*stream));

    if (stream) {
        stream->source = source;
        stream->is_between = 1;
        stream->in = malloc(PIECE_SIZE);
        stream->out = source->decoder ? malloc(PIECE_SIZE) : NULL;
        stream->state = source->decoder ? source->decoder->create() : NULL;
    }
    if (!stream || !stream->in || (source->decoder && (!stream->out || !stream->state))) {
        byte_stream_close(stream);
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "%s: out of memory",
                                source->path);
    }
    *ret_stream = stream;
    return 0;
}

void byte_stream_close(struct byte_stream *stream)
{
    if (stream) {
        if (stream->state) {
            stream->source->decoder->destroy(stream->state);
        }
        free(stream->in);
        free(stream->out);
        free(stream);
    }
}

/* The next bytes as they are in the file; 0 bytes: its end, where nobody wrote meanwhile. */
static int read_piece(struct byte_stream *stream, size_t *ret_size, struct skrull_error *err)
{
    const struct index_source *source = stream->source;
    uint64_t left = source->stamp.size - stream->offset;
    size_t size = left < PIECE_SIZE ? (size_t)left : PIECE_SIZE;
    int status = size == 0 ? index_source_check_unchanged(source, err)
                           : index_source_read(source, stream->in, size, stream->offset, err);

    if (status == 0) {
        stream->offset += size;
        *ret_size = size;
    }
    return status;
}

static int cut(const struct index_source *source, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                            "%s: truncated: the %s data ends before its end mark, at byte %" PRIu64
                            "; copy the file again",
                            source->path, source->decoder->name, source->stamp.size);
}

static int too_large(const struct index_source *source, struct skrull_error *err)
{
    return skrull_error_set(
        err, SKRULL_ERR_RESOURCE_EXHAUSTED,
        "%s: inflates to more than %" PRIu64
        " bytes, the limit of compressed indexes; %s it first, or convert it in "
        "parts",
        source->path, source->max_decoded, source->decoder->undo);
}

/* One step of the decoder. */
static int decode(struct byte_stream *stream, struct skrull_error *err)
{
    const struct index_source *source = stream->source;
    size_t in_size = stream->io.in_size, room = stream->io.out_room;
    int outcome = source->decoder->run(stream->state, &stream->io, err);

    if (outcome < 0) {
        return skrull_error_prefix(err, outcome, "%s: near byte %" PRIu64, source->path,
                                   stream->offset - stream->io.in_size);
    }
    if (in_size > 0 && room > 0 && in_size == stream->io.in_size && room == stream->io.out_room) {
        return skrull_error_set(err, SKRULL_ERR_INTERNAL, "%s: the %s decoder stands still",
                                source->path, source->decoder->name);
    }
    stream->is_between = outcome == DECODE_BETWEEN;
    stream->is_full = !stream->is_between && stream->io.out_room == 0;
    stream->decoded += room - stream->io.out_room;
    return stream->decoded > source->max_decoded ? too_large(source, err) : 0;
}

/* Fills `out`, as far as the file goes. */
static int decode_piece(struct byte_stream *stream, size_t *ret_size, struct skrull_error *err)
{
    int status = 0;

    stream->io.out = stream->out;
    stream->io.out_room = PIECE_SIZE;
    while (status == 0 && stream->io.out_room > 0) {
        /* A decoder that filled `out` may hold more: it is asked again without input. */
        if (stream->io.in_size == 0 && !stream->is_full) {
            status = read_piece(stream, &stream->io.in_size, err);
            if (status < 0 || stream->io.in_size == 0) {
                break;
            }
            stream->io.in = stream->in;
        }
        status = decode(stream, err);
    }
    if (status == 0 && stream->io.out_room > 0 && !stream->is_between) {
        status = cut(stream->source, err);
    }
    *ret_size = PIECE_SIZE - stream->io.out_room;
    return status;
}

static int next_piece(struct byte_stream *stream, size_t *ret_size, struct skrull_error *err)
{
    return stream->source->decoder ? decode_piece(stream, ret_size, err)
                                   : read_piece(stream, ret_size, err);
}

int byte_stream_next(struct byte_stream *stream, const unsigned char **ret_bytes, size_t *ret_size,
                     struct skrull_error *err)
{
    static const unsigned char mark[] = {0xef, 0xbb, 0xbf};
    const unsigned char *bytes = stream->source->decoder ? stream->out : stream->in;
    size_t size = 0, skip = 0;
    int status = next_piece(stream, &size, err);

    if (status == 0 && !stream->is_begun) {
        stream->is_begun = 1;
        skip = size >= sizeof(mark) && memcmp(bytes, mark, sizeof(mark)) == 0 ? sizeof(mark) : 0;
        if (skip > 0 && skip == size) {
            skip = 0;
            status = next_piece(stream, &size, err);
        }
    }
    if (status == 0) {
        *ret_bytes = bytes + skip;
        *ret_size = size - skip;
    }
    return status;
}

int byte_stream_read_head(struct index_source *source, struct skrull_error *err)
{
    const unsigned char *bytes;
    struct byte_stream *stream;
    size_t size = 0;
    int status = byte_stream_open(source, &stream, err);

    if (status < 0) {
        return status;
    }
    status = byte_stream_next(stream, &bytes, &size, err);
    if (status == 0) {
        size = size < sizeof(source->head) ? size : sizeof(source->head);
        memcpy(source->head, bytes, size);
        source->head_size = size;
    }
    byte_stream_close(stream);
    return status;
}
