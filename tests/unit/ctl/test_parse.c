/* Tests of parse.c, and of the options of ctl.c that it fills. Complaints go to standard error. */
#include "parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MAX_WORDS 8

static size_t count(const char *const words[MAX_WORDS])
{
    size_t n = 0;

    while (n < MAX_WORDS && words[n]) {
        n++;
    }
    return n;
}

static void test_parse_arguments__options_anywhere(void **state)
{
    static const char *const lines[][MAX_WORDS] = {
        {"-o", "json", "plan", "get", "job", "--step", "7"},
        {"plan", "get", "job", "--step=7", "-o", "json"},
        {"plan", "get", "--step", "7", "-o", "json", "job"},
        {"plan", "get", "--step=9", "--step=7", "-o", "json", "job"},
        {"plan", "get", "--step=7", "-o", "json", "--", "job"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct ctl ctl = {0};
        uint64_t step;
        int status;

        print_message("# line %zu\n", i);
        assert_int_equal(parse_arguments(&ctl, count(lines[i]), lines[i], &status), PARSE_RUN);
        assert_string_equal(ctl.command->verb, "plan get");
        assert_int_equal(ctl.format, CTL_JSON);
        assert_int_equal(ctl.n_operands, 1);
        assert_string_equal(ctl.operands[0], "job");
        assert_int_equal(ctl_number(&ctl, "--step", UINT64_MAX, 0, &step), CTL_DONE);
        assert_int_equal(step, 7);
    }
}

static void test_parse_arguments__after_two_dashes_all_are_operands(void **state)
{
    static const char *const words[] = {"job", "get", "--", "--help"};
    struct ctl ctl = {0};
    int status;

    (void)state;
    assert_int_equal(parse_arguments(&ctl, 4, words, &status), PARSE_RUN);
    assert_string_equal(ctl.operands[0], "--help");
}

static void test_parse_arguments__wrong(void **state)
{
    static const struct {
        const char *words[MAX_WORDS];
        int status;
    } rows[] = {
        {{NULL}, CTL_USAGE},
        {{"plan"}, CTL_USAGE},
        {{"nothing"}, CTL_USAGE},
        {{"--nothing", "health"}, CTL_USAGE},
        {{"health", "x"}, CTL_USAGE},
        {{"health", "--step", "1"}, CTL_USAGE},
        {{"plan", "get", "job"}, CTL_USAGE},           /* --step is required */
        {{"plan", "get", "--step", "1"}, CTL_USAGE},   /* JOB is */
        {{"plan", "get", "job", "--step"}, CTL_USAGE}, /* its value is */
        {{"plan", "make", "--timing=1", "-f", "j", "--step=1"}, CTL_USAGE},
        {{"-o", "yaml", "health"}, CTL_USAGE},
        {{"plan", "show", "--svg", "f"}, CTL_FAILED}, /* not built yet */
        {{"--tls-ca", "f", "health"}, CTL_FAILED},
        {{"plan", "diff", "a", "b"}, CTL_FAILED},
        {{"watch"}, CTL_FAILED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ctl ctl = {0};
        int status = -1;

        print_message("# row %zu\n", i);
        assert_int_equal(parse_arguments(&ctl, count(rows[i].words), rows[i].words, &status),
                         PARSE_WRONG);
        assert_int_equal(status, rows[i].status);
    }
}

static void test_parse_arguments__help_before_complaints(void **state)
{
    static const char *const of_verb[] = {"plan", "make", "--help"};
    static const char *const of_program[] = {"--help"};
    struct ctl ctl = {0};
    int status;

    (void)state;
    assert_int_equal(parse_arguments(&ctl, 3, of_verb, &status), PARSE_HELP);
    assert_string_equal(ctl.command->verb, "plan make");
    ctl = (struct ctl){0};
    assert_int_equal(parse_arguments(&ctl, 1, of_program, &status), PARSE_HELP);
    assert_null(ctl.command);
}

static void test_ctl_parse_number__edges(void **state)
{
    static const struct {
        const char *text;
        uint64_t max;
        bool is_number;
        uint64_t number;
    } rows[] = {
        {"0", 10, true, 0},
        {"18446744073709551615", UINT64_MAX, true, UINT64_MAX},
        {"18446744073709551616", UINT64_MAX, false, 0},
        {"99999999999999999999", UINT64_MAX, false, 0},
        {"11", 10, false, 0},
        {"", 10, false, 0},
        {"-1", 10, false, 0},
        {"+1", 10, false, 0},
        {"1 ", 10, false, 0},
        {"0x1", 10, false, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t number = 77;

        print_message("# %s\n", rows[i].text);
        assert_int_equal(ctl_parse_number(rows[i].text, rows[i].max, &number), rows[i].is_number);
        assert_int_equal(number, rows[i].is_number ? rows[i].number : 77);
    }
}

static void test_ctl_exit_of__contract(void **state)
{
    (void)state;
    assert_int_equal(ctl_exit_of(0), 0);
    assert_int_equal(ctl_exit_of(SKRULL_ERR_INVALID_ARGUMENT), 1);
    assert_int_equal(ctl_exit_of(SKRULL_ERR_DEADLINE_EXCEEDED), 1);
    assert_int_equal(ctl_exit_of(SKRULL_ERR_NOT_FOUND), 3);
    assert_int_equal(ctl_exit_of(SKRULL_ERR_OUT_OF_RANGE), 3);
    assert_int_equal(ctl_exit_of(SKRULL_ERR_UNAVAILABLE), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_arguments__options_anywhere),
        cmocka_unit_test(test_parse_arguments__after_two_dashes_all_are_operands),
        cmocka_unit_test(test_parse_arguments__wrong),
        cmocka_unit_test(test_parse_arguments__help_before_complaints),
        cmocka_unit_test(test_ctl_parse_number__edges),
        cmocka_unit_test(test_ctl_exit_of__contract),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
