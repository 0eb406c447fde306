/*
 * The embedded store. Each function is one transaction; the file is opened, locked and checked by
 * sqlite_file.c. Blobs carry their XXH3-64, because SQLite checks its structure, not its content.
 * Numbers are SQLite's signed 64 bits (store.c refuses larger ones). Used by one thread at a time.
 */
#include <endian.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>
#include <xxhash.h>

#include "ckd.h"
#include "cleanup.h"
#include "store/sqlite_error.h"
#include "store/sqlite_file.h"
#include "store/store_ops.h"

#define RANGE_BYTES 16 /* begin and end, u64 little-endian each */

enum statement {
    PUT_JOB,
    FIND_REVISION,
    PUT_REVISION,
    DELETE_PROGRESS,
    DELETE_REVISIONS,
    DELETE_JOB,
    GIVE_OUT,
    FIND_UID,
    PUT_PROGRESS,
    EACH_JOB,
    EACH_REVISION,
    EACH_PROGRESS,
    N_STATEMENTS
};

static const char *const statement_sql[N_STATEMENTS] = {
    [PUT_JOB] = "INSERT INTO jobs (name, uid, request_id, spec, spec_hash, given_out_below)"
                " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [FIND_REVISION] = "SELECT id, given_out_below,"
                      " (SELECT coalesce(max(revision), 1) FROM revisions WHERE job = id)"
                      " FROM jobs WHERE uid = ?1",
    [PUT_REVISION] = "INSERT INTO revisions (job, revision, first_step, spec, spec_hash)"
                     " VALUES (?1, ?2, ?3, ?4, ?5)",
    [DELETE_REVISIONS] = "DELETE FROM revisions WHERE job = (SELECT id FROM jobs WHERE name = ?1)",
    [DELETE_PROGRESS] = "DELETE FROM progress WHERE job = (SELECT id FROM jobs WHERE name = ?1)",
    [DELETE_JOB] = "DELETE FROM jobs WHERE name = ?1",
    [GIVE_OUT] = "UPDATE jobs SET given_out_below = max(given_out_below, ?2) WHERE uid = ?1",
    [FIND_UID] = "SELECT id FROM jobs WHERE uid = ?1",
    [PUT_PROGRESS] = "INSERT INTO progress (job, data_rank, ranges, ranges_hash)"
                     " VALUES (?1, ?2, ?3, ?4) ON CONFLICT (job, data_rank)"
                     " DO UPDATE SET ranges = ?3, ranges_hash = ?4",
    [EACH_JOB] = "SELECT name, uid, request_id, spec, spec_hash, given_out_below FROM jobs"
                 " ORDER BY name",
    [EACH_REVISION] = "SELECT revision, first_step, spec, spec_hash FROM revisions"
                      " WHERE job = (SELECT id FROM jobs WHERE uid = ?1) ORDER BY revision",
    [EACH_PROGRESS] = "SELECT data_rank, ranges, ranges_hash FROM progress"
                      " WHERE job = (SELECT id FROM jobs WHERE uid = ?1) ORDER BY data_rank",
};

struct store_sqlite {
    struct store store; /* first: the two are cast into each other */
    struct sqlite_file file;
    sqlite3_stmt *statements[N_STATEMENTS];
};

static struct store_sqlite *sqlite_of(struct store *store)
{
    return (struct store_sqlite *)(void *)store;
}

static void close_store(struct store *store)
{
    struct store_sqlite *self = sqlite_of(store);
    size_t i;

    for (i = 0; i < N_STATEMENTS; i++) {
        (void)sqlite3_finalize(self->statements[i]);
    }
    sqlite_file_close(&self->file);
    free(self);
}

static int open_store(const char *place, struct store **ret_store, struct skrull_error *err)
{
    struct store_sqlite *self = calloc(1, sizeof(*self));
    int result, status = SQLITE_OK;
    size_t i;

    if (!self) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "state: out of memory");
    }
    self->store.ops = &store_sqlite_ops;
    result = sqlite_file_open(place, &self->file, err);
    if (result) {
        free(self);
        return result;
    }
    for (i = 0; status == SQLITE_OK && i < N_STATEMENTS; i++) {
        status = sqlite3_prepare_v3(self->file.db, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT,
                                    &self->statements[i], NULL);
    }
    if (status != SQLITE_OK) {
        /* The version is ours, so a table or column that is missing was lost. */
        status = status == SQLITE_ERROR ? SQLITE_CORRUPT : status;
        result = sqlite_error_status(&self->file, status, "reading its tables", err);
        close_store(&self->store);
        return result;
    }
    *ret_store = &self->store;
    return 0;
}

/* Runs a bound statement that gives no rows. Returns SQLITE_DONE or what went wrong. */
static int run(sqlite3_stmt *statement)
{
    int status = sqlite3_step(statement);

    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return status;
}

