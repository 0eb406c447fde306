/*
 * Tokens, generated or Megatron's. Generated: a walk through the vocabulary by a fixed rule, of
 * which one step in eight is a surprise; a model can learn the rule, so losses fall. Megatron's
 * .idx: "MMIDIDX\0\0", u64 version 1, u8 kind, u64 sequences, u64 documents, then i32 lengths, i64
 * offsets and i64 first sequences of documents. Files are mapped; what they say is checked where it
 * is used.
 */
#include "tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define IDX_HEAD 34u /* bytes before the lengths */

struct mapped {
    const unsigned char *at; /* NULL where size is 0 */
    size_t size;
};

struct megatron {
    struct mapped bin, idx;
    uint64_t n_sequences, n_documents;
    size_t token_bytes;
    bool is_signed, is_document;
};

struct token_source {
    uint32_t vocabulary;
    size_t n_files; /* 0: generated */
    struct megatron *files;
};

static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void generate(const struct token_source *source, const struct token_range *range,
                     int32_t *ret_tokens)
{
    uint64_t seed = mix(mix(range->dataset) ^ range->index), vocabulary = source->vocabulary;
    uint64_t token = seed % vocabulary, end = (uint64_t)range->begin + range->n;

    for (uint64_t t = 0; t < end; t++) {
        uint64_t dice = mix(seed + t + 1);

        if (t >= range->begin) {
            ret_tokens[t - range->begin] = (int32_t)token;
        }
        token = (dice & 7) == 0 ? (dice >> 3) % vocabulary : (token * 5 + 7) % vocabulary;
    }
}

static int map_file(const char *prefix, const char *suffix, struct mapped *ret,
                    struct skrull_error *err)
{
    char path[4096];
    struct stat about;
    int fd, n = snprintf(path, sizeof(path), "%s%s", prefix, suffix);
    void *at = NULL;

    if (n < 0 || (size_t)n >= sizeof(path)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "--tokens: the path is too long");
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &about) < 0 ||
        (about.st_size > 0 &&
         (at = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0)) == MAP_FAILED)) {
        int rc = skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "--tokens: %s: %s", path,
                                  strerror(errno));

        if (fd >= 0) {
            (void)close(fd);
        }
        return rc;
    }
    (void)close(fd);
    *ret = (struct mapped){.at = at, .size = (size_t)about.st_size};
    return 0;
}

static uint64_t read_le(const unsigned char *at, size_t n_bytes)
{
    uint64_t number = 0;

    for (size_t i = n_bytes; i-- > 0;) {
        number = number << 8 | at[i];
    }
    return number;
}

/* Bytes of a token by Megatron's code of its type; 0: no integer. */
static size_t bytes_of_kind(unsigned char kind, bool *ret_is_signed)
{
    static const unsigned char sizes[] = {0, 1, 1, 2, 4, 8, 0, 0, 2};

    *ret_is_signed = kind >= 2 && kind <= 5;
    return kind < sizeof(sizes) ? sizes[kind] : 0;
}

static int read_head(const char *prefix, struct megatron *file, struct skrull_error *err)
{
    const unsigned char *at = file->idx.at;
    size_t left;

    if (file->idx.size < IDX_HEAD || memcmp(at, "MMIDIDX\0\0", 9) != 0 || read_le(at + 9, 8) != 1) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "--tokens: %s.idx: not a Megatron index of version 1", prefix);
    }
    file->token_bytes = bytes_of_kind(at[17], &file->is_signed);
    file->n_sequences = read_le(at + 18, 8);
    file->n_documents = read_le(at + 26, 8);
    left = file->idx.size - IDX_HEAD;
    if (file->token_bytes == 0 || file->n_sequences > left / 12 ||
        file->n_documents > (left - file->n_sequences * 12) / 8) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "--tokens: %s.idx: shorter than it says, or tokens are no integers",
                                prefix);
    }
    return 0;
}

static struct token_source *source_new(uint32_t vocabulary, size_t n_files)
{
    struct token_source *source = calloc(1, sizeof(*source));

