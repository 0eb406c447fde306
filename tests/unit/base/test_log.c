/* The log's lines, in both formats. */
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define TIME_NS INT64_C(1700000000123456789)

static void test_log_render__text(void **state)
{
    const struct log_field fields[] = {LOG_TEXT("job", "a"),
                                       LOG_U64("step", 7),
                                       LOG_TEXT("why", "no \"x\"\n"),
                                       LOG_TEXT("empty", ""),
                                       {0}};
    char line[256];

    (void)state;
    log_render(LOG_FORMAT_TEXT, TIME_NS, LOG_LEVEL_WARN, "stream_ended", fields, line,
               sizeof(line));
    assert_string_equal(line, "2023-11-14T22:13:20.123Z warn stream_ended job=a step=7 "
                              "why=\"no \\\"x\\\"\\u000a\" empty=\"\"");
}

static void test_log_render__json(void **state)
{
    const struct log_field fields[] = {LOG_TEXT("job", "a\\b"), LOG_U64("step", 7), {0}};
    char line[256];

    (void)state;
    log_render(LOG_FORMAT_JSON, TIME_NS, LOG_LEVEL_INFO, "x", fields, line, sizeof(line));
    assert_string_equal(line, "{\"time\":\"2023-11-14T22:13:20.123Z\",\"level\":\"info\","
                              "\"event\":\"x\",\"job\":\"a\\\\b\",\"step\":7}");
}

static void test_log_render__cuts_what_does_not_fit(void **state)
{
    const struct log_field fields[] = {LOG_TEXT("key", "a long value"), {0}};
    char line[40];

    (void)state;
    memset(line, 'x', sizeof(line));
    log_render(LOG_FORMAT_TEXT, TIME_NS, LOG_LEVEL_INFO, "event", fields, line, 30);
    assert_int_equal(strlen(line), 29);
    assert_int_equal(line[30], 'x');
}

static void test_log_level_parse__knows_four_words(void **state)
{
    enum log_level level;

    (void)state;
    assert_true(log_level_parse("debug", &level));
    assert_int_equal(level, LOG_LEVEL_DEBUG);
    assert_true(log_level_parse("error", &level));
    assert_int_equal(level, LOG_LEVEL_ERROR);
    assert_false(log_level_parse("loud", &level));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_render__text),
        cmocka_unit_test(test_log_render__json),
        cmocka_unit_test(test_log_render__cuts_what_does_not_fit),
        cmocka_unit_test(test_log_level_parse__knows_four_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
