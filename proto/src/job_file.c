/*
 * Reads a job file event by event, down the tree that the table of job_fields.h describes. Scalars
 * go through the table into the struct; job_complete checks the whole, and the line of the key that
 * its message begins with is put before it. One parser a call, no shared state.
 */
#include "job_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "cleanup.h"
#include "job_fields.h"
#include "job_scalar.h"
#include "text.h"
#include "yaml_reader.h"

#define PATH_SIZE 160 /* a mapping's path and a clipped key */

/* A key that was read. */
struct key {
    struct key *next;
    const char *path; /* in snake_case */
    size_t line;
};

struct reader {
    struct yaml_reader yaml;
    struct arena *arena;
    struct skrull_job *job;
    struct key *keys; /* the latest first */
    struct skrull_error *err;
};

/* A mapping of the file and the struct that it fills. */
struct mapping {
    const char *prefix;             /* in messages: "", "batch.", "data[0]." */
    const char *section;            /* in the table: "", "batch." */
    const struct job_field *fields; /* the table */
    void *base;
    const struct key *outer_keys; /* those read before this mapping began */
};

/* Keys that are no fields. */
enum key_kind { KEY_UNKNOWN, KEY_FIELD, KEY_SECTION, KEY_DATA, KEY_OUTPUT };

static int out_of_memory(const struct reader *reader)
{
    return skrull_error_set(reader->err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                            "the job file takes more memory than is allowed");
}

static const char *const output_keys[] = {"uid", "revision", "info", NULL};

static int wrong_type(struct reader *reader, const char *path, const yaml_event_t *event,
                      const char *wanted)
{
    const char *found = event->type == YAML_MAPPING_START_EVENT    ? "a mapping"
                        : event->type == YAML_SEQUENCE_START_EVENT ? "a list"
                                                                   : "a single value";

    return skrull_error_set(reader->err, SKRULL_ERR_INVALID_ARGUMENT,
                            "line %zu: %s: %s is given, only %s is allowed", yaml_event_line(event),
                            path, found, wanted);
}

static int read_field(struct reader *reader, const struct job_field *field, void *base,
                      const char *path, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    char allowed[JOB_ALLOWED_SIZE];
    int rc;

    if (event->type != YAML_SCALAR_EVENT) {
        return wrong_type(reader, path, event, job_field_allowed(field, allowed));
    }
    if (yaml_event_is_null(event)) {
        return 0;
    }
    if (strlen(text) != event->data.scalar.length) {
        return skrull_error_set(reader->err, SKRULL_ERR_INVALID_ARGUMENT,
                                "line %zu: %s: NUL is not allowed in a value",
                                yaml_event_line(event), path);
    }
    rc = job_scalar_store(reader->arena, field, base, path, text, reader->err);
    return rc ? skrull_error_prefix(reader->err, rc, "line %zu", yaml_event_line(event)) : 0;
}

/* Remembers a key; refuses one that this mapping had before. */
static int add_key(struct reader *reader, const struct mapping *mapping, const char *path,
                   size_t line)
{
    struct key *key;

    for (key = reader->keys; key != mapping->outer_keys; key = key->next) {
        if (strcmp(key->path, path) == 0) {
            return skrull_error_set(reader->err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "line %zu: %s: is given twice, on line %zu before", line, path,
                                    key->line);
        }
    }
    key = ARENA_NEW(reader->arena, struct key);
    if (!key) {
        return out_of_memory(reader);
    }
    key->path = arena_strdup(reader->arena, path);
    if (!key->path) {
        return out_of_memory(reader);
    }
    key->line = line;
    key->next = reader->keys;
    reader->keys = key;
    return 0;
}

/* The `i`-th name that may stand in a mapping, as the table has it; NULL past the last. A section's
 * name comes once, as its fields are neighbours in the table. */
static const char *allowed_name(const struct mapping *mapping, size_t i, char ret[JOB_PATH_SIZE])
{
    const size_t skip = strlen(mapping->section);
    char last[JOB_PATH_SIZE] = "";
    size_t n_seen = 0;

    for (const struct job_field *field = mapping->fields; field->path; field++) {
        if (strncmp(field->path, mapping->section, skip) != 0) {
            continue;
        }
        (void)snprintf(ret, JOB_PATH_SIZE, "%.*s", (int)strcspn(field->path + skip, "."),
                       field->path + skip);
        if (strcmp(ret, last) == 0) {
            continue;
        }
        if (n_seen++ == i) {
            return ret;
        }
        memcpy(last, ret, sizeof(last));
    }
    if (n_seen == i && mapping->fields == job_fields && !skip) {
        return "data";
    }
    return NULL;
}

