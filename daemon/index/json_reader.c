/*
 * JSON by recursion's opposite: a bit for each open array or object says what it is. Strings are
 * looked at eight bytes at once. Thread-safe: a reader has one owner.
 */
#include "index/json_reader.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int json_open(struct json_reader *reader, const struct index_source *source,
              struct skrull_error *err)
{
    *reader = (struct json_reader){.source = source, .line = 1, .err = err};
    return cursor_open(&reader->cursor, source, err);
}

void json_close(struct json_reader *reader)
{
    cursor_close(&reader->cursor);
}

SKRULL_PRINTF(3, 0)
static int refuse_at(const struct json_reader *reader, uint64_t line, const char *format,
                     va_list args)
{
    char what[320];

    (void)vsnprintf(what, sizeof(what), format, args);
    return skrull_error_set(reader->err, SKRULL_ERR_INVALID_ARGUMENT,
                            "%s: line %" PRIu64 ", record %" PRIu64 ": %s", reader->source->path,
                            line, reader->record, what);
}

int json_refuse(const struct json_reader *reader, const char *format, ...)
{
    va_list args;
    int status;

    va_start(args, format);
    status = refuse_at(reader, reader->line, format, args);
    va_end(args);
    return status;
}

int json_refuse_record(const struct json_reader *reader, const char *format, ...)
{
    va_list args;
    int status;

    va_start(args, format);
    status = refuse_at(reader, reader->record_line, format, args);
    va_end(args);
    return status;
}

/* At the next byte, or at the end of the file. */
static int unexpected(struct json_reader *reader, const char *wanted)
{
    int byte = cursor_peek(&reader->cursor);

    if (reader->cursor.status < 0) {
        return reader->cursor.status;
    }
    if (byte == CURSOR_END) {
        return skrull_error_set(reader->err, SKRULL_ERR_DATA_LOSS,
                                "%s: line %" PRIu64 ", record %" PRIu64
                                ": truncated: the file ends where %s should be; copy or write it "
                                "again",
                                reader->source->path, reader->line, reader->record, wanted);
    }
    if (byte == '\n') {
        return json_refuse(reader, "the line ends where %s should be; a record is one line",
                           wanted);
    }
    if (byte == 'N' || byte == 'I') {
        return json_refuse(reader, "NaN and Infinity are no JSON; write numbers");
    }
    return json_refuse(reader, "byte %" PRIu64 ": %s should be, not %c (0x%02x)",
                       cursor_offset(&reader->cursor) - reader->line_begin + 1, wanted,
                       byte > ' ' && byte < 0x7f ? byte : '?', (unsigned int)byte);
}

static void take_newline(struct json_reader *reader)
{
    reader->cursor.at++;
    reader->line++;
    reader->line_begin = cursor_offset(&reader->cursor);
}

/* The next byte that is no blank, which stays. */
static inline int peek_byte(struct json_reader *reader)
{
    struct byte_cursor *cursor = &reader->cursor;

    while (cursor_has(cursor)) {
        unsigned char byte = *cursor->at;

        if (byte > ' ') {
            return byte;
        }
        if (byte == ' ' || byte == '\t' || byte == '\r') {
            cursor->at++;
        } else if (byte == '\n' && !reader->is_line) {
            take_newline(reader);
        } else {
            return byte;
        }
    }
    return CURSOR_END;
}

static enum json_kind kind_of(int byte)
{
    switch (byte) {
    case CURSOR_END:
        return JSON_NOTHING;
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 't':
    case 'f':
    case 'n':
        return JSON_WORD;
    default:
        return byte == '-' || (byte >= '0' && byte <= '9') ? JSON_NUMBER : JSON_OTHER;
    }
}

int json_peek(struct json_reader *reader)
{
    enum json_kind kind = kind_of(peek_byte(reader));

    return reader->cursor.status < 0 ? reader->cursor.status : (int)kind;
}

void json_enter(struct json_reader *reader)
{
    reader->cursor.at++;
}

/* 1: took the comma before another member or element, or there is none before the first; 0: took
 * `close`. */
static int next_item(struct json_reader *reader, int *is_first, char close)
{
    int byte = peek_byte(reader);

    if (byte == (unsigned char)close) {
        reader->cursor.at++;
        return 0;
    }
    if (*is_first) {
        *is_first = 0;
        return 1;
    }
    if (byte != ',') {
        return unexpected(reader, close == '}' ? ", or }" : ", or ]");
    }
    reader->cursor.at++;
    return 1;
}

int json_next_member(struct json_reader *reader, int *is_first, struct json_text *ret_key)
{
    int status = next_item(reader, is_first, '}');

    if (status <= 0) {
        return status;
    }
    if (peek_byte(reader) != '"') {
        return unexpected(reader, "a key in quotes");
    }
    status = json_take_string(reader, ret_key);
    if (status < 0) {
        return status;
    }
    if (peek_byte(reader) != ':') {
        return unexpected(reader, "a colon");
    }
    reader->cursor.at++;
    return 1;
}