static void bind_text(sqlite3_stmt *statement, int place, const char *text)
{
    /* Bound as borrowed: cleared by run() before the caller's memory goes. Where binding fails, the
     * column stays NULL and its NOT NULL constraint refuses the row. */
    (void)sqlite3_bind_text(statement, place, text, -1, SQLITE_STATIC);
}

/* An empty blob is not NULL. */
static void bind_blob(sqlite3_stmt *statement, int place, const void *bytes, size_t len)
{
    (void)sqlite3_bind_blob64(statement, place, len ? bytes : "", len, SQLITE_STATIC);
}

/* Hashes are all 64 bits, SQLite's numbers signed. */
static int64_t hash_of(const void *bytes, size_t len)
{
    uint64_t hash = XXH3_64bits(bytes, len);
    int64_t number;

    memcpy(&number, &hash, sizeof(number));
    return number;
}

static int begin(struct store_sqlite *self, const char *doing, struct skrull_error *err)
{
    return sqlite_file_exec(&self->file, "BEGIN IMMEDIATE", doing, err);
}

/* Ends a transaction: commits where `result` is 0, else undoes it and returns `result`. */
static int end(struct store_sqlite *self, int result, const char *doing, struct skrull_error *err)
{
    if (result == 0) {
        result = sqlite_file_exec(&self->file, "COMMIT", doing, err);
    }
    if (result && !sqlite3_get_autocommit(self->file.db)) {
        (void)sqlite3_exec(self->file.db, "ROLLBACK", NULL, NULL, NULL);
    }
    return result;
}

static int put_job(struct store *store, const struct store_job *job, struct skrull_error *err)
{
    struct store_sqlite *self = sqlite_of(store);
    sqlite3_stmt *statement = self->statements[PUT_JOB];
    int status;

    bind_text(statement, 1, job->name);
    bind_text(statement, 2, job->uid);
    bind_text(statement, 3, job->request_id);
    bind_blob(statement, 4, job->spec, job->spec_len);
    (void)sqlite3_bind_int64(statement, 5, hash_of(job->spec, job->spec_len));
    (void)sqlite3_bind_int64(statement, 6, (int64_t)job->given_out_below);
    status = run(statement);
    if (status == SQLITE_CONSTRAINT_UNIQUE) {
        return skrull_error_set(err, SKRULL_ERR_ALREADY_EXISTS,
                                "job %s (or its uid %s) exists already: choose another name, or "
                                "delete it first",
                                job->name, job->uid);
    }
    return status == SQLITE_DONE ? 0
                                 : sqlite_error_status(&self->file, status, "saving a job", err);
}

static int no_such_uid(const char *uid, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_NOT_FOUND, "no job has uid %s", uid);
}

/* May the job `uid` have this revision next? *ret_id: its row. */
static int find_revision(struct store_sqlite *self, const char *uid,
                         const struct store_revision *revision, int64_t *ret_id,
                         struct skrull_error *err)
{
    sqlite3_stmt *statement = self->statements[FIND_REVISION];
    int64_t given_out_below = 0, newest = 0;
    int status;

    bind_text(statement, 1, uid);
    status = sqlite3_step(statement);
    if (status == SQLITE_ROW) {
        *ret_id = sqlite3_column_int64(statement, 0);
        given_out_below = sqlite3_column_int64(statement, 1);
        newest = sqlite3_column_int64(statement, 2);
    }
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    if (status == SQLITE_DONE) {
        return no_such_uid(uid, err);
    }
    if (status != SQLITE_ROW) {
        return sqlite_error_status(&self->file, status, "finding a job", err);
    }
    if (revision->revision != newest + 1) {
        return skrull_error_because(
            err, SKRULL_ERR_ABORTED, SKRULL_REASON_REVISION_STALE, (uint64_t)newest,
            "the job has revision %" PRId64 ", %" PRIu32 " is not the next: look at it again",
            newest, revision->revision);
    }
    if ((uint64_t)given_out_below > revision->first_step) {
        return skrull_error_set(
            err, SKRULL_ERR_FAILED_PRECONDITION,
            "plans below step %" PRId64
            " may have been given out: a revision cannot begin at step %" PRIu64,
            given_out_below, revision->first_step);
    }
    return 0;
}

static int put_revision(struct store *store, const char *uid, const struct store_revision *revision,
                        struct skrull_error *err)
{
    struct store_sqlite *self = sqlite_of(store);
    sqlite3_stmt *statement = self->statements[PUT_REVISION];
    int64_t id = 0;
    int status, result = begin(self, "saving a revision", err);

