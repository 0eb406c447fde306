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
        cmocka_unit_test(test_prefix__before_the_message),
        cmocka_unit_test(test_prefix__cut),
        cmocka_unit_test(test_text__names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
