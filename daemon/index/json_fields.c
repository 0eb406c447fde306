/*
 * Lengths out of a record's fields: a number; a list of lengths; a list that is counted; the
 * num_tokens of its messages. Only keys of the record itself count, and each once. Thread-safe: the
 * state is the caller's.
 */
#include "index/json_fields.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "index/json_value.h"

static void add_field(struct json_fields *fields, struct column_name name, int is_asked)
{
    size_t known = columns_find(name.text, name.len);

    fields->fields[fields->n++] = (struct json_field){
        .name = name,
        .is_asked = is_asked,
        .is_known = known < columns_n_known,
        .kind = known < columns_n_known ? columns_known[known].kind : COLUMN_LENGTH,
        .rows = {.source = fields->source},
    };
}

static int is_same(const struct column_name *name, const char *text, size_t len)
{
    return name->len == len && memcmp(name->text, text, len) == 0;
}

static struct json_field *find_field(struct json_fields *fields, const char *text, size_t len)
{
    for (size_t i = 0; i < fields->n; i++) {
        if (is_same(&fields->fields[i].name, text, len)) {
            return &fields->fields[i];
        }
    }
    return NULL;
}

/* The fields to look for in the first record. */
static int watch(struct json_fields *fields)
{
    const char *column = fields->source->column;
    struct column_parts parts = {.n = 0};
    int status =
        column && column[0] ? columns_split(fields->source, &parts, fields->reader->err) : 0;

    if (status < 0) {
        return status;
    }
    for (size_t i = 0; i < parts.n; i++) {
        add_field(fields, parts.parts[i], 1);
    }
    fields->n_parts = parts.n;
    for (size_t i = 0; i < columns_n_known; i++) {
        struct column_name name = {columns_known[i].name, strlen(columns_known[i].name)};

        if ((parts.n == 0 || columns_known[i].kind == COLUMN_LOSS) &&
            !find_field(fields, name.text, name.len)) {
            add_field(fields, name, 0);
        }
    }
    return 0;
}

int json_fields_create(const struct index_source *source, struct json_reader *reader, int is_line,
                       struct json_fields **ret_fields)
{
    struct json_fields *fields = calloc(1, sizeof(*fields));
    int status;

    if (!fields) {
        return skrull_error_set(reader->err, SKRULL_ERR_RESOURCE_EXHAUSTED, "%s: out of memory",
                                source->path);
    }
    fields->source = fields->lengths.source = fields->loss_tokens.source = source;
    fields->reader = reader;
    fields->is_line = is_line;
    status = watch(fields);
    if (status < 0) {
        json_fields_destroy(fields);
        return status;
    }
    *ret_fields = fields;
    return 0;
}

void json_fields_destroy(struct json_fields *fields)
{
    if (fields) {
        for (size_t i = 0; i < fields->n; i++) {
            rows_free(&fields->fields[i].rows);
        }
        rows_free(&fields->lengths);
        rows_free(&fields->loss_tokens);
        free(fields);
    }
}

int json_fields_read(struct json_fields *fields)
{
    struct json_text key;
    int is_first = 1, more;

    for (size_t i = 0; i < fields->n; i++) {
        struct json_field *field = &fields->fields[i];

        field->state = VALUE_ABSENT;
        field->is_seen = field->is_no_length = 0;
        field->number = field->rows.count = field->rows.sum = 0;
    }
    json_enter(fields->reader);
    while ((more = json_next_member(fields->reader, &is_first, &key)) > 0) {
        struct json_field *field =
            key.len <= sizeof(key.bytes) ? find_field(fields, key.bytes, key.len) : NULL;
        int status = field ? json_take_value(fields, field) : json_skip(fields->reader);

        if (status < 0) {
            return status;
        }
        if (!fields->is_chosen) {
            columns_list(fields->names, key.bytes,
                         key.len < sizeof(key.bytes) ? key.len : sizeof(key.bytes));
        }
    }
    return more;
}

/* Of the known fields, what makes the length. */
static int choose_known(struct json_fields *fields, struct column_parts *parts)
{
    uint64_t seen = 0;
    int outcome;

    for (size_t i = 0; i < fields->n; i++) {
        const struct json_field *field = &fields->fields[i];

        if (field->state != VALUE_ABSENT) {
            seen |= UINT64_C(1) << columns_find(field->name.text, field->name.len);
        }
    }
    outcome = columns_choose(fields->source, seen, parts, fields->reader->err);
    if (outcome != COLUMNS_NONE) {
        return outcome;
    }
    return json_refuse_record(fields->reader,
                              "no field that is known to hold lengths; say which as column; its "
                              "fields: %s",
                              fields->names[0] ? fields->names : "none");
}

/* Moves field `from` to place `to` of those that stay. */
static void swap_fields(struct json_fields *fields, size_t to, size_t from)
{
    struct json_field other = fields->fields[to];

    fields->fields[to] = fields->fields[from];
    fields->fields[from] = other;
}

/* After the first record: the parts come first, then the loss tokens, and the rest goes. */
static int choose(struct json_fields *fields)
{
    struct column_parts parts = {.n = 0};
    size_t n_kept;
    int status = fields->n_parts == 0 ? choose_known(fields, &parts) : 0;

    if (status < 0) {
        return status;
    }
    for (size_t i = 0; i < parts.n; i++) {
        struct json_field *field = find_field(fields, parts.parts[i].text, parts.parts[i].len);

        swap_fields(fields, fields->n_parts++, (size_t)(field - fields->fields));
    }
    n_kept = fields->n_parts;
    for (size_t i = n_kept; i < fields->n; i++) {
        if (!json_is_loss(&fields->fields[i]) || fields->fields[i].state == VALUE_ABSENT) {
            continue;
        }
        if (n_kept > fields->n_parts) {
            return json_refuse_record(fields->reader, "two fields of loss tokens; leave one away");
        }
        swap_fields(fields, n_kept++, i);
    }
    for (size_t i = n_kept; i < fields->n; i++) {
        rows_free(&fields->fields[i].rows);
    }
    fields->n = n_kept;
    fields->is_chosen = 1;
    return 0;
}

