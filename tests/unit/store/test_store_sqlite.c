/* What the store keeps: over closing, over kill -9, over a full disk. */
#include "store/store_ops.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "unit/store/faulty_vfs.h"
#include "unit/store/state_folder.h"

/* All that a state holds, as text, so that states can be compared. */
struct dump {
    char text[1024];
    size_t len;
};

static int dump_job(void *arg, const struct store_job *job)
{
    struct dump *dump = arg;

    dump->len += (size_t)snprintf(
        dump->text + dump->len, sizeof(dump->text) - dump->len, "%s %c %s %zu:%c %llu\n", job->name,
        job->uid[31], job->request_id, job->spec_len, job->spec_len ? job->spec[0] : '-',
        (unsigned long long)job->given_out_below);
    return 0;
}

static int dump_progress(void *arg, const struct store_progress *progress)
{
    struct dump *dump = arg;
    size_t i;

    dump->len += (size_t)snprintf(dump->text + dump->len, sizeof(dump->text) - dump->len,
                                  "%u:", progress->data_rank);
    for (i = 0; i < progress->n_ranges; i++) {
        dump->len += (size_t)snprintf(dump->text + dump->len, sizeof(dump->text) - dump->len,
                                      " %llu-%llu", (unsigned long long)progress->ranges[i].begin,
                                      (unsigned long long)progress->ranges[i].end);
    }
    dump->len += (size_t)snprintf(dump->text + dump->len, sizeof(dump->text) - dump->len, "\n");
    return 0;
}

/* The jobs, then the progress of the job of tag 'a'. */
static void take_dump(struct store *store, struct dump *ret_dump)
{
    char uid[33];

    memset(ret_dump, 0, sizeof(*ret_dump));
    state_folder_uid('a', uid);
    assert_int_equal(store_each_job(store, dump_job, ret_dump, NULL), 0);
    assert_int_equal(store_each_progress(store, uid, dump_progress, ret_dump, NULL), 0);
}

static void assert_dump(struct store *store, const char *expected)
{
    struct dump dump;

    take_dump(store, &dump);
    assert_string_equal(dump.text, expected);
}

static int dump_revision(void *arg, const struct store_revision *revision)
{
    struct dump *dump = arg;

    dump->len +=
        (size_t)snprintf(dump->text + dump->len, sizeof(dump->text) - dump->len, "%u@%llu %zu:%c\n",
                         revision->revision, (unsigned long long)revision->first_step,
                         revision->spec_len, revision->spec_len ? revision->spec[0] : '-');
    return 0;
}

/* The revisions of the job of tag 'a'. */
static void assert_revisions(struct store *store, const char *expected)
{
    struct dump dump = {.len = 0};
    char uid[33];

    state_folder_uid('a', uid);
    assert_int_equal(store_each_revision(store, uid, dump_revision, &dump, NULL), 0);
    assert_string_equal(dump.text, expected);
}

/* A revision of the job of tag 'a' whose spec is 3 times `letter`. */
static int put_revision(struct store *store, uint32_t number, uint64_t first_step, char letter,
                        struct skrull_error *err)
{
    uint8_t spec[3];
    const struct store_revision revision = {number, first_step, spec, sizeof(spec)};
    char uid[33];

    memset(spec, letter, sizeof(spec));
    state_folder_uid('a', uid);
    return store_put_revision(store, uid, &revision, err);
}

/* Progress of ranks 0 to 2 alike: steps [0, end). */
static int put_three(struct store *store, uint64_t end, struct skrull_error *err)
{
    const struct store_range range = {0, end};
    const struct store_progress progress[] = {{0, &range, 1}, {1, &range, 1}, {2, &range, 1}};
    char uid[33];

    state_folder_uid('a', uid);
    return store_put_progress(store, uid, progress, 3, err);
}

static void test_store_put_job__survives_closing(void **state)
{
    const struct store_job job = {
        .name = "b-job",
        .uid = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
        .request_id = "request 1",
        .spec = NULL,
        .spec_len = 0,
        .given_out_below = INT64_MAX,
    };
    struct store *store = state_folder_open(*state);

    assert_int_equal(store_put_job(store, &job, NULL), 0);
    state_folder_put_job(store, "a-job", 'a', 100000);
    store_close(store);
    store = state_folder_open(*state);
    assert_dump(store, "a-job a  100000:a 0\nb-job b request 1 0:- 9223372036854775807\n");
    store_close(store);
}

