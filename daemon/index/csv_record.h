/*
 * Inside of the index stage: records of a table as RFC 4180 has them, field by field. Records end
 * in LF or CRLF, or with the file; a quoted field may hold anything, line ends too. Of a field only
 * the beginning is kept, so none is too long.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>

#include "index/byte_cursor.h"

#define CSV_FIELD_SIZE 256

struct csv_field {
    char text[CSV_FIELD_SIZE]; /* its first bytes, without quotes */
    size_t len;                /* of the field; may be more than there is of it */
    int is_quoted;
};

struct csv_reader {
    const struct index_source *source; /* borrowed */
    struct byte_cursor cursor;
    char delimiter;
    uint64_t line; /* of the next byte, from 1 */
    struct skrull_error *err;
};

enum csv_end {
    CSV_FIELD, /* another field follows in the record */
    CSV_RECORD /* the record is over */
};

/* Opens at the file's first record; closed by csv_close whatever comes of it. */
int csv_open_reader(struct csv_reader *reader, const struct index_source *source, char delimiter,
                    struct skrull_error *err);

void csv_close(struct csv_reader *reader);

/* 1: there is another record; 0: the file is over. Negative: it cannot be read. */
int csv_has_record(struct csv_reader *reader);

/* The next field, into `ret_field` (NULL: it is passed over). Returns enum csv_end. */
int csv_next_field(struct csv_reader *reader, struct csv_field *ret_field);

/* The field without blanks around it; NULL: longer than what is kept. */
const char *csv_trim(const struct csv_field *field, size_t *ret_len);
