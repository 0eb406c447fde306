/* Tables: the cases of tests/data/formats/csv, and what no file there shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "unit/index/cases.h"
#include "unit/index/text_builder.h"

#define GOOD(name, file)                                                                           \
    {                                                                                              \
        name, file, "csv", {0}, NULL                                                               \
    }
#define BAD(name, message)                                                                         \
    {                                                                                              \
        name, "a.csv", 0, message,                                                                 \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

static void test_csv__good_cases(void **state)
{
    static const struct good_case cases[] = {
        GOOD("header_length", "a.csv"),
        GOOD("header_num_tokens", "a.csv"),
        GOOD("azure_trace", "a.csv"),
        GOOD("etalon_trace", "a.csv"),
        GOOD("burstgpt_header", "a.csv"),
        GOOD("megatron_seqlens", "seqlens.csv"),
        GOOD("quoted_newline_comma", "a.csv"),
        GOOD("crlf_bom", "a.csv"),
        GOOD("semicolon", "a.csv"),
        GOOD("pandas_float", "a.csv"),
        GOOD("gzip", "a.csv.gz"),
        {"tsv", "a.tsv", "tsv", {0}, NULL},
        {"etalon_trace", "a.csv", "csv", {.column = "num_prefill_tokens+num_decode_tokens"}, NULL},
        {"burstgpt_header", "a.csv", "csv", {.column = "Request tokens + Response tokens"}, NULL},
        {"header_length", "a.csv", "csv", {.column = "length"}, NULL},
        {"tsv", "a.tsv", "csv", {.format = "csv"}, NULL},
    };

    (void)state;
    check_good("csv", cases, N_CASES(cases));
}

static void test_csv__bad_cases(void **state)
{
    static const struct bad_case cases[] = {
        BAD("bad_no_length_column", "no column that is known to hold lengths; say which as column; "
                                    "its columns: id, text"),
        BAD("bad_ragged", "record 2 (line 3) has 1 fields, the first record 2"),
        BAD("bad_negative", "record 2 (line 3): column length: -3 is negative"),
        BAD("bad_unclosed_quote", "line 2: a quote that is opened here is never closed"),
        BAD("bad_thousands", "record 1 (line 2): column length: 1,024 is no number"),
        BAD("bad_header_only", "holds no sequence"),
        BAD("bad_zero_mixed", "record 2 (line 3): length 0;"),
        {"header_length",
         "a.csv",
         0,
         "no column tokens; its columns: id, length",
         {.column = "tokens"}},
        {"header_length",
         "a.csv",
         0,
         "no column tokens; its columns: id, length",
         {.column = "length+tokens"}},
        {"header_length", "a.csv", 0, "column length+: an empty name", {.column = "length+"}},
        {"header_length", "a.csv", 0, "line 1: id,length is no whole number", {.format = "text"}},
        {"header_length", "a.csv", 0, "no column that is known to hold lengths", {.format = "tsv"}},
        {"header_length",
         "a.csv",
         0,
         "unit document: csv knows sequences only",
         {.unit = SKRULL_UNIT_DOCUMENT}},
        {"azure_trace",
         "a.csv",
         0,
         "record 1 (line 2): column TIMESTAMP: ",
         {.column = "TIMESTAMP"}},
    };

    (void)state;
    check_bad("csv", cases, N_CASES(cases));
}

struct table_case {
    const char *text, *column, *format;
    const char *message; /* NULL: good */
    uint64_t count, tokens;
};

