/*
 * Text: whole numbers 1 to 2^32 - 1, apart by blanks or line ends, one a line as a rule. Taken as
 * well: CRLF, a UTF-8 byte order mark, blank lines, `#` to the end of a line, a last line without
 * its end, and whole numbers written as 512.0 or 5.12e+02.
 *
 * Read in pieces into memory, never mapped: a file that is cut meanwhile is then an error and no
 * SIGBUS. The parser is a state kept across pieces, so no line is too long for a buffer; its inner
 * loop touches each byte once. Rows grow by doubling from an estimate. Plain short lines
 * are taken eight bytes at once. Thread-safe.
 */
#include "index/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/byte_stream.h"
#include "index/decimal.h"
#include "index/payload.h"
#include "index/rows.h"

/* Room for short lengths without growing too often; real lists have 4 to 6 bytes a row. */
#define BYTES_PER_ROW 5
#define HOW_TO "a text index holds whole numbers from 1 to 4294967295, one a line"

/* The same byte eight times. */
#define HIGHS UINT64_C(0xf0f0f0f0f0f0f0f0)
#define DIGITS UINT64_C(0x3030303030303030)
#define SIXES UINT64_C(0x0606060606060606)

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "eight digits are read as one little-endian word"
#endif

struct text_parser {
    const struct index_source *source;
    struct skrull_error *err;
    struct rows rows;
    uint64_t line;     /* from 1 */
    uint64_t value;    /* of the number that is being read */
    const char *piece; /* begin of the bytes at hand; borrowed */
    int is_number, is_comment;
    char word[DECIMAL_MAX_LEN + 1]; /* of a number with a point or an exponent */
    size_t word_len;                /* 0: none is read */
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

static int end_number(struct text_parser *text)
{
    text->is_number = 0;
    if (text->value == 0) {
        return refuse(text, "length 0");
    }
    return rows_add(&text->rows, (uint32_t)text->value, text->err);
}

static int is_separator(char byte)
{
    return byte == '\n' || byte == ' ' || byte == '\r' || byte == '\t' || byte == '#';
}

/* 512.0 and 5.12e+02, as pandas and numpy.savetxt write them: from the point or exponent behind
 * digits. */
static void begin_word(struct text_parser *text, char byte)
{
    int n = snprintf(text->word, sizeof(text->word), "%" PRIu64 "%c", text->value, byte);

    text->word_len = (size_t)n; /* 11 at most */
    text->is_number = 0;
}

static int end_word(struct text_parser *text)
{
    char what[DECIMAL_MAX_LEN + 32];
    uint32_t value = 0;
    enum decimal decimal = decimal_parse(text->word, text->word_len, &value);

    if (decimal != DECIMAL_WHOLE) {
        (void)snprintf(what, sizeof(what), "%.*s %s", (int)text->word_len, text->word,
                       decimal_fault(decimal));
        return refuse(text, what);
    }
    text->word_len = 0;
    text->value = value;
    return end_number(text);
}

/* More bytes of the word, up to what ends it or to the end of the piece. */
static int take_word(struct text_parser *text, const char **at, const char *end)
{
    const char *place = *at;
    char what[DECIMAL_MAX_LEN + 32];

    while (place < end && text->word_len < DECIMAL_MAX_LEN &&
           (is_digit(*place) || (*place != '\0' && strchr(".eE+-", *place)))) {
        text->word[text->word_len++] = *place++;
    }
    *at = place;
    if (place == end) {
        return 0;
    }
    if (!is_separator(*place)) {
        (void)snprintf(what, sizeof(what), "%.*s%c is no whole number", (int)text->word_len,
                       text->word, *place > ' ' && *place < 0x7f ? *place : '?');
        return refuse(text, what);
    }
    return end_word(text);
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

    if (text->is_number && (*at == '.' || *at == 'e' || *at == 'E')) {
        begin_word(text, *at);
        return 0;
    }
    if (!is_separator(*at)) {
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

/* The place of the first byte of 8 that is no digit, 8: all are. */
static inline unsigned int count_digits(uint64_t word)
{
    /* A digit's high half is 3, also after adding 6, which lifts ':' to '?' over it. */
    uint64_t other = ((word & HIGHS) ^ DIGITS) | (((word + SIXES) & HIGHS) ^ DIGITS);

    return other ? (unsigned int)__builtin_ctzll(other) / 8 : 8;
}

/* The number in the first `n` bytes, 1 to 8, all digits: pairs, fours and eights at once. */
static inline uint32_t value_of(uint64_t word, unsigned int n)
{
    word = (word << (64 - 8 * n)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    word = (word * 2561) >> 8 & UINT64_C(0x00ff00ff00ff00ff);
    word = (word * 6553601) >> 16 & UINT64_C(0x0000ffff0000ffff);
    return (uint32_t)((word * UINT64_C(42949672960001)) >> 32);
}

/* Lines of 1 to 7 digits and '\n', which nearly all are: a load and no loop each. Stops before the
 * first other one. */
static int take_lines(struct text_parser *text, const char **at, const char *end)
{
    const char *place = *at;
    int status = 0;

    while (end - place >= 8) {
        uint64_t word;
        unsigned int n;
        uint32_t value;

        memcpy(&word, place, sizeof(word));
        n = count_digits(word);
        if (n == 0 || n == 8 || place[n] != '\n') {
            break;
        }
        value = value_of(word, n);
        if (value == 0) {
            break;
        }
        status = rows_add(&text->rows, value, text->err);
        if (status < 0) {
            break;
        }
        text->line++;
        place += n + 1;
    }
    *at = place;
    return status;
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
        } else if (text->word_len > 0) {
            int status = take_word(text, &at, end);

            if (status < 0) {
                return status;
            }
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
            status = text->is_comment || text->word_len ? 0 : take_lines(text, &at, end);
            if (status < 0) {
                return status;
            }
        }
    }
    return 0;
}

static int parse_file(struct text_parser *text, struct byte_stream *stream)
{
    const unsigned char *bytes;
    size_t size;
    int status;

    do {
        status = byte_stream_next(stream, &bytes, &size, text->err);
        if (status < 0) {
            return status;
        }
        status = parse_piece(text, (const char *)bytes, (const char *)bytes + size);
    } while (status == 0 && size > 0);
    if (status == 0 && text->word_len > 0) {
        return end_word(text);
    }
    return status == 0 && text->is_number ? end_number(text) : status;
}

static int text_open(const struct index_source *source, struct index_file *ret_file,
                     struct skrull_error *err)
{
    uint64_t estimate = source->stamp.size / BYTES_PER_ROW + 16;
    struct text_parser text = {.source = source, .err = err, .rows = {.source = source}, .line = 1};
    struct byte_stream *stream = NULL;
    int status = byte_stream_open(source, &stream, err);

    if (status == 0) {
        status = rows_reserve(&text.rows, estimate, err);
    }
    if (status == 0) {
        status = parse_file(&text, stream);
    }
    byte_stream_close(stream);
    if (status == 0 && text.rows.count == 0) {
        status = skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "%s: holds no number; %s",
                                  source->path, HOW_TO);
    }
    if (status < 0) {
        rows_free(&text.rows);
        return status;
    }
    return rows_hand_over(&text.rows, NULL, ret_file, err);
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
    .takes = TAKES_TEXT,
    .matches = text_matches,
    .open = text_open,
    .verify = text_verify,
};
