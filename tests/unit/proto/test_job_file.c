/* job_file.c and yaml_reader.c: keys, lists, JSON, and files that are no job. */
#include "job_file.h"

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
#include "text.h"
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

/* A whole file, by the first part of its message (or "" where it is fine). */
static void check_file(const char *text, size_t len, const char *message)
{
    char clip[TEXT_CLIP_SIZE];
    struct parsed parsed = parse_bytes(text, len);

    print_message("# %s -> %s\n", text_clip(text, clip), parsed.err.message);
    assert_int_equal(parsed.rc, *message ? SKRULL_ERR_INVALID_ARGUMENT : 0);
    assert_int_equal(strncmp(parsed.err.message, message, strlen(message)), 0);
    assert_true(text_is_plain(parsed.err.message));
    arena_free(parsed.arena);
}

#define GOOD_BUT_NAME                                                                              \
    "model: {preset: m}\nparallel: {dp: 1, cp: 1}\nbatch: {global: 1, bucket_tokens: 9}\n"         \
    "data: [{index: a}]\n"
#define GOOD "name: a\n" GOOD_BUT_NAME

static void test_job_file_parse__keys(void **state)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {GOOD, ""},
        {GOOD "\n# comment\n\n", ""},
        {"---\n" GOOD "...\n", ""},
        {"%YAML 1.1\n---\n" GOOD, ""},
        {"\xEF\xBB\xBF" GOOD, ""},
        {GOOD "uid: x\nrevision: 7\ninfo: {steps: 4, indexes: [{count: 1}], what: [[]]}\n", ""},
        {GOOD "info: x\nuid: [1, {a: b}]\nrevision:\n", ""},
        {GOOD "training:\nhardware: null\n", ""},
        {GOOD "lossy: none\n",
         "line 6: lossy: unknown key, allowed: name, model, training, hardware, parallel, batch, "},
        {GOOD "Seed: 1\n", "line 6: Seed: unknown key"},
        {GOOD "lastbatch: drop\n", "line 6: lastbatch: unknown key"},
        {GOOD "last_Batch: drop\n", "line 6: last_Batch: unknown key"},
        {GOOD "batch.align: 1\n", "line 6: batch.align: unknown key"},
        {GOOD "<<: {seed: 1}\n", "line 6: <<: unknown key"},
        {GOOD "? [seed]\n: 1\n", "line 6: only a name is allowed as a key"},
        {GOOD "? {a: b}\n: 1\n", "line 6: only a name is allowed as a key"},
        {GOOD "\"se\\0ed\": 1\n", "line 6: se: unknown key"},
        {GOOD "\"seed\\0\": 1\n", "line 6: seed: unknown key"},
        {GOOD "\"a\\nb\": 1\n", "line 6: a?b: unknown key"},
        {GOOD "'': 1\n", "line 6: : unknown key"},
        {GOOD "seed: 1\nseed: 2\n", "line 7: seed: is given twice, on line 6 before"},
        {GOOD "last_batch: drop\nlastBatch: drop\n",
         "line 7: last_batch: is given twice, on line 6 before"},
        {GOOD "data: []\n", "line 6: data: is given twice, on line 5 before"},
        {GOOD "batch: {}\n", "line 6: batch: is given twice, on line 4 before"},
        {GOOD "uid: a\nuid: b\n", "line 7: uid: is given twice, on line 6 before"},
        {GOOD "training: {lora_rank: 1,\n loraRank: 1}\n",
         "line 7: training.lora_rank: is given twice, on line 6 before"},
        {GOOD "training: {seed: 1}\n",
         "line 6: training.seed: unknown key, allowed: zero_stage, recompute, lora_rank"},
        {GOOD "training: {uid: 1}\n", "line 6: training.uid: unknown key"},
        {GOOD "training: 1\n", "line 6: training: a single value is given, only a mapping"},
        {GOOD "training: [1]\n", "line 6: training: a list is given, only a mapping"},
        {GOOD "steps: 5\nepochs: 1\n", "line 6: steps: epochs is given too"},
        {GOOD "effort: fast\n",
         "line 6: effort: fast is unknown, allowed: low, default, high or a"},
        {GOOD "effort: 1e3\n", "line 6: effort: 1e3 is unknown"},
        {GOOD "effort: 0\n", "line 6: effort: 0 is unknown"},
        {GOOD "effort: 1000000001\n", "line 6: effort: 1000000001 is unknown"},
        {GOOD "effort: 1000000000\n", ""},
        {GOOD "effort: high\n", ""},
        {"name: -a\n" GOOD_BUT_NAME, "line 1: name: -a is not a name"},
        {"name: a_b\n" GOOD_BUT_NAME, "line 1: name: a_b is not a name"},
        {"seed: 3\n" GOOD_BUT_NAME, "name: is required"},
        {"name: a\nmodel: {preset: m}\n", "parallel.dp: is required"},
        {"name: a\nmodel:\n  flops: paper\n", "parallel.dp: is required"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        check_file(rows[i].text, strlen(rows[i].text), rows[i].message);
    }
}

