/*
 * A job's values as a file spells them: digits, decimal fractions, words, text. Pure functions over
 * the caller's arena.
 */
#include "job_scalar.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "job_fields.h"
#include "text.h"

/* A double in the grammar of JSON; strtod takes more, and a locale's comma. */
static bool parse_double(const char *text, double *ret)
{
    static const char digits[] = "0123456789";
    const char *at = text + (*text == '-');
    size_t len = strspn(at, digits);
    locale_t c_locale;

    if (len == 0) {
        return false;
    }
    at += len;
    if (*at == '.') {
        len = strspn(++at, digits);
        at += len;
    }
    if (len > 0 && (*at == 'e' || *at == 'E')) {
        at++;
        at += *at == '+' || *at == '-';
        len = strspn(at, digits);
        at += len;
    }
    c_locale = len > 0 && !*at ? newlocale(LC_ALL_MASK, "C", (locale_t)0) : (locale_t)0;
    if (!c_locale) {
        return false;
    }
    *ret = strtod_l(text, NULL, c_locale);
    freelocale(c_locale);
    return true;
}

static int store_double(const struct job_field *field, void *base, const char *path,
                        const char *text, struct skrull_error *err)
{
    char clip[TEXT_CLIP_SIZE];
    double value;
    int rc;

    if (!parse_double(text, &value)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: %s is not a number, finite numbers from 0 are allowed", path,
                                text_clip(text, clip));
    }
    if (!isfinite(value)) { /* as it was given: the value itself is "inf" by now */
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: %s is out of range, finite numbers from 0 are allowed", path,
                                text_clip(text, clip));
    }
    rc = job_field_check_double(field, path, value, err);
    if (!rc) {
        job_field_set_double(field, base, value);
    }
    return rc;
}

static int store_number(const struct job_field *field, void *base, const char *path,
                        const char *text, struct skrull_error *err)
{
    uint64_t value;
    int rc;

    if (strcmp(path, "batch.bucket_tokens") == 0 && strcmp(text, "auto") == 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "%s: auto is not built yet",
                                path);
    }
    rc = job_field_parse_number(field, path, text, &value, err);
    if (!rc) {
        job_field_set_number(field, base, value);
    }
    return rc;
}

static int store_text(struct arena *arena, const struct job_field *field, void *base,
                      const char *path, const char *text, struct skrull_error *err)
{
    const char *copy;
    int rc = job_field_check_text(field, path, text, err);

    if (rc) {
        return rc;
    }
    copy = arena_strdup(arena, text);
    if (!copy) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "%s: takes more memory than is allowed", path);
    }
    job_field_set_text(field, base, copy);
    return 0;
}

int job_scalar_store(struct arena *arena, const struct job_field *field, void *base,
                     const char *path, const char *text, struct skrull_error *err)
{
    int number, rc;

    switch (field->kind) {
    case JOB_FIELD_U32:
    case JOB_FIELD_U64:
        return store_number(field, base, path, text, err);
    case JOB_FIELD_DOUBLE:
        return store_double(field, base, path, text, err);
    case JOB_FIELD_TEXT:
        return store_text(arena, field, base, path, text, err);
    case JOB_FIELD_WORD:
        rc = job_field_check_word(field, path, text, &number, err);
        if (!rc) {
            job_field_set_number(field, base, (uint64_t)number);
        }
        return rc;
    }
    return 0;
}