static void test_store_put_job__taken(void **state)
{
    struct store *store = state_folder_open(*state);
    struct store_job job = {.name = "one", .uid = "x", .request_id = "", .spec = NULL};
    struct skrull_error err = {0};

    state_folder_put_job(store, "one", 'a', 1);
    assert_int_equal(store_put_job(store, &job, &err), SKRULL_ERR_ALREADY_EXISTS);
    assert_non_null(strstr(err.message, "one"));
    job.name = "two";
    job.uid = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    assert_int_equal(store_put_job(store, &job, &err), SKRULL_ERR_ALREADY_EXISTS);
    assert_dump(store, "one a  1:a 0\n");
    store_close(store);
}

static void test_store_delete_job__takes_its_progress(void **state)
{
    struct store *store = state_folder_open(*state);
    struct skrull_error err = {0};

    state_folder_put_job(store, "one", 'a', 1);
    assert_int_equal(put_three(store, 5, NULL), 0);
    assert_int_equal(store_delete_job(store, "one", NULL), 0);
    assert_int_equal(store_delete_job(store, "one", &err), SKRULL_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, "one"));
    state_folder_put_job(store, "one", 'a', 1);
    assert_dump(store, "one a  1:a 0\n");
    store_close(store);
}

static void test_store_put_revision__survives_closing(void **state)
{
    struct store *store = state_folder_open(*state);

    state_folder_put_job(store, "one", 'a', 1);
    state_folder_put_job(store, "two", 'b', 1);
    assert_revisions(store, "");
    assert_int_equal(put_revision(store, 2, 0, 'x', NULL), 0);
    assert_int_equal(put_revision(store, 3, INT64_MAX, 'y', NULL), 0);
    store_close(store);
    store = state_folder_open(*state);
    assert_revisions(store, "2@0 3:x\n3@9223372036854775807 3:y\n");
    assert_dump(store, "one a  1:a 0\ntwo b  1:b 0\n");
    assert_int_equal(store_delete_job(store, "one", NULL), 0);
    state_folder_put_job(store, "one", 'a', 1);
    assert_revisions(store, "");
    store_close(store);
}