static int unknown_key(struct reader *reader, const struct mapping *mapping, const char *name,
                       size_t line)
{
    char names[320] = "", one[JOB_PATH_SIZE], clip[TEXT_CLIP_SIZE];
    const char *allowed;
    size_t used = 0;

    for (size_t i = 0; (allowed = allowed_name(mapping, i, one)) && used < sizeof(names); i++) {
        const int n =
            snprintf(names + used, sizeof(names) - used, "%s%s", i > 0 ? ", " : "", allowed);

        used += n > 0 ? (size_t)n : 0;
    }
    return skrull_error_set(reader->err, SKRULL_ERR_INVALID_ARGUMENT,
                            "line %zu: %s%s: unknown key, allowed: %s", line, mapping->prefix,
                            text_clip(name, clip), names);
}

/* What a key is, and its name in snake_case. */
static enum key_kind classify(const struct mapping *mapping, const char *name,
                              char ret_name[JOB_PATH_SIZE], const struct job_field **ret_field)
{
    const bool is_root = mapping->fields == job_fields && !*mapping->section;
    char path[JOB_PATH_SIZE * 2], one[JOB_PATH_SIZE];
    const char *allowed;

    for (size_t i = 0; is_root && output_keys[i]; i++) {
        if (strcmp(name, output_keys[i]) == 0) {
            (void)snprintf(ret_name, JOB_PATH_SIZE, "%s", name);
            return KEY_OUTPUT;
        }
    }
    for (size_t i = 0; (allowed = allowed_name(mapping, i, one)); i++) {
        if (!job_name_is(allowed, name)) {
            continue;
        }
        (void)snprintf(ret_name, JOB_PATH_SIZE, "%s", allowed);
        (void)snprintf(path, sizeof(path), "%s%s", mapping->section, allowed);
        *ret_field = job_field_find(mapping->fields, path);
        if (*ret_field) {
            return KEY_FIELD;
        }
        return strcmp(allowed, "data") == 0 ? KEY_DATA : KEY_SECTION;
    }
    return KEY_UNKNOWN;
}

static int read_mapping(struct reader *reader, const struct mapping *mapping);

/* A section of the job: "batch". */
static int read_section(struct reader *reader, const char *name, const yaml_event_t *event)
{
    char prefix[JOB_PATH_SIZE + 1];
    struct mapping mapping = {.prefix = prefix,
                              .section = prefix,
                              .fields = job_fields,
                              .base = reader->job,
                              .outer_keys = reader->keys};

    if (yaml_event_is_null(event)) {
        return 0;
    }
    if (event->type != YAML_MAPPING_START_EVENT) {
        return wrong_type(reader, name, event, "a mapping of keys");
    }
    (void)snprintf(prefix, sizeof(prefix), "%s.", name);
    return read_mapping(reader, &mapping);
}

/* One entry of `data`, in place n_data, which has room. */
static int read_dataset(struct reader *reader, const yaml_event_t *event)
{
    char prefix[JOB_PATH_SIZE];
    struct mapping mapping = {.prefix = prefix,
                              .section = "",
                              .fields = job_data_fields,
                              .base = &reader->job->data[reader->job->n_data],
                              .outer_keys = reader->keys};
    int rc;

    (void)snprintf(prefix, sizeof(prefix), "data[%" PRIu32 "]", reader->job->n_data);
    if (event->type != YAML_MAPPING_START_EVENT) {
        return wrong_type(reader, prefix, event, "a mapping of keys");
    }
    rc = add_key(reader, &mapping, prefix, yaml_event_line(event));
    if (rc) {
        return rc;
    }
    mapping.outer_keys = reader->keys;
    (void)snprintf(prefix, sizeof(prefix), "data[%" PRIu32 "].", reader->job->n_data);
    return read_mapping(reader, &mapping);
}

/* Makes room for one more data set; the list doubles. */
static int reserve_dataset(struct reader *reader, uint32_t *capacity, size_t line)
{
    struct skrull_job *job = reader->job;
    struct skrull_dataset *data;

    if (job->n_data < *capacity) {
        return 0;
    }
    if (job->n_data == JOB_MAX_DATA) {
        return skrull_error_set(reader->err, SKRULL_ERR_INVALID_ARGUMENT,
                                "line %zu: data: too many data sets, at most %d are allowed", line,
                                JOB_MAX_DATA);
    }
    *capacity = *capacity ? *capacity * 2 : 4;
    data = ARENA_ARRAY(reader->arena, struct skrull_dataset, *capacity);
    if (!data) {
        return out_of_memory(reader);
    }
    if (job->n_data) {
        memcpy(data, job->data, job->n_data * sizeof(*data));
    }
    job->data = data;
    return 0;
}

