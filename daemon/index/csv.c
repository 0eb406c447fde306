/*
 * Tables: one column or the sum of some is the length, another the loss tokens where it is named
 * so. Every record has as many fields as the first; empty lines are passed over. Thread-safe.
 */
#include "index/csv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "index/columns.h"
#include "index/csv_columns.h"
#include "index/csv_record.h"
#include "index/decimal.h"
#include "index/rows.h"

struct table {
    const struct index_source *source;
    struct skrull_error *err;
    struct csv_columns columns;
    uint64_t record; /* the one that is read, from 1, the names not counted */
    uint64_t line;   /* where it begins */
    struct rows lengths, loss_tokens;
};

static const unsigned char *first_line(const struct index_source *source,
                                       const unsigned char **ret_end)
{
    const unsigned char *at = source->head, *end = at + source->head_size, *line_end;

    if (end - at >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) {
        at += 3;
    }
    while (at < end && (*at == '\r' || *at == '\n')) {
        at++;
    }
    line_end = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    *ret_end = line_end ? line_end : end;
    return at;
}

static int is_text_byte(unsigned char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' ||
           (byte != '\0' && strchr("0123456789.eE+-", byte) != NULL);
}

static const unsigned char *skip_numbers(const unsigned char *at, const unsigned char *end)
{
    while (at < end && is_text_byte(*at)) {
        at++;
    }
    return at;
}

int csv_is_numbers(const struct index_source *source)
{
    const unsigned char *end, *at = first_line(source, &end);

    return skip_numbers(at, end) == end;
}

/* Text: no more than numbers before a `#`. */
static int is_comment(const unsigned char *at, const unsigned char *end)
{
    at = skip_numbers(at, end);
    return at < end && *at == '#';
}

int csv_sniff(const struct index_source *source)
{
    static const char delimiters[] = {',', ';', '\t'};
    size_t counts[sizeof(delimiters)] = {0}, best = 0;
    const unsigned char *end, *at = first_line(source, &end);
    int is_quoted = 0;

    if (is_comment(at, end) || (at < end && *at == '<')) {
        return -1;
    }
    for (; at < end; at++) {
        if (*at < ' ' && *at != '\t' && *at != '\r') {
            return -1;
        }
        is_quoted ^= *at == '"';
        for (size_t i = 0; i < sizeof(delimiters) && !is_quoted; i++) {
            counts[i] += *at == (unsigned char)delimiters[i];
        }
    }
    for (size_t i = 1; i < sizeof(delimiters); i++) {
        best = counts[i] > counts[best] ? i : best;
    }
    return counts[best] > 0 ? delimiters[best] : '\0';
}

int csv_is_one_column(const struct index_source *source)
{
    const unsigned char *end, *at = first_line(source, &end);

    if (source->column && source->column[0]) {
        return 1;
    }
    if (at < end && *at == '"') {
        return 1;
    }
    while (end > at && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }
    while (at < end && (*at == ' ' || *at == '\t')) {
        at++;
    }
    return columns_find((const char *)at, (size_t)(end - at)) < columns_n_known;
}

static int refuse_field(const struct table *table, const struct csv_column *column,
                        const struct csv_field *field, const char *what)
{
    size_t len = 0, n = 0;
    const char *text = csv_trim(field, &len);
    char shown[32];

    for (; text && n < len && n < sizeof(shown) - 1; n++) {
        shown[n] = text[n] > ' ' && text[n] < 0x7f ? text[n] : '?';
    }
    shown[n] = '\0';
    return skrull_error_set(table->err, SKRULL_ERR_INVALID_ARGUMENT,
                            "%s: record %" PRIu64 " (line %" PRIu64
                            "): column %.*s: %s %s; lengths "
                            "are whole numbers from 1 to 4294967295",
                            table->source->path, table->record, table->line,
                            (int)(column->name.len < 60 ? column->name.len : 60), column->name.text,
                            n > 0 ? shown : "the field", what);
}

