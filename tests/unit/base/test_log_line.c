/* Log lines: both formats, quoting, hostile values, lines too long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/log_line.h"

#define FIELDS(...) ((const struct log_field[]){__VA_ARGS__, {0}})

static char text[LOG_LINE_SIZE + 1];

static const char *format(enum log_format format, const struct log_field *fields)
{
    struct log_entry entry = {
        .real_ns = INT64_C(1767323045678901234),
        .level = LOG_LEVEL_WARN,
        .event = "job_opened",
        .fields = fields,
    };
    size_t len = log_line(format, &entry, text);

    assert_true(len > 0 && len <= LOG_LINE_SIZE);
    text[len] = '\0';
    assert_int_equal(text[len - 1], '\n');
    assert_ptr_equal(strchr(text, '\n'), text + len - 1);
    return text;
}

static void test_log_line__text(void **state)
{
    (void)state;
    assert_string_equal(
        format(LOG_FORMAT_TEXT, FIELDS(LOG_TEXT("job", "a-b"), LOG_U64("step", UINT64_MAX))),
        "2026-01-02T03:04:05.678Z warn job_opened job=a-b step=18446744073709551615\n");
    assert_string_equal(format(LOG_FORMAT_TEXT, ((const struct log_field[]){{0}})),
                        "2026-01-02T03:04:05.678Z warn job_opened\n");
}

static void test_log_line__json(void **state)
{
    (void)state;
    assert_string_equal(format(LOG_FORMAT_JSON, FIELDS(LOG_TEXT("job", "a b"), LOG_U64("step", 7))),
                        "{\"time\":\"2026-01-02T03:04:05.678Z\",\"level\":\"warn\",\"event\":"
                        "\"job_opened\",\"job\":\"a b\",\"step\":7}\n");
}

static void test_log_line__text_values_are_quoted_where_needed(void **state)
{
    static const struct {
        const char *value, *written;
    } cases[] = {
        {"plain/word:1", "plain/word:1"},
        {"", "\"\""},
        {NULL, "\"\""},
        {"two words", "\"two words\""},
        {"a=b", "\"a=b\""},
        {"say \"hi\"", "\"say \\\"hi\\\"\""},
        {"back\\slash", "\"back\\\\slash\""},
        {"line\nlevel=error", "\"line\\nlevel=error\""},
        {"bell\a\x1b[31m", "\"bell\\u0007\\u001b[31m\""},
        {"gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\""},
        {"cut\xc3", "\"cut\xef\xbf\xbd\""},
        {"\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""},                 /* overlong */
        {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* surrogate */
        {"\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""},
        {"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* too high */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char expected[256];

        (void)snprintf(expected, sizeof(expected),
                       "2026-01-02T03:04:05.678Z warn job_opened v=%s\n", cases[i].written);
        assert_string_equal(format(LOG_FORMAT_TEXT, FIELDS(LOG_TEXT("v", cases[i].value))),
                            expected);
    }
}

/* Whatever the bytes and the length, JSON stays JSON. */
static void test_log_line__json_of_any_bytes_parses(void **state)
{
    static char value[LOG_LINE_SIZE * 2];
    uint32_t random = 1;

    (void)state;
    for (size_t len = 0; len < sizeof(value); len += len < 64 ? 1 : 61) {
        json_t *object;

        for (size_t i = 0; i < len; i++) {
            random = random * 1664525 + 1013904223;
            value[i] = (char)(random >> 24 ? random >> 24 : 1);
        }
        value[len] = '\0';
        object = json_loads(format(LOG_FORMAT_JSON, FIELDS(LOG_TEXT("a", value), LOG_TEXT("b", "x"),
                                                           LOG_U64("c", 1))),
                            0, NULL);
        assert_non_null(object);
        assert_string_equal(json_string_value(json_object_get(object, "level")), "warn");
        assert_non_null(json_object_get(object, "a"));
        json_decref(object);
    }
}

static void test_log_line__long_values_are_cut_and_closed(void **state)
{
    static char value[2 * LOG_LINE_SIZE];
    const char *line;

    (void)state;
    memset(value, 'x', sizeof(value) - 1);
    line = format(LOG_FORMAT_TEXT, FIELDS(LOG_TEXT("a", value), LOG_TEXT("b", "y")));
    assert_true(strlen(line) > LOG_LINE_SIZE - 64);
    assert_string_equal(line + strlen(line) - 6, "x...\"\n");
    assert_null(strstr(line, " b="));
}

/* Many fields fill the line to every length in turn. */
static void test_log_line__many_fields_never_overrun(void **state)
{
    static struct log_field fields[1000];

    (void)state;
    for (size_t i = 0; i < 999; i++) {
        const struct log_field words = LOG_TEXT("key", "a b"), number = LOG_U64("key", i);

        fields[i] = i % 2 ? words : number;
    }
    for (size_t shift = 0; shift < 40; shift++) {
        char pad[64] = "";

        const struct log_field first = LOG_TEXT("pad", pad);

        memset(pad, 'p', shift);
        fields[0] = first;
        assert_true(strlen(format(LOG_FORMAT_TEXT, fields)) > LOG_LINE_SIZE - 64);
        assert_true(strlen(format(LOG_FORMAT_JSON, fields)) > LOG_LINE_SIZE - 64);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_line__text),
        cmocka_unit_test(test_log_line__json),
        cmocka_unit_test(test_log_line__text_values_are_quoted_where_needed),
        cmocka_unit_test(test_log_line__json_of_any_bytes_parses),
        cmocka_unit_test(test_log_line__long_values_are_cut_and_closed),
        cmocka_unit_test(test_log_line__many_fields_never_overrun),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
