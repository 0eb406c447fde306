/*
 * Revisions as values. An update's fields are laid over the current spec by the table of a job's
 * fields, the result is completed and held against what may not change: the stream of samples is
 * the same over all revisions, whatever ranks, batches and policies become. Pure.
 */
#include "job/revise.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "arena.h"
#include "job/spec.h"
#include "job_fields.h"
#include "text.h"

static int no_memory(const struct skrull_job *spec, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "job %s: out of memory",
                            spec->name);
}

/* Is `path` the field, or a group that it is in? */
static bool names_field(const char *path, const char *field)
{
    const size_t len = strlen(path);

    return strcmp(path, "*") == 0 || job_name_is(field, path) ||
           (strncmp(field, path, len) == 0 && field[len] == '.');
}

/* The job's members that the table of fields leaves out. */
static bool is_other_path(const char *path)
{
    static const char *const outputs[] = {"uid", "revision", "info"};
    bool is_output = false;

    for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
        const size_t len = strlen(outputs[i]);

        is_output |= strncmp(path, outputs[i], len) == 0 && (path[len] == '\0' || path[len] == '.');
    }
    return is_output || strcmp(path, "data") == 0;
}

static int check_mask(const struct revise_request *request, struct skrull_error *err)
{
    for (size_t i = 0; i < request->n_mask; i++) {
        const char *path = request->mask[i];
        bool is_known = is_other_path(path);
        char clip[TEXT_CLIP_SIZE];

        for (const struct job_field *field = job_fields; !is_known && field->path; field++) {
            is_known = names_field(path, field->path);
        }
        if (!is_known || !*path) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "update_mask: %s is no field of a job; name them as the job "
                                    "file does (batch.bucket_tokens)",
                                    *path ? text_clip(path, clip) : "an empty path");
        }
    }
    return 0;
}

static bool is_set(const struct job_field *field, const struct skrull_job *job)
{
    const char *text;

    if (field->kind == JOB_FIELD_TEXT) {
        text = job_field_text(field, job);
        return text && *text;
    }
    return field->kind == JOB_FIELD_DOUBLE ? job_field_double(field, job) > 0
                                           : job_field_number(field, job) != 0;
}

/* Does the update speak of this field? */
static bool is_named(const struct revise_request *request, const struct job_field *field)
{
    bool is_named = request->n_mask == 0 && is_set(field, request->job);

    for (size_t i = 0; !is_named && i < request->n_mask; i++) {
        is_named = names_field(request->mask[i], field->path);
    }
    return is_named;
}

static bool is_data_named(const struct revise_request *request)
{
    bool is_named = request->n_mask == 0 && request->job->n_data > 0;

    for (size_t i = 0; !is_named && i < request->n_mask; i++) {
        is_named = strcmp(request->mask[i], "data") == 0 || strcmp(request->mask[i], "*") == 0;
    }
    return is_named;
}

static void copy_field(const struct job_field *field, const struct skrull_job *from,
                       struct skrull_job *to)
{
    switch (field->kind) {
    case JOB_FIELD_TEXT:
        job_field_set_text(field, to, job_field_text(field, from));
        break;
    case JOB_FIELD_DOUBLE:
        job_field_set_double(field, to, job_field_double(field, from));
        break;
    case JOB_FIELD_U32:
    case JOB_FIELD_U64:
    case JOB_FIELD_WORD:
        job_field_set_number(field, to, job_field_number(field, from));
        break;
    }
}

/* Data sets of its own: completing a spec writes to them, and others read the current ones. */
static int copy_data(struct arena *arena, const struct skrull_job *from, struct skrull_job *spec,
                     struct skrull_error *err)
{
    struct skrull_dataset *data = ARENA_ARRAY(arena, struct skrull_dataset, from->n_data);

    if (!data) {
        return no_memory(spec, err);
    }
    if (from->n_data) {
        memcpy(data, from->data, from->n_data * sizeof(*data));
    }
    spec->n_data = from->n_data;
    spec->data = data;
    return 0;
}

/* Lays the named fields over `spec`. */
static int apply(struct arena *arena, const struct revise_request *request, struct skrull_job *spec,
                 struct skrull_error *err)
{
    bool has_epochs = false, has_steps = false;

    for (const struct job_field *field = job_fields; field->path; field++) {
        if (is_named(request, field)) {
            copy_field(field, request->job, spec);
            has_epochs |= strcmp(field->path, "epochs") == 0;
            has_steps |= strcmp(field->path, "steps") == 0;
        }
    }
    if (has_steps && !has_epochs && spec->steps) {
        spec->epochs = 0;
    } else if (has_epochs && !has_steps && spec->epochs) {
        spec->steps = 0;
    }
    return copy_data(arena, is_data_named(request) ? request->job : spec, spec, err);
}

