/*
 * The values of a record's fields: numbers, lists of lengths, lists that are counted, messages with
 * a count each. Nothing of them is kept but sums and rows. Thread-safe: the state is the caller's.
 */
#include "index/json_value.h"

#include <inttypes.h>
#include <string.h>

int json_is_loss(const struct json_field *field)
{
    return field->is_known && field->kind == COLUMN_LOSS && !field->is_asked;
}

int json_name_len(const struct json_field *field)
{
    return (int)(field->name.len < 60 ? field->name.len : 60);
}

/* The number as it is written, as far as it can be shown. */
static int refuse_text(const struct json_fields *fields, const struct json_field *field,
                       const struct json_text *text, const char *what)
{
    const int len = (int)(text->len < 40 ? text->len : 40);

    return json_refuse(fields->reader, "field %.*s: %.*s %s; " JSON_LENGTHS, json_name_len(field),
                       field->name.text, len, text->bytes, what);
}

enum decimal json_parse(const struct json_text *text, uint32_t *ret_value)
{
    return text->len <= DECIMAL_MAX_LEN ? decimal_parse(text->bytes, text->len, ret_value)
                                        : DECIMAL_NONE;
}

/* A value that is no number where one should be. */
static int refuse_kind(const struct json_fields *fields, const struct json_field *field, int kind)
{
    static const char *const words[] = {
        [JSON_OBJECT] = "an object",         [JSON_ARRAY] = "a list",    [JSON_STRING] = "a string",
        [JSON_WORD] = "true, false or null", [JSON_NUMBER] = "a number",
    };

    return json_refuse(fields->reader, "field %.*s: %s is no length; " JSON_LENGTHS,
                       json_name_len(field), field->name.text, words[kind]);
}

/* 1: the field is meant, so that what it cannot be is an error; else it is passed over. */
static int is_meant(const struct json_fields *fields, const struct json_field *field)
{
    return fields->is_chosen || field->is_asked || field->kind == COLUMN_LENGTH ||
           field->kind == COLUMN_LOSS;
}

/* A number of the field, from 0. 1: none that could be a length, in a field that is not meant. */
static int take_number(struct json_fields *fields, const struct json_field *field,
                       uint32_t *ret_value)
{
    struct json_text text;
    int status = json_take_number(fields->reader, &text);
    enum decimal decimal;

    if (status < 0) {
        return status;
    }
    decimal = json_parse(&text, ret_value);
    if (decimal == DECIMAL_WHOLE) {
        return 0;
    }
    return is_meant(fields, field) ? refuse_text(fields, field, &text, decimal_fault(decimal)) : 1;
}

static int pass_over(struct json_fields *fields, const struct json_field *field, int kind)
{
    if (kind == JSON_NOTHING || kind == JSON_OTHER || !is_meant(fields, field)) {
        return json_skip(fields->reader); /* which says what is wrong with no value */
    }
    return kind < 0 ? kind : refuse_kind(fields, field, kind);
}

/* Counts the elements of the list that is entered. */
static int count_elements(struct json_fields *fields, uint64_t *ret_n)
{
    int is_first = 1, more;
    uint64_t n = 0;

    while ((more = json_next_element(fields->reader, &is_first)) > 0) {
        int status = json_skip(fields->reader);

        if (status < 0) {
            return status;
        }
        n++;
    }
    *ret_n = n;
    return more;
}

static int add_to_list(struct json_fields *fields, struct json_field *field, uint64_t length)
{
    if ((length == 0 && !json_is_loss(field)) || length > UINT32_MAX) {
        return json_refuse(fields->reader,
                           "field %.*s: element %" PRIu64 " has length %" PRIu64 "; " JSON_LENGTHS,
                           json_name_len(field), field->name.text, field->rows.count + 1, length);
    }
    return rows_add(&field->rows, (uint32_t)length, fields->reader->err);
}

/* A list of numbers, each a row's. */
static int take_lengths(struct json_fields *fields, struct json_field *field)
{
    int is_first = 1, more;

    field->state = VALUE_ROWS;
    while ((more = json_next_element(fields->reader, &is_first)) > 0) {
        int kind = json_peek(fields->reader), status;
        uint32_t value = 0;

        if (kind != JSON_NUMBER) {
            return kind == JSON_NOTHING || kind == JSON_OTHER ? json_skip(fields->reader)
                   : kind < 0                                 ? kind
                                                              : refuse_kind(fields, field, kind);
        }
        status = take_number(fields, field, &value);
        status = status < 0 ? status : add_to_list(fields, field, value);
        if (status < 0) {
            return status;
        }
    }
    return more;
}

