/*
 * Writing of a .skx: header, arrays, zeros between them, put in place at once. The layout is
 * payload.h's. Thread-safe.
 */
#include "index/index.h"

#include <string.h>

#include <xxhash.h>

#include "base/file.h"
#include "index/payload.h"

static int fill_header(const struct length_index *idx, struct skx_header *ret_header,
                       struct skrull_error *err)
{
    struct skx_header header = {
        .magic = SKX_MAGIC,
        .version = SKX_VERSION,
        .flags = skx_flags_of(idx),
        .count = idx->count,
        .tokens = idx->tokens,
        .loss_tokens = idx->n_loss_tokens,
    };
    int status = payload_hash(idx, &header.payload_hash, err);

    if (status < 0) {
        return status;
    }
    header.header_hash = XXH3_64bits(&header, offsetof(struct skx_header, header_hash));
    *ret_header = header;
    return 0;
}

struct writer {
    struct file_replace file;
    uint64_t at;
    struct skrull_error *err;
};

/* Zeros up to `begin`, then the items. */
static int write_array(struct writer *writer, const uint32_t *items, uint64_t count, uint64_t begin)
{
    static const unsigned char zeros[SKX_ALIGN];
    size_t gap = (size_t)(begin - writer->at), bytes = (size_t)count * sizeof(*items);
    int status = file_write_all(writer->file.fd, writer->file.path, zeros, gap, writer->err);

    if (status == 0) {
        status = file_write_all(writer->file.fd, writer->file.path, items, bytes, writer->err);
    }
    writer->at = begin + bytes;
    return status;
}

static int write_all(struct writer *writer, const struct length_index *idx,
                     const struct skx_header *header, const struct skx_layout *layout)
{
    int status =
        file_write_all(writer->file.fd, writer->file.path, header, sizeof(*header), writer->err);

    writer->at = sizeof(*header);
    if (status == 0) {
        status = write_array(writer, idx->lengths, idx->count, layout->lengths);
    }
    if (status == 0 && idx->loss_tokens) {
        status = write_array(writer, idx->loss_tokens, idx->count, layout->loss_tokens);
    }
    if (status == 0 && idx->score_bits) {
        status = write_array(writer, idx->score_bits, idx->count, layout->scores);
    }
    return status;
}

int index_write_skx(const struct length_index *idx, const char *path, struct skrull_error *err)
{
    struct writer writer = {.err = err};
    struct skx_header header;
    struct skx_layout layout;
    int status;

    if (idx->count == 0) {
        return index_refuse_empty(path, err);
    }
    if (skx_layout_of(idx->count, skx_flags_of(idx), &layout) != 0) {
        return skrull_error_set(err, SKRULL_ERR_OUT_OF_RANGE, "%s: more rows than any file holds",
                                path);
    }
    status = fill_header(idx, &header, err);
    if (status < 0) {
        return status;
    }
    status = file_replace_begin(path, 0644, &writer.file, err);
    if (status < 0) {
        return status;
    }
    status = write_all(&writer, idx, &header, &layout);
    status = status < 0 ? status : index_check_whole(idx, err);
    if (status < 0) {
        file_replace_abort(&writer.file);
        return status;
    }
    return file_replace_commit(&writer.file, err);
}
