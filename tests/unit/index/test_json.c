/* JSON and JSON Lines: the cases of tests/data/formats, and what no file there shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "unit/index/cases.h"
#include "unit/index/text_builder.h"

#define GOOD(name)                                                                                 \
    {                                                                                              \
        name, "a.jsonl", "jsonl", {0}, NULL                                                        \
    }
#define BAD(name, code, message)                                                                   \
    {                                                                                              \
        name, "a.jsonl", SKRULL_ERR_##code, message,                                               \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

static void test_jsonl__good_cases(void **state)
{
    static const struct good_case cases[] = {
        GOOD("field_length"),
        GOOD("field_n_tokens"),
        GOOD("mooncake_in_out"),
        GOOD("tokens_array"),
        GOOD("messages_with_counts"),
        GOOD("nested_decoy"),
        GOOD("escaped_key"),
        GOOD("crlf_blank_bom"),
        GOOD("no_final_newline"),
        GOOD("unicode_linesep"),
        GOOD("long_line"),
        {"gzip", "a.jsonl.gz", "jsonl", {0}, NULL},
        {"zstd", "a.jsonl.zst", "jsonl", {0}, NULL},
        {"mooncake_in_out", "a.jsonl", "jsonl", {.column = "output_length+input_length"}, NULL},
        {"tokens_array", "a.jsonl", "jsonl", {.column = "tokens"}, NULL},
        {"messages_with_counts", "a.jsonl", "jsonl", {.column = "messages"}, NULL},
        {"escaped_key", "a.jsonl", "jsonl", {.column = "length"}, NULL},
    };
    static const struct good_case energon[] = {
        {"jsonl_idx", "train.jsonl", "jsonl", {0}, NULL},
        {"blank_lines", "train.jsonl", "jsonl", {0}, NULL},
    };

    (void)state;
    check_good("jsonl", cases, N_CASES(cases));
    check_good("energon_jsonl", energon, N_CASES(energon));
}

static void test_jsonl__bad_cases(void **state)
{
    static const struct bad_case cases[] = {
        BAD("bad_truncated_line", DATA_LOSS, "line 3, record 3: truncated: the file ends where"),
        BAD("bad_missing_field", INVALID_ARGUMENT, "line 2, record 2: no field length"),
        BAD("bad_float", INVALID_ARGUMENT,
            "line 1, record 1: field length: 5.5 is no whole number"),
        BAD("bad_nan", INVALID_ARGUMENT, "line 1, record 1: NaN and Infinity are no JSON"),
        BAD("bad_null", INVALID_ARGUMENT, "field length: true, false or null is no length"),
        BAD("bad_overflow", INVALID_ARGUMENT,
            "field length: 18446744073709551616 is over 4294967295"),
        BAD("bad_big_exponent", INVALID_ARGUMENT, "field length: 1e99 is over 4294967295"),
        BAD("bad_zero_mixed", INVALID_ARGUMENT, "line 2, record 2: length 0; lengths are"),
        BAD("bad_empty_input_ids", INVALID_ARGUMENT, "line 2, record 2: length 0; lengths are"),
        BAD("bad_two_objects_per_line", INVALID_ARGUMENT,
            "line 1, record 1: data behind the record"),
        BAD("bad_bad_utf8", INVALID_ARGUMENT, "line 1, record 1: a string that is no UTF-8"),
        BAD("bad_deep_nesting", INVALID_ARGUMENT, "line 1, record 1: nested deeper than 512"),
        {"bad_array_file",
         "a.jsonl",
         0,
         "line 1, record 1: a record is an object; for a JSON array",
         {.format = "jsonl"}},
        {"field_length",
         "a.jsonl",
         0,
         "no field tokens; its fields: id, length",
         {.column = "tokens"}},
        {"field_length",
         "a.jsonl",
         0,
         "data behind the document; for one record a line",
         {.format = "json"}},
        {"field_length", "a.jsonl", 0, "line 1: {\"id\": is no whole number", {.format = "text"}},
        {"field_length",
         "a.jsonl",
         0,
         "unit document: jsonl knows sequences only",
         {.unit = SKRULL_UNIT_DOCUMENT}},
    };
    /* What is a JSON array is read as one, whatever its name. */
    struct length_index *idx = NULL;

    (void)state;
    check_bad("jsonl", cases, N_CASES(cases));
    assert_int_equal(open_path(data_path("jsonl", "bad_array_file", "a.jsonl"), NULL, &idx, NULL),
                     0);
    assert_string_equal(idx->format, "json");
    assert_int_equal(idx->count, 2);
    assert_int_equal(idx->tokens, 12);
    index_close(idx);
}

