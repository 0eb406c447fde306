/*
 * Bytes as an index file: the first names the format (0: found out), whether the hashes of a .skx
 * are put right, so that what stands behind them is reached, and whether the index is also written
 * as .skx and read back; the second the column and the unit. The rest is the file. Whatever opens
 * must describe itself and keep its own sums; whatever does not must say why.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xxhash.h>

#include "fuzz/fuzz.h"
#include "index/index.h"

/* A small file may unpack to many rows. */
#define MAX_COUNT (UINT64_C(1) << 18)
#define MAX_DECODED (UINT64_C(1) << 22)

/* Of .skx. */
#define HEADER_BYTES ((size_t)64)
#define PAYLOAD_HASH_AT ((size_t)48)
#define HEADER_HASH_AT ((size_t)56)

/* Bits of the first byte. */
#define CHOICE_FORMAT 63
#define CHOICE_HASH 64
#define CHOICE_WRITE 128

static const char *const formats[] = {
    "auto",
#define X(name) #name,
#include "index/formats.def"
#undef X
};
#define N_FORMATS (sizeof(formats) / sizeof(formats[0]))

static const char *const columns[] = {
    NULL, "length", "a", "prompt+response", "1", "2+1", "tokens", "a.b", "+", "\xff",
};
#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* Opens bytes as a file; NULL: refused, with a message. */
static struct length_index *open_bytes(const uint8_t *data, size_t size,
                                       const struct index_options *options)
{
    const int fd = memfd_create("index", MFD_CLOEXEC);
    struct length_index *idx = NULL;
    struct skrull_error err = {0};
    int rc;

    fuzz_check(fd >= 0 && write(fd, data, size) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0,
               "the file could not be made");
    rc = index_open(fd, "fuzz.idx", options, &idx, &err);
    fuzz_check(close(fd) == 0, "the descriptor was closed by somebody else");
    fuzz_check(rc <= 0, "an error is negative");
    fuzz_check((rc == 0) == (idx != NULL), "there is an index without, and only without, an error");
    fuzz_check((rc == 0) == (err.message[0] == 0), "an error has a message");
    return idx;
}

/* Sums and statistics of an index that index_verify found sound. */
static void check_sums(const struct length_index *idx)
{
    struct index_stats stats;
    uint64_t tokens = 0, loss_tokens = 0, counted = 0;

    for (uint64_t i = 0; i < idx->count; i++) {
        fuzz_check(idx->lengths[i] > 0, "a length is at least 1");
        tokens += idx->lengths[i];
        if (idx->loss_tokens) {
            fuzz_check(idx->loss_tokens[i] <= idx->lengths[i], "loss tokens are tokens");
            loss_tokens += idx->loss_tokens[i];
        }
    }
    fuzz_check(tokens == idx->tokens && loss_tokens == idx->n_loss_tokens, "the sums are right");
    fuzz_check(index_describe(idx, &stats, NULL) == 0, "a sound index has statistics");
    for (size_t i = 0; i < sizeof(stats.bins) / sizeof(stats.bins[0]); i++) {
        counted += stats.bins[i];
    }
    fuzz_check(stats.count == idx->count && counted == idx->count, "every row is counted");
    fuzz_check(stats.min <= stats.p50 && stats.p50 <= stats.p90 && stats.p90 <= stats.p99 &&
                   stats.p99 <= stats.p999 && stats.p999 <= stats.max,
               "quantiles ascend");
}

/* The index as .skx has the same rows, hence the same hash. */
static void check_written(const struct length_index *idx, uint64_t hash)
{
    static uint8_t bytes[1 << 16];
    struct length_index *written;
    uint64_t written_hash = 0;
    char path[64];
    size_t size;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/tmp/skrull-fuzz-%ld.skx", (long)getpid());
    if (idx->count > 1000 || index_write_skx(idx, path, NULL)) {
        return;
    }
    file = fopen(path, "rb");
    fuzz_check(file != NULL, "what was written can be opened");
    size = fread(bytes, 1, sizeof(bytes), file);
    (void)fclose(file);
    (void)unlink(path);
    written = open_bytes(bytes, size, &(struct index_options){.format = "skx"});
    fuzz_check(written != NULL, "what was written is an index");
    fuzz_check(index_verify(written, &written_hash, NULL) == 0, "and a sound one");
    fuzz_check(written_hash == hash && written->count == idx->count, "of the same rows");
    index_close(written);
}

/* A copy whose hashes are those of its content; the host is little-endian. */
static uint8_t *copy_hashed(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size);
    uint64_t hash;

    fuzz_check(copy != NULL, "there is memory");
    memcpy(copy, data, size);
    hash = XXH3_64bits(&copy[HEADER_BYTES], size - HEADER_BYTES);
    memcpy(&copy[PAYLOAD_HASH_AT], &hash, sizeof(hash));
    hash = XXH3_64bits(copy, HEADER_HASH_AT);
    memcpy(&copy[HEADER_HASH_AT], &hash, sizeof(hash));
    return copy;
}

static struct length_index *open_choice(uint8_t choice, struct fuzz_input *input)
{
    const uint8_t column = fuzz_u8(input);
    const struct index_options options = {.format = formats[(choice & CHOICE_FORMAT) % N_FORMATS],
                                          .column = columns[(column & 127) % N_COLUMNS],
                                          .unit = column & 128 ? SKRULL_UNIT_DOCUMENT
                                                               : SKRULL_UNIT_SEQUENCE,
                                          .max_count = MAX_COUNT,
                                          .max_decoded = MAX_DECODED};
    struct length_index *idx;
    uint8_t *copy;

    if (!(choice & CHOICE_HASH) || input->size < HEADER_BYTES) {
        return open_bytes(input->data, input->size, &options);
    }
    copy = copy_hashed(input->data, input->size);
    idx = open_bytes(copy, input->size, &options);
    free(copy);
    return idx;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {.data = data, .size = size};
    const uint8_t choice = fuzz_u8(&input);
    struct length_index *idx = open_choice(choice, &input);
    uint64_t hash = 0;

    if (idx && index_verify(idx, &hash, NULL) == 0) {
        check_sums(idx);
        if (choice & CHOICE_WRITE) {
            check_written(idx, hash);
        }
    }
    index_close(idx);
    return 0;
}