int json_next_element(struct json_reader *reader, int *is_first)
{
    return next_item(reader, is_first, ']');
}

static void keep(struct json_text *text, int byte)
{
    if (text) {
        if (text->len < JSON_TEXT_SIZE) {
            text->bytes[text->len] = (char)byte;
        }
        text->len++;
    }
}

/* Digits, at least one. */
static int take_digits(struct json_reader *reader, struct json_text *text)
{
    struct byte_cursor *cursor = &reader->cursor;
    int n = 0;

    while (cursor_has(cursor) && *cursor->at >= '0' && *cursor->at <= '9') {
        keep(text, *cursor->at++);
        n = 1;
    }
    return n ? 0 : unexpected(reader, "a digit");
}

/* 1: took one of the two bytes. */
static int take_one_of(struct json_reader *reader, struct json_text *text, char a, char b)
{
    int byte = cursor_peek(&reader->cursor);

    if (byte != (unsigned char)a && byte != (unsigned char)b) {
        return 0;
    }
    keep(text, *reader->cursor.at++);
    return 1;
}

int json_take_number(struct json_reader *reader, struct json_text *ret_text)
{
    int is_zero, status;

    if (ret_text) {
        ret_text->len = 0;
    }
    (void)take_one_of(reader, ret_text, '-', '-');
    is_zero = cursor_peek(&reader->cursor) == '0';
    if (is_zero) {
        keep(ret_text, *reader->cursor.at++);
        status = 0;
    } else {
        status = take_digits(reader, ret_text);
    }
    if (status == 0 && take_one_of(reader, ret_text, '.', '.')) {
        status = take_digits(reader, ret_text);
    }
    if (status == 0 && take_one_of(reader, ret_text, 'e', 'E')) {
        (void)take_one_of(reader, ret_text, '+', '-');
        status = take_digits(reader, ret_text);
    }
    return status < 0 ? status : reader->cursor.status;
}

int json_take_word(struct json_reader *reader, struct json_text *ret_text)
{
    static const char *const words[] = {"true", "false", "null"};
    int first = cursor_peek(&reader->cursor);
    const char *word = words[first == 't' ? 0 : first == 'f' ? 1 : 2];

    if (ret_text) {
        ret_text->len = 0;
    }
    for (; *word; word++) {
        if (cursor_peek(&reader->cursor) != (unsigned char)*word) {
            return unexpected(reader, "true, false or null");
        }
        keep(ret_text, *reader->cursor.at++);
    }
    return 0;
}

/* Open arrays and objects; a set bit is an object. */
struct json_nest {
    uint64_t bits[JSON_MAX_DEPTH / 64];
    size_t depth;
};

static int is_object(const struct json_nest *nest)
{
    return (int)(nest->bits[(nest->depth - 1) / 64] >> ((nest->depth - 1) % 64) & 1);
}

static int open_nest(struct json_reader *reader, struct json_nest *nest, int kind)
{
    uint64_t bit = UINT64_C(1) << (nest->depth % 64);

    if (nest->depth == JSON_MAX_DEPTH) {
        return json_refuse(reader, "nested deeper than %d levels", JSON_MAX_DEPTH);
    }
    nest->bits[nest->depth / 64] &= ~bit;
    nest->bits[nest->depth / 64] |= kind == JSON_OBJECT ? bit : 0;
    nest->depth++;
    json_enter(reader);
    return 0;
}

/* A value that has no parts, or the beginning of one that has. 1: such a one. */
static int skip_one(struct json_reader *reader, struct json_nest *nest)
{
    int kind = json_peek(reader), status;

    switch (kind) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        status = open_nest(reader, nest, kind);
        return status < 0 ? status : 1;
    case JSON_STRING:
        return json_take_string(reader, NULL);
    case JSON_NUMBER:
        return json_take_number(reader, NULL);
    case JSON_WORD:
        return json_take_word(reader, NULL);
    default:
        return kind < 0 ? kind : unexpected(reader, "a value");
    }
}

int json_skip(struct json_reader *reader)
{
    struct json_nest nest = {.depth = 0};
    int is_first = skip_one(reader, &nest);

    while (is_first >= 0 && nest.depth > 0) {
        int more = is_object(&nest) ? json_next_member(reader, &is_first, NULL)
                                    : json_next_element(reader, &is_first);

        if (more < 0) {
            return more;
        }
        if (more == 0) {
            nest.depth--;
            is_first = 0;
        } else {
            is_first = skip_one(reader, &nest);
        }
    }
    return is_first < 0 ? is_first : 0;
}

int json_end_line(struct json_reader *reader)
{
    int byte;

    reader->is_line = 1;
    byte = peek_byte(reader);
    if (byte == '\n') {
        take_newline(reader);
        return 0;
    }
    if (byte == CURSOR_END) {
        return reader->cursor.status;
    }
    return json_refuse(reader, "data behind the record; one record a line");
}