    if (source) {
        source->vocabulary = vocabulary;
        source->files = n_files ? calloc(n_files, sizeof(source->files[0])) : NULL;
        if (n_files && !source->files) {
            free(source);
            return NULL;
        }
    }
    return source;
}

static int out_of_memory(struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for tokens");
}

int tokens_generated(uint32_t vocabulary, struct token_source **ret, struct skrull_error *err)
{
    struct token_source *source = source_new(vocabulary, 0);

    if (!source) {
        return out_of_memory(err);
    }
    *ret = source;
    return 0;
}

int tokens_megatron(const char *const *prefixes, const bool *is_document, size_t n_prefixes,
                    uint32_t vocabulary, struct token_source **ret, struct skrull_error *err)
{
    struct token_source *source = source_new(vocabulary, n_prefixes);
    int rc = source ? 0 : out_of_memory(err);

    for (size_t i = 0; i < n_prefixes && rc == 0; i++) {
        struct megatron *file = &source->files[source->n_files++];

        file->is_document = is_document[i];
        rc = map_file(prefixes[i], ".idx", &file->idx, err);
        if (rc == 0) {
            rc = map_file(prefixes[i], ".bin", &file->bin, err);
        }
        if (rc == 0) {
            rc = read_head(prefixes[i], file, err);
        }
    }
    if (rc < 0) {
        tokens_free(source);
        return rc;
    }
    *ret = source;
    return 0;
}

static void unmap(const struct mapped *mapped)
{
    if (mapped->at) {
        (void)munmap((void *)(uintptr_t)mapped->at, mapped->size);
    }
}

void tokens_free(struct token_source *source)
{
    if (source) {
        for (size_t i = 0; i < source->n_files; i++) {
            unmap(&source->files[i].bin);
            unmap(&source->files[i].idx);
        }
        free(source->files);
        free(source);
    }
}

/* First byte of a row in the .bin; -1: there is no such row. */
static int64_t row_offset(const struct megatron *file, uint64_t row)
{
    const unsigned char *offsets = file->idx.at + IDX_HEAD + file->n_sequences * 4;

    if (file->is_document) {
        if (row >= file->n_documents) {
            return -1;
        }
        row = read_le(offsets + file->n_sequences * 8 + row * 8, 8);
    }
    return row < file->n_sequences ? (int64_t)read_le(offsets + row * 8, 8) : -1;
}

static int read_megatron(const struct token_source *source, const struct token_range *range,
                         int32_t *ret_tokens, struct skrull_error *err)
{
    const struct megatron *file = &source->files[range->dataset];
    int64_t offset = row_offset(file, range->index);
    uint64_t size = (uint64_t)file->token_bytes;
    uint64_t skip = range->begin * size, wanted = range->n * size;

    if (offset < 0 || (uint64_t)offset > file->bin.size ||
        skip + wanted > file->bin.size - (uint64_t)offset) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "--tokens: row %" PRIu64 " of data set %" PRIu32
                                " is not in its .bin; is it that of the job's index?",
                                range->index, range->dataset);
    }
    for (uint32_t t = 0; t < range->n; t++) {
        uint64_t token = read_le(file->bin.at + offset + skip + t * size, file->token_bytes);

        if (token >= source->vocabulary) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "--tokens: row %" PRIu64 " of data set %" PRIu32
                                    " has token %" PRIu64 "; the model's vocabulary is %" PRIu32,
                                    range->index, range->dataset, token, source->vocabulary);
        }
        ret_tokens[t] = (int32_t)token;
    }
    return 0;
}

int tokens_read(const struct token_source *source, const struct token_range *range,
                int32_t *ret_tokens, struct skrull_error *err)
{
    if (source->n_files == 0) {
        generate(source, range, ret_tokens);
        return 0;
    }
    if (range->dataset >= source->n_files) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "--tokens: none was given for data set %" PRIu32, range->dataset);
    }
    return read_megatron(source, range, ret_tokens, err);
}