static void test_json__good_cases(void **state)
{
    static const struct good_case cases[] = {
        {"array_of_ints", "a.json", "json", {0}, NULL},
        {"array_of_objects", "a.json", "json", {0}, NULL},
        {"object_lengths", "a.json", "json", {0}, NULL},
        {"array_input_ids", "a.json", "json", {0}, NULL},
        {"columns_of_lists", "a.json", "json", {0}, NULL},
        {"columns_of_lists", "a.json", "json", {.column = "length"}, NULL},
    };

    (void)state;
    check_good("json", cases, N_CASES(cases));
}

static void test_json__bad_cases(void **state)
{
    static const struct bad_case cases[] = {
        {"bad_not_closed",
         "a.json",
         SKRULL_ERR_DATA_LOSS,
         "truncated: the file ends where , or ]",
         {0}},
        {"bad_scalar", "a.json", 0, "a JSON index is an array of numbers or objects", {0}},
        {"array_of_ints",
         "a.json",
         0,
         "column length: an array of numbers has no fields",
         {.column = "length"}},
    };
    static const struct bad_case foreign[] = {
        {"bad_html", "lengths.json", 0, "a JSON index is an array", {0}},
        {"bad_html", "lengths.json", 0, "is no whole number", {.format = "text"}},
        {"bad_html", "lengths.json", 0, "a record is an object", {.format = "jsonl"}},
        {"bad_torch_pt", "lengths.pt", 0, "npz (or another zip) is not built yet", {0}},
        {"bad_pickle", "lengths.pkl", 0, "a pickle, which can run code, and no length index", {0}},
    };

    (void)state;
    check_bad("json", cases, N_CASES(cases));
    check_bad("foreign", foreign, N_CASES(foreign));
}

struct json_case {
    const char *text, *column, *format;
    const char *message; /* NULL: good, opened as ... */
    const char *opened;
    uint64_t count, tokens;
};

static void check_json(const struct temporary *folder, const struct json_case *cases,
                       size_t n_cases)
{
    for (size_t i = 0; i < n_cases; i++) {
        const struct index_options options = {.column = cases[i].column, .format = cases[i].format};
        struct length_index *idx = NULL;
        struct skrull_error err = {0};
        int status;

        temporary_write(folder, "a.json", cases[i].text, strlen(cases[i].text));
        status = open_path(temporary_path(folder, "a.json"), &options, &idx, &err);
        print_message("# case %zu: %s\n", i, err.message);
        if (cases[i].message) {
            assert_true(status == SKRULL_ERR_INVALID_ARGUMENT || status == SKRULL_ERR_DATA_LOSS);
            assert_non_null(strstr(err.message, cases[i].message));
        } else {
            assert_int_equal(status, 0);
            assert_string_equal(idx->format, cases[i].opened);
            assert_int_equal(idx->count, cases[i].count);
            assert_int_equal(idx->tokens, cases[i].tokens);
        }
        index_close(idx);
    }
}

#define OPENS(text, format, count, tokens)                                                         \
    {                                                                                              \
        text, NULL, NULL, NULL, format, count, tokens                                              \
    }
#define REFUSED(text, message)                                                                     \
    {                                                                                              \
        text, NULL, NULL, message, NULL, 0, 0                                                      \
    }

