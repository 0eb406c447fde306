/*
 * Events instead of libyaml's documents: nothing is built from a file's structure, so a small
 * hostile file cannot become a large tree, and every error has its line. One reader a thread.
 */
#include "yaml_reader.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

#define MAX_SKIPPED_DEPTH 16

/* libyaml reports bytes that are no text without a line. */
static int check_bytes(const char *text, size_t len, struct skrull_error *err)
{
    size_t line = 1, i = 0, step;

    while (i < len) {
        step = text_character_len(text + i);
        if (step == 0) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "line %zu: %s, only UTF-8 text is allowed", line,
                                    text[i] ? "not UTF-8" : "a NUL byte");
        }
        line += text[i] == '\n';
        i += step;
    }
    return 0;
}

int yaml_reader_init(struct yaml_reader *reader, const char *text, size_t len,
                     struct skrull_error *err)
{
    static const char mark[] = "\xEF\xBB\xBF"; /* which libyaml would count as a column */
    const size_t skip = len >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
    char *copy = len == SIZE_MAX ? NULL : malloc(len + 1); /* ends with NUL for check_bytes */
    int rc;

    if (!copy) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    rc = check_bytes(copy, len, err);
    if (!rc && !yaml_parser_initialize(&reader->parser)) {
        rc = skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    if (rc) {
        free(copy);
        return rc;
    }
    reader->text = copy;
    reader->begin = copy + skip;
    reader->err = err;
    yaml_parser_set_encoding(&reader->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader->parser, (const unsigned char *)copy + skip, len - skip);
    return 0;
}

void yaml_reader_deinit(struct yaml_reader *reader)
{
    yaml_parser_delete(&reader->parser);
    free(reader->text);
}

/* The line of a byte that libyaml does not take: of such a fault it gives the place alone. */
static size_t byte_line(const struct yaml_reader *reader)
{
    size_t line = 1;

    for (size_t i = 0; i < reader->parser.problem_offset && reader->begin[i]; i++) {
        line += reader->begin[i] == '\n';
    }
    return line;
}

/* The line of a fault, which libyaml puts past the last one where the text ends too early. */
static size_t fault_line(const struct yaml_reader *reader)
{
    const size_t line = reader->parser.problem_mark.line + 1;
    size_t n_lines = 1;

    if (reader->parser.error == YAML_READER_ERROR) {
        return byte_line(reader);
    }
    for (const char *at = strchr(reader->text, '\n'); at && at[1]; at = strchr(at + 1, '\n')) {
        n_lines++;
    }
    return line < n_lines ? line : n_lines;
}

/* libyaml's failure in our words. */
static int parser_failed(const struct yaml_reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;

    if (parser->error == YAML_MEMORY_ERROR) {
        return skrull_error_set(reader->err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    return skrull_error_set(reader->err, SKRULL_ERR_INVALID_ARGUMENT,
                            "line %zu: not YAML or JSON: %s%s%s", fault_line(reader),
                            parser->context ? parser->context : "", parser->context ? ", " : "",
                            parser->problem ? parser->problem : "it cannot be read");
}

size_t yaml_event_line(const yaml_event_t *event)
{
    return event->start_mark.line + 1;
}

static bool is_core_tag(const char *tag)
{
    static const char *const tags[] = {YAML_STR_TAG,   YAML_INT_TAG, YAML_BOOL_TAG, YAML_NULL_TAG,
                                       YAML_FLOAT_TAG, YAML_SEQ_TAG, YAML_MAP_TAG,  "!"};

    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        if (strcmp(tag, tags[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* What no job file may hold, whatever the key. */
static int check_event(struct yaml_reader *reader, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    char clip[TEXT_CLIP_SIZE];

    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    }
    if (event->type == YAML_ALIAS_EVENT || anchor) {
        return skrull_error_set(reader->err, SKRULL_ERR_INVALID_ARGUMENT,
                                "line %zu: anchors and aliases are not allowed",
                                yaml_event_line(event));
    }
    if (tag && !is_core_tag((const char *)tag)) {
        return skrull_error_set(reader->err, SKRULL_ERR_INVALID_ARGUMENT,
                                "line %zu: the tag %s is not allowed", yaml_event_line(event),
                                text_clip((const char *)tag, clip));
    }
    return 0;
}

int yaml_reader_next(struct yaml_reader *reader, yaml_event_t *event)
{
    int rc;

    if (!yaml_parser_parse(&reader->parser, event)) {
        return parser_failed(reader);
    }
    rc = check_event(reader, event);
    if (rc) {
        yaml_event_delete(event);
    }
    return rc;
}

static bool is_opening(const yaml_event_t *event)
{
    return event->type == YAML_MAPPING_START_EVENT || event->type == YAML_SEQUENCE_START_EVENT;
}

static bool is_closing(const yaml_event_t *event)
{
    return event->type == YAML_MAPPING_END_EVENT || event->type == YAML_SEQUENCE_END_EVENT;
}

bool yaml_event_is_null(const yaml_event_t *event)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    const char *tag = (const char *)event->data.scalar.tag;

    if (event->type != YAML_SCALAR_EVENT || event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE ||
        (tag && strcmp(tag, YAML_STR_TAG) == 0)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++) {
        if (strcmp((const char *)event->data.scalar.value, nulls[i]) == 0) {
            return true;
        }
    }
    return false;
}

int yaml_reader_skip(struct yaml_reader *reader, const yaml_event_t *first)
{
    size_t depth = is_opening(first) ? 1 : 0;
    yaml_event_t event;
    int rc;

    while (depth > 0) {
        rc = yaml_reader_next(reader, &event);
        if (rc) {
            return rc;
        }
        if (is_opening(&event)) {
            depth++;
        } else if (is_closing(&event)) {
            depth--;
        }
        if (depth > MAX_SKIPPED_DEPTH) {
            rc = skrull_error_set(reader->err, SKRULL_ERR_INVALID_ARGUMENT,
                                  "line %zu: nested deeper than %d, which is not allowed",
                                  yaml_event_line(&event), MAX_SKIPPED_DEPTH);
        }
        yaml_event_delete(&event);
        if (rc) {
            return rc;
        }
    }
    return 0;
}
