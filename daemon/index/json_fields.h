/*
 * Inside of the index stage: the fields of a JSON object that tell lengths. Of the first record all
 * known fields are read and one is chosen; of the others that one and the loss tokens.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>

#include "index/columns.h"
#include "index/format.h"
#include "index/json_reader.h"
#include "index/rows.h"

struct json_fields;

/* What the object is, for a list under a name that says nothing of it. */
enum json_context {
    JSON_RECORD, /* one of several: a list is counted */
    JSON_WHOLE,  /* the whole document: a list holds lengths */
    JSON_ONLY    /* either */
};

/* `is_line`: a list can be nothing but a record's. */
int json_fields_create(const struct index_source *source, struct json_reader *reader, int is_line,
                       struct json_fields **ret_fields);

/* NULL is fine. */
void json_fields_destroy(struct json_fields *fields);

/* Reads the object that json_peek saw. */
int json_fields_read(struct json_fields *fields);

/* Takes the rows out of what was read. 1: they were a list's. */
int json_fields_take(struct json_fields *fields, enum json_context context);

/* Adds a row that is no object's. */
int json_fields_add(struct json_fields *fields, const struct json_text *number);

/* Hands over all rows. */
int json_fields_finish(struct json_fields *fields, struct index_file *ret_file);