static void test_store_put_revision__refuses(void **state)
{
    struct store *store = state_folder_open(*state);
    struct skrull_error err = {0};
    char uid[33];

    assert_int_equal(put_revision(store, 2, 0, 'x', &err), SKRULL_ERR_NOT_FOUND);
    state_folder_put_job(store, "one", 'a', 1);
    state_folder_uid('a', uid);
    assert_int_equal(put_revision(store, 1, 64, 'x', &err), SKRULL_ERR_ABORTED);
    assert_int_equal(put_revision(store, 3, 64, 'x', &err), SKRULL_ERR_ABORTED);
    assert_non_null(strstr(err.message, "revision 1, 3 is not the next"));
    assert_int_equal(store_give_out(store, uid, 64, NULL), 0);
    assert_int_equal(put_revision(store, 2, 63, 'x', &err), SKRULL_ERR_FAILED_PRECONDITION);
    assert_non_null(strstr(err.message, "below step 64"));
    assert_int_equal(put_revision(store, 2, 64, 'x', &err), 0);
    assert_int_equal(put_revision(store, 2, 64, 'x', &err), SKRULL_ERR_ABORTED);
    assert_int_equal(put_revision(store, 3, (uint64_t)INT64_MAX + 1, 'x', &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_revisions(store, "2@64 3:x\n");
    store_close(store);
}

static void test_store_give_out__never_lowers(void **state)
{
    struct store *store = state_folder_open(*state);
    char uid[33];

    state_folder_put_job(store, "one", 'a', 1);
    state_folder_uid('a', uid);
    assert_int_equal(store_give_out(store, uid, 128, NULL), 0);
    assert_int_equal(store_give_out(store, uid, 64, NULL), 0);
    assert_dump(store, "one a  1:a 128\n");
    assert_int_equal(store_give_out(store, "none", 64, NULL), SKRULL_ERR_NOT_FOUND);
    store_close(store);
}

static void test_store_put_progress__replaces_ranks(void **state)
{
    const struct store_range two[] = {{0, 3}, {5, INT64_MAX}};
    const struct store_progress first[] = {{7, two, 2}, {4294967295u, two, 1}};
    const struct store_progress second[] = {{7, two, 1}, {0, NULL, 0}};
    struct store *store = state_folder_open(*state);
    char uid[33];

    state_folder_uid('a', uid);
    state_folder_put_job(store, "one", 'a', 1);
    assert_int_equal(store_put_progress(store, uid, first, 2, NULL), 0);
    assert_dump(store, "one a  1:a 0\n7: 0-3 5-9223372036854775807\n4294967295: 0-3\n");
    assert_int_equal(store_put_progress(store, uid, second, 2, NULL), 0);
    store_close(store);
    store = state_folder_open(*state);
    assert_dump(store, "one a  1:a 0\n0:\n7: 0-3\n4294967295: 0-3\n");
    assert_int_equal(store_put_progress(store, "none", first, 1, NULL), SKRULL_ERR_NOT_FOUND);
    assert_int_equal(store_put_progress(store, uid, NULL, 0, NULL), 0);
    store_close(store);
}

static int stop_at_second(void *arg, const struct store_job *job)
{
    int *n = arg;

    (void)job;
    return ++*n == 2 ? 42 : 0;
}

static void test_store_each_job__callback_ends_the_walk(void **state)
{
    struct store *store = state_folder_open(*state);
    int n = 0;

    state_folder_put_job(store, "one", 'a', 1);
    state_folder_put_job(store, "two", 'b', 1);
    state_folder_put_job(store, "three", 'c', 1);
    assert_int_equal(store_each_job(store, stop_at_second, &n, NULL), 42);
    assert_int_equal(n, 2);
    state_folder_put_job(store, "four", 'd', 1); /* no read transaction is left open */
    store_close(store);
}

/* Content that changed on the disk, where SQLite itself sees no fault. */
static void test_store_each_job__changed_spec(void **state)
{
    struct state_folder *folder = *state;
    struct store *store = state_folder_open(folder);
    struct skrull_error err = {0};
    uint8_t *bytes, *spec;
    struct dump dump = {0};
    size_t len;

    state_folder_put_job(store, "one", 'q', 100);
    store_close(store);
    bytes = state_folder_read(folder->file, &len);
    spec = memmem(bytes, len, "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq", 40);
    assert_non_null(spec);
    spec[39] = 'r';
    state_folder_write(folder->file, bytes, len);
    free(bytes);
    store = state_folder_open(folder);
    assert_int_equal(store_each_job(store, dump_job, &dump, &err), SKRULL_ERR_DATA_LOSS);
    assert_non_null(strstr(err.message, folder->file));
    store_close(store);
}

/* Saves steps one by one and says so after each, until it is killed. */
static void write_until_killed(const struct state_folder *folder, int pipe_fd)
{
    struct store *store = NULL;
    char uid[33];
    uint64_t step;

    state_folder_uid('a', uid);
    if (store_open(folder->url, &store, NULL)) {
        _exit(1);
    }
    for (step = 1;; step++) {
        if (put_three(store, step, NULL) || store_give_out(store, uid, step, NULL) ||
            write(pipe_fd, &step, sizeof(step)) != sizeof(step)) {
            _exit(1);
        }
    }
}

/* Kills a writer after `n_steps`; returns the last step that it knew to be saved. */
static uint64_t kill_writer(const struct state_folder *folder, uint64_t n_steps)
{
    uint64_t step = 0;
    int fds[2], status;
    pid_t child;

    assert_int_equal(pipe(fds), 0);
    child = fork();
    if (child == 0) {
        (void)close(fds[0]);
        write_until_killed(folder, fds[1]);
    }
    (void)close(fds[1]);
    while (step < n_steps && read(fds[0], &step, sizeof(step)) == sizeof(step)) {
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    while (read(fds[0], &step, sizeof(step)) == sizeof(step)) {
    }
    (void)close(fds[0]);
    return step;
}

static void test_store_put_progress__killed_writer(void **state)
{
    struct state_folder *folder = *state;
    struct store *store = state_folder_open(folder);
    unsigned long long given_out, ends[3];
    struct dump dump;
    uint64_t n_steps, known;

    state_folder_put_job(store, "one", 'a', 1);
    store_close(store);
    for (n_steps = 1; n_steps < 60; n_steps = n_steps * 2 + 1) {
        known = kill_writer(folder, n_steps);
        assert_true(known >= n_steps);
        store = state_folder_open(folder);
        take_dump(store, &dump);
        assert_int_equal(sscanf(dump.text, "one a  1:a %llu\n0: 0-%llu\n1: 0-%llu\n2: 0-%llu\n",
                                &given_out, &ends[0], &ends[1], &ends[2]),
                         4);
        assert_true(given_out >= known);
        assert_true(ends[0] >= known && ends[0] <= known + 1);
        assert_int_equal(ends[1], ends[0]); /* one transaction */
        assert_int_equal(ends[2], ends[0]);
        store_close(store);
    }
}

/* Every write and sync of a transaction fails in turn: the state is then as before, and works
 * again. */
static void sweep_faults(const struct state_folder *folder, int status, int code)
{
    struct store *store = state_folder_open(folder);
    struct skrull_error err;
    struct dump before, after;
    int nth, result = -1;

    state_folder_put_job(store, "one", 'a', 1);
    assert_int_equal(put_three(store, 1, NULL), 0);
    take_dump(store, &before);
    for (nth = 1; result != 0 && nth < 100; nth++) {
        memset(&err, 0, sizeof(err));
        (void)faulty_vfs_fail(nth, status);
        result = put_three(store, 2, &err);
        (void)faulty_vfs_fail(0, 0);
        if (result) {
            assert_int_equal(result, code);
            assert_non_null(strstr(err.message, folder->file));
            take_dump(store, &after);
            assert_string_equal(after.text, before.text);
        }
    }
    assert_int_equal(result, 0);
    assert_true(nth > 2); /* something did fail */
    store_close(store);
    store = state_folder_open(folder);
    assert_dump(store, "one a  1:a 0\n0: 0-2\n1: 0-2\n2: 0-2\n");
    store_close(store);
}

static void test_store_put_progress__disk_full(void **state)
{
    sweep_faults(*state, SQLITE_FULL, SKRULL_ERR_RESOURCE_EXHAUSTED);
}

static void test_store_put_progress__disk_fails(void **state)
{
    sweep_faults(*state, SQLITE_IOERR_FSYNC, SKRULL_ERR_UNAVAILABLE);
}

/* Creation that fails at any point leaves no state behind, and the next one works. */
static void test_store_open__disk_full(void **state)
{
    struct state_folder *folder = *state;
    struct skrull_error err;
    struct store *store = NULL;
    int nth, result = -1, n_failed = 0;

    for (nth = 1; result != 0 && nth < 100; nth++) {
        memset(&err, 0, sizeof(err));
        (void)faulty_vfs_fail(nth, SQLITE_FULL);
        result = store_open(folder->url, &store, &err);
        (void)faulty_vfs_fail(0, 0);
        if (result) {
            n_failed++;
            if (result != SKRULL_ERR_RESOURCE_EXHAUSTED) {
                fail_msg("%d: %d %s", nth, result, err.message);
            }
        }
    }
    assert_int_equal(result, 0);
    assert_true(n_failed > 2);
    assert_dump(store, "");
    store_close(store);
}

#define WITH_FOLDER(test)                                                                          \
    cmocka_unit_test_setup_teardown(test, state_folder_setup, state_folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_store_put_job__survives_closing),
        WITH_FOLDER(test_store_put_job__taken),
        WITH_FOLDER(test_store_put_revision__survives_closing),
        WITH_FOLDER(test_store_put_revision__refuses),
        WITH_FOLDER(test_store_delete_job__takes_its_progress),
        WITH_FOLDER(test_store_give_out__never_lowers),
        WITH_FOLDER(test_store_put_progress__replaces_ranks),
        WITH_FOLDER(test_store_each_job__callback_ends_the_walk),
        WITH_FOLDER(test_store_each_job__changed_spec),
        WITH_FOLDER(test_store_put_progress__killed_writer),
        WITH_FOLDER(test_store_put_progress__disk_full),
        WITH_FOLDER(test_store_put_progress__disk_fails),
        WITH_FOLDER(test_store_open__disk_full),
    };

    faulty_vfs_register();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