#define GOOD_BUT_DATA                                                                              \
    "name: a\nmodel: {preset: m}\nparallel: {dp: 1, cp: 1}\nbatch: {global: 1, bucket_tokens: "    \
    "9}\n"

static void test_job_file_parse__data(void **state)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {GOOD_BUT_DATA "data: [{index: a}, {index: b, overLength: drop}]\n", ""},
        {GOOD_BUT_DATA "data: [{index: a, weight: 1e400}]\n",
         "line 5: data[0].weight: 1e400 is out of range, finite numbers from 0"},
        {GOOD_BUT_DATA, "data: is required"},
        {GOOD_BUT_DATA "data:\n", "line 5: data: is required"},
        {GOOD_BUT_DATA "data: []\n", "line 5: data: is required"},
        {GOOD_BUT_DATA "data: a.txt\n", "line 5: data: a single value is given, only a list"},
        {GOOD_BUT_DATA "data: {index: a}\n", "line 5: data: a mapping is given, only a list"},
        {GOOD_BUT_DATA "data: [a.txt]\n",
         "line 5: data[0]: a single value is given, only a mapping"},
        {GOOD_BUT_DATA "data:\n- index: a\n- [b]\n", "line 7: data[1]: a list is given, only a"},
        {GOOD_BUT_DATA "data:\n- index: a\n- format: b\n", "line 7: data[1].index: is required"},
        {GOOD_BUT_DATA "data:\n- index: a\n- index: b\n  path: c\n",
         "line 8: data[1].path: unknown key, allowed: index, format, over_length, weight, column, "
         "unit"},
        {GOOD_BUT_DATA "data:\n- index: a\n  index: b\n",
         "line 7: data[0].index: is given twice, on line 6 before"},
        {GOOD_BUT_DATA "data:\n- index: a\n- index: b\n  unit: c\n", "line 8: data[1].unit: c is "},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        check_file(rows[i].text, strlen(rows[i].text), rows[i].message);
    }
}

static void test_job_file_parse__many_data_sets(void **state)
{
    static const char entry[] = "- {index: a}\n";
    const size_t head = strlen(GOOD_BUT_DATA "data:\n"), step = strlen(entry);
    char *text = malloc(head + 1025 * step + 1);
    struct parsed parsed;

    (void)state;
    assert_non_null(text);
    memcpy(text, GOOD_BUT_DATA "data:\n", head);
    for (size_t i = 0; i < 1025; i++) {
        memcpy(text + head + i * step, entry, step + 1);
    }
    parsed = parse_bytes(text, head + 1024 * step);
    assert_int_equal(parsed.rc, 0);
    assert_int_equal(parsed.job->n_data, 1024);
    for (size_t i = 0; i < 1024; i++) {
        assert_string_equal(parsed.job->data[i].index, "a");
        assert_string_equal(parsed.job->data[i].format, "auto");
    }
    arena_free(parsed.arena);
    check_file(text, head + 1025 * step,
               "line 1030: data: too many data sets, at most 1024 are allowed");
    free(text);
}