static void test_jsonl__records(void **state)
{
    static const struct json_case cases[] = {
        OPENS("{\"length\":5}", "jsonl", 1, 5),
        OPENS("{\"length\":5}\n{\"length\":7}", "jsonl", 2, 12),
        OPENS("\n\r\n {\"length\":5} \r\n\n\t\n{\"length\":7}\r\n\n", "jsonl", 2, 12),
        OPENS("{\"length\":5.0}\n{\"length\":0.7e1}\n", "jsonl", 2, 12),
        OPENS("{\"length\":4294967295}\n", "jsonl", 1, 4294967295),
        OPENS("{\"a\":{\"length\":9},\"length\":5,\"b\":[{\"length\":9}]}\n", "jsonl", 1, 5),
        OPENS("{\"\\u006C\\u0065ngth\":5}\n", "jsonl", 1, 5),
        OPENS("{\"length\":5,\"length2\":1,\"lengt\":2,\"LENGTH\":3}\n", "jsonl", 1, 5),
        OPENS("{\"length\":5,\"tokens\":[1,2],\"input_ids\":[1],\"messages\":[]}\n", "jsonl", 1, 5),
        OPENS("{\"length\":5,\"tokens\":0.5,\"input_length\":null,\"messages\":\"x\"}\n", "jsonl",
              1, 5),
        OPENS("{\"length\":5,\"messages\":[{\"num_tokens\":null},{\"num_tokens\":2},7]}\n", "jsonl",
              1, 5),
        OPENS("{\"tokens\":512}\n{\"tokens\":[1,2]}\n", "jsonl", 2, 514),
        OPENS("{\"tokens\":[\"a\",\"b\",null,{\"x\":[1,2]}]}\n", "jsonl", 1, 4),
        OPENS("{\"input_ids\":[[1,2,3],[4]]}\n{\"input_ids\":[[5]]}\n", "jsonl", 3, 5),
        OPENS("{\"seq_lengths\":[5,7]}\n{\"seq_lengths\":[]}\n{\"seq_lengths\":[9]}\n", "jsonl", 3,
              21),
        OPENS("{\"lengths\":[5,7]}\n{\"lengths\":9}\n", "jsonl", 3, 21),
        OPENS("{\"messages\":[{\"num_tokens\":5,\"x\":1},{\"num_tokens\":7}]}\n", "jsonl", 1, 12),
        OPENS("{\"input_length\":5,\"output_length\":0,\"x\":1}\n", "jsonl", 1, 5),
        REFUSED("{}\n",
                "no field that is known to hold lengths; say which as column; its fields: none"),
        REFUSED("{\"text\":\"x\",\"b\":1}\n",
                "known to hold lengths; say which as column; its fields: text, b"),
        REFUSED("{\"messages\":[{\"role\":\"user\"}]}\n",
                "known to hold lengths; say which as column; its fields: messages"),
        REFUSED("{\"messages\":[{\"num_tokens\":5},{\"x\":1}]}\n",
                "field messages: a message without num_tokens"),
        REFUSED("{\"messages\":[{\"num_tokens\":5}]}\n{\"messages\":[{\"x\":1}]}\n",
                "line 2, record 2: field messages: a message without"),
        REFUSED("{\"messages\":[{\"num_tokens\":5}]}\n{\"messages\":[]}\n",
                "line 2, record 2: length 0"),
        REFUSED("{\"messages\":[{\"num_tokens\":5}]}\n{\"messages\":5}\n",
                "field messages: a number is no length"),
        REFUSED("{\"messages\":[{\"num_tokens\":5}]}\n{\"messages\":[{\"num_tokens\":-1}]}\n",
                "field messages: -1 is negative"),
        REFUSED("{\"messages\":[{\"num_tokens\":5}]}\n{\"messages\":[{\"num_tokens\":\"1\"}]}\n",
                "field messages: a string is no length"),
        REFUSED("{\"messages\":[{\"num_tokens\":5,\"num_tokens\":5}]}\n",
                "num_tokens stands twice"),
        REFUSED("{\"length\":\"5\"}\n", "field length: a string is no length"),
        REFUSED("{\"length\":true}\n", "field length: true, false or null is no length"),
        REFUSED("{\"length\":{}}\n", "field length: an object is no length"),
        REFUSED("{\"length\":-5}\n", "field length: -5 is negative"),
        REFUSED("{\"length\":[5,-7]}\n", "field length: -7 is negative"),
        REFUSED("{\"length\":[5,0]}\n", "field length: element 2 has length 0"),
        REFUSED("{\"length\":[5,\"7\"]}\n", "field length: a string is no length"),
        REFUSED("{\"length\":[5,[7]]}\n", "field length: a list is no length"),
        REFUSED("{\"length\":4294967296}\n", "field length: 4294967296 is over 4294967295"),
        REFUSED("{\"length\":5,\"length\":5}\n", "field length stands twice"),
        REFUSED("{\"length\":5,\"l\\u0065ngth\":6}\n", "field length stands twice"),
        REFUSED("{\"length\":5}\n{\"length\":5,\"length\":7}\n",
                "line 2, record 2: field length stands twice"),
        REFUSED("{\"length\":5,\"num_tokens\":6}\n", "length or num_tokens? either may be"),
        REFUSED("{\"input_ids\":[1],\"tokens\":[1]}\n", "input_ids or tokens? either may be"),
        REFUSED("{\"input_ids\":[[1],2]}\n", "field input_ids: lists and others mixed"),
        REFUSED("{\"input_ids\":[[1],[]]}\n", "field input_ids: element 2 has length 0"),
        REFUSED("{\"length\":5}\n{\"length\":7}}\n", "line 2, record 2: data behind the record"),
        REFUSED("{\"length\":5},\n{\"length\":7}\n", "line 1, record 1: data behind the record"),
        REFUSED("{\"length\":5}\n7\n", "line 2, record 2: a record is an object"),
        REFUSED("{\"length\":5}\n[7]\n", "line 2, record 2: a record is an object"),
        REFUSED("{\"length\":5}\n{\"length\":\n7}\n",
                "line 2, record 2: the line ends where a value"),
        REFUSED("{\"length\":5}\n{\"length\":7\n", "line 2, record 2: the line ends where , or }"),
        REFUSED("{\"length\":5}\n{\"length\":7", "truncated: the file ends where , or }"),
        REFUSED("{\"length\":5}\n{\"length\":7, \"x\": \"abc",
                "truncated: the file ends within a string"),
        REFUSED(
            "{\"input_length\":5,\"output_length\":0}\n{\"input_length\":0,\"output_length\":0}\n",
            "line 2, record 2: length 0"),
        REFUSED("{\"input_length\":5,\"output_length\":0}\n{\"input_length\":5}\n",
                "line 2, record 2: no field output_length"),
        REFUSED("{\"input_length\":4294967295,\"output_length\":1}\n", "length 4294967296"),
        {"{\"length\":5}\n{\"length\":7\n}\n", NULL, "jsonl",
         "line 2, record 2: the line ends where", NULL, 0, 0},
        {"{\n\"length\":5}\n", NULL, "jsonl", "line 1, record 1: the line ends where a key", NULL,
         0, 0},
        {"5\n", NULL, "jsonl", "a record is an object; for a JSON array say format json", NULL, 0,
         0},
        {"\n\n", NULL, "jsonl", "holds no sequence", NULL, 0, 0},
    };

    check_json(*state, cases, N_CASES(cases));
}

