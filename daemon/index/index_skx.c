/*
 * .skx, the native index: a 64-byte header and arrays, mapped and used in place, whatever its size.
 * Opening reads the header only; skx_verify reads the rest. A file truncated after opening reads
 * as zeros there (base/map.h), which index.c notices. Thread-safe.
 */
#include "index/format.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <xxhash.h>

#include "base/map.h"
#include "index/payload.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "a .skx is used in place: its little-endian rows need a little-endian machine"
#endif

static int damaged(const struct index_source *source, const char *what, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                            "%s: %s; the .skx is damaged: copy or convert it again", source->path,
                            what);
}

static int check_words(const struct index_source *source, const struct skx_header *header,
                       struct skrull_error *err)
{
    if (header->version != SKX_VERSION) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: .skx version %" PRIu32
                                "; this build reads version 1: convert it "
                                "again with this build's skrullctl",
                                source->path, header->version);
    }
    if (XXH3_64bits(header, offsetof(struct skx_header, header_hash)) != header->header_hash) {
        return damaged(source, "the header's hash does not match", err);
    }
    if (header->flags & ~SKX_KNOWN_FLAGS) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: .skx flags 0x%" PRIx32 "; this build knows 0x%" PRIx32
                                ": convert it again with this build's skrullctl",
                                source->path, header->flags, SKX_KNOWN_FLAGS);
    }
    if (header->reserved != 0) {
        return damaged(source, "the header's reserved word is not 0", err);
    }
    if (!(header->flags & SKX_LOSS_TOKENS) && header->loss_tokens != 0) {
        return damaged(source, "loss tokens in the header, but none in the file", err);
    }
    return 0;
}

static int check_size(const struct index_source *source, const struct skx_header *header,
                      struct skx_layout *ret_layout, struct skrull_error *err)
{
    const char *how;

    if (header->count == 0) {
        return index_refuse_empty(source->path, err);
    }
    if (skx_layout_of(header->count, header->flags, ret_layout) != 0) {
        return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                                "%s: the header says %" PRIu64
                                " rows, more than any file holds; the "
                                ".skx is damaged: copy or convert it again",
                                source->path, header->count);
    }
    if (source->stamp.size == ret_layout->size && ret_layout->size <= SIZE_MAX) {
        return 0;
    }
    how = source->stamp.size < ret_layout->size ? "truncated" : "bytes after its end";
    return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                            "%s: %s: %" PRIu64 " bytes, but %" PRIu64 " rows take %" PRIu64
                            "; the .skx is damaged: copy or convert it again",
                            source->path, how, source->stamp.size, header->count, ret_layout->size);
}

static int skx_open(const struct index_source *source, struct index_file *ret_file,
                    struct skrull_error *err)
{
    struct length_index *idx = &ret_file->idx;
    struct skx_header header;
    struct skx_layout layout;
    const char *bytes;
    int status;

    if (source->head_size < SKX_MAGIC_SIZE ||
        memcmp(source->head, SKX_MAGIC, SKX_MAGIC_SIZE) != 0) {
        return skrull_error_set(
            err, SKRULL_ERR_INVALID_ARGUMENT,
            "%s: no .skx: it does not begin with SKRULLX; leave the format at auto", source->path);
    }
    if (source->head_size < sizeof(header)) {
        return damaged(source, "truncated in its header", err);
    }
    memcpy(&header, source->head, sizeof(header));
    status = check_words(source, &header, err);
    status = status < 0 ? status : check_size(source, &header, &layout, err);
    if (status < 0) {
        return status;
    }
    status = map_open(source->fd, source->path, (size_t)layout.size, &ret_file->idx.map, err);
    if (status < 0) {
        return status;
    }
    bytes = ret_file->idx.map;
    ret_file->map_size = (size_t)layout.size;
    ret_file->stored_hash = header.payload_hash;
    idx->lengths = (const uint32_t *)(const void *)(bytes + layout.lengths);
    if (header.flags & SKX_LOSS_TOKENS) {
        idx->loss_tokens = (const uint32_t *)(const void *)(bytes + layout.loss_tokens);
    }
    if (header.flags & SKX_SCORES) {
        idx->score_bits = (const uint32_t *)(const void *)(bytes + layout.scores);
    }
    idx->count = header.count;
    idx->tokens = header.tokens;
    idx->n_loss_tokens = header.loss_tokens;
    return 0;
}

static int skx_matches(const struct index_source *source)
{
    return source->head_size >= SKX_MAGIC_SIZE &&
           memcmp(source->head, SKX_MAGIC, SKX_MAGIC_SIZE) == 0;
}

/* The bytes between the end of an array and `begin`, the next. */
static int check_gap(const struct index_file *file, uint64_t begin, struct skrull_error *err)
{
    const unsigned char *bytes = file->idx.map;
    uint64_t used = file->idx.count * sizeof(uint32_t) % SKX_ALIGN;

    for (uint64_t at = used ? begin - (SKX_ALIGN - used) : begin; at < begin; at++) {
        if (bytes[at] != 0) {
            return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                                    "byte %" PRIu64 ", between two arrays, is not zero", at);
        }
    }
    return 0;
}

static int skx_verify(const struct index_file *file, uint64_t *ret_hash, struct skrull_error *err)
{
    struct skx_layout layout;
    uint64_t hash;
    int status;

    if (skx_layout_of(file->idx.count, skx_flags_of(&file->idx), &layout) != 0) {
        return skrull_error_set(err, SKRULL_ERR_INTERNAL, "a .skx layout that opening accepted");
    }
    status = layout.loss_tokens ? check_gap(file, layout.loss_tokens, err) : 0;
    status = status == 0 && layout.scores ? check_gap(file, layout.scores, err) : status;
    status = status < 0 ? status : payload_hash(&file->idx, &hash, err);
    if (status < 0) {
        return status;
    }
    if (hash != file->stored_hash) {
        return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                                "the payload's hash is %016" PRIx64 ", the header says %016" PRIx64
                                "; the .skx is damaged: copy or convert it again",
                                hash, file->stored_hash);
    }
    status = payload_check_rows(&file->idx, err);
    if (status == 0) {
        *ret_hash = hash;
    }
    return status;
}

const struct index_format format_skx = {
    .name = "skx",
    .summary = "skrull's own: mapped, used in place",
    .matches = skx_matches,
    .open = skx_open,
    .verify = skx_verify,
};