static void test_job_file_parse__not_a_job(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        const char *message;
    } rows[] = {
#define ROW(text, message) {text, sizeof(text) - 1, message}
        ROW("", "line 1: a job is a mapping"),
        ROW("\n\n# nothing\n", "line 4: a job is a mapping"),
        ROW("null", "line 1: a job is a mapping"),
        ROW("[]", "line 1: a job is a mapping"),
        ROW("just text", "line 1: a job is a mapping"),
        ROW("\xEF\xBB\xBF", "line 1: a job is a mapping"),
        ROW("{}", "name: is required"),
        ROW("name: a\n\0", "line 2: a NUL byte, only UTF-8 text is allowed"),
        ROW("name: \xff\n", "line 1: not UTF-8, only UTF-8 text is allowed"),
        ROW("name: \xc0\x80\n", "line 1: not UTF-8"),
        ROW("name: \xed\xa0\x80\n", "line 1: not UTF-8"),
        ROW("name: a\nseed: \xf0\x9f\x98", "line 2: not UTF-8"),
        ROW("\xff\xfe"
            "n\0a\0",
            "line 1: not UTF-8"),
        ROW("name: a\001b\n", "line 1: not YAML or JSON: "),
        ROW(GOOD "seed: \001\n", "line 6: not YAML or JSON: control characters"),
        ROW("\xEF\xBB\xBF" GOOD "# \xC3\xA9\n\001: 1\n", "line 7: not YAML or JSON: control"),
        ROW("name:\n\tpreset: a\n", "line 2: not YAML or JSON: "),
        ROW("info: [a\n", "line 1: not YAML or JSON: "),
        ROW("name: \"a\n", "line 1: not YAML or JSON: "),
        ROW("{\"name\": \"a\"", "line 1: not YAML or JSON: "),
        ROW("name: a: b\n", "line 1: not YAML or JSON: "),
        ROW("info: b\n c: d\n", "line 2: not YAML or JSON: "),
        ROW("%YAML 7.7\n---\na: b\n", "line 1: not YAML or JSON: "),
        ROW("name: &x a\n", "line 1: anchors and aliases are not allowed"),
        ROW("&x name: a\n", "line 1: anchors and aliases are not allowed"),
        ROW("name: *x\n", "line 1: anchors and aliases are not allowed"),
        ROW("info: &x [*x, *x]\n", "line 1: anchors and aliases are not allowed"),
        ROW("info: [*x, *x]\n", "line 1: anchors and aliases are not allowed"),
        ROW("model: &x {preset: a}\n", "line 1: anchors and aliases are not allowed"),
        ROW("name: !!python/object:os.system a\n", "line 1: the tag tag:yaml.org,2002:python"),
        ROW("name: !secret a\n", "line 1: the tag !secret is not allowed"),
        ROW("name: !<x> a\n", "line 1: the tag x is not allowed"),
        ROW("info: [[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]\n", "line 1: nested deeper than 16"),
        ROW(GOOD "---\n" GOOD, "line 6: only one document is allowed"),
        ROW(GOOD "...\n[", "line 7: not YAML or JSON: "),
        ROW(GOOD "info: [[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]\n", ""),
#undef ROW
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        check_file(rows[i].text, rows[i].len, rows[i].message);
    }
}

/* As many of one piece as a file may hold, after a beginning. */
static void test_job_file_parse__huge(void **state)
{
    static const struct {
        const char *head, *piece, *message;
    } rows[] = {
        {"", "[", "line 1: a job is a mapping"},
        {"info: ", "[", "line 1: nested deeper than 16"},
        {"info: ", "{a: ", "line 1: nested deeper than 16"},
        {"", "- ", "line 1: a job is a mapping"},
        {"", "? ", "line 1: only a name is allowed as a key"},
        {"name: ", "a", "line 1: name: "},
        {"name: \"", "\\u00e9", "line "},
        {"", "a", "line 1: a job is a mapping"},
        {"", "#", "line "},
        {"", "\n", "line "},
        {"name: |\n ", "a\n ", "line 1: name: "},
        {"data: [", "{index: a},", "line 1: data: too many data sets"},
        {"info: [", "a,", "line 1: not YAML or JSON: "},
        {"info: [", "{},", "line 1: not YAML or JSON: "},
        {"name: a\n", "name: a\n", "line 2: name: is given twice"},
    };
    char *text = malloc(JOB_FILE_MAX_BYTES + 1);

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < COUNT(rows); i++) {
        const size_t step = strlen(rows[i].piece);
        size_t len = strlen(rows[i].head);

        memcpy(text, rows[i].head, len);
        for (; len + step <= JOB_FILE_MAX_BYTES; len += step) {
            memcpy(text + len, rows[i].piece, step);
        }
        text[len] = '\0';
        check_file(text, len, rows[i].message);
    }
    memset(text, ' ', JOB_FILE_MAX_BYTES + 1);
    memcpy(text, GOOD, strlen(GOOD));
    text[strlen(GOOD)] = '#';
    check_file(text, JOB_FILE_MAX_BYTES, "");
    check_file(text, JOB_FILE_MAX_BYTES + 1,
               "a job file of more than 1048576 bytes is not allowed");
    free(text);
}

