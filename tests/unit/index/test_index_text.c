/* Text indexes: the cases of tests/data/formats/text, and what no file there shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "index/format.h"
#include "unit/index/opened.h"

static const char *case_path(const char *name, const char *file)
{
    static char path[1024];
    const char *data = getenv("SKRULL_TEST_DATA");

    assert_non_null(data);
    (void)snprintf(path, sizeof(path), "%s/formats/text/%s/%s", data, name, file);
    return path;
}

static void assert_lengths_of(const struct length_index *idx, const char *expected_path)
{
    FILE *file = fopen(expected_path, "re");
    uint64_t count = 0, tokens = 0;
    unsigned long length;

    assert_non_null(file);
    while (fscanf(file, "%lu", &length) == 1) {
        assert_true(count < idx->count);
        assert_int_equal(idx->lengths[count++], length);
        tokens += length;
    }
    (void)fclose(file);
    assert_int_equal(idx->count, count);
    assert_int_equal(idx->tokens, tokens);
    assert_null(idx->loss_tokens);
    assert_int_equal(idx->n_loss_tokens, 0);
    assert_string_equal(idx->format, "text");
}

static void test_text__good_cases(void **state)
{
    static const char *const cases[] = {"blank_lines_spaces", "crlf",     "int64_values",
                                        "many_per_line",      "utf8_bom", "no_final_newline"};
    static const struct index_options as_text = {.format = "text"};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int by_name = 0; by_name < 2; by_name++) {
            struct length_index *idx = NULL;

            print_message("# %s\n", cases[i]);
            assert_int_equal(open_path(case_path(cases[i], "lengths.txt"),
                                       by_name ? &as_text : NULL, &idx, NULL),
                             0);
            assert_lengths_of(idx, case_path(cases[i], "expected.txt"));
            index_close(idx);
        }
    }
}

static void test_text__bad_cases(void **state)
{
    static const struct {
        const char *name, *file, *message;
    } cases[] = {
        {"bad_empty", "lengths.txt", "empty file (0 bytes)"},
        {"bad_hex", "lengths.txt", "line 2: 0x10 is no whole number"},
        {"bad_nul_bytes", "lengths.txt", "line 2: a NUL byte"},
        {"bad_only_blank", "lengths.txt", "holds no number"},
        {"bad_overflow", "lengths.txt", "line 2: a number over 4294967295"},
        {"bad_overflow_long", "lengths.txt", "line 2: a number over 4294967295"},
        {"bad_utf16", "lengths.txt", "UTF-16"},
        {"bad_word", "lengths.txt", "line 2: abc is no whole number"},
        {"bad_zero_mixed", "lengths.txt", "line 2: length 0"},
        {"gzip", "lengths.txt.gz", "gzip is not built yet; gunzip it first"},
        {"gzip_two_members", "lengths.txt.gz", "gzip is not built yet; gunzip it first"},
        {"bad_gzip_bad_crc", "lengths.txt.gz", "gzip is not built yet; gunzip it first"},
        {"bad_gzip_truncated", "lengths.txt.gz", "gzip is not built yet; gunzip it first"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct length_index *idx = NULL;
        struct skrull_error err = {0};
        const char *path = case_path(cases[i].name, cases[i].file);

        print_message("# %s\n", cases[i].name);
        assert_int_equal(open_path(path, NULL, &idx, &err), SKRULL_ERR_INVALID_ARGUMENT);
        assert_null(idx);
        assert_non_null(strstr(err.message, cases[i].message));
        assert_non_null(strstr(err.message, cases[i].file));
    }
}

/* As if the file had been written to between the stamp and the reading, or during it. */
static void test_text__changed_while_read(void **state)
{
    struct index_source source = {.path = "a.txt", .max_count = 100};

    temporary_write(*state, "a.txt", "1\n2\n", 4);
    source.fd = temporary_open(*state, "a.txt");
    for (int change = 0; change < 3; change++) {
        struct index_file file = {0};
        struct skrull_error err = {0};

        assert_int_equal(file_stamp(source.fd, "a.txt", &source.stamp, NULL), 0);
        source.stamp.size += change == 1 ? 1 : 0; /* it has lost a byte since */
        source.stamp.mtime_ns -= change == 2 ? 1 : 0;
        assert_int_equal(format_text.open(&source, &file, &err),
                         change ? SKRULL_ERR_FAILED_PRECONDITION : 0);
        assert_true(!change || strstr(err.message, "a.txt: changed while it was read"));
        free(file.parsed);
    }
    (void)close(source.fd);
}

struct text_case {
    const char *text, *message; /* NULL: good */
    uint64_t count, tokens;
};

static void check_texts(const struct temporary *folder, const struct text_case *cases,
                        size_t n_cases)
{
    for (size_t i = 0; i < n_cases; i++) {
        struct length_index *idx = NULL;
        struct skrull_error err = {0};
        int status = open_bytes(folder, "a.txt", cases[i].text, strlen(cases[i].text), &idx, &err);

        print_message("# case %zu: %s\n", i, err.message);
        assert_int_equal(status, cases[i].message ? SKRULL_ERR_INVALID_ARGUMENT : 0);
        if (cases[i].message) {
            assert_non_null(strstr(err.message, cases[i].message));
        } else {
            assert_int_equal(idx->count, cases[i].count);
            assert_int_equal(idx->tokens, cases[i].tokens);
        }
        index_close(idx);
    }
}

