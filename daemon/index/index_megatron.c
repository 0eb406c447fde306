/*
 * Megatron-LM's IndexedDataset, PREFIX.idx beside PREFIX.bin: a length and a byte offset for each
 * sequence, then the sequences at which documents begin. Layout and checks: megatron/core/datasets/
 * indexed_dataset.py. fairseq and DeepSpeed write files with the same magic; they are told apart by
 * the size, the name, and by lengths that are all 1, unless the format is asked for.
 *
 * Everything the file says of itself is held against its size first. The .bin is never read; where
 * it is there, its size must be the index's. Thread-safe.
 */
#include "index/format.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckd.h"
#include "index/array_reader.h"
#include "index/payload.h"
#include "index/rows.h"

#define MAGIC "MMIDIDX\0" /* and its NUL: 9 bytes */
#define MAGIC_SIZE 9
#define HEADER_SIZE 34
#define FAIRSEQ_HEADER_SIZE 26 /* no count of documents */
#define SEQUENCE_SIZE 12       /* length and pointer */

#define DAMAGED "copy the file again, or preprocess again"
#define TO_TEXT "write the lengths as text, one integer a line, or as .skx"

struct idx_header {
    uint64_t item_size;   /* of a token in the .bin */
    uint64_t n_sequences; /* as many lengths and pointers as the file holds */
    uint64_t n_documents; /* indices: documents and one */
};

struct idx_reader {
    const struct index_source *source;
    struct idx_header header;
    struct array_reader lengths, pointers, documents;
    uint64_t i_sequence; /* the next */
    uint64_t bin_size;   /* up to there */
    struct rows rows;
    struct skrull_error *err;
};

static uint64_t load_u64(const unsigned char *bytes)
{
    uint64_t value;

    memcpy(&value, bytes, sizeof(value)); /* little-endian, as index_skx.c demands; unaligned */
    return value;
}

static int refuse(const struct index_source *source, int code, const char *what, const char *remedy,
                  struct skrull_error *err)
{
    return skrull_error_set(err, code, "%s: Megatron .idx: %s; %s", source->path, what, remedy);
}

static int check_version(const struct index_source *source, struct skrull_error *err)
{
    uint64_t version;

    if (source->head_size < MAGIC_SIZE || memcmp(source->head, MAGIC, MAGIC_SIZE) != 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: no Megatron .idx: it does not begin with MMIDIDX; leave the "
                                "format at auto",
                                source->path);
    }
    if (source->head_size < FAIRSEQ_HEADER_SIZE) {
        return refuse(source, SKRULL_ERR_DATA_LOSS, "truncated in its header", DAMAGED, err);
    }
    version = load_u64(source->head + MAGIC_SIZE);
    if (version == UINT64_C(1) << 56) {
        return refuse(source, SKRULL_ERR_INVALID_ARGUMENT, "written by a big-endian machine",
                      "preprocess on a little-endian one", err);
    }
    if (version != 1) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: Megatron .idx: version %" PRIu64
                                "; only version 1 is known; " TO_TEXT,
                                source->path, version);
    }
    return 0;
}

/* Bytes of a token by its code: u8, i8, i16, i32, i64, f64, f32, u16. */
static int take_code(const struct index_source *source, uint64_t *ret_item_size,
                     struct skrull_error *err)
{
    static const unsigned char item_sizes[] = {0, 1, 1, 2, 4, 8, 8, 4, 2};
    unsigned int code = source->head[MAGIC_SIZE + 8];

    if (code < 1 || code >= sizeof(item_sizes)) {
        return skrull_error_set(
            err, SKRULL_ERR_INVALID_ARGUMENT,
            "%s: Megatron .idx: token type %u; types 1 to 8 are known; " TO_TEXT, source->path,
            code);
    }
    *ret_item_size = item_sizes[code];
    return 0;
}

