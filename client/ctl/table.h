/* A table of text: aligned for people, or CSV. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <skrull/error.h>

struct table_column {
    const char *title;
    bool is_right; /* numbers */
};

struct table {
    const struct table_column *columns; /* [n_columns]; borrowed */
    size_t n_columns;
    char **cells; /* row by row */
    size_t n_cells, capacity;
    bool is_broken; /* out of memory */
};

void table_init(struct table *table, const struct table_column *columns, size_t n_columns);
void table_deinit(struct table *table);

/* The next cell, row by row. Running out of memory is told by table_print. */
void table_add(struct table *table, const char *format, ...) SKRULL_PRINTF(2, 3);

/* Nanoseconds as milliseconds with three digits after the point. */
void table_add_ms(struct table *table, long long ns);

/* Prints all complete rows on standard output. -1: memory ran out, nothing is printed. */
int table_print(const struct table *table, bool is_csv);
