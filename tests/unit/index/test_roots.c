/* Data roots: what lies under them is opened, by whatever name; nothing else is, nor told of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/index/opened.h"

/*
 * data/            a root              database/        no root: its name begins as the root's
 *   a.txt  "1\n"                         a.txt  "3\n"
 *   sub/b.txt "2\n"                    more/            another root
 *   in -> sub/b.txt                      a.txt  "4\n"
 *   out -> ../database/a.txt             c.txt  "5\n"
 *   folder_out -> ../database          link -> data
 *   across -> ABSOLUTE/more/c.txt
 *   loop -> loop
 *   dangling -> nothing
 *   pipe
 */
static int setup(void **state)
{
    struct temporary *folder;

    (void)temporary_setup(state);
    folder = *state;
    assert_int_equal(mkdir(temporary_path(folder, "data"), 0755), 0);
    assert_int_equal(mkdir(temporary_path(folder, "data/sub"), 0755), 0);
    assert_int_equal(mkdir(temporary_path(folder, "database"), 0755), 0);
    assert_int_equal(mkdir(temporary_path(folder, "more"), 0755), 0);
    temporary_write(folder, "data/a.txt", "1\n", 2);
    temporary_write(folder, "data/sub/b.txt", "2\n", 2);
    temporary_write(folder, "database/a.txt", "3\n", 2);
    temporary_write(folder, "more/a.txt", "4\n", 2);
    temporary_write(folder, "more/c.txt", "5\n", 2);
    assert_int_equal(symlink("sub/b.txt", temporary_path(folder, "data/in")), 0);
    assert_int_equal(symlink("../database/a.txt", temporary_path(folder, "data/out")), 0);
    assert_int_equal(symlink("../database", temporary_path(folder, "data/folder_out")), 0);
    assert_int_equal(
        symlink(temporary_path(folder, "more/c.txt"), temporary_path(folder, "data/across")), 0);
    assert_int_equal(symlink("loop", temporary_path(folder, "data/loop")), 0);
    assert_int_equal(symlink("nothing", temporary_path(folder, "data/dangling")), 0);
    assert_int_equal(symlink("data", temporary_path(folder, "link")), 0);
    assert_int_equal(mkfifo(temporary_path(folder, "data/pipe"), 0644), 0);
    return 0;
}

struct root_case {
    const char *path;    /* '@' at the beginning: the temporary folder */
    const char *content; /* first byte of the file; NULL: refused */
    int code;
    const char *message;
};

static const char *full(const struct temporary *folder, const char *path, char *buffer)
{
    (void)snprintf(buffer, TEMPORARY_PATH_SIZE, "%s%s", path[0] == '@' ? folder->path : "",
                   path + (path[0] == '@'));
    return buffer;
}

static void check(const struct temporary *folder, const char *const *roots, size_t n_roots,
                  const struct root_case *c)
{
    char path[TEMPORARY_PATH_SIZE], root_paths[4][TEMPORARY_PATH_SIZE], byte = 0;
    const char *full_roots[4];
    struct skrull_error err = {0};
    int fd = -1, status;

    for (size_t i = 0; i < n_roots; i++) {
        full_roots[i] = full(folder, roots[i], root_paths[i]);
    }
    status = index_open_under_roots(full(folder, c->path, path), full_roots, n_roots, &fd, &err);
    print_message("# %s: %d %s\n", c->path, status, err.message);
    assert_int_equal(status, c->content ? 0 : c->code);
    if (!c->content) {
        assert_int_equal(fd, -1);
        assert_non_null(strstr(err.message, c->message));
        return;
    }
    assert_int_equal(read(fd, &byte, 1), 1);
    assert_int_equal(byte, c->content[0]);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(close(fd), 0);
}

#define OUTSIDE NULL, SKRULL_ERR_PERMISSION_DENIED, "not under a data root"
#define ABSENT NULL, SKRULL_ERR_NOT_FOUND, "no such file under the data roots"