/* An element of a list that may be of lengths, or be counted. */
static int take_element(struct json_fields *fields, struct json_field *field)
{
    int is_number = json_peek(fields->reader) == JSON_NUMBER, status;
    struct json_text text;
    uint32_t value = 0;

    field->number++;
    if (fields->is_line || fields->is_chosen || field->is_no_length || !is_number) {
        field->is_no_length = 1;
        return json_skip(fields->reader);
    }
    status = json_take_number(fields->reader, &text);
    if (status < 0) {
        return status;
    }
    if (json_parse(&text, &value) != DECIMAL_WHOLE || value == 0) {
        field->is_no_length = 1;
        return 0;
    }
    return rows_add(&field->rows, value, fields->reader->err);
}

/* A list of items, or of lists of items, each a row's. */
static int take_items(struct json_fields *fields, struct json_field *field)
{
    int is_first = 1, more;

    field->state = field->is_known ? VALUE_NUMBER : VALUE_LIST;
    while ((more = json_next_element(fields->reader, &is_first)) > 0) {
        int kind = json_peek(fields->reader), status;

        if (field->number == 0 && kind == JSON_ARRAY) {
            field->state = VALUE_ROWS;
        }
        if (field->state == VALUE_ROWS) {
            uint64_t n = 0;

            if (kind != JSON_ARRAY) {
                status = pass_over(fields, field, kind);
                return status < 0
                           ? status
                           : json_refuse(fields->reader, "field %.*s: lists and others mixed",
                                         json_name_len(field), field->name.text);
            }
            json_enter(fields->reader);
            status = count_elements(fields, &n);
            status = status < 0 ? status : add_to_list(fields, field, n);
        } else if (field->is_known) {
            field->number++;
            status = json_skip(fields->reader);
        } else {
            status = take_element(fields, field);
        }
        if (status < 0) {
            return status;
        }
    }
    return more;
}

/* The value of a message's num_tokens. 1: none that counts, in a field that is not meant. */
static int take_count(struct json_fields *fields, struct json_field *field)
{
    int kind = json_peek(fields->reader);
    uint32_t value = 0;
    int status;

    if (kind != JSON_NUMBER) {
        status = pass_over(fields, field, kind);
        return status < 0 ? status : 1;
    }
    status = take_number(fields, field, &value);
    field->number += value;
    return status;
}

/* A message. 1: it has no num_tokens. */
static int take_turn(struct json_fields *fields, struct json_field *field)
{
    static const char name[] = "num_tokens";
    int is_first = 1, is_seen = 0, outcome = 1, more, status;
    struct json_text key;

    if (json_peek(fields->reader) != JSON_OBJECT) {
        status = json_skip(fields->reader);
        return status < 0 ? status : 1;
    }
    json_enter(fields->reader);
    while ((more = json_next_member(fields->reader, &is_first, &key)) > 0) {
        if (key.len != sizeof(name) - 1 || memcmp(key.bytes, name, key.len) != 0) {
            status = json_skip(fields->reader);
        } else if (is_seen) {
            return json_refuse(fields->reader, "num_tokens stands twice in a message");
        } else {
            is_seen = 1;
            status = outcome = take_count(fields, field);
        }
        if (status < 0) {
            return status;
        }
    }
    return more < 0 ? more : outcome;
}

/* Messages: the sum of their counts; json_fields.c refuses it where one has none. */
static int take_turns(struct json_fields *fields, struct json_field *field)
{
    int is_first = 1, more;

    while ((more = json_next_element(fields->reader, &is_first)) > 0) {
        int outcome = take_turn(fields, field);

        if (outcome < 0) {
            return outcome;
        }
        field->state = outcome == 0 ? VALUE_NUMBER : field->state;
        field->is_no_length |= outcome > 0;
    }
    field->state = is_meant(fields, field) ? VALUE_NUMBER : field->state;
    return more;
}

static int take_list(struct json_fields *fields, struct json_field *field)
{
    enum column_kind kind = field->kind;

    if (field->is_known && kind == COLUMN_HALF) {
        return pass_over(fields, field, JSON_ARRAY);
    }
    json_enter(fields->reader);
    if (field->is_known && kind == COLUMN_TURNS) {
        return take_turns(fields, field);
    }
    if (field->is_known && (kind == COLUMN_LENGTH || kind == COLUMN_LOSS)) {
        return take_lengths(fields, field);
    }
    return take_items(fields, field);
}

int json_take_value(struct json_fields *fields, struct json_field *field)
{
    int kind = json_peek(fields->reader), status;
    uint32_t value = 0;

    if (field->is_seen) {
        return json_refuse(fields->reader, "field %.*s stands twice", json_name_len(field),
                           field->name.text);
    }
    field->is_seen = 1;
    if (kind == JSON_ARRAY) {
        return take_list(fields, field);
    }
    if (kind != JSON_NUMBER || (field->is_known && field->kind == COLUMN_TURNS)) {
        return pass_over(fields, field, kind);
    }
    status = take_number(fields, field, &value);
    if (status == 0) {
        field->number = value;
        field->state = VALUE_NUMBER;
    }
    return status < 0 ? status : 0;
}
