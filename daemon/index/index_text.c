/*
 * Text: whole numbers 1 to 2^32 - 1, apart by blanks or line ends, one a line as a rule. Taken as
 * well: CRLF, a UTF-8 byte order mark, blank lines, `#` to the end of a line, a last line without
 * its end.
 *
 * Read in pieces into memory, never mapped: a file that is cut meanwhile is then an error and no
 * SIGBUS. The parser is a state kept across pieces, so no line is too long for a buffer; its inner
 * loop touches each byte once. Rows grow by doubling from an estimate. Thread-safe.
 */
#include "index/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckd.h"
#include "index/payload.h"

#define PIECE_SIZE ((size_t)1 << 18)
/* Room for short lengths without growing too often; real lists have 4 to 6 bytes a row. */
#define BYTES_PER_ROW 5
/* The first guess at most, 64 MiB: what a large, sparse file claims to hold is not believed. */
#define MAX_FIRST_ROOM ((uint64_t)1 << 24)
#define HOW_TO "a text index holds whole numbers from 1 to 4294967295, one a line"

struct text_parser {
    const struct index_source *source;
    struct skrull_error *err;
    uint32_t *rows; /* owned */
    size_t n_rows, room;
    uint64_t tokens;
    uint64_t line;     /* from 1 */
    uint64_t value;    /* of the number that is being read */
    const char *piece; /* begin of the bytes at hand; borrowed */
    int is_number, is_comment;
};

static inline int is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static int refuse(const struct text_parser *text, const char *what)
{
    return skrull_error_set(text->err, SKRULL_ERR_INVALID_ARGUMENT, "%s: line %" PRIu64 ": %s; %s",
                            text->source->path, text->line, what, HOW_TO);
}

/* The word that holds the offending byte, as far as it is printable. */
static int refuse_word(const struct text_parser *text, const char *at, const char *end)
{
    char word[24], what[64];
    size_t len = 0;

    if (*at == '\0') {
        return refuse(text, "a NUL byte");
    }
    while (at > text->piece && is_digit(at[-1])) {
        at--;
    }
    while (at < end && len < sizeof(word) - 1 && *at > ' ' && *at < 0x7f) {
        word[len++] = *at++;
    }
    word[len] = '\0';
    if (len == 0) {
        (void)snprintf(what, sizeof(what), "byte 0x%02x", (unsigned int)(unsigned char)*at);
    } else {
        (void)snprintf(what, sizeof(what), "%s is no whole number", word);
    }
    return refuse(text, what);
}

static int grow(struct text_parser *text)
{
    size_t room = text->room * 2;
    uint32_t *rows;

    if (text->n_rows >= text->source->max_count) {
        return skrull_error_set(text->err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "%s: more than %" PRIu64
                                " rows, the limit of text; convert it to .skx "
                                "in parts, or list it as several data sets",
                                text->source->path, text->source->max_count);
    }
    rows = room > text->room && room <= SIZE_MAX / sizeof(*rows)
               ? realloc(text->rows, room * sizeof(*rows))
               : NULL;
    if (!rows) {
        return skrull_error_set(text->err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "%s: out of memory at line %" PRIu64, text->source->path,
                                text->line);
    }
    text->rows = rows;
    text->room = room;
    return 0;
}

static int end_number(struct text_parser *text)
{
    text->is_number = 0;
    if (text->value == 0) {
        return refuse(text, "length 0");
    }
    if (text->n_rows >= text->room || text->n_rows >= text->source->max_count) {
        int status = grow(text);

        if (status < 0) {
            return status;
        }
    }
    text->rows[text->n_rows++] = (uint32_t)text->value;
    text->tokens += text->value;
    return 0;
}

/* Digits from `at`; returns behind the last, NULL: refused. */
static const char *take_digits(struct text_parser *text, const char *at, const char *end)
{
    uint64_t value = text->is_number ? text->value : 0;

    text->is_number = 1;
    for (; at < end && is_digit(*at); at++) {
        value = value * 10 + (unsigned char)(*at - '0');
        if (value > UINT32_MAX) {
            (void)refuse(text, "a number over 4294967295");
            return NULL;
        }
    }
    text->value = value;
    return at;
}

