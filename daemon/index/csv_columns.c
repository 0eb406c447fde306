/*
 * The columns of a table: what the first record says of them, and which hold the lengths. It names
 * them, unless its first field is a number. Thread-safe: the state is the caller's.
 */
#include "index/csv_columns.h"

#include <inttypes.h>
#include <string.h>

#include "index/columns.h"
#include "index/csv_record.h"
#include "index/decimal.h"

#define NO_COLUMN UINT64_MAX

/* What the first record says. */
struct first_record {
    struct column_parts parts;                /* asked for */
    uint64_t part_columns[COLUMNS_MAX_PARTS]; /* NO_COLUMN: not there */
    uint64_t known_columns[64];               /* by the place in columns_known */
    uint64_t seen;                            /* bits of columns_known */
    uint64_t n_columns;
    int is_data; /* no names: the first field is a number */
    char names[COLUMNS_NAMES_SIZE];
};

/* A field of the first record, at `column`. */
static int take_name(struct first_record *first, const struct csv_field *field, uint64_t column,
                     const struct csv_columns *columns)
{
    size_t len = 0, i;
    const char *name = csv_trim(field, &len);
    uint32_t ignored;

    if (column == 0) {
        first->is_data = name && decimal_parse(name, len, &ignored) != DECIMAL_NONE;
    }
    if (!name || first->is_data) {
        return 0;
    }
    columns_list(first->names, name, len);
    for (i = 0; i < first->parts.n; i++) {
        const struct column_name *part = &first->parts.parts[i];

        if (part->len != len || memcmp(part->text, name, len) != 0) {
            continue;
        }
        if (first->part_columns[i] != NO_COLUMN) {
            return skrull_error_set(columns->err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "%s: two columns are named %.*s; name them apart",
                                    columns->source->path, (int)(len < 60 ? len : 60), name);
        }
        first->part_columns[i] = column;
    }
    i = columns_find(name, len);
    if (i == columns_n_known) {
        return 0;
    }
    if (first->seen >> i & 1 && (first->parts.n == 0 || columns_known[i].kind == COLUMN_LOSS)) {
        return skrull_error_set(columns->err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: two columns are named %s; name them apart",
                                columns->source->path, columns_known[i].name);
    }
    first->seen |= UINT64_C(1) << i;
    first->known_columns[i] = column;
    return 0;
}

int csv_is_empty_line(const struct csv_field *field, uint64_t n_fields)
{
    return n_fields == 1 && field->len == 0 && !field->is_quoted;
}

static int read_first(struct csv_columns *columns, struct csv_reader *reader,
                      struct first_record *first)
{
    struct csv_field field;
    int status, outcome;

    do {
        status = csv_has_record(reader);
        if (status <= 0) {
            return status < 0 ? status
                              : skrull_error_set(columns->err, SKRULL_ERR_INVALID_ARGUMENT,
                                                 "%s: holds no record, and no names of columns",
                                                 columns->source->path);
        }
        first->n_columns = 0;
        do {
            outcome = csv_next_field(reader, &field);
            if (outcome < 0) {
                return outcome;
            }
            status = take_name(first, &field, first->n_columns++, columns);
            if (status < 0) {
                return status;
            }
        } while (outcome == CSV_FIELD);
    } while (csv_is_empty_line(&field, first->n_columns));
    columns->n_columns = first->n_columns;
    return 0;
}

static void want(struct csv_columns *columns, struct column_name name, uint64_t place, int is_loss)
{
    size_t i = columns->n++;

    for (; i > 0 && columns->wanted[i - 1].place > place; i--) {
        columns->wanted[i] = columns->wanted[i - 1];
    }
    columns->wanted[i] = (struct csv_column){.name = name, .place = place, .is_loss = is_loss};
    columns->has_loss |= is_loss;
}

/* The columns asked for by their names. */
static int want_parts(struct csv_columns *columns, const struct first_record *first)
{
    for (size_t i = 0; i < first->parts.n; i++) {
        const struct column_name *part = &first->parts.parts[i];

        if (first->part_columns[i] == NO_COLUMN) {
            return skrull_error_set(columns->err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "%s: no column %.*s; its columns: %s", columns->source->path,
                                    (int)(part->len < 60 ? part->len : 60), part->text,
                                    first->names);
        }
        want(columns, *part, first->part_columns[i], 0);
    }
    return 0;
}

