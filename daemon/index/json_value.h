/* Inside of the index stage: what json_fields.c keeps of a record, and json_value.c reads into it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "index/columns.h"
#include "index/decimal.h"
#include "index/json_fields.h"
#include "index/json_reader.h"
#include "index/rows.h"

#define JSON_MAX_FIELDS (64 + COLUMNS_MAX_PARTS)
#define JSON_LENGTHS "lengths are whole numbers from 1 to 4294967295"

/* What a record's field was found to be. */
enum json_state {
    VALUE_ABSENT, /* or nothing that could be a length */
    VALUE_NUMBER, /* a number, or a count */
    VALUE_ROWS,   /* a list, of a row each */
    VALUE_LIST    /* a list: `number` elements, which `rows` are if they are all lengths */
};

struct json_field {
    struct column_name name;
    enum column_kind kind;
    int is_asked; /* by its name; `kind` then says only what is known of that name */
    int is_known;
    int is_seen; /* in this record */
    enum json_state state;
    uint64_t number;
    struct rows rows;
    int is_no_length; /* an element of a VALUE_LIST, a message */
};

struct json_fields {
    const struct index_source *source;
    struct json_reader *reader;
    int is_line;
    int is_chosen;                             /* after the first record */
    struct json_field fields[JSON_MAX_FIELDS]; /* [n] */
    size_t n, n_parts;              /* once chosen: the parts, then the loss tokens, if any */
    char names[COLUMNS_NAMES_SIZE]; /* of the first record */
    struct rows lengths, loss_tokens;
};

/* 1: the field is read for the loss tokens. */
int json_is_loss(const struct json_field *field);

/* Bytes of the field's name that a message shows, for %.*s. */
int json_name_len(const struct json_field *field);

enum decimal json_parse(const struct json_text *text, uint32_t *ret_value);

/* Reads the value of the field that comes next. */
int json_take_value(struct json_fields *fields, struct json_field *field);
