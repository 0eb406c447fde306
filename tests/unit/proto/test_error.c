/* Messages are set, prefixed and cut; a NULL error only carries the code. */
#include <skrull/error.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_set__code_and_message(void **state)
{
    struct skrull_error err;

    (void)state;
    assert_int_equal(skrull_error_set(&err, SKRULL_ERR_NOT_FOUND, "job %s, step %d", "a", 7),
                     SKRULL_ERR_NOT_FOUND);
    assert_int_equal(err.code, SKRULL_ERR_NOT_FOUND);
    assert_string_equal(err.message, "job a, step 7");
}

static void test_set__null(void **state)
{
    (void)state;
    assert_int_equal(skrull_error_set(NULL, SKRULL_ERR_ABORTED, "%d", 1), SKRULL_ERR_ABORTED);
    assert_int_equal(skrull_error_prefix(NULL, SKRULL_ERR_ABORTED, "%d", 1), SKRULL_ERR_ABORTED);
}

static void test_set__cut(void **state)
{
    char text[2 * SKRULL_ERROR_MESSAGE_SIZE];
    struct skrull_error err;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    (void)skrull_error_set(&err, SKRULL_ERR_INTERNAL, "%s", text);
    assert_int_equal(strlen(err.message), SKRULL_ERROR_MESSAGE_SIZE - 1);
}

static void test_because__reason_and_limit_until_the_next_error(void **state)
{
    struct skrull_error err;

    (void)state;
    assert_int_equal(skrull_error_because(&err, SKRULL_ERR_OUT_OF_RANGE,
                                          SKRULL_REASON_STEP_OUT_OF_RANGE, 100, "step %d", 100),
                     SKRULL_ERR_OUT_OF_RANGE);
    assert_string_equal(err.message, "step 100");
    assert_int_equal(err.reason, SKRULL_REASON_STEP_OUT_OF_RANGE);
    assert_int_equal(err.limit, 100);
    (void)skrull_error_prefix(&err, err.code, "job a");
    assert_int_equal(err.reason, SKRULL_REASON_STEP_OUT_OF_RANGE);
    (void)skrull_error_set(&err, SKRULL_ERR_INTERNAL, "x");
    assert_int_equal(err.reason, SKRULL_REASON_NONE);
    assert_int_equal(err.limit, 0);
    (void)skrull_error_because(NULL, SKRULL_ERR_INTERNAL, SKRULL_REASON_DRAINING, 0, "x");
}

static void test_reason_text__a_word_each(void **state)
{
    (void)state;
    assert_string_equal(skrull_reason_text(SKRULL_REASON_NONE), "");
    assert_string_equal(skrull_reason_text(SKRULL_N_REASONS), "");
    assert_string_equal(skrull_reason_text(SKRULL_REASON_JOB_NOT_FOUND), "JOB_NOT_FOUND");
    assert_string_equal(skrull_reason_text(SKRULL_REASON_DRAINING), "DRAINING");
    for (int i = 1; i < SKRULL_N_REASONS; i++) {
        const char *text = skrull_reason_text((enum skrull_reason)i);

        assert_true(strlen(text) > 0);
        assert_int_equal(strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), strlen(text));
    }
}

static void test_prefix__before_the_message(void **state)
{
    struct skrull_error err;

    (void)state;
    (void)skrull_error_set(&err, SKRULL_ERR_INVALID_ARGUMENT, "align: 0");
    assert_int_equal(skrull_error_prefix(&err, SKRULL_ERR_INTERNAL, "line %d", 3),
                     SKRULL_ERR_INTERNAL);
    assert_int_equal(err.code, SKRULL_ERR_INTERNAL);
    assert_string_equal(err.message, "line 3: align: 0");
}

static void test_prefix__cut(void **state)
{
    char text[SKRULL_ERROR_MESSAGE_SIZE - 3];
    struct skrull_error err;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    (void)skrull_error_set(&err, SKRULL_ERR_INTERNAL, "%s", text);
    (void)skrull_error_prefix(&err, SKRULL_ERR_INTERNAL, "prefix");
    assert_int_equal(strlen(err.message), SKRULL_ERROR_MESSAGE_SIZE - 1);
    assert_memory_equal(err.message, "prefix: xxx", 11);
    (void)skrull_error_prefix(&err, SKRULL_ERR_INTERNAL, "%s%s", text, "yyyyyyyy");
    assert_int_equal(strlen(err.message), SKRULL_ERROR_MESSAGE_SIZE - 1);
}

static void test_text__names(void **state)
{
    (void)state;
    assert_string_equal(skrull_error_text(0), "ok");
    assert_string_equal(skrull_error_text(SKRULL_ERR_CANCELLED), "cancelled");
    assert_string_equal(skrull_error_text(SKRULL_ERR_OUT_OF_RANGE), "out of range");
    assert_string_equal(skrull_error_text(SKRULL_ERR_UNAUTHENTICATED), "unauthenticated");
    assert_string_equal(skrull_error_text(-17), "unknown");
    assert_string_equal(skrull_error_text(1), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set__code_and_message),
        cmocka_unit_test(test_set__null),
        cmocka_unit_test(test_set__cut),
        cmocka_unit_test(test_because__reason_and_limit_until_the_next_error),
        cmocka_unit_test(test_reason_text__a_word_each),
        cmocka_unit_test(test_prefix__before_the_message),
        cmocka_unit_test(test_prefix__cut),
        cmocka_unit_test(test_text__names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
