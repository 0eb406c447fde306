/*
 * The table of a job's fields: the one place that knows each key's type, range, default and whether
 * its feature is built. The YAML reader, the protobuf codec and job_complete walk it.
 *
 * To add a field: a member in skrull/job.h, a line in job_fields.def, the same name in job.proto.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skrull/job.h>

#define JOB_MAX_DATA 1024
#define JOB_MAX_REVISIONS 1024
#define JOB_PATH_SIZE                                                                              \
    64 /* of any field's path with its place in a list, "data[1023].over_length" */
#define JOB_ALLOWED_SIZE 160

enum job_field_kind {
    JOB_FIELD_U32,
    JOB_FIELD_U64,
    JOB_FIELD_DOUBLE,
    JOB_FIELD_TEXT,
    JOB_FIELD_WORD, /* an enum: int in the struct */
};

/* One word of an enum: its number is its place, from 1. */
struct job_word {
    const char *word;      /* "shuffle" */
    const char *enum_name; /* "ORDER_SHUFFLE" */
    bool is_built;
};

struct job_field {
    const char *path; /* "batch.align"; of a data set: "over_length" */
    enum job_field_kind kind;
    size_t offset; /* in struct skrull_job, or in struct skrull_dataset */
    bool is_required;
    bool only_default;            /* another value is not built yet */
    uint64_t min, max;            /* numbers, words; TEXT: max is the longest length in bytes */
    uint64_t number;              /* default: of a number or a word */
    const char *text;             /* default of a TEXT, or NULL */
    const struct job_word *words; /* WORD only, ends with word NULL */
};

extern const struct job_field job_fields[]; /* ends with path NULL */
extern const struct job_field job_data_fields[];

/* True where `name` is `snake` (a path in snake_case) or the same in lowerCamelCase, wholly one or
 * the other. */
bool job_name_is(const char *snake, const char *name);

/* The field of a path in snake_case or lowerCamelCase; NULL: unknown. */
const struct job_field *job_field_find(const struct job_field *fields, const char *path);

/* What a field takes, in words: "a whole number, 1 to 65536", "fixed or elastic". Returns `ret`. */
const char *job_field_allowed(const struct job_field *field, char ret[JOB_ALLOWED_SIZE]);

/* A field's value in `base`, the job or data set: numbers and words (a negative one is above every
 * range). */
uint64_t job_field_number(const struct job_field *field, const void *base);
void job_field_set_number(const struct job_field *field, void *base, uint64_t value);
const char *job_field_text(const struct job_field *field, const void *base);
void job_field_set_text(const struct job_field *field, void *base, const char *text);
double job_field_double(const struct job_field *field, const void *base);
void job_field_set_double(const struct job_field *field, void *base, double value);

/*
 * Each checks a given (not default) value: "PATH: VALUE is not built yet", "PATH: VALUE is out of
 * range, LO to HI are allowed". `path` is what the message names ("data[0].weight").
 * INVALID_ARGUMENT.
 */
int job_field_check_number(const struct job_field *field, const char *path, uint64_t value,
                           struct skrull_error *err);
int job_field_check_double(const struct job_field *field, const char *path, double value,
                           struct skrull_error *err);
int job_field_check_text(const struct job_field *field, const char *path, const char *text,
                         struct skrull_error *err);

/* The number of a word or enum name (of the _UNSPECIFIED one: the default's); INVALID_ARGUMENT
 * where it is unknown or not built. */
int job_field_check_word(const struct job_field *field, const char *path, const char *word,
                         int *ret_number, struct skrull_error *err);

/* A number in decimal digits, no other form, checked as above. U32 and U64. */
int job_field_parse_number(const struct job_field *field, const char *path, const char *text,
                           uint64_t *ret_value, struct skrull_error *err);

/*
 * Fills in defaults (0, NULL, "") and checks the whole: required fields, ranges, names, `is not
 * built yet`, epochs against steps, bucket >= 2 x align with zigzag and cp > 1, dp x cp, ... What
 * came by RPC and what came by file passes here alike. Does not touch the output-only fields.
 * Completing twice is harmless. INVALID_ARGUMENT; the message begins with the field's path and ":
 * ".
 */
int job_complete(struct skrull_job *job, struct skrull_error *err);

/* Are the counts of a completed job equal? With an exact count always; with auto unless zero_stage
 * is 0 or 1 and pp is 1. */
bool job_is_equal_micro_batches(const struct skrull_job *job);
