/* Tests of command.c and of the table it walks. */
#include "command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_command_find__one_and_two_words(void **state)
{
    static const struct {
        const char *words[2];
        size_t n_words;
        const char *verb; /* NULL: none */
        size_t n_taken;
    } rows[] = {
        {{"plan", "make"}, 2, "plan make", 2}, {{"plan", "show"}, 2, "plan show", 2},
        {{"compare", "x"}, 2, "compare", 1},   {{"health", NULL}, 1, "health", 1},
        {{"plan", NULL}, 1, NULL, 0},          {{"plan", "makes"}, 2, NULL, 0},
        {{"plan make", NULL}, 1, NULL, 0},     {{"", NULL}, 1, NULL, 0},
        {{"compar", NULL}, 1, NULL, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t n_taken = 0;
        const struct command *command = command_find(rows[i].words, rows[i].n_words, &n_taken);

        print_message("# %s\n", rows[i].words[0]);
        if (!rows[i].verb) {
            assert_null(command);
            continue;
        }
        assert_non_null(command);
        assert_string_equal(command->verb, rows[i].verb);
        assert_int_equal(n_taken, rows[i].n_taken);
    }
}

static void test_command_is_noun__half_a_verb(void **state)
{
    (void)state;
    assert_true(command_is_noun("plan"));
    assert_true(command_is_noun("index"));
    assert_false(command_is_noun("health"));
    assert_false(command_is_noun("pla"));
}

/* What the synopsis says and what the parser takes are two columns of the table: they must agree.
 */
static void test_commands__synopsis_names_every_option(void **state)
{
    (void)state;
    for (const struct command *command = commands; command->verb; command++) {
        for (const struct command_option *option = command->options; option->name; option++) {
            bool is_named = strstr(command->synopsis, option->name) != NULL;

            print_message("# %s %s\n", command->verb, option->name);
            assert_int_equal(is_named, option->kind != OPTION_NOT_BUILT);
        }
        assert_true(command->min_operands <= command->max_operands);
    }
}

static void test_command_option_find__verbs_own_and_everyones(void **state)
{
    static const char *const words[] = {"plan", "make"};
    size_t n_taken;
    const struct command *command = command_find(words, 2, &n_taken);

    (void)state;
    assert_non_null(command_option_find(command, "--step"));
    assert_non_null(command_option_find(command, "--server"));
    assert_null(command_option_find(command, "--rank"));
    assert_null(command_option_find(NULL, "--step"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command_find__one_and_two_words),
        cmocka_unit_test(test_command_is_noun__half_a_verb),
        cmocka_unit_test(test_commands__synopsis_names_every_option),
        cmocka_unit_test(test_command_option_find__verbs_own_and_everyones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
