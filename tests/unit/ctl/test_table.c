/* Tests of table.c: what reaches standard output, which is a file meanwhile. */
#include "table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Prints the table into `text`, whatever standard output is. */
static void print_to(const struct table *table, bool is_csv, char *text, size_t size)
{
    char path[] = "/tmp/skrull-table-XXXXXX";
    int fd = mkstemp(path), before;
    ssize_t n;

    assert_true(fd >= 0);
    (void)unlink(path);
    (void)fflush(stdout);
    before = dup(STDOUT_FILENO);
    assert_true(dup2(fd, STDOUT_FILENO) >= 0);
    (void)table_print(table, is_csv);
    (void)fflush(stdout);
    assert_true(dup2(before, STDOUT_FILENO) >= 0);
    (void)close(before);
    n = pread(fd, text, size - 1, 0);
    (void)close(fd);
    assert_true(n >= 0);
    text[n] = '\0';
}

static const struct table_column columns[] = {{"name", false}, {"ms", true}, {"why", false}};

static void test_table_print__aligned_by_characters(void **state)
{
    struct table table;
    char text[512];

    (void)state;
    table_init(&table, columns, 3);
    table_add(&table, "%s", "größe");
    table_add_ms(&table, 1500);
    table_add(&table, "%s", "x");
    table_add(&table, "%s", "a");
    table_add_ms(&table, 123456789);
    table_add(&table, "%s", "");
    table_add(&table, "a row that is not complete");
    print_to(&table, false, text, sizeof(text));
    assert_string_equal(text, "name        ms  why\n"
                              "größe    0.002  x\n"
                              "a      123.457  \n");
    table_deinit(&table);
}

static void test_table_print__csv_quotes(void **state)
{
    struct table table;
    char text[512];

    (void)state;
    table_init(&table, columns, 3);
    table_add(&table, "%s", "a,b");
    table_add(&table, "%d", 7);
    table_add(&table, "%s", "say \"no\"\n");
    print_to(&table, true, text, sizeof(text));
    assert_string_equal(text, "name,ms,why\n\"a,b\",7,\"say \"\"no\"\"\n\"\n");
    table_deinit(&table);
}

static void test_table_add__grows(void **state)
{
    struct table table;

    (void)state;
    table_init(&table, columns, 3);
    for (int i = 0; i < 1000; i++) {
        table_add(&table, "%d", i);
    }
    assert_false(table.is_broken);
    assert_string_equal(table.cells[777], "777");
    table_deinit(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_print__aligned_by_characters),
        cmocka_unit_test(test_table_print__csv_quotes),
        cmocka_unit_test(test_table_add__grows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