    if (result) {
        return result;
    }
    result = find_revision(self, uid, revision, &id, err);
    if (result == 0) {
        (void)sqlite3_bind_int64(statement, 1, id);
        (void)sqlite3_bind_int64(statement, 2, revision->revision);
        (void)sqlite3_bind_int64(statement, 3, (int64_t)revision->first_step);
        bind_blob(statement, 4, revision->spec, revision->spec_len);
        (void)sqlite3_bind_int64(statement, 5, hash_of(revision->spec, revision->spec_len));
        status = run(statement);
        if (status != SQLITE_DONE) {
            result = sqlite_error_status(&self->file, status, "saving a revision", err);
        }
    }
    return end(self, result, "saving a revision", err);
}

/* Deletes what belongs to the job of this name, by one statement. */
static int delete_rows(struct store_sqlite *self, enum statement which, const char *name)
{
    bind_text(self->statements[which], 1, name);
    return run(self->statements[which]);
}

static int delete_job(struct store *store, const char *name, struct skrull_error *err)
{
    struct store_sqlite *self = sqlite_of(store);
    int status, result = begin(self, "deleting a job", err);

    if (result) {
        return result;
    }
    status = delete_rows(self, DELETE_PROGRESS, name);
    if (status == SQLITE_DONE) {
        status = delete_rows(self, DELETE_REVISIONS, name);
    }
    if (status == SQLITE_DONE) {
        status = delete_rows(self, DELETE_JOB, name);
    }
    if (status != SQLITE_DONE) {
        result = sqlite_error_status(&self->file, status, "deleting a job", err);
    } else if (sqlite3_changes(self->file.db) == 0) {
        result = skrull_error_set(err, SKRULL_ERR_NOT_FOUND, "no job is named %s", name);
    }
    return end(self, result, "deleting a job", err);
}

static int give_out(struct store *store, const char *uid, uint64_t below, struct skrull_error *err)
{
    struct store_sqlite *self = sqlite_of(store);
    sqlite3_stmt *statement = self->statements[GIVE_OUT];
    int status;

    bind_text(statement, 1, uid);
    (void)sqlite3_bind_int64(statement, 2, (int64_t)below);
    status = run(statement);
    if (status != SQLITE_DONE) {
        return sqlite_error_status(&self->file, status, "saving which plans are given out", err);
    }
    return sqlite3_changes(self->file.db) ? 0 : no_such_uid(uid, err);
}

/* The row of a job. */
static int find_uid(struct store_sqlite *self, const char *uid, int64_t *ret_id,
                    struct skrull_error *err)
{
    sqlite3_stmt *statement = self->statements[FIND_UID];
    int64_t id = 0;
    int status;

    bind_text(statement, 1, uid);
    status = sqlite3_step(statement);
    if (status == SQLITE_ROW) {
        id = sqlite3_column_int64(statement, 0);
    }
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    if (status == SQLITE_DONE) {
        return no_such_uid(uid, err);
    }
    if (status != SQLITE_ROW) {
        return sqlite_error_status(&self->file, status, "finding a job", err);
    }
    *ret_id = id;
    return 0;
}

static int put_rank(struct store_sqlite *self, int64_t id, const struct store_progress *progress,
                    struct skrull_error *err)
{
    sqlite3_stmt *statement = self->statements[PUT_PROGRESS];
    _cleanup_(cleanup_free) uint64_t *words = calloc(progress->n_ranges + 1, RANGE_BYTES);
    size_t i, len;
    int status;

    if (!words || ckd_mul(&len, progress->n_ranges, RANGE_BYTES)) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "no memory to save the progress of data rank %" PRIu32,
                                progress->data_rank);
    }
    for (i = 0; i < progress->n_ranges; i++) {
        words[2 * i] = htole64(progress->ranges[i].begin);
        words[2 * i + 1] = htole64(progress->ranges[i].end);
    }
    (void)sqlite3_bind_int64(statement, 1, id);
    (void)sqlite3_bind_int64(statement, 2, progress->data_rank);
    bind_blob(statement, 3, words, len);
    (void)sqlite3_bind_int64(statement, 4, hash_of(words, len));
    status = run(statement);
    return status == SQLITE_DONE ? 0
                                 : sqlite_error_status(&self->file, status, "saving progress", err);
}

static int put_progress(struct store *store, const char *uid, const struct store_progress *progress,
                        size_t n, struct skrull_error *err)
{
    struct store_sqlite *self = sqlite_of(store);
    int64_t id = 0;
    size_t i;
    int result = begin(self, "saving progress", err);

    if (result) {
        return result;
    }
    result = find_uid(self, uid, &id, err);
    for (i = 0; result == 0 && i < n; i++) {
        result = put_rank(self, id, &progress[i], err);
    }
    return end(self, result, "saving progress", err);
}

