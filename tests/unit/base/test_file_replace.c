/* A file is replaced as a whole or not at all, and nothing stays behind. */
#include <dirent.h>
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
    *state = &folder;
    return 0;
}

static int teardown(void **state)
{
    temporary_remove(*state);
    return 0;
}

static void assert_content(const struct temporary *folder, const char *name, const char *text)
{
    char bytes[64] = "";
    size_t got;
    int fd = temporary_open(folder, name);

    assert_int_equal(file_read_at(fd, name, bytes, sizeof(bytes) - 1, 0, &got, NULL), 0);
    assert_string_equal(bytes, text);
    (void)close(fd);
}

static size_t count_entries(const struct temporary *folder)
{
    DIR *dir = opendir(folder->path);
    size_t count = 0;

    assert_non_null(dir);
    while (readdir(dir)) {
        count++;
    }
    (void)closedir(dir);
    return count - 2; /* . and .. */
}

static void test_file_replace__new_file_has_the_mode_whatever_the_umask(void **state)
{
    struct temporary *folder = *state;
    struct file_replace file;
    struct stat info;
    mode_t before = umask(0077);

    assert_int_equal(file_replace_begin(temporary_path(folder, "a"), 0644, &file, NULL), 0);
    assert_int_equal(file_write_all(file.fd, "a", "new", 3, NULL), 0);
    assert_int_equal(access(temporary_path(folder, "a"), F_OK), -1);
    assert_int_equal(file_replace_commit(&file, NULL), 0);
    (void)umask(before);
    assert_int_equal(stat(temporary_path(folder, "a"), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0644);
    assert_content(folder, "a", "new");
    assert_int_equal(count_entries(folder), 1);
}

static void test_file_replace__readers_keep_the_old_file(void **state)
{
    struct temporary *folder = *state;
    struct file_replace file;
    char bytes[8] = "";
    size_t got;
    int fd;

    temporary_write(folder, "a", "old", 3);
    fd = temporary_open(folder, "a");
    assert_int_equal(file_replace_begin(temporary_path(folder, "a"), 0644, &file, NULL), 0);
    assert_int_equal(file_write_all(file.fd, "a", "new", 3, NULL), 0);
    assert_content(folder, "a", "old");
    assert_int_equal(file_replace_commit(&file, NULL), 0);
    assert_content(folder, "a", "new");
    assert_int_equal(file_read_at(fd, "a", bytes, sizeof(bytes), 0, &got, NULL), 0);
    assert_string_equal(bytes, "old");
    (void)close(fd);
}

static void test_file_replace__abort_leaves_nothing(void **state)
{
    struct temporary *folder = *state;
    struct file_replace file;

    temporary_write(folder, "a", "old", 3);
    assert_int_equal(file_replace_begin(temporary_path(folder, "a"), 0644, &file, NULL), 0);
    file_replace_abort(&file);
    assert_content(folder, "a", "old");
    assert_int_equal(count_entries(folder), 1);
}

static void test_file_replace__failed_rename_leaves_nothing(void **state)
{
    struct temporary *folder = *state;
    struct skrull_error err = {0};
    struct file_replace file;

    assert_int_equal(mkdir(temporary_path(folder, "a"), 0755), 0);
    assert_int_equal(file_replace_begin(temporary_path(folder, "a"), 0644, &file, NULL), 0);
    assert_int_equal(file_replace_commit(&file, &err), SKRULL_ERR_UNAVAILABLE);
    assert_non_null(strstr(err.message, "/a: putting it in place: Is a directory"));
    assert_int_equal(count_entries(folder), 1);
}

static void test_file_replace_begin__refuses(void **state)
{
    static const struct {
        const char *name, *message;
        int code;
    } cases[] = {
        {"", "not the name of a file", SKRULL_ERR_INVALID_ARGUMENT},
        {"no/such", "opening its folder: No such file or directory", SKRULL_ERR_NOT_FOUND},
        {"file/below", "opening its folder: Not a directory", SKRULL_ERR_NOT_FOUND},
    };
    struct temporary *folder = *state;

    temporary_write(folder, "file", "x", 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct skrull_error err = {0};
        struct file_replace file;

        assert_int_equal(
            file_replace_begin(temporary_path(folder, cases[i].name), 0644, &file, &err),
            cases[i].code);
        assert_non_null(strstr(err.message, cases[i].message));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_file_replace__new_file_has_the_mode_whatever_the_umask,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_file_replace__readers_keep_the_old_file, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_file_replace__abort_leaves_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_file_replace__failed_rename_leaves_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_file_replace_begin__refuses, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
