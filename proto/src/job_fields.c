/*
 * The table of a job's fields, made of job_fields.def, and what can be said of one value by itself:
 * is it a number, in range, a word that is known, a feature that is built. Pure functions.
 */
#include "job_fields.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

/* clang-format off */
static const struct job_word flops_words[] = {
    {"paper", "FLOPS_PAPER", true}, {"exact", "FLOPS_EXACT", false}, {NULL, NULL, false}};
static const struct job_word zero_stage_words[] = {
    {"0", "ZERO_STAGE_0", true}, {"1", "ZERO_STAGE_1", true}, {"2", "ZERO_STAGE_2", true},
    {"3", "ZERO_STAGE_3", true}, {NULL, NULL, false}};
static const struct job_word recompute_words[] = {
    {"none", "RECOMPUTE_NONE", true}, {"selective", "RECOMPUTE_SELECTIVE", true},
    {"full", "RECOMPUTE_FULL", true}, {NULL, NULL, false}};
static const struct job_word cp_mode_words[] = {
    {"fixed", "CP_MODE_FIXED", true}, {"elastic", "CP_MODE_ELASTIC", true}, {NULL, NULL, false}};
static const struct job_word shard_words[] = {
    {"zigzag", "SHARD_ZIGZAG", true}, {"contiguous", "SHARD_CONTIGUOUS", true}, {NULL, NULL, false}};
static const struct job_word equal_words[] = {
    {"auto", "EQUAL_MICRO_BATCHES_AUTO", true}, {"true", "EQUAL_MICRO_BATCHES_TRUE", true},
    {"false", "EQUAL_MICRO_BATCHES_FALSE", true}, {NULL, NULL, false}};
static const struct job_word micro_batch_order_words[] = {
    {"as_planned", "MICRO_BATCH_ORDER_AS_PLANNED", true},
    {"largest_first", "MICRO_BATCH_ORDER_LARGEST_FIRST", true},
    {"heavy_middle", "MICRO_BATCH_ORDER_HEAVY_MIDDLE", true}, {NULL, NULL, false}};
static const struct job_word mix_words[] = {
    {"any", "MIX_ANY", true}, {"uniform", "MIX_UNIFORM", true}, {NULL, NULL, false}};
static const struct job_word over_length_words[] = {
    {"reject", "OVER_LENGTH_REJECT", true}, {"truncate", "OVER_LENGTH_TRUNCATE", true},
    {"drop", "OVER_LENGTH_DROP", true}, {NULL, NULL, false}};
static const struct job_word unit_words[] = {
    {"sequence", "UNIT_SEQUENCE", true}, {"document", "UNIT_DOCUMENT", true}, {NULL, NULL, false}};
static const struct job_word order_words[] = {
    {"shuffle", "ORDER_SHUFFLE", true}, {"sequential", "ORDER_SEQUENTIAL", true},
    {"sorted", "ORDER_SORTED", true}, {NULL, NULL, false}};
static const struct job_word last_batch_words[] = {
    {"drop", "LAST_BATCH_DROP", true}, {"keep", "LAST_BATCH_KEEP", true},
    {"wrap", "LAST_BATCH_WRAP", true}, {NULL, NULL, false}};
static const struct job_word loss_words[] = {
    {"token_mean", "LOSS_TOKEN_MEAN", true}, {"sequence_mean", "LOSS_SEQUENCE_MEAN", true},
    {"none", "LOSS_NONE", true}, {NULL, NULL, false}};
/* clang-format on */

enum state { BUILT, REQUIRED, LATER };

#define STATE(state) .is_required = (state) == REQUIRED, .only_default = (state) == LATER
#define NUMBER(type, name, state, least, largest, default_)                                        \
    {.path = #name,                                                                                \
     .kind = JOB_FIELD_##type,                                                                     \
     .offset = offsetof(struct OWNER, name),                                                       \
     STATE(state),                                                                                 \
     .min = (least),                                                                               \
     .max = (largest),                                                                             \
     .number = (default_)},
#define TEXT(name, state, largest, default_)                                                       \
    {.path = #name,                                                                                \
     .kind = JOB_FIELD_TEXT,                                                                       \
     .offset = offsetof(struct OWNER, name),                                                       \
     STATE(state),                                                                                 \
     .max = (largest),                                                                             \
     .text = (default_)},