static int read_data(struct reader *reader, const yaml_event_t *first)
{
    uint32_t capacity = 0;
    yaml_event_t event;
    bool is_end;
    int rc;

    if (yaml_event_is_null(first)) {
        return 0;
    }
    if (first->type != YAML_SEQUENCE_START_EVENT) {
        return wrong_type(reader, "data", first, "a list of mappings");
    }
    do {
        rc = yaml_reader_next(&reader->yaml, &event);
        if (rc) {
            return rc;
        }
        is_end = event.type == YAML_SEQUENCE_END_EVENT;
        if (!is_end) {
            rc = reserve_dataset(reader, &capacity, yaml_event_line(&event));
            if (!rc) {
                rc = read_dataset(reader, &event);
            }
            reader->job->n_data += rc ? 0 : 1;
        }
        yaml_event_delete(&event);
    } while (!rc && !is_end);
    return rc;
}

/* The value of `key`, which was not read yet. */
static int read_value(struct reader *reader, const struct mapping *mapping, const yaml_event_t *key)
{
    const char *given = (const char *)key->data.scalar.value;
    const struct job_field *field = NULL;
    char name[JOB_PATH_SIZE], path[PATH_SIZE];
    enum key_kind kind = classify(mapping, given, name, &field);
    yaml_event_t event;
    int rc;

    if (kind == KEY_UNKNOWN || strlen(given) != key->data.scalar.length) {
        return unknown_key(reader, mapping, given, yaml_event_line(key));
    }
    (void)snprintf(path, sizeof(path), "%s%s", mapping->prefix, name);
    rc = add_key(reader, mapping, path, yaml_event_line(key));
    if (!rc) {
        rc = yaml_reader_next(&reader->yaml, &event);
    }
    if (rc) {
        return rc;
    }
    if (kind == KEY_FIELD) {
        rc = read_field(reader, field, mapping->base, path, &event);
    } else if (kind == KEY_SECTION) {
        rc = read_section(reader, name, &event);
    } else if (kind == KEY_DATA) {
        rc = read_data(reader, &event);
    } else {
        rc = yaml_reader_skip(&reader->yaml, &event);
    }
    yaml_event_delete(&event);
    return rc;
}

/* The keys of a mapping whose start was read, and its end. */
static int read_mapping(struct reader *reader, const struct mapping *mapping)
{
    yaml_event_t event;
    bool is_end;
    int rc;

    do {
        rc = yaml_reader_next(&reader->yaml, &event);
        if (rc) {
            return rc;
        }
        is_end = event.type == YAML_MAPPING_END_EVENT;
        if (event.type == YAML_SCALAR_EVENT) {
            rc = read_value(reader, mapping, &event);
        } else if (!is_end) {
            rc = skrull_error_set(reader->err, SKRULL_ERR_INVALID_ARGUMENT,
                                  "line %zu: only a name is allowed as a key",
                                  yaml_event_line(&event));
        }
        yaml_event_delete(&event);
    } while (!rc && !is_end);
    return rc;
}

/* Takes the next event, which must have this type. */
static int expect(struct reader *reader, yaml_event_type_t type, const char *otherwise)
{
    yaml_event_t event;
    int rc = yaml_reader_next(&reader->yaml, &event);

    if (rc) {
        return rc;
    }
    if (event.type != type) {
        rc = skrull_error_set(reader->err, SKRULL_ERR_INVALID_ARGUMENT, "line %zu: %s",
                              yaml_event_line(&event), otherwise);
    }
    yaml_event_delete(&event);
    return rc;
}

static int read_document(struct reader *reader)
{
    const struct mapping root = {
        .prefix = "", .section = "", .fields = job_fields, .base = reader->job};
    static const char not_a_job[] = "a job is a mapping of keys, name and model first";
    int rc = expect(reader, YAML_STREAM_START_EVENT, not_a_job);

    if (!rc) {
        rc = expect(reader, YAML_DOCUMENT_START_EVENT, not_a_job);
    }
    if (!rc) {
        rc = expect(reader, YAML_MAPPING_START_EVENT, not_a_job);
    }
    if (!rc) {
        rc = read_mapping(reader, &root);
    }
    if (!rc) {
        rc = expect(reader, YAML_DOCUMENT_END_EVENT, not_a_job);
    }
    if (!rc) {
        rc = expect(reader, YAML_STREAM_END_EVENT, "only one document is allowed in a file");
    }
    return rc;
}

/* "data[0].index" to "data[0]" to "data"; false: nothing is left to cut. */
static bool cut_last(char *path)
{
    size_t len = strlen(path);

    while (len > 0 && path[len] != '.' && path[len] != '[') {
        len--;
    }
    path[len] = '\0';
    return len > 0;
}

/* Puts before a message of job_complete the line of the key that it begins with, or of the key that
 * should hold it. */
