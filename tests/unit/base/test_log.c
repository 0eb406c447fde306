/* The log's state: levels, formats, and that a line reaches standard error. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"

/* What one event puts on standard error; "" for nothing. */
static const char *written(enum log_level level)
{
    static char text[LOG_LINE_SIZE + 1];
    int ends[2], saved = dup(STDERR_FILENO);
    ssize_t len;

    assert_int_equal(pipe(ends), 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    log_event(level, "tested", LOG_U64("n", 1));
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    (void)close(ends[1]);
    (void)close(saved);
    len = read(ends[0], text, LOG_LINE_SIZE);
    (void)close(ends[0]);
    assert_true(len >= 0);
    text[len] = '\0';
    return text;
}

static void test_log_write__respects_the_level(void **state)
{
    (void)state;
    for (int set = LOG_LEVEL_ERROR; set <= LOG_LEVEL_DEBUG; set++) {
        log_set_level((enum log_level)set);
        assert_int_equal(log_get_level(), set);
        for (int level = LOG_LEVEL_ERROR; level <= LOG_LEVEL_DEBUG; level++) {
            const char *line = written((enum log_level)level);

            assert_int_equal(line[0] != '\0', level <= set);
            assert_true(level > set || strstr(line, log_level_name((enum log_level)level)));
        }
    }
    log_set_level(LOG_LEVEL_INFO);
}

static void test_log_write__writes_the_format(void **state)
{
    (void)state;
    assert_non_null(strstr(written(LOG_LEVEL_INFO), "Z info tested n=1\n"));
    log_set_format(LOG_FORMAT_JSON);
    assert_non_null(strstr(written(LOG_LEVEL_INFO), "\"event\":\"tested\",\"n\":1}\n"));
    log_set_format(LOG_FORMAT_TEXT);
}

static void test_log_write__keeps_errno(void **state)
{
    int saved = dup(STDERR_FILENO);

    (void)state;
    (void)close(STDERR_FILENO);
    errno = ENOENT;
    log_event(LOG_LEVEL_ERROR, "lost", LOG_U64("n", 1));
    assert_int_equal(errno, ENOENT);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    (void)close(saved);
}

static void test_log_parse__words(void **state)
{
    enum log_level level = LOG_LEVEL_INFO;
    enum log_format format = LOG_FORMAT_TEXT;

    (void)state;
    assert_true(log_level_parse("debug", &level));
    assert_int_equal(level, LOG_LEVEL_DEBUG);
    assert_true(log_level_parse("error", &level));
    assert_int_equal(level, LOG_LEVEL_ERROR);
    assert_false(log_level_parse("loud", &level));
    assert_false(log_level_parse("", &level));
    assert_false(log_level_parse("warning", &level));
    assert_int_equal(level, LOG_LEVEL_ERROR);
    assert_true(log_format_parse("json", &format));
    assert_int_equal(format, LOG_FORMAT_JSON);
    assert_false(log_format_parse("xml", &format));
    assert_int_equal(format, LOG_FORMAT_JSON);
    assert_true(log_format_parse("text", &format));
    assert_int_equal(format, LOG_FORMAT_TEXT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_write__respects_the_level),
        cmocka_unit_test(test_log_write__writes_the_format),
        cmocka_unit_test(test_log_write__keeps_errno),
        cmocka_unit_test(test_log_parse__words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
