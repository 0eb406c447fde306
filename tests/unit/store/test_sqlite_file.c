/* How a state comes into being, who may have it, and what is refused rather than overwritten. */
#include "store/sqlite_file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "store/store.h"
#include "unit/store/state_folder.h"

/* Expects that opening is refused, with a code and words. */
static void expect_refused(const char *url, int code, const char *says)
{
    struct skrull_error err = {0};
    struct store *store = NULL;
    int result = store_open(url, &store, &err);

    if (result != code || !strstr(err.message, says)) {
        fail_msg("%s: %d, '%s'", url, result, err.message);
    }
    assert_null(store);
}

/* The same, and that the file is still what it was. */
static void expect_refused_untouched(const struct state_folder *folder, int code, const char *says)
{
    size_t len, len_after;
    uint8_t *bytes = state_folder_read(folder->file, &len), *after;

    expect_refused(folder->url, code, says);
    after = state_folder_read(folder->file, &len_after);
    assert_int_equal(len_after, len);
    assert_memory_equal(after, bytes, len);
    free(bytes);
    free(after);
}

static mode_t mode_of(const char *path)
{
    struct stat status;

    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 0777;
}

/* Makes a state with `n` jobs and closes it. */
static void make_state(const struct state_folder *folder, char n)
{
    struct store *store = state_folder_open(folder);
    char name[2] = "a";

    for (; n > 0; n--, name[0]++) {
        state_folder_put_job(store, name, name[0], 3000);
    }
    store_close(store);
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void test_sqlite_file_open__creates_private_files(void **state)
{
    struct state_folder *folder = *state;
    char path[160], url[192];
    struct store *store = NULL;
    mode_t old_mask = umask(0);

    (void)snprintf(path, sizeof(path), "%s/a/b/state.db", folder->path);
    (void)snprintf(url, sizeof(url), "sqlite:%s", path);
    assert_int_equal(store_make_folder(url, NULL), 0);
    assert_int_equal(store_make_folder(url, NULL), 0); /* it is there */
    assert_int_equal(store_open(url, &store, NULL), 0);
    state_folder_put_job(store, "job", 'a', 1);
    assert_int_equal(mode_of(path), 0600);
    (void)snprintf(path, sizeof(path), "%s/a/b/state.db-wal", folder->path);
    assert_int_equal(mode_of(path), 0600);
    (void)snprintf(path, sizeof(path), "%s/a/b/state.db.lock", folder->path);
    assert_int_equal(mode_of(path), 0600);
    (void)snprintf(path, sizeof(path), "%s/a/b", folder->path);
    assert_int_equal(mode_of(path), 0700);
    (void)snprintf(path, sizeof(path), "%s/a", folder->path);
    assert_int_equal(mode_of(path), 0700);
    store_close(store);
    (void)umask(old_mask);
}

static void test_sqlite_file_open__no_folder(void **state)
{
    struct state_folder *folder = *state;
    char path[160], url[192], says[200];
    struct stat status;

    (void)snprintf(url, sizeof(url), "sqlite:%s/a/b/state.db", folder->path);
    (void)snprintf(says, sizeof(says), "the folder %s/a/b does not exist", folder->path);
    expect_refused(url, SKRULL_ERR_NOT_FOUND, says);
    (void)snprintf(path, sizeof(path), "%s/a", folder->path);
    assert_int_equal(stat(path, &status), -1);
    expect_refused("sqlite:no-such-folder/state.db", SKRULL_ERR_NOT_FOUND,
                   "the folder ./no-such-folder does not exist");
    expect_refused("sqlite:/dev/null/state.db", SKRULL_ERR_FAILED_PRECONDITION, "/dev/null");
}

static void test_sqlite_file_open__half_made_before(void **state)
{
    struct state_folder *folder = *state;
    char path[160];

    (void)snprintf(path, sizeof(path), "%s.new", folder->file);
    state_folder_write(path, "half", 4);
    (void)snprintf(path, sizeof(path), "%s.new-journal", folder->file);
    state_folder_write(path, "half", 4);
    make_state(folder, 1);
    assert_int_equal(access(path, F_OK), -1);
}

static void test_sqlite_file_open__held_by_this_process(void **state)
{
    struct state_folder *folder = *state;
    struct store *store = state_folder_open(folder);
    char process[32];

    (void)snprintf(process, sizeof(process), "process %ld", (long)getpid());
    expect_refused(folder->url, SKRULL_ERR_FAILED_PRECONDITION, process);
    expect_refused(folder->url, SKRULL_ERR_FAILED_PRECONDITION, folder->file);
    store_close(store);
    store_close(state_folder_open(folder));
}

static void test_sqlite_file_open__held_by_another_name(void **state)
{
    struct state_folder *folder = *state;
    struct store *store = state_folder_open(folder);
    char path[160], url[192];

    (void)snprintf(path, sizeof(path), "%s/other.db", folder->path);
    assert_int_equal(symlink(folder->file, path), 0);
    (void)snprintf(url, sizeof(url), "sqlite:%s", path);
    expect_refused(url, SKRULL_ERR_FAILED_PRECONDITION, "in use by another program");
    state_folder_put_job(store, "job", 'a', 1);
    store_close(store);
}

/* A second process, and the lock file taken away from under the first. */
static void test_sqlite_file_open__held_by_another_process(void **state)
{
    struct state_folder *folder = *state;
    struct store *store = state_folder_open(folder), *second = NULL;
    struct skrull_error err = {0};
    char path[160];
    int status = 0;
    pid_t child;

    (void)snprintf(path, sizeof(path), "%s.lock", folder->file);
    assert_int_equal(unlink(path), 0);
    child = fork();
    if (child == 0) {
        _exit(-store_open(folder->url, &second, &err));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(-WEXITSTATUS(status), SKRULL_ERR_FAILED_PRECONDITION);
    store_close(store);
}

static void test_sqlite_file_open__garbage(void **state)
{
    struct state_folder *folder = *state;
    uint8_t bytes[5000];
    size_t i;

    for (i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 131 + 7);
    }
    state_folder_write(folder->file, bytes, sizeof(bytes));
    expect_refused_untouched(folder, SKRULL_ERR_DATA_LOSS, "restore a copy");
    state_folder_write(folder->file, "hello\n", 6);
    expect_refused_untouched(folder, SKRULL_ERR_DATA_LOSS, "restore a copy");
}

static void test_sqlite_file_open__empty(void **state)
{
    struct state_folder *folder = *state;

    state_folder_write(folder->file, "", 0);
    expect_refused_untouched(folder, SKRULL_ERR_DATA_LOSS, "it is empty or cut short");
}

static void test_sqlite_file_open__truncated(void **state)
{
    struct state_folder *folder = *state;
    size_t len, cut;
    uint8_t *bytes;

    make_state(folder, 9);
    bytes = state_folder_read(folder->file, &len);
    assert_true(len > 20000);
    for (cut = 1; cut < len; cut += 1500) {
        state_folder_write(folder->file, bytes, cut);
        expect_refused_untouched(folder, SKRULL_ERR_DATA_LOSS, folder->file);
    }
    free(bytes);
}

static void test_sqlite_file_open__damaged_page(void **state)
{
    struct state_folder *folder = *state;
    size_t len;
    uint8_t *bytes;

    make_state(folder, 9);
    bytes = state_folder_read(folder->file, &len);
    memset(bytes + 4096, 0x5a, 64);
    state_folder_write(folder->file, bytes, len);
    expect_refused_untouched(folder, SKRULL_ERR_DATA_LOSS, "restore a copy");
    free(bytes);
}

static void test_sqlite_file_open__table_lost(void **state)
{
    struct state_folder *folder = *state;

    make_state(folder, 1);
    run_sql(folder->file, "DROP TABLE progress");
    expect_refused(folder->url, SKRULL_ERR_DATA_LOSS, "progress");
}

static void test_sqlite_file_open__file_gone_but_log_there(void **state)
{
    struct state_folder *folder = *state;
    char path[160];

    (void)snprintf(path, sizeof(path), "%s-wal", folder->file);
    state_folder_write(path, "log", 3);
    expect_refused(folder->url, SKRULL_ERR_DATA_LOSS, "-wal");
    assert_int_equal(access(folder->file, F_OK), -1);
}

static void test_sqlite_file_open__newer_schema(void **state)
{
    struct state_folder *folder = *state;

    make_state(folder, 1);
    run_sql(folder->file, "PRAGMA user_version = 7");
    expect_refused(folder->url, SKRULL_ERR_FAILED_PRECONDITION, "schema version 7");
}

static void test_sqlite_file_open__database_of_another_program(void **state)
{
    struct state_folder *folder = *state;

    run_sql(folder->file, "CREATE TABLE mail (text TEXT); INSERT INTO mail VALUES ('dear')");
    expect_refused_untouched(folder, SKRULL_ERR_FAILED_PRECONDITION, "another program");
}

static void test_sqlite_file_open__not_a_file(void **state)
{
    struct state_folder *folder = *state;
    char url[192];

    assert_int_equal(mkdir(folder->file, 0700), 0);
    expect_refused(folder->url, SKRULL_ERR_FAILED_PRECONDITION, "is not a file");
    assert_int_equal(rmdir(folder->file), 0);
    state_folder_write(folder->file, "x", 1);
    (void)snprintf(url, sizeof(url), "sqlite:%s/under/state.db", folder->file);
    expect_refused(url, SKRULL_ERR_FAILED_PRECONDITION, "Not a directory");
}

/* Root may write anywhere, so the test gives up its rights in a child. */
static void test_sqlite_file_open__read_only(void **state)
{
    static const struct {
        mode_t folder, file;
    } cases[] = {{0555, 0644}, {0777, 0444}, {0777, 0000}};
    struct state_folder *folder = *state;
    struct store *store = NULL;
    int status = 0;
    pid_t child;
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        make_state(folder, 0);
        assert_int_equal(chmod(folder->path, cases[i].folder), 0);
        assert_int_equal(chmod(folder->file, cases[i].file), 0);
        child = fork();
        if (child == 0) {
            if (geteuid() == 0 && (setgid(65534) || setuid(65534))) {
                _exit(100);
            }
            _exit(-store_open(folder->url, &store, NULL));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(chmod(folder->path, 0700), 0);
        assert_int_equal(unlink(folder->file), 0);
        if (-WEXITSTATUS(status) != SKRULL_ERR_PERMISSION_DENIED) {
            fail_msg("folder %o, file %o: %d", cases[i].folder, cases[i].file,
                     -WEXITSTATUS(status));
        }
    }
}

#define WITH_FOLDER(test)                                                                          \
    cmocka_unit_test_setup_teardown(test, state_folder_setup, state_folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_sqlite_file_open__creates_private_files),
        WITH_FOLDER(test_sqlite_file_open__no_folder),
        WITH_FOLDER(test_sqlite_file_open__half_made_before),
        WITH_FOLDER(test_sqlite_file_open__held_by_this_process),
        WITH_FOLDER(test_sqlite_file_open__held_by_another_name),
        WITH_FOLDER(test_sqlite_file_open__held_by_another_process),
        WITH_FOLDER(test_sqlite_file_open__garbage),
        WITH_FOLDER(test_sqlite_file_open__empty),
        WITH_FOLDER(test_sqlite_file_open__truncated),
        WITH_FOLDER(test_sqlite_file_open__damaged_page),
        WITH_FOLDER(test_sqlite_file_open__table_lost),
        WITH_FOLDER(test_sqlite_file_open__file_gone_but_log_there),
        WITH_FOLDER(test_sqlite_file_open__newer_schema),
        WITH_FOLDER(test_sqlite_file_open__database_of_another_program),
        WITH_FOLDER(test_sqlite_file_open__not_a_file),
        WITH_FOLDER(test_sqlite_file_open__read_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