static int want_known(struct csv_columns *columns, struct first_record *first)
{
    uint64_t seen = 0;
    int outcome;

    for (size_t i = 0; i < columns_n_known; i++) {
        enum column_kind kind = columns_known[i].kind;

        seen |= kind == COLUMN_LENGTH || kind == COLUMN_HALF ? first->seen & UINT64_C(1) << i : 0;
    }
    outcome = columns_choose(columns->source, seen, &first->parts, columns->err);
    if (outcome < 0) {
        return outcome;
    }
    if (outcome == COLUMNS_NONE) {
        return skrull_error_set(columns->err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: no column that is known to hold lengths; say which as column; "
                                "its columns: %s",
                                columns->source->path, first->names);
    }
    for (size_t i = 0; i < first->parts.n; i++) {
        const struct column_name *part = &first->parts.parts[i];

        want(columns, *part, first->known_columns[columns_find(part->text, part->len)], 0);
    }
    return 0;
}

/* A column of loss tokens, unless it is asked for as the length. */
static int want_loss(struct csv_columns *columns, const struct first_record *first)
{
    for (size_t i = 0; i < columns_n_known; i++) {
        uint64_t column = first->known_columns[i];

        if (columns_known[i].kind != COLUMN_LOSS || !(first->seen >> i & 1)) {
            continue;
        }
        for (size_t k = 0; k < columns->n; k++) {
            column = columns->wanted[k].place == column ? NO_COLUMN : column;
        }
        if (column != NO_COLUMN && columns->has_loss) {
            return skrull_error_set(columns->err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "%s: two columns of loss tokens, %s is one; leave one away",
                                    columns->source->path, columns_known[i].name);
        }
        if (column != NO_COLUMN) {
            const char *name = columns_known[i].name;

            want(columns, (struct column_name){name, strlen(name)}, column, 1);
        }
    }
    return 0;
}

/* Columns without names go by number, from 1. */
static int want_numbers(struct csv_columns *columns, const struct first_record *first)
{
    if (first->parts.n == 0 && columns->n_columns > 1) {
        return skrull_error_set(columns->err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: %" PRIu64 " columns without names; say which by its number, "
                                "from 1, as column",
                                columns->source->path, columns->n_columns);
    }
    if (first->parts.n == 0) {
        want(columns, (struct column_name){"1", 1}, 0, 0);
    }
    for (size_t i = 0; i < first->parts.n; i++) {
        const struct column_name *part = &first->parts.parts[i];
        uint32_t number = 0;

        if (decimal_parse(part->text, part->len, &number) != DECIMAL_WHOLE || number == 0 ||
            number > columns->n_columns) {
            return skrull_error_set(columns->err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "%s: no column %.*s: its columns have no names; they are 1 to "
                                    "%" PRIu64,
                                    columns->source->path, (int)(part->len < 60 ? part->len : 60),
                                    part->text, columns->n_columns);
        }
        want(columns, *part, number - 1, 0);
    }
    return 0;
}

static int choose(struct csv_columns *columns, struct first_record *first)
{
    int status;

    if (first->is_data) {
        return want_numbers(columns, first);
    }
    status = first->parts.n > 0 ? want_parts(columns, first) : want_known(columns, first);
    return status < 0 ? status : want_loss(columns, first);
}

int csv_choose_columns(struct csv_columns *columns, struct csv_reader *reader, int *ret_is_data)
{
    struct first_record first = {.n_columns = 0};
    int status = 0;

    for (size_t i = 0; i < COLUMNS_MAX_PARTS; i++) {
        first.part_columns[i] = NO_COLUMN;
    }
    if (columns->source->column && columns->source->column[0]) {
        status = columns_split(columns->source, &first.parts, columns->err);
    }
    status = status < 0 ? status : read_first(columns, reader, &first);
    status = status < 0 ? status : choose(columns, &first);
    *ret_is_data = first.is_data;
    return status;
}