static void test_roots__one_root(void **state)
{
    static const char *const roots[] = {"@/data", "@/data/", "@/./data//", "@/more/../data",
                                        "@/link"};
    static const struct root_case cases[] = {
        {"a.txt", "1", 0, NULL},
        {"@/data/a.txt", "1", 0, NULL},
        {"@//data/./a.txt", "1", 0, NULL},
        {"@/more/../data/a.txt", "1", 0, NULL},
        {"sub/b.txt", "2", 0, NULL},
        {"sub/../a.txt", "1", 0, NULL},
        {"../data/a.txt", "1", 0, NULL},
        {"in", "2", 0, NULL},
        {"@/link/a.txt", "1", 0, NULL}, /* a link from outside that leads inside */
        {"@/database/a.txt", OUTSIDE},
        {"@/database/none.txt", OUTSIDE}, /* whether it is there is not told */
        {"@/none", OUTSIDE},
        {"/etc/passwd", OUTSIDE},
        {"/", OUTSIDE},
        {"../database/a.txt", OUTSIDE},
        {"../database/none.txt", OUTSIDE},
        {"../../../../../../../../etc/passwd", OUTSIDE},
        {"..", OUTSIDE},
        {"out", OUTSIDE},
        {"folder_out/a.txt", OUTSIDE},
        {"across", OUTSIDE},
        {"/proc/self/cwd", OUTSIDE},
        {"none.txt", ABSENT},
        {"@/data/none.txt", ABSENT},
        {"none/none.txt", ABSENT},
        {"a.txt/", ABSENT},
        {"a.txt/b", ABSENT},
        {"dangling", ABSENT},
        {"", NULL, SKRULL_ERR_INVALID_ARGUMENT, "the path of an index is empty"},
        {"loop", NULL, SKRULL_ERR_INVALID_ARGUMENT, "too many symbolic links"},
        {"pipe", NULL, SKRULL_ERR_INVALID_ARGUMENT, "this is a pipe"},
    };

    for (size_t r = 0; r < sizeof(roots) / sizeof(roots[0]); r++) {
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            check(*state, &roots[r], 1, &cases[i]);
        }
    }
}

static void test_roots__several_roots(void **state)
{
    static const char *const roots[] = {"@/nowhere", "@/data", "@/more"};
    static const struct root_case cases[] = {
        {"a.txt", "1", 0, NULL},                                  /* the first that has it */
        {"c.txt", "5", 0, NULL},        {"across", "5", 0, NULL}, /* out of one root into another */
        {"@/more/a.txt", "4", 0, NULL}, {"out", OUTSIDE},
        {"none.txt", ABSENT},           {"@/nowhere/a.txt", ABSENT},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check(*state, roots, 3, &cases[i]);
    }
}

static void test_roots__the_root_of_all(void **state)
{
    static const char *const roots[] = {"/"};
    static const struct root_case cases[] = {
        {"@/data/a.txt", "1", 0, NULL},
        {"@/data/out", "3", 0, NULL},
        {"etc/no-such-file-here", ABSENT},
        {"/dev/null", NULL, SKRULL_ERR_INVALID_ARGUMENT, "this is a device"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check(*state, roots, 1, &cases[i]);
    }
}

static void test_roots__no_root(void **state)
{
    static const char *const nowhere[] = {"@/nowhere"};
    static const struct root_case none = {"@/data/a.txt", NULL, SKRULL_ERR_PERMISSION_DENIED,
                                          "no data root is given"};
    static const struct root_case outside = {"@/data/a.txt", OUTSIDE};
    static const struct root_case absent = {"a.txt", ABSENT};

    check(*state, NULL, 0, &none);
    check(*state, nowhere, 1, &outside);
    check(*state, nowhere, 1, &absent);
}

static void test_roots__long_paths(void **state)
{
    const struct temporary *folder = *state;
    const char *root = folder->path;
    static char path[100000];
    static const size_t lens[] = {300, 4090, 4096, 5000, sizeof(path) - 1};

    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        for (int absolute = 0; absolute < 2; absolute++) {
            struct skrull_error err = {0};
            int fd;

            memset(path, 'x', lens[i]);
            path[0] = absolute ? '/' : 'x';
            path[lens[i]] = '\0';
            assert_int_equal(index_open_under_roots(path, &root, 1, &fd, &err),
                             SKRULL_ERR_INVALID_ARGUMENT);
            assert_non_null(strstr(err.message, "xx: the path is too long"));
        }
    }
}

static void test_roots__folder_can_be_opened(void **state)
{
    const struct temporary *folder = *state;
    const char *root = folder->path;
    struct length_index *idx = NULL;
    struct skrull_error err = {0};
    int fd = -1;

    assert_int_equal(index_open_under_roots("data", &root, 1, &fd, &err), 0);
    assert_int_equal(index_open(fd, "data", NULL, &idx, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "data: this is a folder; an index is a regular file");
    (void)close(fd);
}

static void test_roots__leaks_no_descriptor(void **state)
{
    static const char *const paths[] = {"data/a.txt", "none", "../x", "data/pipe", "data/loop"};
    const struct temporary *folder = *state;
    const char *roots[] = {folder->path, "/nowhere"};
    int first = dup(0), last;

    (void)close(first);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        int fd = -1;

        if (index_open_under_roots(paths[i], roots, 2, &fd, NULL) == 0) {
            (void)close(fd);
        }
    }
    last = dup(0);
    (void)close(last);
    assert_int_equal(last, first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_roots__one_root, setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_roots__several_roots, setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_roots__the_root_of_all, setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_roots__no_root, setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_roots__long_paths, setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_roots__folder_can_be_opened, setup,
                                        temporary_teardown),
        cmocka_unit_test_setup_teardown(test_roots__leaks_no_descriptor, setup, temporary_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
