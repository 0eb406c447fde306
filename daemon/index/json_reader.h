/*
 * Inside of the index stage: JSON (RFC 8259) as a stream of values that are asked for one by one.
 * Memory does not grow with the file: of a string or a number only the beginning is kept, what is
 * passed over is checked and forgotten, nesting is bounded. Why not a library: those that are
 * packaged and stream keep a whole string, know no lines, take a key twice, and numbers as doubles.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>

#include "index/byte_cursor.h"

#define JSON_MAX_DEPTH 512
#define JSON_TEXT_SIZE 256

enum json_kind {
    JSON_NOTHING, /* the end of the file */
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_WORD, /* true, false, null */
    JSON_OTHER /* a byte that begins no value */
};

/* The beginning of a string, without escapes, or of a number or word, as it is written. */
struct json_text {
    char bytes[JSON_TEXT_SIZE];
    size_t len; /* of all; may be more than there is of it */
};

struct json_reader {
    const struct index_source *source; /* borrowed */
    struct byte_cursor cursor;
    uint64_t line;       /* of the next byte, from 1 */
    uint64_t line_begin; /* its offset */
    /* For messages: the record that is read, from 1, and where it begins; the caller's. */
    uint64_t record, record_line;
    int is_line; /* a value may not go over its line's end */
    struct skrull_error *err;
};

/* Opens at the file's first byte; closed by json_close whatever comes of it. */
int json_open(struct json_reader *reader, const struct index_source *source,
              struct skrull_error *err);

void json_close(struct json_reader *reader);

/* "PATH: line 3, record 2: WHAT"; INVALID_ARGUMENT. The line of the next byte, or of the record. */
int json_refuse(const struct json_reader *reader, const char *format, ...) SKRULL_PRINTF(2, 3);
int json_refuse_record(const struct json_reader *reader, const char *format, ...)
    SKRULL_PRINTF(2, 3);

/* What comes next, after blanks; negative: the file cannot be read. */
int json_peek(struct json_reader *reader);

/* Takes the brace or bracket that json_peek saw. */
void json_enter(struct json_reader *reader);

/* The next member of the object that was entered: its key, up to its value; 0: there is none, the
 * object is left. `is_first` is the caller's, 1 before the first. */
int json_next_member(struct json_reader *reader, int *is_first, struct json_text *ret_key);

/* 1: up to the next element of the array that was entered; 0: there is none, the array is left. */
int json_next_element(struct json_reader *reader, int *is_first);

/* Takes a value that json_peek saw, of that kind; `ret_text` NULL: forgets it. */
int json_take_string(struct json_reader *reader, struct json_text *ret_text); /* in json_string.c */
int json_take_number(struct json_reader *reader, struct json_text *ret_text);
int json_take_word(struct json_reader *reader, struct json_text *ret_text);

/* Passes over a value, whatever it is. */
int json_skip(struct json_reader *reader);

/* Behind a record: passes over blanks to the end of its line or of the file. Anything else is
 * refused. */
int json_end_line(struct json_reader *reader);
