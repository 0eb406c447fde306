/*
 * The header of a .npy: magic, version, length, then the literal of a Python dict with the keys
 * descr, fortran_order and shape, in any order. Format: numpy's NEP 1 and numpy/lib/format.py. Only
 * these literals are known: strings without escapes, True, False, tuples of integers. Thread-safe.
 */
#include "index/npy_header.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ckd.h"

/* As numpy allows for files that are not trusted. */
#define MAX_HEADER 10000
#define HOW_TO "numpy.save(PATH, numpy.array(lengths, dtype='uint32')) writes what is read here"

enum key { KEY_DESCR = 1, KEY_ORDER = 2, KEY_SHAPE = 4, ALL_KEYS = 7 };

struct literal {
    const struct index_source *source;
    const char *begin, *at, *end;
    unsigned int seen; /* enum key */
    struct npy_header header;
    struct skrull_error *err;
};

static int refuse(const struct literal *l, const char *what)
{
    return skrull_error_set(l->err, SKRULL_ERR_INVALID_ARGUMENT, "%s: .npy: %s; %s",
                            l->source->path, what, HOW_TO);
}

static int malformed(const struct literal *l)
{
    return skrull_error_set(l->err, SKRULL_ERR_INVALID_ARGUMENT,
                            "%s: .npy: the header is no literal of numpy's at its byte %zu; %s",
                            l->source->path, (size_t)(l->at - l->begin), HOW_TO);
}

static void skip_blanks(struct literal *l)
{
    while (l->at < l->end && (*l->at == ' ' || *l->at == '\t' || *l->at == '\n')) {
        l->at++;
    }
}

/* 1: took the byte, after blanks. */
static int take(struct literal *l, char byte)
{
    skip_blanks(l);
    if (l->at < l->end && *l->at == byte) {
        l->at++;
        return 1;
    }
    return 0;
}

static int take_word(struct literal *l, const char *word)
{
    size_t len = strlen(word);

    skip_blanks(l);
    if ((size_t)(l->end - l->at) >= len && memcmp(l->at, word, len) == 0) {
        l->at += len;
        return 1;
    }
    return 0;
}

/* A string between its quotes, borrowed; NULL: none. */
static const char *take_string(struct literal *l, size_t *ret_len)
{
    const char *begin, *close;
    char quote;

    skip_blanks(l);
    if (l->at >= l->end || (*l->at != '\'' && *l->at != '"')) {
        return NULL;
    }
    quote = *l->at;
    begin = l->at + 1;
    close = memchr(begin, quote, (size_t)(l->end - begin));
    if (!close || memchr(begin, '\\', (size_t)(close - begin))) {
        return NULL;
    }
    l->at = close + 1;
    *ret_len = (size_t)(close - begin);
    return begin;
}

static int is_one_of(char byte, const char *bytes)
{
    return byte != '\0' && strchr(bytes, byte) != NULL;
}

static int take_descr(struct literal *l)
{
    size_t len;
    const char *descr;

    if (take(l, '[')) {
        return refuse(l, "descr has several fields; a length index is one array of numbers");
    }
    descr = take_string(l, &len);
    if (!descr) {
        return malformed(l);
    }
    if (len == 2 && descr[0] == '|' && descr[1] == 'O') {
        return refuse(l, "descr |O: Python objects, a pickle, which can run code");
    }
    if (len != 3 || !is_one_of(descr[0], "<>|=") || !is_one_of(descr[1], "iuf") ||
        !is_one_of(descr[2], descr[1] == 'f' ? "48" : "1248")) {
        return skrull_error_set(l->err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: .npy: descr %.*s; integers of 1 to 8 bytes and f4, f8 are "
                                "read; %s",
                                l->source->path, len < 20 ? (int)len : 20, descr, HOW_TO);
    }
    l->header.is_big = descr[0] == '>';
    l->header.kind = descr[1];
    l->header.size = (size_t)(descr[2] - '0');
    return 0;
}

/* 0, 1: took a number; negative: too large. */
static int take_number(struct literal *l, uint64_t *ret_number)
{
    uint64_t number = 0;
    const char *begin;

    skip_blanks(l);
    for (begin = l->at; l->at < l->end && *l->at >= '0' && *l->at <= '9'; l->at++) {
        if (ckd_mul(&number, number, UINT64_C(10)) ||
            ckd_add(&number, number, (uint64_t)(*l->at - '0'))) {
            return refuse(l, "a shape over 2^64");
        }
    }
    if (l->at == begin) {
        return 0;
    }
    (void)take(l, 'L'); /* Python 2's */
    *ret_number = number;
    return 1;
}