#define WORD(name, list, default_)                                                                 \
    {.path = #name,                                                                                \
     .kind = JOB_FIELD_WORD,                                                                       \
     .offset = offsetof(struct OWNER, name),                                                       \
     .min = 1,                                                                                     \
     .max = sizeof(list) / sizeof((list)[0]) - 1,                                                  \
     .number = (default_),                                                                         \
     .words = (list)},
#define FRACTION(name, state)                                                                      \
    {.path = #name, .kind = JOB_FIELD_DOUBLE, .offset = offsetof(struct OWNER, name), STATE(state)},

const struct job_field job_fields[] = {
#define OWNER skrull_job
#include "job_fields.def"
#undef OWNER
    {.path = NULL}};

const struct job_field job_data_fields[] = {
#define OWNER skrull_dataset
#include "job_data_fields.def"
#undef OWNER
    {.path = NULL}};

/* The lower-case letters only: names are ASCII, and the locale must not matter. */
static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

bool job_name_is(const char *snake, const char *name)
{
    if (strcmp(snake, name) == 0) {
        return true;
    }
    for (; *snake; snake++, name++) {
        if (*snake == '_' && snake[1]) {
            snake++;
            if (*name != upper(*snake)) {
                return false;
            }
        } else if (*name != *snake) {
            return false;
        }
    }
    return *name == '\0';
}

const struct job_field *job_field_find(const struct job_field *fields, const char *path)
{
    for (; fields->path; fields++) {
        if (job_name_is(fields->path, path)) {
            return fields;
        }
    }
    return NULL;
}

uint64_t job_field_number(const struct job_field *field, const void *base)
{
    const char *member = (const char *)base + field->offset;
    uint32_t narrow;
    uint64_t wide;
    int word;

    if (field->kind == JOB_FIELD_U64) {
        memcpy(&wide, member, sizeof(wide));
        return wide;
    }
    if (field->kind == JOB_FIELD_WORD) {
        memcpy(&word, member, sizeof(word));
        return word < 0 ? UINT64_MAX : (uint64_t)word;
    }
    memcpy(&narrow, member, sizeof(narrow));
    return narrow;
}

void job_field_set_number(const struct job_field *field, void *base, uint64_t value)
{
    char *member = (char *)base + field->offset;
    const uint32_t narrow = (uint32_t)value;

    if (field->kind == JOB_FIELD_U64) {
        memcpy(member, &value, sizeof(value));
    } else {
        memcpy(member, &narrow, sizeof(narrow));
    }
}

const char *job_field_text(const struct job_field *field, const void *base)
{
    const char *text;

    memcpy(&text, (const char *)base + field->offset, sizeof(text));
    return text;
}

void job_field_set_text(const struct job_field *field, void *base, const char *text)
{
    memcpy((char *)base + field->offset, &text, sizeof(text));
}

double job_field_double(const struct job_field *field, const void *base)
{
    double value;

    memcpy(&value, (const char *)base + field->offset, sizeof(value));
    return value;
}

void job_field_set_double(const struct job_field *field, void *base, double value)
{
    memcpy((char *)base + field->offset, &value, sizeof(value));
}

/* The words, "a, b or c". */
static void list_words(const struct job_word *words, char ret[JOB_ALLOWED_SIZE])
{
    size_t used = 0;
    int n;

    ret[0] = '\0';
    for (const struct job_word *word = words; word->word && used < JOB_ALLOWED_SIZE; word++) {
        const char *joint = word == words ? "" : word[1].word ? ", " : " or ";

        n = snprintf(ret + used, JOB_ALLOWED_SIZE - used, "%s%s", joint, word->word);
        used += n > 0 ? (size_t)n : 0;
    }
}

const char *job_field_allowed(const struct job_field *field, char ret[JOB_ALLOWED_SIZE])
{
    switch (field->kind) {
    case JOB_FIELD_U32:
    case JOB_FIELD_U64:
        (void)snprintf(ret, JOB_ALLOWED_SIZE, "a whole number, %" PRIu64 " to %" PRIu64, field->min,
                       field->max);
        break;
    case JOB_FIELD_DOUBLE:
        (void)snprintf(ret, JOB_ALLOWED_SIZE, "a finite number from 0");
        break;
    case JOB_FIELD_TEXT:
        (void)snprintf(ret, JOB_ALLOWED_SIZE, "a text of at most %" PRIu64 " bytes", field->max);
        break;
    case JOB_FIELD_WORD:
        list_words(field->words, ret);
        break;
    }
    return ret;
}

static int not_built(const char *path, const char *value, struct skrull_error *err)
{
    char clip[TEXT_CLIP_SIZE];

    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "%s: %s is not built yet", path,
                            text_clip(value, clip));
}