/* A byte that is no digit: ends a number, or is refused. */
static int take_other(struct text_parser *text, const char *at, const char *end)
{
    int status;

    if (*at != '\n' && *at != ' ' && *at != '\r' && *at != '\t' && *at != '#') {
        return refuse_word(text, at, end);
    }
    if (text->is_number) {
        status = end_number(text);
        if (status < 0) {
            return status;
        }
    }
    text->line += *at == '\n';
    text->is_comment = *at == '#';
    return 0;
}

static int parse_piece(struct text_parser *text, const char *at, const char *end)
{
    text->piece = at;
    while (at < end) {
        if (text->is_comment) {
            at = memchr(at, '\n', (size_t)(end - at));
            if (!at) {
                return 0;
            }
            text->is_comment = 0;
        } else if (is_digit(*at)) {
            at = take_digits(text, at, end);
            if (!at) {
                return SKRULL_ERR_INVALID_ARGUMENT;
            }
        } else {
            int status = take_other(text, at, end);

            if (status < 0) {
                return status;
            }
            at++;
        }
    }
    return 0;
}

static int changed(const struct index_source *source, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                            "%s: changed while it was read; try again when its writer is done, and "
                            "replace indexes by rename",
                            source->path);
}

static int parse_file(struct text_parser *text, char *piece)
{
    const struct index_source *source = text->source;
    struct file_stamp now;
    uint64_t offset = 0;
    int status;

    while (offset < source->stamp.size) {
        uint64_t left = source->stamp.size - offset;
        size_t want = left < PIECE_SIZE ? (size_t)left : PIECE_SIZE, got;
        size_t skip = 0;

        status = file_read_at(source->fd, source->path, piece, want, offset, &got, text->err);
        if (status == 0 && got < want) {
            status = changed(source, text->err);
        }
        if (status < 0) {
            return status;
        }
        if (offset == 0 && got >= 3 && memcmp(piece, "\xef\xbb\xbf", 3) == 0) {
            skip = 3;
        }
        status = parse_piece(text, piece + skip, piece + got);
        if (status < 0) {
            return status;
        }
        offset += got;
    }
    if (text->is_number) {
        status = end_number(text);
        if (status < 0) {
            return status;
        }
    }
    status = file_stamp(source->fd, source->path, &now, text->err);
    if (status == 0 && !file_stamp_equal(&now, &source->stamp)) {
        status = changed(source, text->err);
    }
    return status;
}

static int text_open(const struct index_source *source, struct index_file *ret_file,
                     struct skrull_error *err)
{
    uint64_t estimate = source->stamp.size / BYTES_PER_ROW + 16;
    struct text_parser text = {.source = source, .err = err, .line = 1};
    char *piece;
    int status;

    estimate = estimate < MAX_FIRST_ROOM ? estimate : MAX_FIRST_ROOM;
    text.room = (size_t)(estimate < source->max_count ? estimate : source->max_count);
    text.rows = malloc(text.room * sizeof(*text.rows));
    piece = malloc(PIECE_SIZE);
    if (text.rows && piece) {
        status = parse_file(&text, piece);
    } else {
        status =
            skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "%s: out of memory", source->path);
    }
    free(piece);
    ret_file->parsed = text.rows;
    if (status == 0 && text.n_rows == 0) {
        status = skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "%s: holds no number; %s",
                                  source->path, HOW_TO);
    }
    if (status == 0) {
        ret_file->idx.lengths = text.rows;
        ret_file->idx.count = text.n_rows;
        ret_file->idx.tokens = text.tokens;
    }
    return status;
}

/* Any file may be text: asked last. */
static int text_matches(const struct index_source *source)
{
    return source->head_size > 0;
}

static int text_verify(const struct index_file *file, uint64_t *ret_hash, struct skrull_error *err)
{
    return payload_hash(&file->idx, ret_hash, err);
}

const struct index_format format_text = {
    .name = "text",
    .summary = "whole numbers, one a line",
    .matches = text_matches,
    .open = text_open,
    .verify = text_verify,
};
