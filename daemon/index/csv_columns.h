/* Inside of the index stage: the columns of a table, and which of them are read. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>

#include "index/columns.h"
#include "index/csv_record.h"
#include "index/format.h"

#define CSV_MAX_WANTED (COLUMNS_MAX_PARTS + 1)

struct csv_column {
    struct column_name name; /* for messages; borrowed, from the source too */
    uint64_t place;          /* from 0 */
    int is_loss;
};

struct csv_columns {
    const struct index_source *source; /* borrowed */
    struct skrull_error *err;
    uint64_t n_columns;
    struct csv_column wanted[CSV_MAX_WANTED]; /* those that are read: [n], by ascending place */
    size_t n;
    int has_loss;
};

/*
 * Reads the first record of the table, empty lines before it too, and chooses among its columns.
 * *ret_is_data: it was no names but the first row. INVALID_ARGUMENT: no or no single choice; names
 * the columns.
 */
int csv_choose_columns(struct csv_columns *columns, struct csv_reader *reader, int *ret_is_data);

/* 1: of an empty line: a record of one field without a byte. */
int csv_is_empty_line(const struct csv_field *field, uint64_t n_fields);