static void test_jsonl__columns(void **state)
{
    static const struct json_case cases[] = {
        {"{\"a\":5,\"length\":9}\n{\"a\":7}\n", "a", NULL, NULL, "jsonl", 2, 12},
        {"{\"a\":5,\"b\":1}\n{\"b\":0,\"a\":7}\n", "a+b", NULL, NULL, "jsonl", 2, 13},
        {"{\"a\":[9,0,9],\"b\":1}\n{\"b\":0,\"a\":[\"x\"]}\n", "a+b", NULL, NULL, "jsonl", 2, 5},
        {"{\"a\":[9,0,9]}\n{\"a\":[1]}\n", "a", NULL, NULL, "jsonl", 2, 4},
        {"{\"a\":[9,0,9]}\n", "a", "jsonl", NULL, "jsonl", 1, 3},
        {"{\"a\":[9,8,9]}\n", "a", "json", NULL, "json", 3, 26},
        {"{\"a\":[9,\n8,9]}\n", "a", NULL, NULL, "json", 3, 26},
        {"{\"a\":[[9,8],[9]]}\n{\"a\":[[1]]}\n", "a", NULL, NULL, "jsonl", 3, 4},
        {"[{\"a\":[9,0,9]},{\"a\":[1]}]", "a", NULL, NULL, "json", 2, 4},
        {"{\"num_tokens\":5,\"length\":9}\n", "num_tokens", NULL, NULL, "jsonl", 1, 5},
        {"{\"\\u00e9\\ud83d\\ude00\":5}\n", "\xc3\xa9\xf0\x9f\x98\x80", NULL, NULL, "jsonl", 1, 5},
        {"{\"input_ids\":[1,2],\"loss_tokens\":[1]}\n", "input_ids", NULL,
         "field loss_tokens is a list, the length is a number", NULL, 0, 0},
        {"{\"a\":[9,8,9]}\n", "a", NULL,
         "field a is a list: of lengths, or the tokens of one record? say format", NULL, 0, 0},
        {"{\"a\":[9,0,9]}\n", "a", "json", "field a: element 2; lengths are", NULL, 0, 0},
        {"{\"a\":5}\n", "b", NULL, "no field b; its fields: a", NULL, 0, 0},
        {"{\"a\":5}\n{\"c\":5}\n", "a", NULL, "line 2, record 2: no field a", NULL, 0, 0},
        {"{\"a\":\"5\"}\n", "a", NULL, "field a: a string is no length", NULL, 0, 0},
        {"{\"a\":5,\"a\":5}\n", "a", NULL, "field a stands twice", NULL, 0, 0},
        {"{\"length\":[5],\"b\":5}\n", "length+b", NULL,
         "field length is a list of rows, and lists are not added", NULL, 0, 0},
        {"{\"a\":5}\n", "a+a", NULL, "column a+a: a name twice", NULL, 0, 0},
    };

    check_json(*state, cases, N_CASES(cases));
}

