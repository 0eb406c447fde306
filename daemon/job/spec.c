/*
 * Copying and comparing jobs. Both walk job_fields.c's table, so that a new key of the job file is
 * copied and compared without a line here. Pure.
 */
#include "job/spec.h"

#include <string.h>

#include "arena.h"
#include "job_fields.h"

static size_t field_size(const struct job_field *field)
{
    switch (field->kind) {
    case JOB_FIELD_U32:
        return sizeof(uint32_t);
    case JOB_FIELD_U64:
        return sizeof(uint64_t);
    case JOB_FIELD_DOUBLE:
        return sizeof(double);
    case JOB_FIELD_WORD:
        return sizeof(int);
    case JOB_FIELD_TEXT:
        break;
    }
    return sizeof(const char *);
}

/* Replaces borrowed strings by copies. Returns 0 or RESOURCE_EXHAUSTED. */
static int own_texts(struct arena *arena, void *object, const struct job_field *fields)
{
    const struct job_field *field;
    const char *text;

    for (field = fields; field->path; field++) {
        text = field->kind == JOB_FIELD_TEXT ? job_field_text(field, object) : NULL;
        if (!text) {
            continue;
        }
        text = arena_strdup(arena, text);
        if (!text) {
            return SKRULL_ERR_RESOURCE_EXHAUSTED;
        }
        job_field_set_text(field, object, text);
    }
    return 0;
}

/* A copy of `count` items; NULL: out of memory. */
static void *copy_array(struct arena *arena, const void *items, size_t count, size_t size)
{
    void *copy = arena_alloc(arena, count, size);

    if (copy && count) {
        memcpy(copy, items, count * size);
    }
    return copy;
}

struct skrull_job *spec_copy(struct arena *arena, const struct skrull_job *spec)
{
    struct skrull_job *copy = ARENA_NEW(arena, struct skrull_job);
    uint32_t i;

    if (!copy) {
        return NULL;
    }
    *copy = *spec;
    copy->data = copy_array(arena, spec->data, spec->n_data, sizeof(*spec->data));
    copy->info.indexes =
        copy_array(arena, spec->info.indexes, spec->info.n_indexes, sizeof(*spec->info.indexes));
    copy->info.revisions = copy_array(arena, spec->info.revisions, spec->info.n_revisions,
                                      sizeof(*spec->info.revisions));
    if (!copy->data || !copy->info.indexes || !copy->info.revisions ||
        own_texts(arena, copy, job_fields)) {
        return NULL;
    }
    for (i = 0; i < copy->n_data; i++) {
        if (own_texts(arena, &copy->data[i], job_data_fields)) {
            return NULL;
        }
    }
    if (spec->uid) {
        copy->uid = arena_strdup(arena, spec->uid);
    }
    return spec->uid && !copy->uid ? NULL : copy;
}

/* NULL and "" both say "not given". */
static bool is_same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool is_same_field(const void *a, const void *b, const struct job_field *field)
{
    if (field->kind == JOB_FIELD_TEXT) {
        return is_same_text(job_field_text(field, a), job_field_text(field, b));
    }
    return memcmp((const unsigned char *)a + field->offset,
                  (const unsigned char *)b + field->offset, field_size(field)) == 0;
}

static bool is_same_object(const void *a, const void *b, const struct job_field *fields)
{
    const struct job_field *field;
    bool is_same = true;

    for (field = fields; is_same && field->path; field++) {
        is_same = is_same_field(a, b, field);
    }
    return is_same;
}

bool spec_is_same_field(const struct skrull_job *a, const struct skrull_job *b,
                        const struct job_field *field)
{
    return is_same_field(a, b, field);
}

bool spec_is_same_data(const struct skrull_job *a, const struct skrull_job *b)
{
    bool is_same = a->n_data == b->n_data;

    for (uint32_t i = 0; is_same && i < a->n_data; i++) {
        is_same = is_same_object(&a->data[i], &b->data[i], job_data_fields);
    }
    return is_same;
}

bool spec_is_same(const struct skrull_job *a, const struct skrull_job *b)
{
    return is_same_object(a, b, job_fields) && spec_is_same_data(a, b);
}

void spec_clear_output(struct skrull_job *spec)
{
    spec->uid = NULL;
    spec->revision = 0;
    memset(&spec->info, 0, sizeof(spec->info));
}