/* A column's bytes. Returns 0, or DATA_LOSS where they are not those that were hashed. */
static int read_blob(struct store_sqlite *self, sqlite3_stmt *statement, int column,
                     const uint8_t **ret_bytes, size_t *ret_len, struct skrull_error *err)
{
    const void *bytes = sqlite3_column_blob(statement, column);
    size_t len = (size_t)sqlite3_column_bytes(statement, column);

    if (hash_of(len ? bytes : "", len) != sqlite3_column_int64(statement, column + 1)) {
        return sqlite_error_damaged(self->file.path, "a row does not have its hash", err);
    }
    *ret_bytes = bytes;
    *ret_len = len;
    return 0;
}

/* Never NULL: NULL is out of memory here, the columns being NOT NULL. */
static const char *text_of(sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement, column);

    return text ? (const char *)text : "";
}

static int give_job(struct store_sqlite *self, sqlite3_stmt *statement, store_job_fn fn, void *arg,
                    struct skrull_error *err)
{
    struct store_job job = {
        .name = text_of(statement, 0),
        .uid = text_of(statement, 1),
        .request_id = text_of(statement, 2),
        .given_out_below = (uint64_t)sqlite3_column_int64(statement, 5),
    };
    int result = read_blob(self, statement, 3, &job.spec, &job.spec_len, err);

    return result ? result : fn(arg, &job);
}

static int each_job(struct store *store, store_job_fn fn, void *arg, struct skrull_error *err)
{
    struct store_sqlite *self = sqlite_of(store);
    sqlite3_stmt *statement = self->statements[EACH_JOB];
    int status = SQLITE_DONE, result = 0;

    while (result == 0 && (status = sqlite3_step(statement)) == SQLITE_ROW) {
        result = give_job(self, statement, fn, arg, err);
    }
    if (result == 0 && status != SQLITE_DONE) {
        result = sqlite_error_status(&self->file, status, "reading the jobs", err);
    }
    (void)sqlite3_reset(statement);
    return result;
}

static int each_revision(struct store *store, const char *uid, store_revision_fn fn, void *arg,
                         struct skrull_error *err)
{
    struct store_sqlite *self = sqlite_of(store);
    sqlite3_stmt *statement = self->statements[EACH_REVISION];
    int status = SQLITE_DONE, result = 0;

    bind_text(statement, 1, uid);
    while (result == 0 && (status = sqlite3_step(statement)) == SQLITE_ROW) {
        struct store_revision revision = {
            .revision = (uint32_t)sqlite3_column_int64(statement, 0),
            .first_step = (uint64_t)sqlite3_column_int64(statement, 1),
        };

        result = read_blob(self, statement, 2, &revision.spec, &revision.spec_len, err);
        result = result ? result : fn(arg, &revision);
    }
    if (result == 0 && status != SQLITE_DONE) {
        result = sqlite_error_status(&self->file, status, "reading revisions", err);
    }
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return result;
}

static int give_progress(struct store_sqlite *self, sqlite3_stmt *statement, store_progress_fn fn,
                         void *arg, struct skrull_error *err)
{
    _cleanup_(cleanup_free) struct store_range *ranges = NULL;
    struct store_progress progress;
    const uint8_t *bytes = NULL;
    uint64_t words[2];
    size_t len = 0, i;
    int result = read_blob(self, statement, 1, &bytes, &len, err);

    if (result) {
        return result;
    }
    ranges = calloc(len / RANGE_BYTES + 1, sizeof(*ranges));
    if (!ranges) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "no memory to read progress");
    }
    for (i = 0; i < len / RANGE_BYTES; i++) {
        memcpy(words, bytes + i * RANGE_BYTES, RANGE_BYTES);
        ranges[i] = (struct store_range){le64toh(words[0]), le64toh(words[1])};
    }
    progress = (struct store_progress){
        .data_rank = (uint32_t)sqlite3_column_int64(statement, 0),
        .ranges = ranges,
        .n_ranges = len / RANGE_BYTES,
    };
    return fn(arg, &progress);
}

static int each_progress(struct store *store, const char *uid, store_progress_fn fn, void *arg,
                         struct skrull_error *err)
{
    struct store_sqlite *self = sqlite_of(store);
    sqlite3_stmt *statement = self->statements[EACH_PROGRESS];
    int status = SQLITE_DONE, result = 0;

    bind_text(statement, 1, uid);
    while (result == 0 && (status = sqlite3_step(statement)) == SQLITE_ROW) {
        result = give_progress(self, statement, fn, arg, err);
    }
    if (result == 0 && status != SQLITE_DONE) {
        result = sqlite_error_status(&self->file, status, "reading progress", err);
    }
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return result;
}

const struct store_ops store_sqlite_ops = {
    .make_folder = sqlite_file_make_folder,
    .open = open_store,
    .close = close_store,
    .put_job = put_job,
    .put_revision = put_revision,
    .delete_job = delete_job,
    .give_out = give_out,
    .put_progress = put_progress,
    .each_job = each_job,
    .each_revision = each_revision,
    .each_progress = each_progress,
};
