/*
 * .npy: one array of lengths, integers of any size and byte order, or floats that are all whole
 * (pandas makes floats of integers beside a missing one). Floats are taken apart as bits, so
 * nothing here rounds. Thread-safe.
 */
#include "index/format.h"

#include <inttypes.h>
#include <string.h>

#include "index/array_reader.h"
#include "index/npy_header.h"
#include "index/payload.h"
#include "index/rows.h"

/* What an item may be besides a whole number. */
enum fault { FAULT_NONE, FAULT_NEGATIVE, FAULT_FRACTION, FAULT_NAN, FAULT_LARGE };

static uint64_t to_u64(const unsigned char *bytes, size_t size, int is_big)
{
    uint64_t value = 0;

    for (size_t i = 0; i < size; i++) {
        value = value << 8 | bytes[is_big ? i : size - 1 - i];
    }
    return value;
}

/* A signed or unsigned integer. */
static enum fault take_integer(uint64_t bits, const struct npy_header *header, uint64_t *ret_value)
{
    *ret_value = bits;
    return header->kind == 'i' && bits >> (8 * header->size - 1) ? FAULT_NEGATIVE : FAULT_NONE;
}

/* IEEE 754 binary32 or binary64: fraction bits, then exponent, then sign. */
static enum fault take_float(uint64_t bits, size_t size, uint64_t *ret_value)
{
    unsigned int n_fraction = size == 8 ? 52 : 23, n_exponent = size == 8 ? 11 : 8;
    uint64_t fraction = bits & ((UINT64_C(1) << n_fraction) - 1);
    uint64_t most = (UINT64_C(1) << n_exponent) - 1, exponent = bits >> n_fraction & most;
    uint64_t one = most >> 1; /* the exponent of 1.0 */

    *ret_value = 0;
    if (exponent == most) {
        return FAULT_NAN;
    }
    if (exponent == 0 && fraction == 0) {
        return FAULT_NONE; /* 0 or -0 */
    }
    if (bits >> (8 * size - 1)) {
        return FAULT_NEGATIVE;
    }
    if (exponent < one) {
        return FAULT_FRACTION;
    }
    if (exponent - one > 32) {
        return FAULT_LARGE;
    }
    fraction |= UINT64_C(1) << n_fraction;
    if (exponent - one >= n_fraction) {
        *ret_value = fraction << (exponent - one - n_fraction);
        return FAULT_NONE;
    }
    n_fraction -= (unsigned int)(exponent - one);
    *ret_value = fraction >> n_fraction;
    return fraction & ((UINT64_C(1) << n_fraction) - 1) ? FAULT_FRACTION : FAULT_NONE;
}

static int refuse(const struct rows *rows, enum fault fault, struct skrull_error *err)
{
    static const char *const words[] = {
        [FAULT_NEGATIVE] = "negative",
        [FAULT_FRACTION] = "no whole number",
        [FAULT_NAN] = "NaN or infinite",
        [FAULT_LARGE] = "over 4294967295",
    };

    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "%s: row %" PRIu64
                            " is %s; lengths are whole numbers from 1 to 4294967295",
                            rows->source->path, rows->count, words[fault]);
}

static int read_rows(struct array_reader *reader, const struct npy_header *header,
                     struct rows *rows, struct skrull_error *err)
{
    for (uint64_t i = 0; i < header->count; i++) {
        unsigned char item[8];
        uint64_t bits, value;
        enum fault fault;
        int status = array_reader_next(reader, item, err);

        if (status < 0) {
            return status;
        }
        bits = to_u64(item, header->size, header->is_big);
        fault = header->kind == 'f' ? take_float(bits, header->size, &value)
                                    : take_integer(bits, header, &value);
        status = fault ? refuse(rows, fault, err) : rows_add_length(rows, value, err);
        if (status < 0) {
            return status;
        }
    }
    return index_source_check_unchanged(reader->source, err);
}

static int npy_open(const struct index_source *source, struct index_file *ret_file,
                    struct skrull_error *err)
{
    struct rows rows = {.source = source};
    struct array_reader reader;
    struct npy_header header;
    int status = npy_header_read(source, &header, err);

    if (status < 0) {
        return status;
    }
    status = array_reader_open(&reader, source, header.offset, header.count, header.size, err);
    status = status < 0 ? status : rows_reserve(&rows, header.count, err);
    status = status < 0 ? status : read_rows(&reader, &header, &rows, err);
    array_reader_close(&reader);
    if (status < 0) {
        rows_free(&rows);
        return status;
    }
    return rows_hand_over(&rows, NULL, ret_file, err);
}

static int npy_matches(const struct index_source *source)
{
    return source->head_size >= NPY_MAGIC_SIZE &&
           memcmp(source->head, NPY_MAGIC, NPY_MAGIC_SIZE) == 0;
}

static int npy_verify(const struct index_file *file, uint64_t *ret_hash, struct skrull_error *err)
{
    return payload_hash(&file->idx, ret_hash, err);
}

const struct index_format format_npy = {
    .name = "npy",
    .summary = "NumPy: one array of numbers",
    .matches = npy_matches,
    .open = npy_open,
    .verify = npy_verify,
};
