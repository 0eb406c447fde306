/*
 * JSON: an array of lengths or of records, an object of lists, or records one a line. Where an
 * object comes first, a line end within it says that it is the whole document; one that ends with
 * its line begins a file of records. Thread-safe.
 */
#include "index/json.h"

#include <string.h>

#include "index/json_fields.h"
#include "index/json_reader.h"

struct json_file {
    struct json_reader reader;
    struct json_fields *fields; /* owned */
    int is_document;            /* known to be, or taken for one */
};

char json_first_byte(const struct index_source *source)
{
    const unsigned char *at = source->head, *end = at + source->head_size;

    if (end - at >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) {
        at += 3;
    }
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')) {
        at++;
    }
    return at < end ? (char)*at : '\0';
}

/* The next value, on whatever line. */
static int next_value(struct json_file *file)
{
    file->reader.is_line = 0;
    return json_peek(&file->reader);
}

static void begin_record(struct json_file *file)
{
    file->reader.record++;
    file->reader.record_line = file->reader.line;
}

static int read_lines(struct json_file *file)
{
    int kind;

    while ((kind = next_value(file)) > JSON_NOTHING) {
        int status;

        begin_record(file);
        if (kind != JSON_OBJECT) {
            return json_refuse(&file->reader, "a record is an object; for a JSON array say format "
                                              "json, for numbers format text");
        }
        file->reader.is_line = 1;
        status = json_fields_read(file->fields);
        status = status < 0 ? status : json_fields_take(file->fields, JSON_RECORD);
        status = status < 0 ? status : json_end_line(&file->reader);
        if (status < 0) {
            return status;
        }
    }
    return kind;
}

/* Nothing but blanks up to the end of the file. */
static int end_document(struct json_file *file)
{
    int kind = next_value(file);

    return kind <= 0 ? kind
                     : json_refuse(&file->reader, "data behind the document; for one record a line "
                                                  "say format jsonl");
}

/* An object, and what follows it if that can tell what it is. */
static int read_object(struct json_file *file, enum json_shape shape)
{
    enum json_context context = JSON_WHOLE;
    int status;

    begin_record(file);
    status = json_fields_read(file->fields);
    if (status == 0 && shape == JSON_EITHER && file->reader.line == file->reader.record_line) {
        status = json_end_line(&file->reader);
        status = status < 0 ? status : next_value(file);
        context = status == JSON_NOTHING ? JSON_ONLY : JSON_RECORD;
    } else if (status == 0) {
        status = end_document(file);
    }
    status = status < 0 ? status : json_fields_take(file->fields, context);
    if (status < 0) {
        return status;
    }
    file->is_document = context == JSON_WHOLE || (context == JSON_ONLY && status > 0);
    return context == JSON_RECORD ? read_lines(file) : 0;
}

static int read_element(struct json_file *file, int kind)
{
    struct json_text text;
    int status;

    if (kind == JSON_OBJECT) {
        status = json_fields_read(file->fields);
        return status < 0 ? status : json_fields_take(file->fields, JSON_RECORD);
    }
    status = json_take_number(&file->reader, &text);
    return status < 0 ? status : json_fields_add(file->fields, &text);
}

static int read_array(struct json_file *file)
{
    int is_first = 1, first_kind = JSON_NOTHING, more;

    file->is_document = 1;
    json_enter(&file->reader);
    while ((more = json_next_element(&file->reader, &is_first)) > 0) {
        int kind = json_peek(&file->reader), status;

        begin_record(file);
        first_kind = first_kind == JSON_NOTHING ? kind : first_kind;
        if (kind != first_kind || (kind != JSON_OBJECT && kind != JSON_NUMBER)) {
            status = json_skip(&file->reader); /* which says what is wrong with no value */
            return status < 0 ? status
                              : json_refuse(&file->reader,
                                            "an array holds whole numbers or objects, one kind");
        }
        status = read_element(file, kind);
        if (status < 0) {
            return status;
        }
    }
    return more < 0 ? more : end_document(file);
}

static int read_file(struct json_file *file, enum json_shape shape)
{
    int kind = next_value(file);

    if (shape == JSON_LINES || kind < 0) {
        return kind < 0 ? kind : read_lines(file);
    }
    if (kind == JSON_ARRAY) {
        return read_array(file);
    }
    if (kind == JSON_OBJECT) {
        return read_object(file, shape);
    }
    return json_refuse(&file->reader,
                       "a JSON index is an array of numbers or objects, or an object "
                       "of lists");
}

int json_read(const struct index_source *source, enum json_shape shape, struct index_file *ret_file,
              struct skrull_error *err)
{
    struct json_file file = {.is_document = shape == JSON_DOCUMENT};
    int status = json_open(&file.reader, source, err);

    if (status == 0) {
        status = json_fields_create(source, &file.reader, shape == JSON_LINES, &file.fields);
    }
    status = status < 0 ? status : read_file(&file, shape);
    status = status < 0 ? status : json_fields_finish(file.fields, ret_file);
    if (status == 0) {
        ret_file->idx.format = file.is_document ? format_json.name : format_jsonl.name;
    }
    json_fields_destroy(file.fields);
    json_close(&file.reader);
    return status;
}