static void test_json__documents(void **state)
{
    static const struct json_case cases[] = {
        OPENS("[5]", "json", 1, 5),
        OPENS(" \n[ 5 ,\n7.0 ]\n\n", "json", 2, 12),
        OPENS("[{\"length\":5},{\"x\":0,\"length\":7}]", "json", 2, 12),
        OPENS("[\n{\"length\":[5,7]},\n{\"length\":9}\n]", "json", 3, 21),
        OPENS("{\"length\":[5,7]}", "json", 2, 12),
        OPENS("{\"length\":\n[5,7]}", "json", 2, 12),
        OPENS("{\n \"lengths\": [5, 7],\n \"id\": [0, 1]\n}\n", "json", 2, 12),
        OPENS("{\n \"length\": 5\n}", "json", 1, 5),
        OPENS("{\n \"input_ids\": [[1, 2], [3]]\n}", "json", 2, 3),
        OPENS("{\"input_ids\": [[1, 2], [3]], \"length\": [2, 1]}", "json", 2, 3),
        REFUSED("[]", "holds no sequence"),
        REFUSED("{\"length\":[]}", "holds no sequence"),
        REFUSED("[5,0]", "line 1, record 2: length 0"),
        REFUSED("[5,-1]", "line 1, record 2: -1 is negative"),
        REFUSED("[5,5.5]", "line 1, record 2: 5.5 is no whole number"),
        REFUSED("[5,4294967296]", "line 1, record 2: 4294967296 is over"),
        REFUSED("[5,\n{\"length\":7}]",
                "line 2, record 2: an array holds whole numbers or objects, one kind"),
        REFUSED("[{\"length\":7},5]", "an array holds whole numbers or objects, one kind"),
        REFUSED("[[5]]", "an array holds whole numbers or objects, one kind"),
        REFUSED("[\"5\"]", "an array holds whole numbers or objects, one kind"),
        REFUSED("[null]", "an array holds whole numbers or objects, one kind"),
        REFUSED("[5,]", "a value should be, not ]"),
        REFUSED("[5,7", "truncated: the file ends where , or ]"),
        REFUSED("[5]]", "data behind the document"),
        REFUSED("[5]\n[7]\n", "data behind the document"),
        REFUSED("{\n\"length\":5}\n{\"length\":7}\n", "line 3, record 1: data behind the document"),
        REFUSED("{\"512\":100,\n\"1024\":7}",
                "known to hold lengths; say which as column; its fields: 512, 1024"),
        REFUSED("{\n\"lengths\":[5],\"length\":[5]}", "length or lengths? either may be"),
        REFUSED("{\n\"input_length\":[5],\"output_length\":[5]}", "known to hold lengths"),
        {"{\"length\":[5,7]}", NULL, "json", NULL, "json", 2, 12},
        {"\"x\"", NULL, "json", "a JSON index is an array of numbers or objects", NULL, 0, 0},
        {"\n", NULL, "json", "a JSON index is an array of numbers or objects", NULL, 0, 0},
        {"{\"length\":5}\n", NULL, "json", NULL, "json", 1, 5},
    };

    check_json(*state, cases, N_CASES(cases));
}

