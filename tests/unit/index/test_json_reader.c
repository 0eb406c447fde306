/* What is JSON and what is not, as the reader of indexes sees it: values that are passed over in a
 * record, on each side of every border between two pieces of the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "unit/index/opened.h"
#include "unit/index/text_builder.h"

#define PIECE ((size_t)1 << 18) /* byte_stream.c's */

/* [{"x": VALUE, "length": 5}] */
static int open_value(const struct temporary *folder, const char *value, struct skrull_error *err)
{
    struct length_index *idx = NULL;
    char text[4096];
    int n = snprintf(text, sizeof(text), "[{\"x\": %s, \"length\": 5}]", value), status;

    assert_true(n > 0 && (size_t)n < sizeof(text));
    status = open_bytes(folder, "a.json", text, (size_t)n, &idx, err);
    assert_true(status < 0 || (idx->count == 1 && idx->lengths[0] == 5));
    index_close(idx);
    return status;
}

static void test_json_skip__accepts(void **state)
{
    static const char *const values[] = {
        "0",
        "-0",
        "1",
        "-1",
        "10",
        "1.5",
        "-1.25e10",
        "1E5",
        "1e+5",
        "1e-5",
        "0.0",
        "0e0",
        "123456789012345678901234567890123456789012345678901234567890123456789012345678",
        "true",
        "false",
        "null",
        "{}",
        "[]",
        "[[]]",
        "[{}]",
        "{\"a\":{}}",
        "[1,[2,[3]],{\"a\":[4]}]",
        " [ 1 , 2 ] ",
        "{ \"a\" : 1 , \"b\" : 2 }",
        "{\"\":0}",
        "{\"a\":1,\"a\":2}",
        "\"\"",
        "\"a\"",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "\"\\u0000\\u00e9\\uFFFF\"",
        "\"\\ud83d\\ude00\"",
        "\"\\ud800\"",
        "\"\\udc00\\ud800\"",
        "\"\\ud800\\n\"",
        "\"\\ud800\\ud800\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"]}\"",
        "\"\x7f\"",
        "\"\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\"",
        "\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"",
        "\"\xe2\x80\xa8\xc2\x85\"",
        "\"12345678\"",
        "\"1234567\\n12345678\\\"\"",
        "\"1234567\xc3\xa9\"",
    };

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct skrull_error err = {0};
        int status = open_value(*state, values[i], &err);

        print_message("# case %zu: %s\n", i, err.message);
        assert_int_equal(status, 0);
    }
}

static void test_json_skip__refuses(void **state)
{
    static const struct {
        const char *value, *message;
    } cases[] = {
        {"", "a value should be, not ,"},
        {"01", ", or } should be, not 1"},
        {"-", "a digit should be"},
        {"+1", "a value should be, not +"},
        {".5", "a value should be, not ."},
        {"1.", "a digit should be"},
        {"1e", "a digit should be"},
        {"1e+", "a digit should be"},
        {"0x10", ", or } should be, not x"},
        {"1 2", ", or } should be, not 2"},
        {"NaN", "NaN and Infinity are no JSON"},
        {"Infinity", "NaN and Infinity are no JSON"},
        {"-Infinity", "NaN and Infinity are no JSON"},
        {"nan", "true, false or null should be"},
        {"True", "a value should be, not T"},
        {"tru", "true, false or null should be"},
        {"truee", ", or } should be, not e"},
        {"'a'", "a value should be, not '"},
        {"[1,]", "a value should be, not ]"},
        {"[,1]", "a value should be, not ,"},
        {"[1 2]", ", or ] should be, not 2"},
        {"[1}", ", or ] should be, not }"},
        {"{\"a\"}", "a colon should be, not }"},
        {"{\"a\":}", "a value should be, not }"},
        {"{\"a\":1,}", "a key in quotes should be, not }"},
        {"{a:1}", "a key in quotes should be, not a"},
        {"{1:1}", "a key in quotes should be, not 1"},
        {"{\"a\":1]", ", or } should be, not ]"},
        {"/* */ 1", "a value should be, not /"},
        {"\x01", "a value should be, not ? (0x01)"},
        {"\"\\x\"", "an unknown escape in a string"},
        {"\"\\u12\"", "\\u without four hexadecimal digits"},
        {"\"\\u12g4\"", "\\u without four hexadecimal digits"},
        {"\"\\ud800\\u12\"", "\\u without four hexadecimal digits"},
        {"\"\\ud800\\x\"", "an unknown escape in a string"},
        {"\"a\nb\"", "the line ends within a string"},
        {"\"a\tb\"", "a control byte (0x09) in a string"},
        {"\"1234567\x1f\"", "a control byte (0x1f) in a string"},
        {"\"\x80\"", "a string that is no UTF-8 (byte 0x80)"},
        {"\"\xc1\xbf\"", "a string that is no UTF-8 (byte 0xc1)"},
        {"\"\xc3(\"", "a string that is no UTF-8 (byte 0x28)"},
        {"\"\xe0\x9f\x80\"", "a string that is no UTF-8 (byte 0x9f)"},
        {"\"\xed\xa0\x80\"", "a string that is no UTF-8 (byte 0xa0)"},
        {"\"\xf0\x8f\x80\x80\"", "a string that is no UTF-8 (byte 0x8f)"},
        {"\"\xf4\x90\x80\x80\"", "a string that is no UTF-8 (byte 0x90)"},
        {"\"\xf5\x80\x80\x80\"", "a string that is no UTF-8 (byte 0xf5)"},
        {"\"\xe2\x80\"", "a string that is no UTF-8 (byte 0x22)"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct skrull_error err = {0};
        int status = open_value(*state, cases[i].value, &err);

        print_message("# case %zu: %s\n", i, err.message);
        assert_int_equal(status, SKRULL_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, cases[i].message));
        assert_non_null(strstr(err.message, "/a.json: line 1, record 1: "));
    }
}

