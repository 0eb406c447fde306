/*
 * zstd by libzstd: any number of frames, skippable ones among them (RFC 8878), checksums checked
 * where they are. A window over 128 MiB (`zstd --long=28` and more) is refused, which bounds the
 * memory. Thread-safe: the state is the stream's.
 */
#include "index/byte_stream.h"

#include <string.h>

#include <zstd.h>
#include <zstd_errors.h>

#define WINDOW_LOG_MAX 27

/* A frame, or a skippable one. */
static int zstd_matches(const unsigned char *head, size_t size)
{
    return size >= 4 && (memcmp(head, "\x28\xb5\x2f\xfd", 4) == 0 ||
                         ((head[0] & 0xf0) == 0x50 && memcmp(head + 1, "\x2a\x4d\x18", 3) == 0));
}

static void *zstd_create(void)
{
    ZSTD_DCtx *state = ZSTD_createDCtx();

    if (state && ZSTD_isError(ZSTD_DCtx_setParameter(state, ZSTD_d_windowLogMax, WINDOW_LOG_MAX))) {
        (void)ZSTD_freeDCtx(state);
        return NULL;
    }
    return state;
}

static void zstd_destroy(void *state)
{
    (void)ZSTD_freeDCtx(state);
}

static int refuse(size_t result, struct skrull_error *err)
{
    switch ((int)ZSTD_getErrorCode(result)) {
    case ZSTD_error_memory_allocation:
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "zstd: out of memory");
    case ZSTD_error_frameParameter_windowTooLarge:
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "zstd data with a window over 128 MiB; unzstd --long=31 it first");
    case ZSTD_error_dictionary_wrong:
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "zstd data that needs a dictionary; unzstd it first");
    default:
        return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                                "damaged zstd data (%.60s); copy the file again",
                                ZSTD_getErrorName(result));
    }
}

static int zstd_run(void *state, struct decode_io *io, struct skrull_error *err)
{
    ZSTD_inBuffer in = {.src = io->in, .size = io->in_size};
    ZSTD_outBuffer out = {.dst = io->out, .size = io->out_room};
    size_t result = ZSTD_decompressStream(state, &out, &in);

    if (ZSTD_isError(result)) {
        return refuse(result, err);
    }
    io->in += in.pos;
    io->in_size -= in.pos;
    io->out += out.pos;
    io->out_room -= out.pos;
    return result == 0 ? DECODE_BETWEEN : DECODE_MORE;
}

const struct decoder decoder_zstd = {
    .name = "zstd",
    .undo = "unzstd",
    .matches = zstd_matches,
    .create = zstd_create,
    .destroy = zstd_destroy,
    .run = zstd_run,
};
