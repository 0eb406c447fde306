/* job_scalar.c and the table of job_fields.h: every key of a job file, by its row here. */
#include "job_scalar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arena.h"
#include "job_fields.h"
#include "job_file.h"
#include "unit/proto/job_text.h"

#define ARENA_BYTES ((size_t)1 << 22)
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

struct parsed {
    struct arena *arena;
    struct skrull_job *job;
    struct skrull_error err;
    int rc;
};

static struct parsed parse_bytes(const char *text, size_t len)
{
    struct parsed parsed = {.arena = arena_new(ARENA_BYTES)};

    assert_non_null(parsed.arena);
    parsed.rc = job_file_parse(parsed.arena, text, len, &parsed.job, &parsed.err);
    return parsed;
}

/* A field of the parsed job by its path, "data.weight" for one of the data set. */
static const struct job_field *field_of(const char *path, const struct skrull_job *job,
                                        const void **ret_base)
{
    const bool is_data = strncmp(path, "data.", 5) == 0;

    *ret_base = is_data ? (const void *)job->data : job;
    return job_field_find(is_data ? job_data_fields : job_fields, is_data ? path + 5 : path);
}

/* The path as messages have it. */
static const char *path_in_messages(const char *path, char ret[JOB_PATH_SIZE])
{
    if (strncmp(path, "data.", 5) == 0) {
        (void)snprintf(ret, JOB_PATH_SIZE, "data[0].%s", path + 5);
    } else {
        (void)snprintf(ret, JOB_PATH_SIZE, "%s", path);
    }
    return ret;
}

static const char *last_name(const char *path)
{
    const char *dot = strrchr(path, '.');

    return dot ? dot + 1 : path;
}

/* A file with `value` for `path`, and what must go with it. */
static char *make(const char *path, const char *value, const struct given *with)
{
    struct given given[8];
    size_t n_given = 0;

    given[n_given++] = (struct given){path, value};
    for (; with && with->path; with++) {
        given[n_given++] = *with;
    }
    given[n_given] = (struct given){NULL, NULL};
    return job_text_make(given);
}