static void test_json_skip__depth(void **state)
{
    static const char *const opens[] = {"[", "{\"\":"}, *const closes[] = {"]", "}"};

    for (int kind = 0; kind < 2; kind++) {
        for (int depth = 510; depth < 515; depth++) {
            struct text_builder text = text_builder_of(4096);
            struct skrull_error err = {0};
            int status;

            for (int i = 0; i < depth; i++) {
                add_text(&text, "%s", i + 1 < depth ? opens[kind] : kind ? "{" : "[");
            }
            for (int i = 0; i < depth; i++) {
                add_text(&text, "%s", closes[kind]);
            }
            status = open_value(*state, text.at, &err);
            assert_int_equal(status, depth <= 512 ? 0 : SKRULL_ERR_INVALID_ARGUMENT);
            assert_true(depth <= 512 || strstr(err.message, "nested deeper than 512 levels"));
            free(text.at);
        }
    }
}

/* The border of two pieces at every byte of a document. */
static void test_json__across_pieces(void **state)
{
    static const char good[] =
        "[{\"l\\u0065ngth\": 1.2e1, \"x\": [\"\\\"\xf0\x90\x80\x80\\ud83d\\ude00\", -0.5, null]},\n"
        " {\"length\" : 4294967295, \"x\": {\"length\": 7, \"y\": true}}]\n";
    static const char bad[] = "[{\"length\": 5, \"x\": \"\\ud83d\\ude00\xc3(\"}]";
    const size_t room = PIECE + sizeof(good);
    char *text = malloc(room);

    assert_non_null(text);
    memset(text, ' ', room);
    for (size_t i = 0; i < sizeof(good); i++) {
        struct length_index *idx = NULL;
        struct skrull_error err = {0};
        size_t begin = PIECE - i;

        memcpy(text + begin, good, sizeof(good) - 1);
        /* Blanks only at its beginning: by content it is text. */
        assert_int_equal(open_bytes(*state, "a.txt", text, begin + sizeof(good) - 1, &idx, NULL),
                         SKRULL_ERR_INVALID_ARGUMENT);
        text[0] = '[';
        text[begin] = ' ';
        assert_int_equal(open_bytes(*state, "a.json", text, begin + sizeof(good) - 1, &idx, NULL),
                         0);
        assert_int_equal(idx->count, 2);
        assert_int_equal(idx->lengths[0], 12);
        assert_int_equal(idx->lengths[1], UINT32_MAX);
        index_close(idx);
        memset(text, ' ', room);
        if (i < sizeof(bad)) {
            text[0] = '[';
            memcpy(text + begin + 1, bad + 1, sizeof(bad) - 2);
            assert_int_equal(
                open_bytes(*state, "a.json", text, begin + sizeof(bad) - 1, &idx, &err),
                SKRULL_ERR_INVALID_ARGUMENT);
            assert_non_null(strstr(err.message, "no UTF-8 (byte 0x28)"));
            memset(text, ' ', room);
        }
    }
    free(text);
}

/* Every beginning of a document is refused as one. */
static void test_json__cut_anywhere(void **state)
{
    static const char good[] = "[{\"l\\u0065ngth\": 12.0e0, \"x\": "
                               "[\"\\\"\xf0\x90\x80\x80\\ud83d\\ude00\", -0.5, null]},\n"
                               " {\"length\" : 4294967295, \"x\": {\"length\": 7, \"y\": true}}]";

    for (size_t cut = 1; cut < sizeof(good) - 1; cut++) {
        struct length_index *idx = NULL;
        struct skrull_error err = {0};

        assert_int_equal(open_bytes(*state, "a.json", good, cut, &idx, &err), SKRULL_ERR_DATA_LOSS);
        assert_non_null(strstr(err.message, "truncated"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, temporary_setup, temporary_teardown)
        TEST(test_json_skip__accepts),  TEST(test_json_skip__refuses), TEST(test_json_skip__depth),
        TEST(test_json__across_pieces), TEST(test_json__cut_anywhere),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