/* Whether `size` bytes are a Megatron index of so many, with or without modes. */
static int is_size_of(uint64_t size, uint64_t n_sequences, uint64_t n_documents)
{
    uint64_t rest;

    if (size < HEADER_SIZE || n_sequences > (size - HEADER_SIZE) / SEQUENCE_SIZE) {
        return 0;
    }
    rest = size - HEADER_SIZE - n_sequences * SEQUENCE_SIZE;
    if (n_documents > rest / 8) {
        return 0;
    }
    rest -= n_documents * 8;
    return rest == 0 || rest == n_sequences;
}

static int is_fairseq_size(uint64_t size, uint64_t n_sequences)
{
    return size >= FAIRSEQ_HEADER_SIZE &&
           n_sequences == (size - FAIRSEQ_HEADER_SIZE) / SEQUENCE_SIZE &&
           (size - FAIRSEQ_HEADER_SIZE) % SEQUENCE_SIZE == 0;
}

static int read_header(const struct index_source *source, struct idx_header *ret_header,
                       struct skrull_error *err)
{
    struct idx_header header = {0};
    uint64_t size = source->stamp.size;
    int status = check_version(source, err);

    if (status < 0) {
        return status;
    }
    header.n_sequences = load_u64(source->head + 18);
    header.n_documents = source->head_size < HEADER_SIZE ? 0 : load_u64(source->head + 26);
    if (is_size_of(size, header.n_sequences, header.n_documents)) {
        status = take_code(source, &header.item_size, err);
        if (status == 0) {
            *ret_header = header;
        }
        return status;
    }
    if (is_fairseq_size(size, header.n_sequences)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: a fairseq .idx of %" PRIu64
                                " sequences, by its size; fairseq is not built yet; " TO_TEXT,
                                source->path, header.n_sequences);
    }
    return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                            "%s: Megatron .idx: truncated or bytes after its end: the header says "
                            "%" PRIu64 " sequences and %" PRIu64
                            " document indices, which are not %" PRIu64 " bytes; " DAMAGED,
                            source->path, header.n_sequences, header.n_documents, size);
}

static int ends_in(const char *path, const char *end)
{
    size_t len = strlen(path), end_len = strlen(end);

    return len >= end_len && strcmp(path + len - end_len, end) == 0;
}

/* The next length, i32, which may be negative. */
static int next_length(struct idx_reader *reader, int32_t *ret_length)
{
    return array_reader_next(&reader->lengths, ret_length, reader->err);
}

/* DeepSpeed's data analyzer: one value an item, in one document. 1: all lengths are 1. */
static int is_all_ones(const struct index_source *source, const struct idx_header *header,
                       struct skrull_error *err)
{
    struct idx_reader reader = {.source = source, .err = err};
    int32_t length = 1;
    int status = array_reader_open(&reader.lengths, source, HEADER_SIZE, header->n_sequences,
                                   sizeof(length), err);

    for (uint64_t i = 0; status == 0 && i < header->n_sequences && length == 1; i++) {
        status = next_length(&reader, &length);
    }
    array_reader_close(&reader.lengths);
    return status < 0 ? status : length == 1;
}

static int refuse_deepspeed(const struct index_source *source, const struct idx_header *header,
                            struct skrull_error *err)
{
    static const char *const names[] = {"_sample_to_metric.idx", "_index_to_metric.idx",
                                        "_index_to_sample.idx",
                                        "_index_to_sample_percentile_merged.idx"};
    int is_deepspeed = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        is_deepspeed |= ends_in(source->path, names[i]);
    }
    if (!is_deepspeed && header->n_sequences > 1 && header->n_documents == 2) {
        is_deepspeed = is_all_ones(source, header, err);
    }
    if (is_deepspeed <= 0) {
        return is_deepspeed;
    }
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "%s: an index of DeepSpeed's data analyzer, by its name or by lengths "
                            "that are all 1: its values are in the .bin; deepspeed is not built "
                            "yet; " TO_TEXT "; format megatron takes it as it is",
                            source->path);
}

