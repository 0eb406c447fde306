/* Claiming a socket path. */
#include "rpc/unix_socket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

#include "temporary.h"

static struct temporary folder;

static int setup(void **state)
{
    (void)state;
    temporary_make(&folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    temporary_remove(&folder);
    return 0;
}

static int exists(const char *path)
{
    struct stat status;

    return lstat(path, &status) == 0;
}

/* Binds a socket there, as gRPC would. */
static void bind_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    (void)close(fd);
}

static void test_unix_socket_claim__makes_the_folder_and_leaves_nothing(void **state)
{
    char path[TEMPORARY_PATH_SIZE];
    struct unix_socket *claimed;
    struct stat status;

    (void)state;
    (void)snprintf(path, sizeof(path), "%s", temporary_path(&folder, "new/a.sock"));
    assert_int_equal(unix_socket_claim(path, &claimed, NULL), 0);
    assert_int_equal(stat(temporary_path(&folder, "new"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    bind_at(path);
    assert_int_equal(unix_socket_protect(claimed, NULL), 0);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    unix_socket_release(claimed);
    assert_false(exists(path));
    assert_false(exists(temporary_path(&folder, "new/a.sock.lock")));
}

static void test_unix_socket_claim__once_at_a_time(void **state)
{
    char path[TEMPORARY_PATH_SIZE];
    struct unix_socket *first, *second;
    struct skrull_error err = {0};

    (void)state;
    (void)snprintf(path, sizeof(path), "%s", temporary_path(&folder, "a.sock"));
    assert_int_equal(unix_socket_claim(path, &first, NULL), 0);
    bind_at(path);
    assert_int_equal(unix_socket_claim(path, &second, &err), SKRULL_ERR_FAILED_PRECONDITION);
    assert_non_null(strstr(err.message, path));
    assert_true(exists(path)); /* the first one's is left alone */
    unix_socket_release(first);
    assert_int_equal(unix_socket_claim(path, &second, NULL), 0);
    unix_socket_release(second);
}

static void test_unix_socket_claim__removes_what_a_crash_left(void **state)
{
    char path[TEMPORARY_PATH_SIZE];
    struct unix_socket *claimed;

    (void)state;
    (void)snprintf(path, sizeof(path), "%s", temporary_path(&folder, "a.sock"));
    bind_at(path);
    temporary_write(&folder, "a.sock.lock", "", 0);
    assert_int_equal(unix_socket_claim(path, &claimed, NULL), 0);
    assert_false(exists(path));
    unix_socket_release(claimed);
}

static void test_unix_socket_claim__never_removes_a_file(void **state)
{
    char path[TEMPORARY_PATH_SIZE];
    struct unix_socket *claimed;
    struct skrull_error err = {0};

    (void)state;
    temporary_write(&folder, "file", "precious", 8);
    (void)snprintf(path, sizeof(path), "%s", temporary_path(&folder, "file"));
    assert_int_equal(unix_socket_claim(path, &claimed, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_true(exists(path));
    assert_false(exists(temporary_path(&folder, "file.lock")));
}

static void test_unix_socket_claim__no_folder_above(void **state)
{
    struct unix_socket *claimed;
    struct skrull_error err = {0};

    (void)state;
    assert_int_equal(unix_socket_claim(temporary_path(&folder, "a/b/c.sock"), &claimed, &err),
                     SKRULL_ERR_UNAVAILABLE);
    assert_non_null(strstr(err.message, "c.sock"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_unix_socket_claim__makes_the_folder_and_leaves_nothing,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_unix_socket_claim__once_at_a_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unix_socket_claim__removes_what_a_crash_left, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_unix_socket_claim__never_removes_a_file, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_unix_socket_claim__no_folder_above, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
