/*
 * Opening the SQLite state.
 *
 * Creation: the schema is written to PATH.new, which is then renamed, so PATH is always a whole
 * state and an empty or torn one is damage, not a beginning. Two locks: flock on PATH.lock, taken
 * before the file is touched, and SQLite's own exclusive lock, for those who come by another name.
 * Checks run from the least invasive on: header, version, structure; only then is the journal mode
 * set. synchronous=FULL: a commit is on the disk when it returns, also after a power cut.
 */
#include "store/sqlite_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "cleanup.h"
#include "store/sqlite_error.h"

#define APPLICATION_ID 0x736b726c /* "skrl" in the file's header */
#define SCHEMA_VERSION 1
#define SMALLEST_PAGE 512 /* SQLite's; it takes a shorter file for a new database */
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

static const char schema[] =
    "BEGIN;"
    "CREATE TABLE jobs ("
    " id INTEGER PRIMARY KEY,"
    " name TEXT NOT NULL UNIQUE,"
    " uid TEXT NOT NULL UNIQUE,"
    " request_id TEXT NOT NULL,"
    " spec BLOB NOT NULL,"
    " spec_hash INTEGER NOT NULL,"
    " given_out_below INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE revisions (" /* from the second on */
    " job INTEGER NOT NULL REFERENCES jobs (id),"
    " revision INTEGER NOT NULL,"
    " first_step INTEGER NOT NULL,"
    " spec BLOB NOT NULL,"
    " spec_hash INTEGER NOT NULL,"
    " UNIQUE (job, revision)"
    ") STRICT;"
    "CREATE TABLE progress ("
    " job INTEGER NOT NULL REFERENCES jobs (id),"
    " data_rank INTEGER NOT NULL,"
    " ranges BLOB NOT NULL,"
    " ranges_hash INTEGER NOT NULL,"
    " PRIMARY KEY (job, data_rank)"
    ") STRICT, WITHOUT ROWID;"
    "PRAGMA application_id = " TEXT(APPLICATION_ID) ";"
                                                    "PRAGMA user_version = " TEXT(
                                                        SCHEMA_VERSION) ";"
                                                                        "COMMIT;";

int sqlite_file_exec(const struct sqlite_file *file, const char *sql, const char *doing,
                     struct skrull_error *err)
{
    int status = sqlite3_exec(file->db, sql, NULL, NULL, NULL);

    return status == SQLITE_OK ? 0 : sqlite_error_status(file, status, doing, err);
}

/* Creates the folders above `path` that are missing. */
static int make_folders(char *path, struct skrull_error *err)
{
    char *slash;
    int number;

    for (slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        number = mkdir(path, 0700) && errno != EEXIST ? errno : 0;
        *slash = '/';
        if (number && access(path, F_OK)) {
            return sqlite_error_system(path, "creating its folder", number, err);
        }
    }
    return 0;
}

/* PATH + suffix, malloc'd; NULL: out of memory. */
static char *path_with(const char *path, const char *suffix)
{
    size_t len = strlen(path), more = strlen(suffix);
    char *text = malloc(len + more + 1);

    if (text) {
        memcpy(text, path, len);
        memcpy(text + len, suffix, more + 1);
    }
    return text;
}

/* The folder of `path` must be there. */
static int check_folder(const char *path, struct skrull_error *err)
{
    const char *slash = strrchr(path, '/');
    _cleanup_(cleanup_free) char *folder = strndup(path, (size_t)(slash - path) + 1);
    struct stat status;

    if (!folder) {
        return sqlite_error_memory(path, err);
    }
    if (stat(folder, &status) < 0 && errno == ENOENT) {
        if (slash > path) {
            folder[slash - path] = '\0';
        }
        return skrull_error_set(err, SKRULL_ERR_NOT_FOUND,
                                "state: the folder %.200s does not exist: make it, or name a file "
                                "in another folder in --state sqlite:PATH",
                                folder);
    }
    return 0;
}

/* Takes PATH.lock, which says who has it. */
static int take_lock(struct sqlite_file *file, struct skrull_error *err)
{
    _cleanup_(cleanup_free) char *lock_path = path_with(file->path, ".lock");
    char holder[32] = "";
    ssize_t n;

    if (!lock_path) {
        return sqlite_error_memory(file->path, err);
    }
    file->lock_fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file->lock_fd < 0) {
        return sqlite_error_system(file->path, "opening its lock file PATH.lock", errno, err);
    }
    if (flock(file->lock_fd, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK) {
            return sqlite_error_system(file->path, "locking PATH.lock", errno, err);
        }
        n = read(file->lock_fd, holder, sizeof(holder) - 1);
        holder[n > 0 ? strspn(holder, "0123456789") : 0] = '\0';
        return skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                                "state %.200s is in use by another skrulld (process %s): stop it, "
                                "or give this one another --state",
                                file->path, *holder ? holder : "unknown");
    }
    if (ftruncate(file->lock_fd, 0) || dprintf(file->lock_fd, "%ld\n", (long)getpid()) < 0) {
        return sqlite_error_system(file->path, "writing PATH.lock", errno, err);
    }
    return 0;
}

