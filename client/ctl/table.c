/* Tables: cells are formatted once and measured when printed. Columns are two spaces apart; CSV
 * follows RFC 4180. */
#include "table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GAP 2

void table_init(struct table *table, const struct table_column *columns, size_t n_columns)
{
    *table = (struct table){.columns = columns, .n_columns = n_columns};
}

void table_deinit(struct table *table)
{
    for (size_t i = 0; i < table->n_cells; i++) {
        free(table->cells[i]);
    }
    free(table->cells);
    *table = (struct table){0};
}

/* Takes `text` over; NULL breaks the table. */
static void add_text(struct table *table, char *text)
{
    if (table->n_cells == table->capacity && !table->is_broken) {
        size_t capacity = table->capacity ? table->capacity * 2 : 64;
        char **cells = realloc(table->cells, capacity * sizeof(cells[0]));

        table->is_broken = !cells;
        if (cells) {
            table->cells = cells;
            table->capacity = capacity;
        }
    }
    if (!text || table->is_broken) {
        table->is_broken = true;
        free(text);
        return;
    }
    table->cells[table->n_cells++] = text;
}

void table_add(struct table *table, const char *format, ...)
{
    va_list args;
    char *text;
    int n;

    va_start(args, format);
    n = vasprintf(&text, format, args);
    va_end(args);
    add_text(table, n < 0 ? NULL : text);
}

void table_add_ms(struct table *table, long long ns)
{
    long long us = (ns + 500) / 1000;

    table_add(table, "%lld.%03lld", us / 1000, us % 1000);
}

/* Columns that a text takes: characters, not bytes. */
static size_t width_of(const char *text)
{
    size_t width = 0;

    for (; *text; text++) {
        width += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return width;
}

static void print_spaces(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)putchar(' ');
    }
}

static void print_aligned(const struct table *table, const size_t *widths, size_t i_column,
                          const char *text)
{
    size_t pad = widths[i_column] - width_of(text);
    bool is_last = i_column + 1 == table->n_columns;

    if (table->columns[i_column].is_right) {
        print_spaces(pad);
    }
    (void)fputs(text, stdout);
    if (is_last) {
        (void)putchar('\n');
        return;
    }
    print_spaces(table->columns[i_column].is_right ? GAP : pad + GAP);
}

static int print_for_people(const struct table *table)
{
    size_t n_rows = table->n_cells / table->n_columns;
    size_t *widths = calloc(table->n_columns, sizeof(widths[0]));

    if (!widths) {
        return -1;
    }
    for (size_t k = 0; k < table->n_columns; k++) {
        widths[k] = width_of(table->columns[k].title);
        for (size_t i = 0; i < n_rows; i++) {
            size_t width = width_of(table->cells[i * table->n_columns + k]);

            widths[k] = width > widths[k] ? width : widths[k];
        }
    }
    for (size_t k = 0; k < table->n_columns; k++) {
        print_aligned(table, widths, k, table->columns[k].title);
    }
    for (size_t i = 0; i < n_rows * table->n_columns; i++) {
        print_aligned(table, widths, i % table->n_columns, table->cells[i]);
    }
    free(widths);
    return 0;
}

static void print_csv_cell(const char *text, char after)
{
    bool is_quoted = strpbrk(text, ",\"\r\n") != NULL;

    if (is_quoted) {
        (void)putchar('"');
    }
    for (; *text; text++) {
        if (*text == '"') {
            (void)putchar('"');
        }
        (void)putchar(*text);
    }
    if (is_quoted) {
        (void)putchar('"');
    }
    (void)putchar(after);
}

int table_print(const struct table *table, bool is_csv)
{
    size_t n_columns = table->n_columns;

    if (table->is_broken) {
        return -1;
    }
    if (!is_csv) {
        return print_for_people(table);
    }
    for (size_t k = 0; k < n_columns; k++) {
        print_csv_cell(table->columns[k].title, k + 1 == n_columns ? '\n' : ',');
    }
    for (size_t i = 0; i < table->n_cells / n_columns * n_columns; i++) {
        print_csv_cell(table->cells[i], (i + 1) % n_columns == 0 ? '\n' : ',');
    }
    return 0;
}
