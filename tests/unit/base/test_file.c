/* Reading, mapping, stamps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "temporary.h"

static int setup(void **state)
{
    static struct temporary folder;

    temporary_make(&folder);
    temporary_write(&folder, "a", "0123456789", 10);
    *state = &folder;
    return 0;
}

static int teardown(void **state)
{
    temporary_remove(*state);
    return 0;
}

static void test_file_read_at__takes_what_there_is(void **state)
{
    static const struct {
        uint64_t offset;
        size_t size, got;
        const char *text;
    } cases[] = {{0, 10, 10, "0123456789"}, {3, 4, 4, "3456"}, {8, 10, 2, "89"}, {10, 4, 0, ""},
                 {1000, 4, 0, ""},          {0, 0, 0, ""}};
    int fd = temporary_open(*state, "a");

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char bytes[16];
        size_t got = 99;

        assert_int_equal(file_read_at(fd, "a", bytes, cases[i].size, cases[i].offset, &got, NULL),
                         0);
        assert_int_equal(got, cases[i].got);
        assert_memory_equal(bytes, cases[i].text, got);
    }
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
    (void)close(fd);
}

static void test_file_read_at__names_the_path_of_a_failure(void **state)
{
    struct skrull_error err = {0};
    char bytes[4];
    size_t got;

    (void)state;
    assert_int_equal(file_read_at(-1, "dir/a", bytes, 4, 0, &got, &err), SKRULL_ERR_UNAVAILABLE);
    assert_string_equal(err.message, "dir/a: reading: Bad file descriptor");
}

static void test_file_stamp__differs_after_each_change(void **state)
{
    struct temporary *folder = *state;
    struct file_stamp first, same, longer, other;
    int fd = temporary_open(folder, "a"), copy;

    assert_int_equal(file_stamp(fd, "a", &first, NULL), 0);
    assert_int_equal(first.size, 10);
    assert_int_equal(file_stamp(fd, "a", &same, NULL), 0);
    assert_true(file_stamp_equal(&first, &same));

    temporary_write(folder, "a", "0123456789+", 11);
    assert_int_equal(file_stamp(fd, "a", &longer, NULL), 0);
    assert_false(file_stamp_equal(&first, &longer));

    temporary_write(folder, "b", "0123456789+", 11);
    copy = temporary_open(folder, "b");
    assert_int_equal(file_stamp(copy, "b", &other, NULL), 0);
    other.mtime_ns = longer.mtime_ns;
    assert_false(file_stamp_equal(&other, &longer)); /* another inode */
    other = longer;
    other.mtime_ns++;
    assert_false(file_stamp_equal(&other, &longer));
    (void)close(copy);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_file_read_at__takes_what_there_is, setup, teardown),
        cmocka_unit_test(test_file_read_at__names_the_path_of_a_failure),
        cmocka_unit_test_setup_teardown(test_file_stamp__differs_after_each_change, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