static int open_db(struct sqlite_file *file, const char *path, struct skrull_error *err)
{
    /* One thread at a time uses it, so SQLite need not lock. */
    int status =
        sqlite3_open_v2(path, &file->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);

    if (status != SQLITE_OK) {
        return sqlite_error_status(file, status, "opening it", err);
    }
    (void)sqlite3_extended_result_codes(file->db, 1);
    return 0;
}

static int close_db(struct sqlite_file *file)
{
    int status = sqlite3_close(file->db);

    file->db = NULL;
    return status;
}

/* Makes a file's name durable. */
static int sync_folder(const char *path, struct skrull_error *err)
{
    _cleanup_(cleanup_free) char *folder = path_with(path, "");
    _cleanup_(cleanup_fd) int fd = -1;
    char *slash;

    if (!folder) {
        return sqlite_error_memory(path, err);
    }
    slash = strrchr(folder, '/');
    slash[slash == folder ? 1 : 0] = '\0';
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd)) {
        return sqlite_error_system(path, "saving its folder", errno, err);
    }
    return 0;
}

/* Writes an empty state to `path`, which must not exist. */
static int write_new(struct sqlite_file *file, const char *path, struct skrull_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int result;

    /* Closed before SQLite opens it: closing any descriptor of a file drops SQLite's locks on it.
     */
    if (fd < 0 || close(fd)) {
        return sqlite_error_system(file->path, "creating it", errno, err);
    }
    result = open_db(file, path, err);
    if (result == 0) {
        result = sqlite_file_exec(file, "PRAGMA synchronous = FULL;", "creating it", err);
    }
    if (result == 0) {
        result = sqlite_file_exec(file, schema, "creating it", err);
    }
    if (close_db(file) != SQLITE_OK && result == 0) {
        result = skrull_error_set(err, SKRULL_ERR_INTERNAL, "state %.200s: closing it failed",
                                  file->path);
    }
    return result;
}

static int create(struct sqlite_file *file, struct skrull_error *err)
{
    _cleanup_(cleanup_free) char *path = path_with(file->path, ".new");
    _cleanup_(cleanup_free) char *journal = path_with(file->path, ".new-journal");
    int result;

    if (!path || !journal) {
        return sqlite_error_memory(file->path, err);
    }
    /* What a creation that was cut short left behind. */
    if ((unlink(path) && errno != ENOENT) || (unlink(journal) && errno != ENOENT)) {
        return sqlite_error_system(file->path, "removing a half-made PATH.new", errno, err);
    }
    result = write_new(file, path, err);
    if (result == 0 && rename(path, file->path)) {
        result = sqlite_error_system(file->path, "creating it", errno, err);
    }
    if (result) {
        (void)unlink(path);
        (void)unlink(journal);
        return result;
    }
    return sync_folder(file->path, err);
}

/* Is there a write-ahead log with something in it? Negative: out of memory. */
static int has_log(const struct sqlite_file *file, struct skrull_error *err)
{
    _cleanup_(cleanup_free) char *log_path = path_with(file->path, "-wal");
    struct stat status;

    if (!log_path) {
        return sqlite_error_memory(file->path, err);
    }
    return stat(log_path, &status) == 0 && status.st_size > 0;
}

/* Refuses what only looks like a state: an empty file would be taken for a new database, and the
 * log of a lost file would be played into a new one. */
static int check_files(const struct sqlite_file *file, bool *ret_exists, struct skrull_error *err)
{
    struct stat status;
    int result;

    if (stat(file->path, &status)) {
        if (errno != ENOENT) {
            return sqlite_error_system(file->path, "looking at it", errno, err);
        }
        result = has_log(file, err);
        if (result > 0) {
            result = sqlite_error_damaged(file->path, "it is gone, but its -wal is there", err);
        }
        *ret_exists = false;
        return result;
    }
    if (!S_ISREG(status.st_mode)) {
        return skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                                "state %.200s is not a file: name a file in --state sqlite:PATH",
                                file->path);
    }
    if (status.st_size < SMALLEST_PAGE) {
        return sqlite_error_damaged(file->path, "it is empty or cut short", err);
    }
    *ret_exists = true;
    return 0;
}

/* The first column of a query's first row, as a number; or, with `ret_text`, as text. */
static int query(const struct sqlite_file *file, const char *sql, int64_t *ret_number,
                 char ret_text[static 64], struct skrull_error *err)
{
    sqlite3_stmt *statement = NULL;
    int status = sqlite3_prepare_v2(file->db, sql, -1, &statement, NULL), result = 0;
    const unsigned char *text;

    if (status == SQLITE_OK) {
        status = sqlite3_step(statement);
    }
    if (status == SQLITE_ROW) {
        *ret_number = sqlite3_column_int64(statement, 0);
        text = sqlite3_column_text(statement, 0);
        (void)sqlite3_snprintf(64, ret_text, "%s", text ? (const char *)text : "");
    } else {
        result = sqlite_error_status(file, status, "reading it", err);
    }
    (void)sqlite3_finalize(statement);
    return result;
}