/* What a list under a name that says nothing is in this context. */
static int settle_list(struct json_fields *fields, struct json_field *field,
                       enum json_context context)
{
    if (context == JSON_ONLY) {
        return json_refuse_record(fields->reader,
                                  "field %.*s is a list: of lengths, or the tokens of one record? "
                                  "say format json for the one, jsonl for the other",
                                  json_name_len(field), field->name.text);
    }
    if (context == JSON_WHOLE && field->is_no_length) {
        return json_refuse_record(fields->reader, "field %.*s: element %" PRIu64 "; " JSON_LENGTHS,
                                  json_name_len(field), field->name.text, field->rows.count + 1);
    }
    field->state = context == JSON_WHOLE ? VALUE_ROWS : VALUE_NUMBER;
    return 0;
}

static int settle(struct json_fields *fields, enum json_context context)
{
    for (size_t i = 0; i < fields->n; i++) {
        struct json_field *field = &fields->fields[i];
        int status = 0;

        if (field->state == VALUE_ABSENT) {
            return json_refuse_record(fields->reader, "no field %.*s%s%s", json_name_len(field),
                                      field->name.text, fields->names[0] ? "; its fields: " : "",
                                      fields->names);
        }
        if (field->is_known && field->kind == COLUMN_TURNS && field->is_no_length) {
            return json_refuse_record(fields->reader, "field %.*s: a message without num_tokens",
                                      json_name_len(field), field->name.text);
        }
        if (field->state == VALUE_LIST) {
            status = settle_list(fields, field, context);
        }
        if (status == 0 && field->state == VALUE_ROWS && fields->n_parts > 1) {
            status = json_refuse_record(fields->reader,
                                        "field %.*s is a list of rows, and lists are not added",
                                        json_name_len(field), field->name.text);
        }
        if (status < 0) {
            return status;
        }
    }
    fields->names[0] = '\0'; /* of the first record only */
    return 0;
}

static int add_row(struct json_fields *fields, uint64_t length, const struct json_field *loss,
                   uint64_t n_loss)
{
    int status = 0;

    if (length == 0 || length > UINT32_MAX) {
        return json_refuse_record(fields->reader, "length %" PRIu64 "; " JSON_LENGTHS, length);
    }
    if (loss) {
        status = n_loss > length
                     ? json_refuse_record(fields->reader,
                                          "%" PRIu64 " loss tokens of %" PRIu64 " tokens", n_loss,
                                          length)
                     : rows_add(&fields->loss_tokens, (uint32_t)n_loss, fields->reader->err);
    }
    return status < 0 ? status : rows_add(&fields->lengths, (uint32_t)length, fields->reader->err);
}

/* A list: a row each. */
static int add_rows(struct json_fields *fields, const struct json_field *field,
                    const struct json_field *loss)
{
    if (loss && (loss->state != VALUE_ROWS || loss->rows.count != field->rows.count)) {
        return json_refuse_record(fields->reader,
                                  "field %.*s has not as many loss tokens as field %.*s has "
                                  "lengths",
                                  json_name_len(loss), loss->name.text, json_name_len(field),
                                  field->name.text);
    }
    for (uint64_t i = 0; i < field->rows.count; i++) {
        int status = add_row(fields, field->rows.items[i], loss, loss ? loss->rows.items[i] : 0);

        if (status < 0) {
            return status;
        }
    }
    return 1;
}

int json_fields_take(struct json_fields *fields, enum json_context context)
{
    int status = fields->is_chosen ? 0 : choose(fields);
    const struct json_field *loss = NULL;
    uint64_t sum = 0;

    status = status < 0 ? status : settle(fields, context);
    if (status < 0) {
        return status;
    }
    if (fields->n > fields->n_parts) {
        loss = &fields->fields[fields->n_parts];
    }
    if (fields->fields[0].state == VALUE_ROWS) {
        return add_rows(fields, &fields->fields[0], loss);
    }
    for (size_t i = 0; i < fields->n_parts; i++) {
        sum += fields->fields[i].number;
    }
    if (loss && loss->state != VALUE_NUMBER) {
        return json_refuse_record(fields->reader, "field %.*s is a list, the length is a number",
                                  json_name_len(loss), loss->name.text);
    }
    return add_row(fields, sum, loss, loss ? loss->number : 0);
}

int json_fields_add(struct json_fields *fields, const struct json_text *number)
{
    uint32_t value = 0;
    enum decimal decimal = json_parse(number, &value);

    if (fields->n_parts > 0) {
        return json_refuse(fields->reader,
                           "column %.60s: an array of numbers has no fields; leave "
                           "column empty",
                           fields->source->column);
    }
    if (decimal != DECIMAL_WHOLE) {
        return json_refuse(fields->reader, "%.*s %s; " JSON_LENGTHS,
                           (int)(number->len < 40 ? number->len : 40), number->bytes,
                           decimal_fault(decimal));
    }
    return add_row(fields, value, NULL, 0);
}

int json_fields_finish(struct json_fields *fields, struct index_file *ret_file)
{
    return rows_hand_over(&fields->lengths, &fields->loss_tokens, ret_file, fields->reader->err);
}