/* A length over 2^31 - 1 wraps around; the pointers still tell it. */
static int refuse_negative(const struct idx_reader *reader, int32_t length, uint64_t pointer)
{
    uint64_t next, place = HEADER_SIZE + 4 * reader->header.n_sequences;
    char truth[64] = "";

    if (reader->i_sequence + 1 < reader->header.n_sequences &&
        index_source_read(reader->source, &next, sizeof(next), place + 8 * (reader->i_sequence + 1),
                          NULL) == 0 &&
        next > pointer && (next - pointer) / reader->header.item_size > INT32_MAX) {
        (void)snprintf(truth, sizeof(truth), " (wrapped: by the pointers %" PRIu64 ")",
                       (next - pointer) / reader->header.item_size);
    }
    return skrull_error_set(reader->err, SKRULL_ERR_INVALID_ARGUMENT,
                            "%s: Megatron .idx: row %" PRIu64 " has length %" PRId32
                            "%s; split sequences of more than 2147483647 tokens",
                            reader->source->path, reader->i_sequence, length, truth);
}

static int next_sequence(struct idx_reader *reader, uint32_t *ret_length)
{
    int32_t length;
    uint64_t pointer, bytes;
    int status = next_length(reader, &length);

    status = status < 0 ? status : array_reader_next(&reader->pointers, &pointer, reader->err);
    if (status < 0) {
        return status;
    }
    if (length < 0) {
        return refuse_negative(reader, length, pointer);
    }
    if (pointer != reader->bin_size) {
        return skrull_error_set(reader->err, SKRULL_ERR_DATA_LOSS,
                                "%s: Megatron .idx: row %" PRIu64 " begins at byte %" PRIu64
                                " of the .bin, the rows before it end at %" PRIu64 "; " DAMAGED,
                                reader->source->path, reader->i_sequence, pointer,
                                reader->bin_size);
    }
    bytes = (uint64_t)length * reader->header.item_size;
    if (ckd_add(&reader->bin_size, reader->bin_size, bytes)) {
        return refuse(reader->source, SKRULL_ERR_DATA_LOSS, "sequences of over 2^64 bytes", DAMAGED,
                      reader->err);
    }
    reader->i_sequence++;
    *ret_length = (uint32_t)length;
    return 0;
}

/* The sequences before `end`, each a row, or together one. */
static int read_document(struct idx_reader *reader, uint64_t end, int is_row)
{
    int is_each = reader->source->unit != SKRULL_UNIT_DOCUMENT;
    uint64_t tokens = 0;

    while (reader->i_sequence < end) {
        uint32_t length = 0;
        int status = next_sequence(reader, &length);

        if (status == 0 && is_each) {
            status = rows_add_length(&reader->rows, length, reader->err);
        }
        if (status < 0) {
            return status;
        }
        tokens += length;
    }
    return is_row && !is_each ? rows_add_length(&reader->rows, tokens, reader->err) : 0;
}

static int refuse_document(const struct idx_reader *reader, uint64_t i, uint64_t document)
{
    return skrull_error_set(reader->err, SKRULL_ERR_DATA_LOSS,
                            "%s: Megatron .idx: document index %" PRIu64 " is %" PRId64
                            "; they rise from 0 to the %" PRIu64 " sequences; " DAMAGED,
                            reader->source->path, i, (int64_t)document, reader->header.n_sequences);
}

static int read_documents(struct idx_reader *reader)
{
    uint64_t document = 0;

    for (uint64_t i = 0; i < reader->header.n_documents; i++) {
        int is_last = i + 1 == reader->header.n_documents;
        int status = array_reader_next(&reader->documents, &document, reader->err);

        if (status < 0) {
            return status;
        }
        if ((i == 0 && document != 0) || document < reader->i_sequence ||
            document > reader->header.n_sequences ||
            (is_last && document != reader->header.n_sequences)) {
            return refuse_document(reader, i, document);
        }
        status = read_document(reader, document, i > 0);
        if (status < 0) {
            return status;
        }
    }
    return reader->i_sequence == reader->header.n_sequences
               ? 0
               : refuse(reader->source, SKRULL_ERR_DATA_LOSS, "it has no document index", DAMAGED,
                        reader->err);
}

/* The size of the .bin beside the file behind the descriptor, where that has such a name; 1: known.
 * By the link in /proc, since the caller's path may be relative to anything. */