/* Asserts that the value is refused with the key's line and path, and `why` in the message. */
static void refuse(const char *path, const char *value, const struct given *with, const char *why)
{
    char *text = make(path, value, with), start[128], in_messages[JOB_PATH_SIZE];
    struct parsed parsed = parse_bytes(text, strlen(text));

    (void)snprintf(start, sizeof(start), "line %zu: %s: ", job_text_line(text, last_name(path)),
                   path_in_messages(path, in_messages));
    print_message("# %s: %.40s -> %s\n", path, value, parsed.err.message);
    assert_int_equal(parsed.rc, SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(parsed.err.code, SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(strncmp(parsed.err.message, start, strlen(start)), 0);
    assert_non_null(strstr(parsed.err.message, why));
    assert_null(parsed.job);
    arena_free(parsed.arena);
    free(text);
}

static void accept_number(const char *path, const char *value, const struct given *with,
                          uint64_t expected)
{
    char *text = make(path, value, with);
    struct parsed parsed = parse_bytes(text, strlen(text));
    const void *base;
    const struct job_field *field;

    print_message("# %s: %s %s\n", path, value ? value : "(left out)", parsed.err.message);
    assert_int_equal(parsed.rc, 0);
    field = field_of(path, parsed.job, &base);
    assert_non_null(field);
    assert_int_equal(job_field_number(field, base), expected);
    arena_free(parsed.arena);
    free(text);
}

static void accept_text(const char *path, const char *value, const char *expected)
{
    char *text = make(path, value, NULL);
    struct parsed parsed = parse_bytes(text, strlen(text));
    const void *base;
    const struct job_field *field;

    print_message("# %s: %.40s %s\n", path, value ? value : "(left out)", parsed.err.message);
    assert_int_equal(parsed.rc, 0);
    field = field_of(path, parsed.job, &base);
    assert_non_null(field);
    if (expected) {
        assert_string_equal(job_field_text(field, base), expected);
    } else {
        assert_null(job_field_text(field, base));
    }
    arena_free(parsed.arena);
    free(text);
}

#define REQUIRED UINT64_MAX

struct number_row {
    const char *path;
    uint64_t least, most, default_; /* default_ REQUIRED: must be given */
    bool is_later;                  /* only the default is built */
    struct given with[3];           /* so that the largest fits the others */
};

static const struct number_row numbers[] = {
    {"training.lora_rank", 0, 65536, 0, false, {{0}}},
    {"parallel.dp", 1, 65536, REQUIRED, false, {{"parallel.cp", "1"}}},
    {"parallel.cp", 1, 65536, REQUIRED, false, {{"parallel.dp", "1"}}},
    {"parallel.tp", 1, 65536, 1, false, {{0}}},
    {"parallel.pp", 1, 65536, 1, false, {{0}}},
    {"parallel.min_degree", 1, 65536, 1, false, {{"parallel.dp", "8192"}}},
    {"parallel.max_degree", 0, 65536, 0, false, {{0}}},
    {"parallel.ranks_per_node", 0, 65536, 0, false, {{0}}},
    {"batch.global", 1, 16777216, REQUIRED, false, {{0}}},
    {"batch.bucket_tokens", 1, 2147483647, REQUIRED, false, {{"parallel.cp", "1"}}},
    {"batch.align", 1, 65536, 1, false, {{"batch.bucket_tokens", "131072"}}},
    {"batch.micro_batch_multiple", 1, 65536, 1, false, {{0}}},
    {"batch.micro_batch_min", 1, 16777216, 1, false, {{0}}},
    {"batch.micro_batches", 0, 16777216, 0, false, {{0}}},
    {"seed", 0, INT64_MAX, 0, false, {{0}}},
    {"epochs", 1, 1000000000000, 1, false, {{0}}},
    {"steps", 1, 1000000000000, 0, false, {{0}}},
};

static const char *decimal(uint64_t number, char ret[24])
{
    (void)snprintf(ret, 24, "%llu", (unsigned long long)number);
    return ret;
}

static void test_job_scalar_store__every_number(void **state)
{
    char text[24], range[64];

    (void)state;
    for (size_t i = 0; i < COUNT(numbers); i++) {
        const struct number_row *row = &numbers[i];

        if (row->default_ != REQUIRED) {
            accept_number(row->path, NULL, row->with, row->default_);
            accept_number(row->path, "null", row->with, row->default_);
            accept_number(row->path, "", row->with, row->default_);
        } else {
            refuse(row->path, "~", row->with, "is required");
        }
        accept_number(row->path, decimal(row->least, text), row->with, row->least);
        if (row->is_later) {
            refuse(row->path, decimal(row->least + 1, text), row->with, " is not built yet");
            refuse(row->path, decimal(row->most, text), row->with, " is not built yet");
        } else {
            accept_number(row->path, decimal(row->most, text), row->with, row->most);
        }
        (void)snprintf(range, sizeof(range), "is out of range, %llu to %llu are allowed",
                       (unsigned long long)row->least, (unsigned long long)row->most);
        refuse(row->path, decimal(row->most + 1, text), row->with, range);
        refuse(row->path, row->least ? "0" : "-1", row->with, range);
        refuse(row->path, "-1", row->with, range);
        refuse(row->path, "18446744073709551615", row->with, range);
        refuse(row->path, "18446744073709551616", row->with, range);
        refuse(row->path, "99999999999999999999999999999999", row->with, range);
        refuse(row->path, "-99999999999999999999999999999999", row->with, range);
    }
}

static void test_job_scalar_store__number_in_another_form(void **state)
{
    static const char *const forms[] = {"1e3", "1.0",  "0x10", "0o7",     "010",      "1_000",
                                        "+5",  "1,5",  "true", "\"\"",    "'7 '",     "' 7'",
                                        "--1", ".inf", "1:30", "\"\\0\"", "\"5\\0\"", "~1"};

    (void)state;
    for (size_t i = 0; i < COUNT(numbers); i++) {
        for (size_t j = 0; j < COUNT(forms); j++) {
            if (strcmp(forms[j], "- ") != 0) {
                refuse(numbers[i].path, forms[j], numbers[i].with,
                       strstr(forms[j], "\\0") ? "NUL" : "is not a whole number in decimal digits");
            }
        }
        refuse(numbers[i].path, "[1]", numbers[i].with, "a list is given, only a whole number, ");
        refuse(numbers[i].path, "{a: 1}", numbers[i].with, "a mapping is given, only");
    }
}

static void test_job_scalar_store__quoted_number(void **state)
{
    (void)state;
    accept_number("seed", "\"9223372036854775807\"", NULL, INT64_MAX);
    accept_number("seed", "'12'", NULL, 12);
    accept_number("batch.global", "!!str 12", NULL, 12);
    accept_number("batch.global", "!!int 12", NULL, 12);
    accept_number("steps", "\"100\"", NULL, 100);
}

struct word_row {
    const char *path, *prefix;
    const char *words[4]; /* numbers from 1 */
    unsigned later;       /* bit i: words[i] is not built yet */
    uint64_t default_;
};

static const struct word_row words[] = {
    {"model.flops", "FLOPS", {"paper", "exact"}, 2, 1},
    {"training.zero_stage", "ZERO_STAGE", {"0", "1", "2", "3"}, 0, 3},
    {"training.recompute", "RECOMPUTE", {"none", "selective", "full"}, 0, 2},
    {"parallel.cp_mode", "CP_MODE", {"fixed", "elastic"}, 0, 1},
    {"batch.shard", "SHARD", {"zigzag", "contiguous"}, 0, 1},
    {"batch.equal_micro_batches", "EQUAL_MICRO_BATCHES", {"auto", "true", "false"}, 0, 1},
    {"batch.micro_batch_order",
     "MICRO_BATCH_ORDER",
     {"as_planned", "largest_first", "heavy_middle"},
     0,
     1},
    {"batch.mix", "MIX", {"any", "uniform"}, 0, 1},
    {"data.over_length", "OVER_LENGTH", {"reject", "truncate", "drop"}, 0, 1},
    {"data.unit", "UNIT", {"sequence", "document"}, 0, 1},
    {"order", "ORDER", {"shuffle", "sequential", "sorted"}, 0, 1},
    {"last_batch", "LAST_BATCH", {"drop", "keep", "wrap"}, 0, 1},
    {"loss", "LOSS", {"token_mean", "sequence_mean", "none"}, 0, 1},
};

/* "ORDER", "shuffle" to "ORDER_SHUFFLE". */
static void enum_name(const char *prefix, const char *word, char *ret, size_t size)
{
    (void)snprintf(ret, size, "%s_%s", prefix, word);
    for (; *ret; ret++) {
        if (*ret >= 'a' && *ret <= 'z') {
            *ret = (char)(*ret - 'a' + 'A');
        }
    }
}

static void check_word(const struct word_row *row, size_t i)
{
    char name[64], quoted[64], why[96];

    enum_name(row->prefix, row->words[i], name, sizeof(name));
    (void)snprintf(quoted, sizeof(quoted), "\"%s\"", row->words[i]);
    if (row->later >> i & 1) {
        (void)snprintf(why, sizeof(why), ": %s is not built yet", row->words[i]);
        refuse(row->path, row->words[i], NULL, why);
        (void)snprintf(why, sizeof(why), ": %s is not built yet", name);
        refuse(row->path, name, NULL, why);
        return;
    }
    accept_number(row->path, row->words[i], NULL, i + 1);
    accept_number(row->path, quoted, NULL, i + 1);
    accept_number(row->path, name, NULL, i + 1);
}

static void test_job_scalar_store__every_word(void **state)
{
    char name[64];

    (void)state;
    for (size_t i = 0; i < COUNT(words); i++) {
        const struct word_row *row = &words[i];

        for (size_t j = 0; j < COUNT(row->words) && row->words[j]; j++) {
            check_word(row, j);
        }
        accept_number(row->path, NULL, NULL, row->default_);
        accept_number(row->path, "null", NULL, row->default_);
        enum_name(row->prefix, "unspecified", name, sizeof(name));
        accept_number(row->path, name, NULL, row->default_);
        refuse(row->path, "7", NULL, "7 is unknown, allowed: ");
        refuse(row->path, "7", NULL, row->words[1]);
        refuse(row->path, "Shuffle", NULL, "Shuffle is unknown, allowed: ");
        refuse(row->path, "UNSPECIFIED", NULL, "is unknown");
        refuse(row->path, "\"\"", NULL, "is unknown");
        refuse(row->path, "[a]", NULL, "a list is given, only ");
        refuse(row->path, "{a: b}", NULL, "a mapping is given, only ");
    }
}

struct text_row {
    const char *path, *default_;
    size_t longest;
    bool is_required, is_later, is_free; /* is_free: any text will do */
};

static const struct text_row texts[] = {
    {"name", NULL, 63, true, false, true},
    {"model.preset", NULL, 255, true, false, true},
    {"model.config", NULL, 4096, false, true, false},
    {"hardware.profile", "paper-h100", 4096, false, false, true},
    {"parallel.order", "tp-cp-ep-dp-pp", 14, false, false, false},
    {"data.index", NULL, 4095, true, false, true},
    {"data.format", "auto", 63, false, false, true},
    {"data.column", NULL, 255, false, false, true},
    {"effort", "default", 63, false, false, false},
    {"policy", "joint", 63, false, false, true},
};

static void test_job_scalar_store__every_text(void **state)
{
    char longest[5000];

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        const struct text_row *row = &texts[i];

        memset(longest, 'a', sizeof(longest));
        longest[row->longest] = '\0';
        if (row->is_free) {
            accept_text(row->path, longest, longest);
            accept_text(row->path, "1234", "1234");
            accept_text(row->path, "'null'", "null");
            accept_text(row->path, "!!str null", "null");
        }
        if (row->is_later) {
            refuse(row->path, "prompt", NULL, ": prompt is not built yet");
        }
        if (row->is_required) {
            refuse(row->path, "null", NULL, "is required");
            refuse(row->path, "\"\"", NULL, "is required");
        } else {
            accept_text(row->path, NULL, row->default_);
            accept_text(row->path, "~", row->default_);
            accept_text(row->path, "\"\"", row->default_);
        }
        if (row->longest < 4096) {
            longest[row->longest] = 'a';
            longest[row->longest + 1] = '\0';
            refuse(row->path, longest, NULL, "bytes are too long, at most ");
        }
        refuse(row->path, "\"a\\tb\"", NULL, "without control characters");
        refuse(row->path, "\"a\\x7f\"", NULL, "without control characters");
        refuse(row->path, "\"a\\u0085b\"", NULL, "without control characters");
        refuse(row->path, "\"a\\0b\"", NULL, "NUL is not allowed");
        refuse(row->path, "[a]", NULL, "a list is given, only a text of at most ");
        refuse(row->path, "{a: b}", NULL, "a mapping is given, only a text of at most ");
    }
    accept_text("data.index", "\"d\\u00e9j\\u00e0/\\U0001F600.txt\"",
                "d\u00e9j\u00e0/\U0001F600.txt");
}

static void test_job_scalar_store__weight(void **state)
{
    static const char *const wrong[] = {"0x1", "inf", ".inf", "NaN", ".nan", "1.",
                                        ".5",  "1e",  "e1",   "1,5", "+1",   "--1",
                                        "1e+", "a",   "\"\"", "1_0", "0.5f"};
    struct parsed parsed;
    char *text;

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        refuse("data.weight", wrong[i], NULL, "is not a number, finite numbers from 0 are allowed");
    }
    refuse("data.weight", "-0.5", NULL, "-0.5 is out of range, finite numbers from 0 are allowed");
    refuse("data.weight", "1e999", NULL, "is out of range, finite numbers from 0 are allowed");
    for (size_t i = 0; i < 4; i++) {
        static const char *const given[] = {"1", "0.25", "\"2.5e-1\"", "2E+3"};
        static const double numbers_given[] = {1, 0.25, 0.25, 2000};
        const struct given with[] = {{"steps", "5"}, {NULL, NULL}};

        text = make("data.weight", given[i], with);
        parsed = parse_bytes(text, strlen(text));
        assert_int_equal(parsed.rc, 0);
        assert_memory_equal(&parsed.job->data[0].weight, &numbers_given[i], sizeof(double));
        arena_free(parsed.arena);
        free(text);
    }
    refuse("data.weight", "[1]", NULL, "a list is given, only a finite number from 0");
    for (size_t i = 0; i < 5; i++) {
        static const char *const zeros[] = {"0", "0.0", "0e9", "null", "\"0\""};

        text = make("data.weight", zeros[i], NULL);
        parsed = parse_bytes(text, strlen(text));
        assert_int_equal(parsed.rc, 0);
        assert_false(parsed.job->data[0].weight > 0);
        arena_free(parsed.arena);
        free(text);
    }
}