static void check_tables(const struct temporary *folder, const struct table_case *cases,
                         size_t n_cases)
{
    for (size_t i = 0; i < n_cases; i++) {
        const struct index_options options = {.column = cases[i].column, .format = cases[i].format};
        struct length_index *idx = NULL;
        struct skrull_error err = {0};
        int status;

        temporary_write(folder, "a.csv", cases[i].text, strlen(cases[i].text));
        status = open_path(temporary_path(folder, "a.csv"), &options, &idx, &err);
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

#define GOOD_TEXT(text, count, tokens)                                                             \
    {                                                                                              \
        text, NULL, NULL, NULL, count, tokens                                                      \
    }
#define BAD_TEXT(text, message)                                                                    \
    {                                                                                              \
        text, NULL, NULL, message, 0, 0                                                            \
    }

static void test_csv__records(void **state)
{
    static const struct table_case cases[] = {
        GOOD_TEXT("length,id\n5,a\n7,b\n", 2, 12),
        GOOD_TEXT("length,id\n5,a\n7,b", 2, 12),
        GOOD_TEXT("length,id\r\n5,a\r\n7,b\r\n", 2, 12),
        GOOD_TEXT("length,id\r\n5,a\r\n7,b\r", 2, 12),
        GOOD_TEXT("id,length\r\na,5\r\nb,7\r", 2, 12),
        GOOD_TEXT("\n\r\nlength,id\n\n5,a\n\r\n\n7,b\n\n\n", 2, 12),
        GOOD_TEXT("length,id\n5,\n7,\"\"\n", 2, 12),
        GOOD_TEXT(" length , id\n 5 ,a\n\t7\t,b\n", 2, 12),
        GOOD_TEXT("\"length\",\"id\"\n\"5\",\"a\"\n\" 7 \",b\n", 2, 12),
        GOOD_TEXT("id,length\n\"a\r\n\r\nb,\"\"\",5\n\"\n\",7\n", 2, 12),
        GOOD_TEXT("id,length\na\"b,5\n\"\"\"\",7\n", 2, 12),
        GOOD_TEXT("id,length\na\rb,5\n\r\rc,7\n", 2, 12),
        GOOD_TEXT("a;b;length;c,d\n1;2;5;3\n1;2;7;3\n", 2, 12),
        GOOD_TEXT("\"a,b,c,d\";length\n1;5\n1;7\n", 2, 12),
        GOOD_TEXT("length;x\n5;0,5\n7;0,7\n", 2, 12),
        GOOD_TEXT("length\n5\n7\n", 2, 12),
        GOOD_TEXT("length \r\n5\r\n\r\n7\r\n", 2, 12),
        GOOD_TEXT("\"length\"\n5\n", 1, 5),
        GOOD_TEXT("\"5\"\n\"7\"\n", 2, 12),
        GOOD_TEXT("length,x\n4294967295,1\n", 1, 4294967295),
        GOOD_TEXT("prompt_tokens,completion_tokens\n5,0\n0,7\n", 2, 12),
        GOOD_TEXT("x,length\n,5\n\xff\xfe,7\n", 2, 12),
        GOOD_TEXT("length\tname\n5\ta,b\n7\tb\n", 2, 12),
        BAD_TEXT("length,id\n4294967296,a\n",
                 "record 1 (line 2): column length: 4294967296 is over"),
        BAD_TEXT("length,id\n1.5,a\n", "column length: 1.5 is no whole number"),
        BAD_TEXT("length,id\n,a\n", "record 1 (line 2): column length: the field is empty"),
        BAD_TEXT("length,id\n\"\",a\n", "the field is empty"),
        BAD_TEXT("length\n\"\"\n", "the field is empty"),
        BAD_TEXT("length,id\nNaN,a\n", "NaN is no number"),
        BAD_TEXT("length,id\n0x10,a\n", "0x10 is no number"),
        BAD_TEXT("length,id\n5\r6,a\n", "5?6 is no number"),
        BAD_TEXT("length,id\n5,a\n6,b,c\n", "record 2 (line 3) has 3 fields, the first record 2"),
        BAD_TEXT("id,length\n5\n", "record 1 (line 2) has 1 fields, the first record 2"),
        BAD_TEXT("id,length\n\"a\nb\",5\n\n\nc,x\n", "record 2 (line 6): column length: x is no"),
        BAD_TEXT("id,length\n\"a\"b,5\n", "line 2: text behind a closing quote"),
        BAD_TEXT("id,length\n\"a\" ,5\n", "line 2: text behind a closing quote"),
        BAD_TEXT("id,length\n\"a\"\rb,5\n", "line 2: text behind a closing quote"),
        BAD_TEXT("id,length\na,\"5", "line 2: a quote that is opened here is never closed"),
        BAD_TEXT("id,length\n\n\"a\n\n\n\"\"",
                 "line 3: a quote that is opened here is never closed"),
        BAD_TEXT("prompt_tokens,completion_tokens\n0,0\n", "record 1 (line 2): length 0"),
        BAD_TEXT("prompt_tokens,completion_tokens\n4294967295,1\n", "length 4294967296"),
        BAD_TEXT("prompt_tokens,completion_tokens\n5,-1\n", "column completion_tokens: -1 is neg"),
    };

    check_tables(*state, cases, N_CASES(cases));
}

static void test_csv__columns(void **state)
{
    static const struct table_case cases[] = {
        {"a,b\n5,6\n", "a", NULL, NULL, 1, 5},
        {"a,b\n5,6\n", "b+a", NULL, NULL, 1, 11},
        {"a,b,length\n5,6,9\n", "a+b", NULL, NULL, 1, 11},
        {"length,num_tokens\n5,6\n", "num_tokens", NULL, NULL, 1, 6},
        {"length,length,b\n5,6,7\n", "b", NULL, NULL, 1, 7},
        {"a b,\xc3\xa9\n5,6\n", "\xc3\xa9", NULL, NULL, 1, 6},
        {"5\n7\n", "1", NULL, NULL, 2, 12},
        {"5,6\n7,8\n", "2", NULL, NULL, 2, 14},
        {"5,6\n7,8\n", "2+1", NULL, NULL, 2, 26},
        {"5\t6\n7\t8\n", "2", NULL, NULL, 2, 14},
        {"5.0,x\n7,y\n", "1", NULL, NULL, 2, 12},
        {"length\n5\n", NULL, "csv", NULL, 1, 5},
        {"5\n7\n", NULL, "csv", NULL, 2, 12},
        {"5\t7\n", "1", "tsv", NULL, 1, 5},
        {"length,num_tokens\n5,6\n", NULL, NULL, "length or num_tokens? either may be", 0, 0},
        {"length,length\n5,6\n", NULL, NULL, "two columns are named length", 0, 0},
        {"a,a\n5,6\n", "a", NULL, "two columns are named a; name them apart", 0, 0},
        {"a,b\n5,6\n", "c", NULL, "no column c; its columns: a, b", 0, 0},
        {"a,b\n5,6\n", "A", NULL, "no column A; its columns: a, b", 0, 0},
        {"a,b\n5,6\n", "1", NULL, "no column 1; its columns: a, b", 0, 0},
        {"5,6\n7,8\n", NULL, NULL, "2 columns without names; say which by its number", 0, 0},
        {"5;6\n", NULL, NULL, "2 columns without names; say which by its number", 0, 0},
        {"5,6\n7,8\n", "3", NULL, "no column 3: its columns have no names; they are 1 to 2", 0, 0},
        {"5,6\n7,8\n", "0", NULL, "no column 0: its columns have no names", 0, 0},
        {"5,6\n7,8\n", "a", NULL, "no column a: its columns have no names", 0, 0},
        {"5\n7\n", "length", NULL, "no column length: its columns have no names; they are 1 to 1",
         0, 0},
        {"\n\n", NULL, "csv", "holds no record, and no names of columns", 0, 0},
        {"abc\n5\n", NULL, "csv", "its columns: abc", 0, 0},
        {"a\x1b[31m,b\n5,6\n", NULL, "csv", "its columns: a?[31m, b", 0, 0},
        {"input_ids,b\n5,6\n", NULL, NULL, "no column that is known to hold lengths", 0, 0},
        {"input_length,b\n5,6\n", NULL, NULL, "no column that is known to hold lengths", 0, 0},
        {"[1, 2]\n", "1", "csv", "no column 1; its columns: [1, 2]", 0, 0},
        {"# a,b\n5\n", NULL, NULL, NULL, 1, 5},
        {"<html>, x\n", NULL, NULL, "line 1: <html>, is no whole number", 0, 0},
        {"\x01\x02,3\n", NULL, NULL, "line 1: byte 0x01", 0, 0},
    };

    check_tables(*state, cases, N_CASES(cases));
}

static void test_csv__many_columns_are_listed_in_part(void **state)
{
    struct text_builder text = text_builder_of(8000);
    struct length_index *idx = NULL;
    struct skrull_error err = {0};

    for (int i = 0; i < 1000; i++) {
        add_text(&text, "col%d%s", i, i < 999 ? "," : "\n");
    }
    assert_int_equal(open_bytes(*state, "a.csv", text.at, text.len, &idx, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "its columns: col0, col1, col2"));
    assert_string_equal(err.message + strlen(err.message) - 3, "...");
    free(text.at);
}

static void test_csv__loss_tokens(void **state)
{
    static const struct {
        const char *text, *column, *message;
        uint64_t sum; /* UINT64_MAX: the index does not say */
    } cases[] = {
        {"length,loss_tokens\n5,5\n7,0\n9,3\n", NULL, NULL, 8},
        {"n_loss_tokens,x,length\n5,a,5\n0,b,7\n3,c,9\n", NULL, NULL, 8},
        {"a,b,num_loss_tokens\n1,4,5\n3,4,0\n9,0,3\n", "a+b", NULL, 8},
        {"loss_tokens,x\n5,1\n7,2\n9,3\n", "loss_tokens", NULL, UINT64_MAX},
        {"length,losses\n5,5\n7,0\n9,3\n", NULL, NULL, UINT64_MAX},
        {"length,loss_tokens\n5,5\n7,8\n", NULL,
         "record 2 (line 3): more loss tokens than tokens, 8", 0},
        {"length,loss_tokens\n5,\n", NULL, "column loss_tokens: the field is empty", 0},
        {"length,loss_tokens,n_loss_tokens\n5,1,1\n", NULL, "two columns of loss tokens", 0},
        {"length,loss_tokens,loss_tokens\n5,1,1\n", NULL, "two columns are named loss_tokens", 0},
    };

    for (size_t i = 0; i < N_CASES(cases); i++) {
        const struct index_options options = {.column = cases[i].column};
        struct length_index *idx = NULL;
        struct skrull_error err = {0};
        int status;

        temporary_write(*state, "a.csv", cases[i].text, strlen(cases[i].text));
        status = open_path(temporary_path(*state, "a.csv"), &options, &idx, &err);
        print_message("# case %zu: %s\n", i, err.message);
        assert_int_equal(status, cases[i].message ? SKRULL_ERR_INVALID_ARGUMENT : 0);
        assert_true(!cases[i].message || strstr(err.message, cases[i].message));
        if (status == 0) {
            assert_int_equal(idx->count, 3);
            assert_int_equal(idx->tokens, 21);
            assert_int_equal(idx->loss_tokens != NULL, cases[i].sum != UINT64_MAX);
            assert_int_equal(idx->n_loss_tokens, idx->loss_tokens ? cases[i].sum : 0);
            assert_true(!idx->loss_tokens || idx->loss_tokens[2] == 3);
        }
        index_close(idx);
    }
}

/* As a .skx the index is the same: its hash is computed with the loss tokens. */
static void test_csv__hash_is_that_of_the_skx(void **state)
{
    static const char text[] = "length,loss_tokens\n5,5\n7,0\n9,3\n";
    struct length_index *csv = NULL, *skx = NULL;
    uint64_t csv_hash, skx_hash;

    assert_int_equal(open_bytes(*state, "a.csv", text, sizeof(text) - 1, &csv, NULL), 0);
    assert_int_equal(index_write_skx(csv, temporary_path(*state, "a.skx"), NULL), 0);
    assert_int_equal(open_path(temporary_path(*state, "a.skx"), NULL, &skx, NULL), 0);
    assert_int_equal(index_verify(csv, &csv_hash, NULL), 0);
    assert_int_equal(index_verify(skx, &skx_hash, NULL), 0);
    assert_true(csv_hash == skx_hash);
    assert_int_equal(skx->n_loss_tokens, 8);
    index_close(csv);
    index_close(skx);
}

/* Records and quotes across the pieces in which a file is read; fields longer than a piece. */
static void test_csv__large_files(void **state)
{
    static const char *const ends[] = {"\n", "\r\n"};
    const size_t n = 60000;

    for (size_t e = 0; e < 2; e++) {
        struct text_builder text = text_builder_of(n * 40 + 2000000);
        struct length_index *idx = NULL;

        add_text(&text, "text,length%s", ends[e]);
        for (size_t i = 1; i <= n; i++) {
            add_text(&text, "\"%.*s\"\"\r\n,\",%zu%s", (int)(i % 13), "abcdefghijklm", i, ends[e]);
        }
        add_text(&text, "\"");
        add_times(&text, 'x', 1000000);
        add_text(&text, "\",%zu%s", n + 1, ends[e]);
        add_times(&text, 'y', 900000);
        add_text(&text, ",%zu", n + 2);
        assert_int_equal(open_bytes(*state, "a.csv", text.at, text.len, &idx, NULL), 0);
        assert_int_equal(idx->count, n + 2);
        for (size_t i = 0; i < n + 2; i++) {
            assert_true(idx->lengths[i] == i + 1);
        }
        index_close(idx);
        free(text.at);
    }
}

/* A field that is too long for a number, and one that only blanks make so. */
static void test_csv__huge_numbers(void **state)
{
    char text[2000] = "length,x\n";
    size_t len = strlen(text);
    struct length_index *idx = NULL;
    struct skrull_error err = {0};

    memset(text + len, '9', 400);
    memcpy(text + len + 400, ",1\n", 3);
    assert_int_equal(open_bytes(*state, "a.csv", text, len + 403, &idx, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(
        strstr(err.message, "record 1 (line 2): column length: the field is no number"));
    memset(text + len, '9', 100);
    memcpy(text + len + 100, ",1\n", 3);
    assert_int_equal(open_bytes(*state, "a.csv", text, len + 103, &idx, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "999 is no number"));
}

static void test_csv__more_rows_than_allowed(void **state)
{
    const struct index_options options = {.max_count = 2};
    struct length_index *idx = NULL;
    struct skrull_error err = {0};

    temporary_write(*state, "a.csv", "length,x\n5,1\n7,1\n9,1\n", 21);
    assert_int_equal(open_path(temporary_path(*state, "a.csv"), &options, &idx, &err),
                     SKRULL_ERR_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(err.message, "more than 2 rows"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, temporary_setup, temporary_teardown)
        TEST(test_csv__good_cases),
        TEST(test_csv__bad_cases),
        TEST(test_csv__records),
        TEST(test_csv__columns),
        TEST(test_csv__many_columns_are_listed_in_part),
        TEST(test_csv__loss_tokens),
        TEST(test_csv__hash_is_that_of_the_skx),
        TEST(test_csv__large_files),
        TEST(test_csv__huge_numbers),
        TEST(test_csv__more_rows_than_allowed),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