static int check_header(const struct sqlite_file *file, struct skrull_error *err)
{
    int64_t application = 0, version = 0;
    char text[64];
    int result = query(file, "PRAGMA application_id", &application, text, err);

    if (result == 0) {
        result = query(file, "PRAGMA user_version", &version, text, err);
    }
    if (result) {
        return result;
    }
    if (application != APPLICATION_ID) {
        return skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                                "state %.200s is a database of another program: name another file "
                                "in --state sqlite:PATH",
                                file->path);
    }
    if (version > SCHEMA_VERSION) {
        return skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                                "state %.200s has schema version %" PRId64
                                ", this skrulld knows up to %d: run the newer skrulld that wrote "
                                "it, or name another file",
                                file->path, version, SCHEMA_VERSION);
    }
    if (version < 1) {
        return sqlite_error_damaged(file->path, "it has no schema version", err);
    }
    return 0;
}

/* Without a log the file is as long as its header says; SQLite lets a last page that is cut short
 * pass. */
static int check_size(const struct sqlite_file *file, struct skrull_error *err)
{
    int64_t n_pages = 0, page_bytes = 0;
    struct stat status;
    char text[64];
    int result = has_log(file, err);

    if (result) {
        return result < 0 ? result : 0;
    }
    result = query(file, "PRAGMA page_count", &n_pages, text, err);
    if (result == 0) {
        result = query(file, "PRAGMA page_size", &page_bytes, text, err);
    }
    if (result == 0 && (stat(file->path, &status) || status.st_size != n_pages * page_bytes)) {
        result = sqlite_error_damaged(file->path, "it is cut short", err);
    }
    return result;
}

static int check_content(const struct sqlite_file *file, struct skrull_error *err)
{
    char text[64];
    int64_t number;
    int result = check_header(file, err);

    if (result == 0) {
        result = check_size(file, err);
    }
    if (result == 0) {
        result = query(file, "PRAGMA quick_check(1)", &number, text, err);
    }
    if (result == 0 && strcmp(text, "ok") != 0) {
        result = sqlite_error_damaged(file->path, text, err);
    }
    return result;
}

/* Opens an existing state and takes SQLite's lock, which is then kept. */
static int open_existing(struct sqlite_file *file, struct skrull_error *err)
{
    char text[64];
    int64_t number;
    int result = open_db(file, file->path, err);

    if (result == 0) {
        result = sqlite_file_exec(file,
                                  "PRAGMA locking_mode = EXCLUSIVE; PRAGMA cell_size_check = ON;"
                                  "PRAGMA trusted_schema = OFF;",
                                  "opening it", err);
    }
    if (result == 0) {
        result = check_content(file, err);
    }
    if (result == 0) {
        result = query(file, "PRAGMA journal_mode = WAL", &number, text, err);
    }
    if (result == 0 && strcmp(text, "wal") != 0) {
        result = skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                                  "state %.200s: no write-ahead log on this file system: name a "
                                  "file on a local disk",
                                  file->path);
    }
    if (result == 0) {
        /* The empty transaction takes the lock. */
        result = sqlite_file_exec(file,
                                  "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"
                                  "BEGIN IMMEDIATE; COMMIT;",
                                  "locking it", err);
    }
    return result;
}

/* The path as SQLite and mkdir should see it: no name that SQLite reads as a command. */
static char *plain_path(const char *path)
{
    return path[0] == '/' ? path_with(path, "") : path_with("./", path);
}

int sqlite_file_make_folder(const char *path, struct skrull_error *err)
{
    _cleanup_(cleanup_free) char *plain = plain_path(path);

    return plain ? make_folders(plain, err) : sqlite_error_memory(path, err);
}

int sqlite_file_open(const char *path, struct sqlite_file *ret_file, struct skrull_error *err)
{
    struct sqlite_file file = {.lock_fd = -1};
    bool exists = false;
    int result;

    if (!*path || path[strlen(path) - 1] == '/') {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "state: sqlite:%.200s names no file: use sqlite:PATH", path);
    }
    file.path = plain_path(path);
    if (!file.path) {
        return sqlite_error_memory(path, err);
    }
    result = check_folder(file.path, err);
    if (result == 0) {
        result = take_lock(&file, err);
    }
    if (result == 0) {
        result = check_files(&file, &exists, err);
    }
    if (result == 0 && !exists) {
        result = create(&file, err);
    }
    if (result == 0) {
        result = open_existing(&file, err);
    }
    if (result) {
        sqlite_file_close(&file);
        return result;
    }
    *ret_file = file;
    return 0;
}

void sqlite_file_close(struct sqlite_file *file)
{
    (void)close_db(file);
    if (file->lock_fd >= 0) {
        (void)close(file->lock_fd);
        file->lock_fd = -1;
    }
    free(file->path);
    file->path = NULL;
}