static bool is_covered(const char *path)
{
    for (size_t i = 0; i < COUNT(numbers); i++) {
        if (strcmp(numbers[i].path, path) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < COUNT(words); i++) {
        if (strcmp(words[i].path, path) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < COUNT(texts); i++) {
        if (strcmp(texts[i].path, path) == 0) {
            return true;
        }
    }
    return strcmp(path, "data.weight") == 0;
}

static void test_job_fields__all_have_rows_here(void **state)
{
    char path[JOB_PATH_SIZE];

    (void)state;
    for (const struct job_field *field = job_fields; field->path; field++) {
        print_message("# %s\n", field->path);
        assert_true(is_covered(field->path));
    }
    for (const struct job_field *field = job_data_fields; field->path; field++) {
        (void)snprintf(path, sizeof(path), "data.%s", field->path);
        print_message("# %s\n", path);
        assert_true(is_covered(path));
    }
}

static void test_job_scalar_store__auto_bucket_is_not_built(void **state)
{
    (void)state;
    refuse("batch.bucket_tokens", "auto", NULL, "batch.bucket_tokens: auto is not built yet");
    refuse("batch.bucket_tokens", "\"auto\"", NULL, "batch.bucket_tokens: auto is not built yet");
    refuse("batch.align", "auto", NULL, "auto is not a whole number");
}

static void test_job_scalar_store__lower_camel_case(void **state)
{
    char camel[JOB_PATH_SIZE], number[24];

    (void)state;
    for (size_t i = 0; i < COUNT(numbers); i++) {
        job_text_camel(numbers[i].path, camel, sizeof(camel));
        accept_number(camel, decimal(numbers[i].least, number), numbers[i].with, numbers[i].least);
    }
    for (size_t i = 0; i < COUNT(words); i++) {
        job_text_camel(words[i].path, camel, sizeof(camel));
        accept_number(camel, words[i].words[0], NULL, 1);
    }
    for (size_t i = 0; i < COUNT(texts); i++) {
        job_text_camel(texts[i].path, camel, sizeof(camel));
        if (texts[i].is_free) {
            accept_text(camel, "abc", "abc");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_job_scalar_store__every_number),
        cmocka_unit_test(test_job_scalar_store__number_in_another_form),
        cmocka_unit_test(test_job_scalar_store__quoted_number),
        cmocka_unit_test(test_job_scalar_store__every_word),
        cmocka_unit_test(test_job_scalar_store__every_text),
        cmocka_unit_test(test_job_scalar_store__weight),
        cmocka_unit_test(test_job_scalar_store__auto_bucket_is_not_built),
        cmocka_unit_test(test_job_scalar_store__lower_camel_case),
        cmocka_unit_test(test_job_fields__all_have_rows_here),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