static int add_line(const struct reader *reader, int rc)
{
    char path[PATH_SIZE];
    size_t len;

    if (!reader->err) {
        return rc;
    }
    len = strcspn(reader->err->message, ":");
    if (len >= sizeof(path)) {
        return rc;
    }
    memcpy(path, reader->err->message, len);
    path[len] = '\0';
    do {
        for (const struct key *key = reader->keys; key; key = key->next) {
            if (strcmp(key->path, path) == 0) {
                return skrull_error_prefix(reader->err, rc, "line %zu", key->line);
            }
        }
    } while (cut_last(path));
    return rc;
}

/* How a text is judged once it was read. */
struct judge {
    bool is_whole;        /* completed, and held against the rules of a whole job */
    job_file_check check; /* nullable */
};

static int judge_job(const struct reader *reader, const struct judge *judge)
{
    int rc = judge->is_whole ? job_complete(reader->job, reader->err) : 0;

    if (!rc && judge->check) {
        rc = judge->check(reader->job, reader->err);
    }
    return rc ? add_line(reader, rc) : 0;
}

static int parse(struct arena *arena, const char *text, size_t len, const struct judge *judge,
                 struct skrull_job **ret_job, struct skrull_error *err)
{
    struct reader reader = {.arena = arena, .err = err};
    int rc;

    if (len > JOB_FILE_MAX_BYTES) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "a job file of more than %zu bytes is not allowed",
                                JOB_FILE_MAX_BYTES);
    }
    reader.job = ARENA_NEW(arena, struct skrull_job);
    if (!reader.job) {
        return out_of_memory(&reader);
    }
    rc = yaml_reader_init(&reader.yaml, text, len, err);
    if (rc) {
        return rc;
    }
    rc = read_document(&reader);
    yaml_reader_deinit(&reader.yaml);
    rc = rc ? rc : judge_job(&reader, judge);
    if (!rc) {
        *ret_job = reader.job;
    }
    return rc;
}

static const struct judge whole_job = {.is_whole = true}, given_keys = {0};

int job_file_parse(struct arena *arena, const char *text, size_t len, struct skrull_job **ret_job,
                   struct skrull_error *err)
{
    return parse(arena, text, len, &whole_job, ret_job, err);
}

int job_file_parse_given(struct arena *arena, const char *text, size_t len,
                         struct skrull_job **ret_job, struct skrull_error *err)
{
    return parse(arena, text, len, &given_keys, ret_job, err);
}

/* errno in our words. */
static int file_failed(const char *path, struct skrull_error *err)
{
    const int code = errno == ENOENT || errno == ENOTDIR ? SKRULL_ERR_NOT_FOUND
                     : errno == EACCES || errno == EPERM ? SKRULL_ERR_PERMISSION_DENIED
                                                         : SKRULL_ERR_UNAVAILABLE;

    return skrull_error_set(err, code, "%s: %s", path, strerror(errno));
}

static int read_open_file(struct arena *arena, FILE *file, const char *path,
                          const struct judge *judge, struct skrull_job **ret_job,
                          struct skrull_error *err)
{
    _cleanup_(cleanup_free) char *text = malloc(JOB_FILE_MAX_BYTES + 1);
    size_t len;
    int rc;

    if (!text) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "%s: out of memory", path);
    }
    errno = 0;
    len = fread(text, 1, JOB_FILE_MAX_BYTES + 1, file);
    if (ferror(file)) {
        return file_failed(path, err);
    }
    rc = parse(arena, text, len, judge, ret_job, err);
    return rc ? skrull_error_prefix(err, rc, "%s", path) : 0;
}

static int read_file(struct arena *arena, const char *path, const struct judge *judge,
                     struct skrull_job **ret_job, struct skrull_error *err)
{
    _cleanup_(cleanup_file) FILE *file = NULL;

    if (strcmp(path, "-") == 0) {
        return read_open_file(arena, stdin, path, judge, ret_job, err);
    }
    file = fopen(path, "re");
    return file ? read_open_file(arena, file, path, judge, ret_job, err) : file_failed(path, err);
}

int job_file_read(struct arena *arena, const char *path, struct skrull_job **ret_job,
                  struct skrull_error *err)
{
    return read_file(arena, path, &whole_job, ret_job, err);
}

int job_file_read_checked(struct arena *arena, const char *path, job_file_check check,
                          struct skrull_job **ret_job, struct skrull_error *err)
{
    const struct judge judge = {.is_whole = true, .check = check};

    return read_file(arena, path, &judge, ret_job, err);
}

int job_file_read_given(struct arena *arena, const char *path, struct skrull_job **ret_job,
                        struct skrull_error *err)
{
    return read_file(arena, path, &given_keys, ret_job, err);
}