static int take_shape(struct literal *l)
{
    uint64_t shape[3] = {0};
    size_t n = 0;

    if (!take(l, '(')) {
        return malformed(l);
    }
    while (n < 3) {
        int outcome = take_number(l, &shape[n]);

        if (outcome < 0) {
            return outcome;
        }
        n += outcome > 0;
        if (outcome == 0 || !take(l, ',')) {
            break;
        }
    }
    if (n < 3 && !take(l, ')')) {
        return malformed(l);
    }
    if (n == 0 || n == 3) {
        return refuse(l, n == 0 ? "a single number" : "three or more dimensions");
    }
    if (n == 2 && shape[1] != 1) {
        return skrull_error_set(l->err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: .npy: shape (%" PRIu64 ", %" PRIu64
                                "): which column holds the lengths? save that one alone: "
                                "numpy.save(PATH, a[:, 0])",
                                l->source->path, shape[0], shape[1]);
    }
    l->header.count = shape[0];
    return 0;
}

static int take_entry(struct literal *l)
{
    size_t len;
    const char *key = take_string(l, &len);
    enum key what;
    int status = 0;

    if (!key || !take(l, ':')) {
        return malformed(l);
    }
    if (len == 5 && memcmp(key, "descr", 5) == 0) {
        what = KEY_DESCR;
        status = take_descr(l);
    } else if (len == 5 && memcmp(key, "shape", 5) == 0) {
        what = KEY_SHAPE;
        status = take_shape(l);
    } else if (len == 13 && memcmp(key, "fortran_order", 13) == 0) {
        what = KEY_ORDER; /* all the same in one column */
        status = take_word(l, "True") || take_word(l, "False") ? 0 : malformed(l);
    } else {
        return refuse(l, "the header has a key besides descr, fortran_order and shape");
    }
    if (status == 0 && (l->seen & what)) {
        status = refuse(l, "the header has a key twice");
    }
    l->seen |= what;
    return status;
}

static int take_header(struct literal *l)
{
    if (!take(l, '{')) {
        return malformed(l);
    }
    while (!take(l, '}')) {
        int status = take_entry(l);

        if (status < 0) {
            return status;
        }
        if (!take(l, ',')) {
            if (!take(l, '}')) {
                return malformed(l);
            }
            break;
        }
    }
    skip_blanks(l);
    if (l->at < l->end) {
        return malformed(l);
    }
    return l->seen == ALL_KEYS ? 0 : refuse(l, "the header lacks descr, fortran_order or shape");
}

/* Where the literal stands. */
static int find_literal(const struct index_source *source, uint64_t *ret_offset, uint64_t *ret_len,
                        struct skrull_error *err)
{
    const unsigned char *head = source->head;
    size_t fixed;
    uint64_t len;

    if (source->head_size < NPY_MAGIC_SIZE || memcmp(head, NPY_MAGIC, NPY_MAGIC_SIZE) != 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: no .npy: it does not begin with \\x93NUMPY; leave the format "
                                "at auto",
                                source->path);
    }
    if (source->head_size > NPY_MAGIC_SIZE && (head[6] < 1 || head[6] > 3)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: .npy version %d; 1 to 3 are read; %s", source->path, head[6],
                                HOW_TO);
    }
    fixed = source->head_size > NPY_MAGIC_SIZE && head[6] == 1 ? 10 : 12;
    if (source->head_size < fixed) {
        return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                                "%s: truncated in its header; copy the file again", source->path);
    }
    len = head[8] | (uint64_t)head[9] << 8;
    if (fixed == 12) {
        len |= (uint64_t)head[10] << 16 | (uint64_t)head[11] << 24;
    }
    if (len > MAX_HEADER) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: .npy: a header of %" PRIu64 " bytes, %d are read; %s",
                                source->path, len, MAX_HEADER, HOW_TO);
    }
    if (len > source->stamp.size - fixed) {
        return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                                "%s: truncated: a header of %" PRIu64 " bytes, %" PRIu64
                                " are there; copy the file again",
                                source->path, len, source->stamp.size - fixed);
    }
    *ret_offset = fixed;
    *ret_len = len;
    return 0;
}

static int check_size(const struct literal *l)
{
    uint64_t have = l->source->stamp.size - l->header.offset, need;

    if (ckd_mul(&need, l->header.count, (uint64_t)l->header.size)) {
        need = UINT64_MAX;
    }
    if (have == need) {
        return 0;
    }
    return skrull_error_set(l->err, SKRULL_ERR_DATA_LOSS,
                            "%s: %s: %" PRIu64 " bytes of data, but %" PRIu64
                            " items of %zu take %s%" PRIu64 "; copy or save the file again",
                            l->source->path, have < need ? "truncated" : "bytes after its end",
                            have, l->header.count, l->header.size,
                            need == UINT64_MAX ? "over " : "", need);
}

int npy_header_read(const struct index_source *source, struct npy_header *ret_header,
                    struct skrull_error *err)
{
    struct literal l = {.source = source, .err = err};
    uint64_t offset = 0, len = 0;
    char *text;
    int status = find_literal(source, &offset, &len, err);

    if (status < 0) {
        return status;
    }
    text = malloc((size_t)len + 1);
    if (!text) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "%s: out of memory",
                                source->path);
    }
    status = index_source_read(source, text, (size_t)len, offset, err);
    l.begin = l.at = text;
    l.end = text + len;
    l.header.offset = offset + len;
    status = status < 0 ? status : take_header(&l);
    status = status < 0 ? status : check_size(&l);
    free(text);
    if (status == 0) {
        *ret_header = l.header;
    }
    return status;
}