static void test_job_file_parse__json(void **state)
{
    static const char text[] =
        "{\"name\":\"a-1\",\"model\":{\"preset\":\"m\",\"flops\":\"FLOPS_PAPER\"},"
        "\"parallel\":{\"dp\":2,\"cp\":4,\"cpMode\":\"CP_MODE_ELASTIC\"},\n"
        "\t\"batch\" : { \"global\" : \"16\" ,\t\"bucketTokens\":\"1024\","
        "\"equalMicroBatches\":false},\n"
        "\"data\":[{\"index\":\"\\/a\\u00e9.txt\",\"overLength\":\"drop\"}],"
        "\"seed\":\"9\",\"uid\":\"00\",\"revision\":1,\n"
        "\"info\":{\"sequences\":\"4\"},\"training\":null}\n";
    struct parsed parsed = parse_bytes(text, sizeof(text) - 1);

    (void)state;
    print_message("# %s\n", parsed.err.message);
    assert_int_equal(parsed.rc, 0);
    assert_string_equal(parsed.job->name, "a-1");
    assert_int_equal(parsed.job->parallel.cp_mode, SKRULL_CP_MODE_ELASTIC);
    assert_int_equal(parsed.job->batch.global, 16);
    assert_int_equal(parsed.job->batch.bucket_tokens, 1024);
    assert_int_equal(parsed.job->batch.equal_micro_batches, SKRULL_EQUAL_FALSE);
    assert_string_equal(parsed.job->data[0].index, "/a\u00e9.txt");
    assert_int_equal(parsed.job->data[0].over_length, SKRULL_OVER_LENGTH_DROP);
    assert_int_equal(parsed.job->seed, 9);
    assert_null(parsed.job->uid);
    assert_int_equal(parsed.job->revision, 0);
    assert_int_equal(parsed.job->info.sequences, 0);
    arena_free(parsed.arena);
}

static void test_job_file_parse__json_lines(void **state)
{
    static const char unknown[] =
        "{\n  \"name\": \"a\",\n  \"batch\": {\n    \"algin\": 1\n  }\n}\n";
    static const char twice[] = "{\n  \"seed\": \"1\",\n  \"seed\": \"1\"\n}\n";
    static const char range[] = "{\n\"batch\":{\n\n\"align\":0}}";

    (void)state;
    check_file(unknown, sizeof(unknown) - 1, "line 4: batch.algin: unknown key");
    check_file(twice, sizeof(twice) - 1, "line 3: seed: is given twice, on line 2 before");
    check_file(range, sizeof(range) - 1, "line 4: batch.align: 0 is out of range");
}

static void test_job_file_parse__without_memory(void **state)
{
    static const char text[] = GOOD "effort: high\npolicy: uniform\n";
    struct skrull_error err;
    struct skrull_job *job;
    size_t budget = 0;
    int rc;

    (void)state;
    do {
        struct arena *arena = arena_new(budget);

        assert_non_null(arena);
        rc = job_file_parse(arena, text, sizeof(text) - 1, &job, &err);
        assert_true(rc == 0 || rc == SKRULL_ERR_RESOURCE_EXHAUSTED);
        arena_free(arena);
        budget += 16;
    } while (rc && budget < ARENA_BYTES);
    assert_int_equal(rc, 0);
    assert_true(budget > sizeof(*job));
}