static int out_of_range(const struct job_field *field, const char *path, const char *value,
                        struct skrull_error *err)
{
    char clip[TEXT_CLIP_SIZE];

    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "%s: %s is out of range, %" PRIu64 " to %" PRIu64 " are allowed", path,
                            text_clip(value, clip), field->min, field->max);
}

int job_field_check_number(const struct job_field *field, const char *path, uint64_t value,
                           struct skrull_error *err)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRIu64, value);
    if (field->kind == JOB_FIELD_WORD) {
        if (value < field->min || value > field->max) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "%s: the enum has no such number, 0 to %" PRIu64 " are allowed",
                                    path, field->max);
        }
        return field->words[value - 1].is_built
                   ? 0
                   : not_built(path, field->words[value - 1].word, err);
    }
    if (value < field->min || value > field->max) {
        return out_of_range(field, path, text, err);
    }
    if (field->only_default && value != field->number) {
        return not_built(path, text, err);
    }
    return 0;
}

int job_field_check_double(const struct job_field *field, const char *path, double value,
                           struct skrull_error *err)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%.15g", value);
    if (!isfinite(value) || value < 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: %s is out of range, finite numbers from 0 are allowed", path,
                                text);
    }
    if (field->only_default && value > 0) {
        return not_built(path, text, err);
    }
    return 0;
}

int job_field_check_text(const struct job_field *field, const char *path, const char *text,
                         struct skrull_error *err)
{
    const size_t len = strlen(text);

    if (len > field->max) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: %zu bytes are too long, at most %" PRIu64 " are allowed", path,
                                len, field->max);
    }
    if (!text_is_plain(text)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: UTF-8 text without control characters is allowed only", path);
    }
    if (field->only_default && strcmp(text, field->text ? field->text : "") != 0) {
        return not_built(path, text, err);
    }
    return 0;
}

/* An enum's names are its prefix and a word: ORDER_ and SHUFFLE, hence ORDER_UNSPECIFIED. */
static bool is_unspecified(const struct job_word *word, const char *name)
{
    const size_t prefix = strlen(word->enum_name) - strlen(word->word);

    return strncmp(word->enum_name, name, prefix) == 0 && strcmp(name + prefix, "UNSPECIFIED") == 0;
}

int job_field_check_word(const struct job_field *field, const char *path, const char *word,
                         int *ret_number, struct skrull_error *err)
{
    char words[JOB_ALLOWED_SIZE], clip[TEXT_CLIP_SIZE];
    int number = 1;

    for (const struct job_word *known = field->words; known->word; known++, number++) {
        if (strcmp(word, known->word) != 0 && strcmp(word, known->enum_name) != 0) {
            continue;
        }
        if (!known->is_built) {
            return not_built(path, word, err);
        }
        *ret_number = number;
        return 0;
    }
    if (is_unspecified(field->words, word)) {
        *ret_number = (int)field->number;
        return 0;
    }
    list_words(field->words, words);
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "%s: %s is unknown, allowed: %s",
                            path, text_clip(word, clip), words);
}

int job_field_parse_number(const struct job_field *field, const char *path, const char *text,
                           uint64_t *ret_value, struct skrull_error *err)
{
    const char *digits = text[0] == '-' ? text + 1 : text;
    const size_t len = strspn(digits, "0123456789");
    char clip[TEXT_CLIP_SIZE];
    uint64_t value;
    int rc;

    if (len == 0 || digits[len] || (digits[0] == '0' && len > 1)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: %s is not a whole number in decimal digits, %" PRIu64
                                " to %" PRIu64 " are allowed",
                                path, text_clip(text, clip), field->min, field->max);
    }
    errno = 0;
    value = strtoull(digits, NULL, 10);
    if (errno || text[0] == '-') {
        return out_of_range(field, path, text, err);
    }
    rc = job_field_check_number(field, path, value, err);
    if (!rc) {
        *ret_value = value;
    }
    return rc;
}
