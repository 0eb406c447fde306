/*
 * Fields of a table, RFC 4180 with these liberties: LF or CRLF, a last record without its line end,
 * quotes within an unquoted field taken as they are. Thread-safe: a reader has one owner.
 */
#include "index/csv_record.h"

#include <inttypes.h>
#include <string.h>

int csv_open_reader(struct csv_reader *reader, const struct index_source *source, char delimiter,
                    struct skrull_error *err)
{
    reader->source = source;
    reader->delimiter = delimiter;
    reader->line = 1;
    reader->err = err;
    return cursor_open(&reader->cursor, source, err);
}

void csv_close(struct csv_reader *reader)
{
    cursor_close(&reader->cursor);
}

int csv_has_record(struct csv_reader *reader)
{
    int has = cursor_has(&reader->cursor);

    return reader->cursor.status < 0 ? reader->cursor.status : has;
}

/* Bytes of a field, as far as they are wanted. */
static void keep(struct csv_field *field, const unsigned char *bytes, size_t size)
{
    if (field) {
        size_t used = field->len < CSV_FIELD_SIZE ? field->len : CSV_FIELD_SIZE;
        size_t room = CSV_FIELD_SIZE - used;

        memcpy(field->text + used, bytes, size < room ? size : room);
        field->len += size;
    }
}

static int refuse_quote(const struct csv_reader *reader, uint64_t line, const char *what)
{
    return skrull_error_set(reader->err, SKRULL_ERR_INVALID_ARGUMENT,
                            "%s: line %" PRIu64
                            ": %s; fields with quotes are \"written \"\"so\"\"\"",
                            reader->source->path, line, what);
}

/* Behind a field: takes the delimiter or the line end. CSV_FIELD, CSV_RECORD; 2: something else. */
static int take_end(struct csv_reader *reader)
{
    struct byte_cursor *cursor = &reader->cursor;
    int byte = cursor_peek(cursor);

    if (byte == (unsigned char)reader->delimiter) {
        cursor->at++;
        return CSV_FIELD;
    }
    if (byte == '\n') {
        cursor->at++;
        reader->line++;
        return CSV_RECORD;
    }
    return byte == CURSOR_END ? CSV_RECORD : 2;
}

/* From behind the opening quote to behind the closing one. */
static int take_quoted(struct csv_reader *reader, struct csv_field *field)
{
    struct byte_cursor *cursor = &reader->cursor;
    uint64_t begin_line = reader->line;

    while (cursor_has(cursor)) {
        const unsigned char *begin = cursor->at, *at = begin;

        while (at < cursor->end && *at != '"') {
            reader->line += *at++ == '\n';
        }
        keep(field, begin, (size_t)(at - begin));
        cursor->at = at;
        if (at == cursor->end) {
            continue;
        }
        cursor->at++;
        if (cursor_peek(cursor) != '"') {
            return 0;
        }
        keep(field, cursor->at++, 1);
    }
    return cursor->status < 0
               ? cursor->status
               : refuse_quote(reader, begin_line, "a quote that is opened here is never closed");
}

/* A CR, which is the record's end where an LF or the end of the file follows, else a byte. */
static int take_return(struct csv_reader *reader, struct csv_field *field)
{
    static const unsigned char byte = '\r';
    int next;

    reader->cursor.at++;
    next = cursor_peek(&reader->cursor);
    if (next == '\n' || next == CURSOR_END) {
        return take_end(reader);
    }
    keep(field, &byte, 1);
    return 2;
}

/* Up to the end of the field or of the bytes at hand. CSV_FIELD, CSV_RECORD; 2: it goes on. */
static int take_plain(struct csv_reader *reader, struct csv_field *field)
{
    struct byte_cursor *cursor = &reader->cursor;
    const unsigned char *begin = cursor->at, *at = begin, *end = cursor->end;
    const unsigned char delimiter = (unsigned char)reader->delimiter;

    while (at < end && *at != delimiter && *at != '\n' && *at != '\r') {
        at++;
    }
    keep(field, begin, (size_t)(at - begin));
    cursor->at = at;
    if (at == end) {
        return cursor_has(cursor) ? 2 : CSV_RECORD;
    }
    return *at == '\r' ? take_return(reader, field) : take_end(reader);
}

int csv_next_field(struct csv_reader *reader, struct csv_field *ret_field)
{
    struct byte_cursor *cursor = &reader->cursor;
    int outcome = 2;

    if (ret_field) {
        ret_field->len = 0;
        ret_field->is_quoted = 0;
    }
    if (cursor_peek(cursor) == '"') {
        cursor->at++;
        if (ret_field) {
            ret_field->is_quoted = 1;
        }
        outcome = take_quoted(reader, ret_field);
        if (outcome < 0) {
            return outcome;
        }
        outcome = cursor_peek(cursor) == '\r' ? take_return(reader, NULL) : take_end(reader);
        if (outcome == 2 && cursor->status == 0) {
            return refuse_quote(reader, reader->line, "text behind a closing quote");
        }
    }
    while (outcome == 2 && cursor->status == 0) {
        outcome = take_plain(reader, ret_field);
    }
    return cursor->status < 0 ? cursor->status : outcome;
}

const char *csv_trim(const struct csv_field *field, size_t *ret_len)
{
    const char *begin = field->text;
    size_t len = field->len;

    if (len > CSV_FIELD_SIZE) {
        return NULL;
    }
    while (len > 0 && (*begin == ' ' || *begin == '\t')) {
        begin++;
        len--;
    }
    while (len > 0 && (begin[len - 1] == ' ' || begin[len - 1] == '\t')) {
        len--;
    }
    *ret_len = len;
    return begin;
}