static void test_job_file_parse__without_error(void **state)
{
    struct arena *arena = arena_new(ARENA_BYTES);
    struct skrull_job *job;

    (void)state;
    assert_int_equal(job_file_parse(arena, "seed: -1", 8, &job, NULL), SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(job_file_parse(arena, "{}", 2, &job, NULL), SKRULL_ERR_INVALID_ARGUMENT);
    arena_free(arena);
}

static uint32_t next_random(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

/* Changes, cuts out or repeats some bytes. */
static size_t mutate(char *text, size_t len, size_t size, uint32_t *seed)
{
    static const char bytes[] = "\n\n  :-[]{},\"'#&*!|>%?~019aZ_.\t\\\xc3\xff";

    for (uint32_t n = next_random(seed) % 2 + 1; n > 0; n--) {
        const size_t at = next_random(seed) % len, other = next_random(seed) % len;
        const size_t run = next_random(seed) % 6;

        switch (next_random(seed) % 4) {
        case 0:
            text[at] = (char)next_random(seed);
            break;
        case 1:
            if (at + run < len && len - run > 64) {
                memmove(text + at, text + at + run, len - at - run);
                len -= run;
            }
            break;
        case 2:
            if (len + run < size && other + run < len) {
                memmove(text + at + run, text + at, len - at);
                memmove(text + at, text + other, run);
                len += run;
            }
            break;
        default:
            text[at] = bytes[next_random(seed) % (sizeof(bytes) - 1)];
            break;
        }
    }
    return len;
}

static void test_job_file_parse__mutations(void **state)
{
    static const struct given given[] = {{"training.zero_stage", "2"},
                                         {"parallel.cp_mode", "elastic"},
                                         {"batch.equal_micro_batches", "true"},
                                         {"batch.shard", "contiguous"},
                                         {"data.over_length", "drop"},
                                         {"data.weight", "0"},
                                         {"seed", "42"},
                                         {"steps", "100"},
                                         {"info", "{steps: 1, indexes: [{count: 1}]}"},
                                         {NULL, NULL}};
    char *good = job_text_make(given), text[2048];
    size_t n_good = 0;
    uint32_t seed = 20240607;

    (void)state;
    for (size_t i = 0; i < 5000; i++) {
        struct parsed parsed;
        size_t len = strlen(good);

        memcpy(text, good, len);
        len = mutate(text, len, sizeof(text), &seed);
        parsed = parse_bytes(text, len);
        if (parsed.rc) {
            assert_int_equal(parsed.rc, SKRULL_ERR_INVALID_ARGUMENT);
            assert_true(parsed.err.message[0] && text_is_plain(parsed.err.message));
        } else {
            n_good++;
            assert_int_equal(job_complete(parsed.job, &parsed.err), 0);
        }
        arena_free(parsed.arena);
    }
    print_message("# %zu of 5000 are good\n", n_good);
    assert_true(n_good > 100 && n_good < 4900); /* else the mutations say little */
    free(good);
}

static void test_job_file_read__files(void **state)
{
    char path[] = "/tmp/test_job_file_XXXXXX";
    const int fd = mkstemp(path);
    struct arena *arena = arena_new(ARENA_BYTES);
    struct skrull_error err = {0};
    struct skrull_job *job = NULL;
    FILE *file;

    (void)state;
    assert_true(fd >= 0);
    file = fdopen(fd, "w");
    assert_non_null(file);
    assert_true(fputs(GOOD "seed: 5\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(job_file_read(arena, path, &job, &err), 0);
    assert_int_equal(job->seed, 5);
    file = fopen(path, "a");
    assert_non_null(file);
    assert_true(fputs("seed: 5\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(job_file_read(arena, path, &job, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(strncmp(err.message, path, strlen(path)), 0);
    assert_string_equal(err.message + strlen(path),
                        ": line 7: seed: is given twice, on line 6 before");
    assert_int_equal(remove(path), 0);
    assert_int_equal(job_file_read(arena, path, &job, &err), SKRULL_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(job_file_read(arena, "/", &job, &err), SKRULL_ERR_UNAVAILABLE);
    assert_int_equal(job_file_read(arena, "/dev/zero", &job, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "more than 1048576 bytes"));
    arena_free(arena);
}

/* For an update: keys are checked, what is missing stays so. */
static void test_job_file_parse_given__only_what_is_given(void **state)
{
    static const char part[] = "name: x\nbatch: {bucket_tokens: 5000}\norder: sorted\n";
    static const char wrong[] = "name: x\nbatch: {bucket: 5000}\n";
    struct arena *arena = arena_new(ARENA_BYTES);
    struct skrull_error err = {0};
    struct skrull_job *job = NULL;

    (void)state;
    assert_int_equal(job_file_parse_given(arena, part, strlen(part), &job, &err), 0);
    assert_string_equal(job->name, "x");
    assert_int_equal(job->batch.bucket_tokens, 5000);
    assert_int_equal(job->order, SKRULL_ORDER_SORTED);
    assert_int_equal(job->batch.align, 0);
    assert_int_equal(job->parallel.dp, 0);
    assert_int_equal(job->epochs, 0);
    assert_null(job->policy);
    assert_int_equal(job->n_data, 0);
    job = NULL;
    assert_int_equal(job_file_parse_given(arena, wrong, strlen(wrong), &job, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(strncmp(err.message, "line 2: batch.bucket: unknown key", 33), 0);
    assert_null(job);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_job_file_parse__keys),
        cmocka_unit_test(test_job_file_parse__data),
        cmocka_unit_test(test_job_file_parse__many_data_sets),
        cmocka_unit_test(test_job_file_parse__not_a_job),
        cmocka_unit_test(test_job_file_parse__huge),
        cmocka_unit_test(test_job_file_parse__json),
        cmocka_unit_test(test_job_file_parse__json_lines),
        cmocka_unit_test(test_job_file_parse__without_memory),
        cmocka_unit_test(test_job_file_parse__without_error),
        cmocka_unit_test(test_job_file_parse__mutations),
        cmocka_unit_test(test_job_file_parse_given__only_what_is_given),
        cmocka_unit_test(test_job_file_read__files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