static void test_text__edges(void **state)
{
    static const struct text_case cases[] = {
        {"1", NULL, 1, 1},
        {"4294967295\n", NULL, 1, 4294967295},
        {"4294967296\n", "line 1: a number over 4294967295", 0, 0},
        {"0000000000000000000000012\n", NULL, 1, 12},
        {"1\n00\n", "line 2: length 0", 0, 0},
        {"1\n0", "line 2: length 0", 0, 0},
        {"-5\n", "line 1: -5 is no whole number", 0, 0},
        {"+5\n", "line 1: +5 is no whole number", 0, 0},
        {"5.0\n", "line 1: 5.0 is no whole number", 0, 0},
        {"5.120000000000000000e+02\n", "line 1: 5.120000000000000000e+0 is no whole number", 0, 0},
        {"7\r8\r\n", NULL, 2, 15},
        {"# a comment, 12; 13\n5 # six 6\n7#8\n#9", NULL, 2, 12},
        {"# one\n# two\nx\n", "line 3: x is no whole number", 0, 0},
        {"\xef\xbb\xbf\xef\xbb\xbf"
         "5\n",
         "line 1: byte 0xef", 0, 0},
        {"5\n\x1b[31m\n", "line 2: byte 0x1b", 0, 0},
        {"length\n5\n", "line 1: length is no whole number", 0, 0},
        {"id,length\n0,5\n", "csv is not built yet", 0, 0},
        {"5;6\n", "csv is not built yet", 0, 0},
        {"[5, 6]\n", "json or jsonl is not built yet", 0, 0},
        {"\xef\xbb\xbf \n{\"length\": 5}\n", "json or jsonl is not built yet", 0, 0},
        {"<!DOCTYPE html>", "line 1: <!DOCTYPE is no whole number", 0, 0},
        {"5 6\n7,8\n", "line 2: 7,8 is no whole number", 0, 0},
    };

    check_texts(*state, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Numbers, line ends and comments across the pieces in which a file is read; growth of the rows. */
static void test_text__large_files(void **state)
{
    static const char *const separators[] = {"\n", "\r\n", " ", "  # comment, with words\n"};
    const size_t n = 200000;
    char *text = malloc(n * 40);

    assert_non_null(text);
    for (size_t s = 0; s < sizeof(separators) / sizeof(separators[0]); s++) {
        struct length_index *idx = NULL;
        uint64_t tokens = 0;
        size_t len = 0;

        for (uint32_t i = 1; i <= n; i++) {
            uint32_t length = i % 3 ? i : 1 + i % 9;

            len += (size_t)snprintf(text + len, 40, "%u%s", length, separators[s]);
            tokens += length;
        }
        assert_int_equal(open_bytes(*state, "a.txt", text, len, &idx, NULL), 0);
        assert_int_equal(idx->count, n);
        assert_int_equal(idx->tokens, tokens);
        for (uint32_t i = 1; i <= n; i++) {
            assert_true(idx->lengths[i - 1] == (i % 3 ? i : 1 + i % 9));
        }
        index_close(idx);
    }
    free(text);
}

static void test_text__short_rows_outgrow_the_estimate(void **state)
{
    const size_t n = 1 << 20;
    struct length_index *idx = NULL;
    char *text = malloc(2 * n);

    assert_non_null(text);
    for (size_t i = 0; i < n; i++) {
        text[2 * i] = (char)('1' + i % 9);
        text[2 * i + 1] = '\n';
    }
    assert_int_equal(open_bytes(*state, "a.txt", text, 2 * n, &idx, NULL), 0);
    assert_int_equal(idx->count, n);
    assert_int_equal(idx->lengths[n - 1], 1 + (n - 1) % 9);
    index_close(idx);
    free(text);
}

static void test_text__more_rows_than_allowed(void **state)
{
    struct index_options options = {.max_count = 100};
    struct length_index *idx = NULL;
    struct skrull_error err = {0};
    char text[400];

    for (size_t i = 0; i < sizeof(text); i += 2) {
        memcpy(text + i, "7\n", 2);
    }
    temporary_write(*state, "a.txt", text, 200);
    assert_int_equal(open_path(temporary_path(*state, "a.txt"), &options, &idx, NULL), 0);
    assert_int_equal(idx->count, 100);
    index_close(idx);
    temporary_write(*state, "a.txt", text, 202);
    assert_int_equal(open_path(temporary_path(*state, "a.txt"), &options, &idx, &err),
                     SKRULL_ERR_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(err.message, "more than 100 rows"));
}

/* The hash is that of the same lengths in a .skx: XXH3-64 of the little-endian u32s. */
static void test_text__hash_is_of_the_lengths(void **state)
{
    static const char *const texts[] = {"1\n2\n3\n", "1 2 3", "\357\273\2771\r\n2\r\n3\r\n"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct length_index *idx = NULL;
        uint64_t hash = 0;

        assert_int_equal(open_bytes(*state, "a.txt", texts[i], strlen(texts[i]), &idx, NULL), 0);
        assert_int_equal(index_verify(idx, &hash, NULL), 0);
        assert_true(hash == UINT64_C(0x6bbf7429332bea48));
        index_close(idx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text__good_cases),
        cmocka_unit_test(test_text__bad_cases),
        cmocka_unit_test_setup_teardown(test_text__changed_while_read, temporary_setup,
                                        temporary_teardown),
        cmocka_unit_test_setup_teardown(test_text__edges, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_text__large_files, temporary_setup,
                                        temporary_teardown),
        cmocka_unit_test_setup_teardown(test_text__short_rows_outgrow_the_estimate, temporary_setup,
                                        temporary_teardown),
        cmocka_unit_test_setup_teardown(test_text__more_rows_than_allowed, temporary_setup,
                                        temporary_teardown),
        cmocka_unit_test_setup_teardown(test_text__hash_is_of_the_lengths, temporary_setup,
                                        temporary_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
