/* Tests of completion.c: what may stand where, over the whole table of verbs. */
#include "completion.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "command.h"

static void test_completion_of_operands__table(void **state)
{
    static const struct {
        const char *verb[2];
        enum completion_kind kind;
    } rows[] = {
        {{"index", "describe"}, COMPLETION_FILES}, {{"index", "convert"}, COMPLETION_FILES},
        {{"plan", "get"}, COMPLETION_JOBS},        {{"plan", "show"}, COMPLETION_JOBS},
        {{"job", "delete"}, COMPLETION_JOBS},      {{"stream", ""}, COMPLETION_JOBS},
        {{"completion", ""}, COMPLETION_WORDS},    {{"compare", ""}, COMPLETION_ANY},
        {{"health", ""}, COMPLETION_ANY},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t n_words;
        const struct command *command = command_find(rows[i].verb, 2, &n_words);

        print_message("# %s %s\n", rows[i].verb[0], rows[i].verb[1]);
        assert_non_null(command);
        assert_int_equal(completion_of_operands(command), rows[i].kind);
    }
}

/* A script asks by the name alone whether an option takes a value. */
static void test_commands__an_option_takes_a_value_everywhere_or_nowhere(void **state)
{
    (void)state;
    for (const struct command *a = commands; a->verb; a++) {
        for (const struct command_option *option = a->options; option->name; option++) {
            for (const struct command *b = commands; b->verb; b++) {
                const struct command_option *other = command_option_find(b, option->name);

                print_message("# %s: %s, %s\n", option->name, a->verb, b->verb);
                assert_true(!other || !other->metavar == !option->metavar);
            }
        }
    }
}

static void count_value(FILE *out, const char *name)
{
    enum completion_kind kind = completion_of_option(name);
    long before = ftell(out);

    completion_write_option_words(out, name);
    print_message("# %s\n", name);
    /* Words there are where words are promised, and nowhere else. */
    assert_int_equal(ftell(out) > before, kind == COMPLETION_WORDS || kind == COMPLETION_LIST);
}

static void test_completion_of_option__words_where_they_are_promised(void **state)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    (void)state;
    assert_non_null(out);
    completion_each_valued(count_value, out);
    assert_int_equal(fclose(out), 0);
    assert_non_null(strstr(text, " table wide json csv"));
    assert_non_null(strstr(text, " auto skx"));
    assert_non_null(strstr(text, " uniform"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_completion_of_operands__table),
        cmocka_unit_test(test_commands__an_option_takes_a_value_everywhere_or_nowhere),
        cmocka_unit_test(test_completion_of_option__words_where_they_are_promised),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