/* Adds the field's number to `sum`. */
static int take_number(const struct table *table, const struct csv_column *column,
                       const struct csv_field *field, uint64_t *sum)
{
    size_t len = 0;
    const char *text = csv_trim(field, &len);
    uint32_t value = 0;
    enum decimal decimal = text ? decimal_parse(text, len, &value) : DECIMAL_NONE;

    if (decimal != DECIMAL_WHOLE) {
        return refuse_field(table, column, field,
                            text && len == 0 ? "is empty" : decimal_fault(decimal));
    }
    *sum += value;
    return 0;
}

static int refuse_record(const struct table *table, const char *what, uint64_t number)
{
    return skrull_error_set(table->err, SKRULL_ERR_INVALID_ARGUMENT,
                            "%s: record %" PRIu64 " (line %" PRIu64 "): %s %" PRIu64
                            "; lengths are whole numbers from 1 to 4294967295",
                            table->source->path, table->record, table->line, what, number);
}

static int refuse_ragged(const struct table *table, uint64_t n_fields)
{
    return skrull_error_set(
        table->err, SKRULL_ERR_INVALID_ARGUMENT,
        "%s: record %" PRIu64 " (line %" PRIu64 ") has %" PRIu64
        " fields, the first record %" PRIu64 "; quote fields that hold the delimiter",
        table->source->path, table->record, table->line, n_fields, table->columns.n_columns);
}

static int add_row(struct table *table, uint64_t length, uint64_t loss)
{
    int status = 0;

    if (length == 0 || length > UINT32_MAX) {
        return refuse_record(table, "length", length);
    }
    if (table->columns.has_loss) {
        status = loss > length ? refuse_record(table, "more loss tokens than tokens,", loss)
                               : rows_add(&table->loss_tokens, (uint32_t)loss, table->err);
    }
    return status < 0 ? status : rows_add(&table->lengths, (uint32_t)length, table->err);
}

static int read_record(struct table *table, struct csv_reader *reader)
{
    const struct csv_column *wanted = table->columns.wanted, *end = wanted + table->columns.n;
    uint64_t sums[2] = {0}, place = 0;
    struct csv_field field;
    int outcome, status = 0;

    do {
        int is_wanted = wanted < end && wanted->place == place;

        /* The first field is kept, too: is this an empty line? */
        outcome = csv_next_field(reader, is_wanted || place == 0 ? &field : NULL);
        if (outcome < 0) {
            return outcome;
        }
        if (place == 0 && outcome == CSV_RECORD && csv_is_empty_line(&field, 1)) {
            table->record--;
            return 0;
        }
        if (is_wanted) {
            status = take_number(table, wanted, &field, &sums[wanted->is_loss]);
            wanted++;
        }
        place++;
    } while (status == 0 && outcome == CSV_FIELD);
    if (status < 0) {
        return status;
    }
    return place == table->columns.n_columns ? add_row(table, sums[0], sums[1])
                                             : refuse_ragged(table, place);
}

static int read_records(struct table *table, struct csv_reader *reader)
{
    int has;

    while ((has = csv_has_record(reader)) > 0) {
        int status;

        table->record++;
        table->line = reader->line;
        status = read_record(table, reader);
        if (status < 0) {
            return status;
        }
    }
    return has;
}

static int read_table(struct table *table, char delimiter)
{
    struct csv_reader reader;
    int is_data = 0, status;

    status = csv_open_reader(&reader, table->source, delimiter, table->err);
    status = status < 0 ? status : csv_choose_columns(&table->columns, &reader, &is_data);
    if (status == 0 && is_data) { /* from the beginning again */
        csv_close(&reader);
        status = csv_open_reader(&reader, table->source, delimiter, table->err);
    }
    status = status < 0 ? status : read_records(table, &reader);
    csv_close(&reader);
    return status;
}

int csv_open(const struct index_source *source, char delimiter, struct index_file *ret_file,
             struct skrull_error *err)
{
    struct table table = {.source = source,
                          .err = err,
                          .columns = {.source = source, .err = err},
                          .lengths = {.source = source},
                          .loss_tokens = {.source = source}};
    int status = read_table(&table, delimiter);

    if (status < 0) {
        rows_free(&table.lengths);
        rows_free(&table.loss_tokens);
        return status;
    }
    return rows_hand_over(&table.lengths, &table.loss_tokens, ret_file, err);
}
