/* Which column holds the lengths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "index/columns.h"

#define N(cases) (sizeof(cases) / sizeof((cases)[0]))

static void test_columns_split__table(void **state)
{
    static const struct {
        const char *column;
        size_t n;
        const char *last, *message;
    } cases[] = {
        {"length", 1, "length", NULL},
        {"prompt+response", 2, "response", NULL},
        {" prompt + my response ", 2, "my response", NULL},
        {"a+b+c+d+e+f+g+h", 8, "h", NULL},
        {"a+b+c+d+e+f+g+h+i", 0, NULL, "more than 8 names"},
        {"a+a", 0, NULL, "a name twice"},
        {"a+ a", 0, NULL, "a name twice"},
        {"+", 0, NULL, "an empty name"},
        {"a+", 0, NULL, "an empty name"},
        {"+a", 0, NULL, "an empty name"},
        {"a++b", 0, NULL, "an empty name"},
        {" ", 0, NULL, "an empty name"},
    };

    (void)state;
    for (size_t i = 0; i < N(cases); i++) {
        struct index_source source = {.path = "a.csv", .column = cases[i].column};
        struct column_parts parts = {.n = 0};
        struct skrull_error err = {0};
        int status = columns_split(&source, &parts, &err);

        print_message("# %s: %s\n", cases[i].column, err.message);
        assert_int_equal(status, cases[i].message ? SKRULL_ERR_INVALID_ARGUMENT : 0);
        assert_int_equal(parts.n, cases[i].n);
        assert_true(!cases[i].message || strstr(err.message, cases[i].message));
        if (cases[i].last) {
            assert_int_equal(parts.parts[parts.n - 1].len, strlen(cases[i].last));
            assert_memory_equal(parts.parts[parts.n - 1].text, cases[i].last,
                                strlen(cases[i].last));
        }
    }
}

static uint64_t bits_of(const char *const *names)
{
    uint64_t seen = 0;

    for (; *names; names++) {
        size_t i = columns_find(*names, strlen(*names));

        assert_true(i < columns_n_known);
        seen |= UINT64_C(1) << i;
    }
    return seen;
}

static void test_columns_choose__table(void **state)
{
    static const struct {
        const char *names[6];
        const char *chosen, *other, *message; /* all NULL: nothing is chosen */
    } cases[] = {
        {{NULL}, NULL, NULL, NULL},
        {{"length"}, "length", NULL, NULL},
        {{"length", "input_ids", "messages"}, "length", NULL, NULL},
        {{"length", "loss_tokens"}, "length", NULL, NULL},
        {{"loss_tokens"}, NULL, NULL, NULL},
        {{"input_length"}, NULL, NULL, NULL},
        {{"output_length", "ContextTokens"}, NULL, NULL, NULL},
        {{"GeneratedTokens", "num_prefill_tokens"}, NULL, NULL, NULL},
        {{"input_length", "output_length"}, "input_length", "output_length", NULL},
        {{"output_length", "ContextTokens", "GeneratedTokens"},
         "ContextTokens",
         "GeneratedTokens",
         NULL},
        {{"num_prefill_tokens", "num_decode_tokens", "num_total_tokens"},
         "num_total_tokens",
         NULL,
         NULL},
        {{"prompt_tokens", "completion_tokens", "input_ids"},
         "prompt_tokens",
         "completion_tokens",
         NULL},
        {{"input_length", "input_ids"}, "input_ids", NULL, NULL},
        {{"tokens", "messages"}, "tokens", NULL, NULL},
        {{"messages"}, "messages", NULL, NULL},
        {{"length", "num_tokens"}, NULL, NULL, "length or num_tokens? either may be"},
        {{"input_ids", "tokens"}, NULL, NULL, "input_ids or tokens? either may be"},
        {{"input_length", "output_length", "ContextTokens", "GeneratedTokens"},
         NULL,
         NULL,
         "input_length or ContextTokens? either may be"},
    };
    const struct index_source source = {.path = "a.csv"};

    (void)state;
    for (size_t i = 0; i < N(cases); i++) {
        struct column_parts parts = {.n = 0};
        struct skrull_error err = {0};
        int outcome = columns_choose(&source, bits_of(cases[i].names), &parts, &err);

        print_message("# case %zu: %s\n", i, err.message);
        if (cases[i].message) {
            assert_int_equal(outcome, SKRULL_ERR_INVALID_ARGUMENT);
            assert_non_null(strstr(err.message, cases[i].message));
        } else if (cases[i].chosen) {
            assert_int_equal(outcome, COLUMNS_CHOSEN);
            assert_int_equal(parts.n, cases[i].other ? 2 : 1);
            assert_string_equal(parts.parts[0].text, cases[i].chosen);
            assert_true(!cases[i].other || strcmp(parts.parts[1].text, cases[i].other) == 0);
        } else {
            assert_int_equal(outcome, COLUMNS_NONE);
        }
    }
}

static void test_columns_find__table(void **state)
{
    (void)state;
    assert_int_equal(columns_find("Length", 6), columns_n_known);
    assert_int_equal(columns_find("lengt", 5), columns_n_known);
    assert_int_equal(columns_find("", 0), columns_n_known);
    for (size_t i = 0; i < columns_n_known; i++) {
        assert_int_equal(columns_find(columns_known[i].name, strlen(columns_known[i].name)), i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_split__table),
        cmocka_unit_test(test_columns_choose__table),
        cmocka_unit_test(test_columns_find__table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
