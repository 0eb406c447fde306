/* Opening: kinds of files, names of formats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "index/format.h"
#include "unit/index/opened.h"

static void test_index_open__only_regular_files(void **state)
{
    static const struct {
        const char *path, *message;
    } cases[] = {
        {"folder", "this is a folder; an index is a regular file"},
        {"pipe", "this is a pipe; an index is a regular file"},
        {"/dev/zero", "/dev/zero: this is a device; an index is a regular file"},
    };
    struct temporary *folder = *state;

    assert_int_equal(mkdir(temporary_path(folder, "folder"), 0755), 0);
    assert_int_equal(mkfifo(temporary_path(folder, "pipe"), 0644), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *path =
            cases[i].path[0] == '/' ? cases[i].path : temporary_path(folder, cases[i].path);
        struct length_index *idx = NULL;
        struct skrull_error err = {0};

        assert_int_equal(open_path(path, NULL, &idx, &err), SKRULL_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, cases[i].message));
    }
}

static void test_index_open__refuses_a_socket(void **state)
{
    int ends[2];
    struct length_index *idx = NULL;
    struct skrull_error err = {0};

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(index_open(ends[0], "s", NULL, &idx, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "s: this is a socket; an index is a regular file");
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void test_index_open__bad_descriptors(void **state)
{
    struct length_index *idx = NULL;
    struct skrull_error err = {0};
    int fd;

    assert_int_equal(index_open(-1, "gone", NULL, &idx, &err), SKRULL_ERR_UNAVAILABLE);
    assert_string_equal(err.message, "gone: Bad file descriptor");
    temporary_write(*state, "a.txt", "1\n", 2);
    fd = open(temporary_path(*state, "a.txt"), O_WRONLY | O_CLOEXEC);
    assert_int_equal(index_open(fd, "a.txt", NULL, &idx, &err), SKRULL_ERR_UNAVAILABLE);
    assert_string_equal(err.message, "a.txt: reading: Bad file descriptor");
    (void)close(fd);
}

static void test_index_open__format_names(void **state)
{
    static const struct {
        const char *format, *message; /* NULL: opened */
    } cases[] = {
        {"auto", NULL},
        {"", NULL},
        {NULL, NULL},
        {"text", NULL},
        {"parquet", "parquet is not built yet; write the lengths as text"},
        {"arrow", "arrow is not built yet"},
        {"Text", "unknown format Text; this build reads auto, skx, npy"},
    };

    temporary_write(*state, "a.txt", "1\n", 2);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct index_options options = {.format = cases[i].format};
        struct length_index *idx = NULL;
        struct skrull_error err = {0};
        int status = open_path(temporary_path(*state, "a.txt"), &options, &idx, &err);

        assert_int_equal(status, cases[i].message ? SKRULL_ERR_INVALID_ARGUMENT : 0);
        assert_true(!cases[i].message || strstr(err.message, cases[i].message));
        index_close(idx);
    }
}

/* What a message says after a very long path is not cut. */
static void test_index_open__long_paths_keep_the_message(void **state)
{
    char path[4096];
    struct length_index *idx = NULL;
    struct skrull_error err = {0};
    int fd;

    memset(path, 'p', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    temporary_write(*state, "a.txt", "1\nx\n", 4);
    fd = temporary_open(*state, "a.txt");
    assert_int_equal(index_open(fd, path, NULL, &idx, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "pppp: line 2: x is no whole number; a text index holds"));
    assert_non_null(strstr(err.message, "one a line"));
    (void)close(fd);
}

/* As if somebody had written to the file behind the reader's back, whatever its format. */
static void test_index_open__changed_while_read(void **state)
{
    static const struct {
        const struct index_format *format;
        const char *bytes;
        size_t size;
    } cases[] = {
        {&format_text, "5\n", 2},
        {&format_csv, "length,a\n5,1\n", 13},
        {&format_tsv, "length\ta\n5\t1\n", 13},
        {&format_json, "[5]", 3},
        {&format_jsonl, "{\"length\":5}\n", 13},
        {&format_npy, "\x93NUMPY\1\0\x31\0{'descr':'|u1','fortran_order':True,'shape':(1,)}\5", 60},
        {&format_megatron,
         "MMIDIDX\0\0\1\0\0\0\0\0\0\0\1\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0\0\0\0\0"
         "\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0",
         62},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int change = 0; change < 2; change++) {
            struct index_source source = {.path = "a", .max_count = 100, .is_forced = 1};
            struct index_file file = {.format = cases[i].format};
            struct skrull_error err = {0};
            int status;

            temporary_write(*state, "a", cases[i].bytes, cases[i].size);
            source.fd = temporary_open(*state, "a");
            assert_int_equal(file_stamp(source.fd, "a", &source.stamp, NULL), 0);
            source.stamp.mtime_ns -= change;
            assert_int_equal(file_read_at(source.fd, "a", source.head, sizeof(source.head), 0,
                                          &source.head_size, NULL),
                             0);
            status = cases[i].format->open(&source, &file, &err);
            print_message("# %s: %s\n", cases[i].format->name, err.message);
            assert_int_equal(status, change ? SKRULL_ERR_FAILED_PRECONDITION : 0);
            assert_true(!change || strstr(err.message, "a: changed while it was read"));
            assert_true(change || (file.idx.count == 1 && file.idx.lengths[0] == 5));
            free(file.parsed);
            (void)close(source.fd);
        }
    }
}

static void test_index_close__null(void **state)
{
    (void)state;
    index_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_index_open__only_regular_files, temporary_setup,
                                        temporary_teardown),
        cmocka_unit_test(test_index_open__refuses_a_socket),
        cmocka_unit_test_setup_teardown(test_index_open__bad_descriptors, temporary_setup,
                                        temporary_teardown),
        cmocka_unit_test_setup_teardown(test_index_open__format_names, temporary_setup,
                                        temporary_teardown),
        cmocka_unit_test_setup_teardown(test_index_open__long_paths_keep_the_message,
                                        temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_index_open__changed_while_read, temporary_setup,
                                        temporary_teardown),
        cmocka_unit_test(test_index_close__null),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
