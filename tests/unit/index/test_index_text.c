/* Text indexes: the cases of tests/data/formats/text, and what no file there shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "index/format.h"
#include "unit/index/cases.h"

static void test_text__good_cases(void **state)
{
    static const struct good_case cases[] = {
        {.name = "blank_lines_spaces", .file = "lengths.txt", .format = "text"},
        {.name = "crlf", .file = "lengths.txt", .format = "text"},
        {.name = "int64_values", .file = "lengths.txt", .format = "text"},
        {.name = "many_per_line", .file = "lengths.txt", .format = "text"},
        {.name = "utf8_bom", .file = "lengths.txt", .format = "text"},
        {.name = "no_final_newline", .file = "lengths.txt", .format = "text"},
        {.name = "gzip", .file = "lengths.txt.gz", .format = "text"},
        {.name = "gzip_two_members", .file = "lengths.txt.gz", .format = "text"},
    };

    (void)state;
    check_good("text", cases, N_CASES(cases));
}

static void test_text__bad_cases(void **state)
{
    static const struct bad_case cases[] = {
        {.name = "bad_empty", .file = "lengths.txt", .message = "empty file (0 bytes)"},
        {.name = "bad_hex", .file = "lengths.txt", .message = "line 2: 0x10 is no whole number"},
        {.name = "bad_nul_bytes", .file = "lengths.txt", .message = "line 2: a NUL byte"},
        {.name = "bad_only_blank", .file = "lengths.txt", .message = "holds no number"},
        {.name = "bad_overflow",
         .file = "lengths.txt",
         .message = "line 2: a number over 4294967295"},
        {.name = "bad_overflow_long",
         .file = "lengths.txt",
         .message = "line 2: a number over 4294967295"},
        {.name = "bad_utf16", .file = "lengths.txt", .message = "UTF-16"},
        {.name = "bad_word", .file = "lengths.txt", .message = "line 2: abc is no whole number"},
        {.name = "bad_zero_mixed", .file = "lengths.txt", .message = "line 2: length 0"},
        {.name = "bad_gzip_bad_crc",
         .file = "lengths.txt.gz",
         .code = SKRULL_ERR_DATA_LOSS,
         .message = "damaged gzip data (incorrect data check)"},
        {.name = "bad_gzip_truncated",
         .file = "lengths.txt.gz",
         .code = SKRULL_ERR_DATA_LOSS,
         .message = "truncated: the gzip data ends before its end"},
    };

    (void)state;
    check_bad("text", cases, N_CASES(cases));
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
        {"5.0\n", NULL, 1, 5},
        {"5.120000000000000000e+02\n1.7e1 3.000#x\n4", NULL, 4, 536},
        {"1\n2e0", NULL, 2, 3},
        {"0012.0\r\n7\n", NULL, 2, 19},
        {"4294967295.0\n", NULL, 1, 4294967295},
        {"4.5\n", "line 1: 4.5 is no whole number", 0, 0},
        {"1\n1e99\n", "line 2: 1e99 is over 4294967295", 0, 0},
        {"1\n0.0\n", "line 2: length 0", 0, 0},
        {"5.\n", "line 1: 5. is no number", 0, 0},
        {"5e", "line 1: 5e is no number", 0, 0},
        {"5.0.0\n", "line 1: 5.0.0 is no number", 0, 0},
        {"5.0x\n", "line 1: 5.0x is no whole number", 0, 0},
        {"5.0 # a, b\n6e0\t7\n", NULL, 3, 18},
        {"5.0\t7\n", NULL, 2, 12},
        {"\xef\xbb\xbf"
         "5\t7\n",
         NULL, 2, 12},
        {"5.0,6\n", "2 columns without names", 0, 0},
        {"1\n5.0,6\n", "line 2: 5.0, is no whole number", 0, 0},
        {"5.0\x01\n", "line 1: 5.0? is no whole number", 0, 0},
        {"1.00000000000000000000000000000000000000000000000000000000000000\n", "is no whole number",
         0, 0},
        {"7\r8\r\n", NULL, 2, 15},
        {"# a comment, 12; 13\n5 # six 6\n7#8\n#9", NULL, 2, 12},
        {"1\n\n23\n\n\n4567890\n\r\n12345678\n123456789\n8\n", NULL, 6, 140370389},
        {"1\n00\n3\n4\n5\n6\n", "line 2: length 0", 0, 0},
        {"1\n2\n3x\n4\n5\n6\n", "line 3: 3x is no whole number", 0, 0},
        {"1\n2\n3:\n4\n5\n6\n", "line 3: 3: is no whole number", 0, 0},
        {"1\n2\n3/\n4\n5\n6\n", "line 3: 3/ is no whole number", 0, 0},
        {"1\n2\n3\xff\n4\n5\n6\n", "line 3: 3 is no whole number", 0, 0},
        {"# one\n# two\nx\n", "line 3: x is no whole number", 0, 0},
        {"\xef\xbb\xbf\xef\xbb\xbf"
         "5\n",
         "line 1: byte 0xef", 0, 0},
        {"5\n\x1b[31m\n", "line 2: byte 0x1b", 0, 0},
        {"lines\n5\n", "line 1: lines is no whole number", 0, 0},
        {"5\t6\n7\n", NULL, 3, 18},
        {"<!DOCTYPE html>", "line 1: <!DOCTYPE is no whole number", 0, 0},
        {"5 6\n7,8\n", "line 2: 7,8 is no whole number", 0, 0},
    };

    check_texts(*state, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Numbers, line ends and comments across the pieces in which a file is read; growth of the rows. */
static void test_text__large_files(void **state)
{
    static const char *const separators[] = {"\n",    "\r\n", " ", "  # comment, with words\n",
                                             ".00\n", "e0 "};
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