/* What the order of samples hangs on. */
static int check_frozen(const struct skrull_job *current, const struct skrull_job *next,
                        struct skrull_error *err)
{
    static const char *const frozen[] = {"name", "seed", "order", "last_batch"};

    for (size_t i = 0; i < sizeof(frozen) / sizeof(frozen[0]); i++) {
        if (!spec_is_same_field(current, next, job_field_find(job_fields, frozen[i]))) {
            return skrull_error_set(
                err, SKRULL_ERR_INVALID_ARGUMENT,
                "%s: cannot change in a job that exists, %s: create a new job", frozen[i],
                i == 0 ? "it is known by it" : "its order of samples hangs on it");
        }
    }
    if (!spec_is_same_data(current, next)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "data: cannot change in a job that exists, its order of samples "
                                "hangs on it: create a new job");
    }
    return 0;
}

/* Where the revision begins. */
static int first_step_of(const struct skrull_job *current, const struct revise_request *request,
                         uint64_t *ret_first_step, struct skrull_error *err)
{
    if (request->from_step && request->from_step < request->floor) {
        return skrull_error_because(
            err, SKRULL_ERR_FAILED_PRECONDITION, SKRULL_REASON_STEP_GIVEN_OUT, request->floor,
            "from_step: %" PRIu64 " may have been given out already: a "
            "revision of job %s can begin at step %" PRIu64 " or later, 0 takes that",
            request->from_step, current->name, request->floor);
    }
    *ret_first_step = request->from_step ? request->from_step : request->floor;
    if (*ret_first_step > current->info.steps) {
        return skrull_error_because(
            err, SKRULL_ERR_OUT_OF_RANGE, SKRULL_REASON_STEP_OUT_OF_RANGE, current->info.steps,
            "from_step: %" PRIu64 " is past the end, job %s has %" PRIu64 " steps", *ret_first_step,
            current->name, current->info.steps);
    }
    return 0;
}

/* Adds the revision to the list, which a job of one revision does not have yet. */
static int add_to_list(struct arena *arena, const struct skrull_job *current, uint64_t first_step,
                       struct skrull_job *spec, struct skrull_error *err)
{
    const uint32_t n = current->info.n_revisions;
    struct skrull_revision_info *list;

    if (n >= JOB_MAX_REVISIONS || current->revision >= JOB_MAX_REVISIONS) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "job %s has %d revisions, which is the limit: create a new job",
                                current->name, JOB_MAX_REVISIONS);
    }
    list = ARENA_ARRAY(arena, struct skrull_revision_info, (size_t)n + 2);
    if (!list) {
        return no_memory(current, err);
    }
    if (n) {
        memcpy(list, current->info.revisions, n * sizeof(*list));
    } else {
        list[0] = (struct skrull_revision_info){.revision = 1, .global = current->batch.global};
    }
    spec->revision = current->revision + 1;
    spec->info.revisions = list;
    spec->info.n_revisions = (n ? n : 1) + 1;
    list[spec->info.n_revisions - 1] = (struct skrull_revision_info){
        .revision = spec->revision, .first_step = first_step, .global = spec->batch.global};
    spec->info.steps = 0;
    return 0;
}

int revise_spec(struct arena *arena, const struct skrull_job *current,
                const struct revise_request *request, struct skrull_job **ret_spec,
                struct skrull_error *err)
{
    struct skrull_job *spec = ARENA_NEW(arena, struct skrull_job);
    uint64_t first_step = 0;
    int result = spec ? check_mask(request, err) : no_memory(current, err);

    if (result == 0 && request->expected_revision &&
        request->expected_revision != current->revision) {
        result = skrull_error_because(
            err, SKRULL_ERR_ABORTED, SKRULL_REASON_REVISION_STALE, current->revision,
            "expected_revision: job %s has revision %" PRIu32 ", not %" PRIu32 ": look at it again",
            current->name, current->revision, request->expected_revision);
    }
    if (result) {
        return result;
    }
    *spec = *current;
    result = apply(arena, request, spec, err);
    if (result == 0) {
        result = job_complete(spec, err);
    }
    if (result == 0) {
        result = check_frozen(current, spec, err);
    }
    if (result == 0 && spec_is_same(current, spec)) {
        return REVISE_UNCHANGED;
    }
    if (result == 0) {
        result = first_step_of(current, request, &first_step, err);
    }
    if (result == 0 && spec->steps && spec->steps < first_step) {
        result = skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                  "steps: %" PRIu64 " are fewer than the %" PRIu64
                                  " before the revision's first step; at least that are allowed",
                                  spec->steps, first_step);
    }
    if (result == 0) {
        result = add_to_list(arena, current, first_step, spec, err);
    }
    if (result == 0) {
        *ret_spec = spec;
    }
    return result;
}