static void test_json__loss_tokens(void **state)
{
    static const struct {
        const char *text, *column, *message;
        uint64_t sum; /* UINT64_MAX: the index does not say */
    } cases[] = {
        {"{\"length\":5,\"loss_tokens\":5}\n{\"loss_tokens\":0,\"length\":7}\n{\"length\":9,\"loss_"
         "tokens\":3}\n",
         NULL, NULL, 8},
        {"{\"length\":[5,7,9],\"num_loss_tokens\":[5,0,3]}", NULL, NULL, 8},
        {"{\"n_loss_tokens\":[5,0,3],\"a\":[5,\n7,9]}", "a", NULL, 8},
        {"[{\"length\":5,\"loss_tokens\":5},{\"loss_tokens\":0,\"length\":7},{\"length\":9,\"loss_"
         "tokens\":3}]",
         NULL, NULL, 8},
        {"{\"length\":5}\n{\"loss_tokens\":0,\"length\":7}\n{\"length\":9,\"loss_tokens\":3}\n",
         NULL, NULL, UINT64_MAX},
        {"{\"loss_tokens\":5}\n{\"loss_tokens\":7}\n{\"loss_tokens\":9}\n", "loss_tokens", NULL,
         UINT64_MAX},
        {"{\"length\":5,\"loss_tokens\":5}\n{\"length\":7}\n", NULL,
         "line 2, record 2: no field loss_tokens", 0},
        {"{\"length\":5,\"loss_tokens\":6}\n", NULL, "6 loss tokens of 5 tokens", 0},
        {"{\"length\":5,\"loss_tokens\":null}\n", NULL,
         "field loss_tokens: true, false or null is no length", 0},
        {"{\"length\":5,\"loss_tokens\":1,\"n_loss_tokens\":1}\n", NULL,
         "two fields of loss tokens", 0},
        {"{\"length\":[5,7],\"loss_tokens\":[1]}\n", NULL,
         "field loss_tokens has not as many loss tokens as field length", 0},
        {"{\"length\":[5,7],\"loss_tokens\":2}\n", NULL,
         "field loss_tokens has not as many loss tokens as field length", 0},
        {"{\"length\":5,\"loss_tokens\":[5]}\n", NULL,
         "field loss_tokens is a list, the length is a number", 0},
    };

    for (size_t i = 0; i < N_CASES(cases); i++) {
        const struct index_options options = {.column = cases[i].column};
        struct length_index *idx = NULL;
        struct skrull_error err = {0};
        int status;

        temporary_write(*state, "a.json", cases[i].text, strlen(cases[i].text));
        status = open_path(temporary_path(*state, "a.json"), &options, &idx, &err);
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

/* Records larger than a piece, of text and of tokens; many small ones. */
static void test_jsonl__large_records(void **state)
{
    const size_t n = 300000;
    struct text_builder text = text_builder_of(48 * n);
    struct length_index *idx = NULL;

    add_text(&text, "{\"input_ids\": [");
    for (size_t i = 0; i < n; i++) {
        add_text(&text, "%s%zu", i ? ", " : "", i % 150000);
    }
    add_text(&text, "], \"text\": \"");
    for (size_t i = 0; i < n; i++) {
        add_bytes(&text, i % 7 ? "\xe6\x97\xa5" : "\\n.", 3);
    }
    add_text(&text, "\"}\n");
    for (size_t i = 1; i <= n; i++) {
        add_text(&text, "{\"input_ids\": [%zu, 1]}\n", i);
    }
    assert_int_equal(open_bytes(*state, "a.jsonl", text.at, text.len, &idx, NULL), 0);
    assert_int_equal(idx->count, n + 1);
    assert_int_equal(idx->lengths[0], n);
    assert_int_equal(idx->tokens, 3 * n);
    index_close(idx);
    free(text.at);
}

static void test_json__long_keys(void **state)
{
    static char text[4096];
    struct length_index *idx = NULL;
    char name[301];
    const struct index_options options = {.column = name};

    memset(name, 'k', 300);
    name[255] = '\0';
    (void)snprintf(text, sizeof(text), "{\"%.*sx\": 1, \"%s\": 5, \"length\": 7}\n", 255, name,
                   name);
    assert_int_equal(open_bytes(*state, "a.jsonl", text, strlen(text), &idx, NULL), 0);
    assert_int_equal(idx->tokens, 7);
    index_close(idx);
    assert_int_equal(open_path(temporary_path(*state, "a.jsonl"), &options, &idx, NULL), 0);
    assert_int_equal(idx->tokens, 5);
    index_close(idx);
    name[255] = 'k';
    name[300] = '\0';
    (void)snprintf(text, sizeof(text), "{\"%s\": 5}\n", name);
    assert_int_equal(open_bytes(*state, "a.jsonl", text, strlen(text), &idx, NULL),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(open_path(temporary_path(*state, "a.jsonl"), &options, &idx, NULL),
                     SKRULL_ERR_INVALID_ARGUMENT);
}

static void test_json__more_rows_than_allowed(void **state)
{
    static const char *const texts[] = {"{\"length\":5}\n{\"length\":5}\n{\"length\":5}\n",
                                        "[5,5,5]", "{\"length\":[5,5,5]}"};
    const struct index_options options = {.max_count = 2};

    for (size_t i = 0; i < N_CASES(texts); i++) {
        struct length_index *idx = NULL;
        struct skrull_error err = {0};

        temporary_write(*state, "a.json", texts[i], strlen(texts[i]));
        assert_int_equal(open_path(temporary_path(*state, "a.json"), &options, &idx, &err),
                         SKRULL_ERR_RESOURCE_EXHAUSTED);
        assert_non_null(strstr(err.message, "more than 2 rows"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, temporary_setup, temporary_teardown)
        TEST(test_jsonl__good_cases),
        TEST(test_jsonl__bad_cases),
        TEST(test_json__good_cases),
        TEST(test_json__bad_cases),
        TEST(test_jsonl__records),
        TEST(test_jsonl__columns),
        TEST(test_json__documents),
        TEST(test_json__loss_tokens),
        TEST(test_jsonl__large_records),
        TEST(test_json__long_keys),
        TEST(test_json__more_rows_than_allowed),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