static int find_bin_size(int fd, uint64_t *ret_size)
{
    char link[32], path[PATH_MAX];
    struct stat bin;
    ssize_t len;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    len = readlink(link, path, sizeof(path) - 1);
    if (len < 0) {
        return 0;
    }
    path[len] = '\0';
    if (!ends_in(path, ".idx")) {
        return 0;
    }
    memcpy(path + len - 4, ".bin", 4);
    if (fstatat(AT_FDCWD, path, &bin, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(bin.st_mode)) {
        return 0;
    }
    *ret_size = (uint64_t)bin.st_size;
    return 1;
}

static int check_bin(const struct idx_reader *reader)
{
    uint64_t size;

    if (!find_bin_size(reader->source->fd, &size) || size == reader->bin_size) {
        return 0;
    }
    return skrull_error_set(reader->err, SKRULL_ERR_DATA_LOSS,
                            "%s: Megatron .idx: its sequences take %" PRIu64
                            " bytes, the .bin beside it has %" PRIu64
                            ": preprocessing was cut off, or is not done; " DAMAGED,
                            reader->source->path, reader->bin_size, size);
}

static int read_all(struct idx_reader *reader)
{
    const struct idx_header *header = &reader->header;
    uint64_t n = header->n_sequences;
    int is_each = reader->source->unit != SKRULL_UNIT_DOCUMENT;
    int status;

    status = rows_reserve(&reader->rows, is_each ? n : header->n_documents, reader->err);
    if (status == 0) {
        status =
            array_reader_open(&reader->lengths, reader->source, HEADER_SIZE, n, 4, reader->err);
    }
    if (status == 0) {
        status = array_reader_open(&reader->pointers, reader->source, HEADER_SIZE + 4 * n, n, 8,
                                   reader->err);
    }
    if (status == 0) {
        status =
            array_reader_open(&reader->documents, reader->source, HEADER_SIZE + SEQUENCE_SIZE * n,
                              header->n_documents, 8, reader->err);
    }
    status = status < 0 ? status : read_documents(reader);
    status = status < 0 ? status : index_source_check_unchanged(reader->source, reader->err);
    return status < 0 ? status : check_bin(reader);
}

/* N = 0 is a sound index: an empty shard of a preprocessing run. */
static bool header_says_none(const struct idx_header *header)
{
    return header->n_sequences == 0 && header->n_documents <= 1;
}

static int hand_over_none(struct rows *rows, struct index_file *ret_file, struct skrull_error *err)
{
    rows_free(rows);
    ret_file->idx.lengths = ret_file->parsed = calloc(1, sizeof(*ret_file->parsed));
    return ret_file->parsed ? 0
                            : skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                               "%s: out of memory", ret_file->path);
}

static int megatron_open(const struct index_source *source, struct index_file *ret_file,
                         struct skrull_error *err)
{
    struct idx_reader reader = {.source = source, .rows = {.source = source}, .err = err};
    int status = read_header(source, &reader.header, err);

    if (status == 0 && !source->is_forced) {
        status = refuse_deepspeed(source, &reader.header, err);
    }
    if (status < 0) {
        return status;
    }
    status = read_all(&reader);
    array_reader_close(&reader.lengths);
    array_reader_close(&reader.pointers);
    array_reader_close(&reader.documents);
    if (status < 0) {
        rows_free(&reader.rows);
        return status;
    }
    return header_says_none(&reader.header) ? hand_over_none(&reader.rows, ret_file, err)
                                            : rows_hand_over(&reader.rows, NULL, ret_file, err);
}

static int megatron_matches(const struct index_source *source)
{
    return source->head_size >= MAGIC_SIZE && memcmp(source->head, MAGIC, MAGIC_SIZE) == 0;
}

static int megatron_verify(const struct index_file *file, uint64_t *ret_hash,
                           struct skrull_error *err)
{
    return payload_hash(&file->idx, ret_hash, err);
}

const struct index_format format_megatron = {
    .name = "megatron",
    .summary = "Megatron-LM's .idx: a row a sequence, or a document",
    .takes = TAKES_DOCUMENTS,
    .matches = megatron_matches,
    .open = megatron_open,
    .verify = megatron_verify,
};
