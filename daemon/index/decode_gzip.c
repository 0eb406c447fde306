/*
 * gzip by zlib: RFC 1952, any number of members (`cat a.gz b.gz` is a gzip file), the CRC of each
 * checked. Zero bytes after the last member are padding, as gzip itself takes them; anything else
 * there is refused. Thread-safe: the state is the stream's.
 */
#include "index/byte_stream.h"

#include <limits.h>
#include <stdlib.h>

#define ZLIB_CONST
#include <zlib.h>

#define GZIP_ONLY (15 + 16) /* the largest window; gzip's header and trailer, not zlib's */

struct gzip {
    z_stream z;
    int is_inside;  /* a member */
    int is_padding; /* zero bytes after the last one */
};

static int gzip_matches(const unsigned char *head, size_t size)
{
    return size >= 2 && head[0] == 0x1f && head[1] == 0x8b;
}

static void *gzip_create(void)
{
    struct gzip *gzip = calloc(1, sizeof(*gzip));

    if (gzip && inflateInit2(&gzip->z, GZIP_ONLY) != Z_OK) {
        free(gzip);
        return NULL;
    }
    return gzip;
}

static void gzip_destroy(void *state)
{
    struct gzip *gzip = state;

    (void)inflateEnd(&gzip->z);
    free(gzip);
}

/* The first byte after a member: another member, or padding. */
static int begin_member(struct gzip *gzip, struct decode_io *io, struct skrull_error *err)
{
    if (*io->in == 0) {
        gzip->is_padding = 1;
        io->in++;
        io->in_size--;
        return 0;
    }
    if (gzip->is_padding || *io->in != 0x1f) {
        return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                                "bytes after the end of the gzip data; copy the file again");
    }
    if (inflateReset(&gzip->z) != Z_OK) {
        return skrull_error_set(err, SKRULL_ERR_INTERNAL, "gzip: cannot begin a member");
    }
    gzip->is_inside = 1;
    return 0;
}

static int inflate_some(struct gzip *gzip, struct decode_io *io, struct skrull_error *err)
{
    uInt in = io->in_size < UINT_MAX ? (uInt)io->in_size : UINT_MAX;
    uInt out = io->out_room < UINT_MAX ? (uInt)io->out_room : UINT_MAX;
    int result;

    gzip->z.next_in = io->in;
    gzip->z.avail_in = in;
    gzip->z.next_out = io->out;
    gzip->z.avail_out = out;
    result = inflate(&gzip->z, Z_NO_FLUSH);
    io->in += in - gzip->z.avail_in;
    io->in_size -= in - gzip->z.avail_in;
    io->out += out - gzip->z.avail_out;
    io->out_room -= out - gzip->z.avail_out;
    switch (result) {
    case Z_OK:
    case Z_BUF_ERROR: /* nothing to do without more input or room */
        return 0;
    case Z_STREAM_END:
        gzip->is_inside = 0;
        return 0;
    case Z_MEM_ERROR:
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "gzip: out of memory");
    default:
        return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                                "damaged gzip data (%.60s); copy the file again",
                                gzip->z.msg ? gzip->z.msg : "no stream");
    }
}

static int gzip_run(void *state, struct decode_io *io, struct skrull_error *err)
{
    struct gzip *gzip = state;
    int status = 0;

    if (gzip->is_inside) {
        status = inflate_some(gzip, io, err);
    } else if (io->in_size > 0) {
        status = begin_member(gzip, io, err);
        if (status == 0 && gzip->is_inside) {
            status = inflate_some(gzip, io, err);
        }
    }
    if (status < 0) {
        return status;
    }
    return gzip->is_inside ? DECODE_MORE : DECODE_BETWEEN;
}

const struct decoder decoder_gzip = {
    .name = "gzip",
    .undo = "gunzip",
    .matches = gzip_matches,
    .create = gzip_create,
    .destroy = gzip_destroy,
    .run = gzip_run,
};
