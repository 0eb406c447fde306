/* The store's failures in words that name the file and the remedy. Pure functions but for errno. */
#include "store/sqlite_error.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <sqlite3.h>

#include "store/sqlite_file.h"

int sqlite_error_system(const char *path, const char *doing, int number, struct skrull_error *err)
{
    int code = SKRULL_ERR_FAILED_PRECONDITION;

    if (number == EACCES || number == EPERM || number == EROFS) {
        code = SKRULL_ERR_PERMISSION_DENIED;
    } else if (number == ENOSPC || number == EDQUOT || number == ENOMEM || number == EMFILE ||
               number == ENFILE) {
        code = SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    return skrull_error_set(err, code,
                            "state %.200s: %s failed: %s: give --state a place that this user can "
                            "write to",
                            path, doing, strerror(number));
}

int sqlite_error_damaged(const char *path, const char *what, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                            "state %.160s is damaged: %.120s: it was left as it is; restore a copy "
                            "of it, or move it and its -wal away to start without jobs",
                            path, what);
}

int sqlite_error_status(const struct sqlite_file *file, int status, const char *doing,
                        struct skrull_error *err)
{
    int number = file->db ? sqlite3_system_errno(file->db) : 0;
    const char *why = file->db ? sqlite3_errmsg(file->db) : sqlite3_errstr(status);
    bool is_full = number == ENOSPC || number == EDQUOT || number == EFBIG;

    switch (status & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return sqlite_error_damaged(file->path, why, err);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                                "state %.200s is in use by another program: end it, or give this "
                                "skrulld another --state",
                                file->path);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_CANTOPEN:
        return skrull_error_set(err, SKRULL_ERR_PERMISSION_DENIED,
                                "state %.200s: %s failed: %s: this user must be able to read and "
                                "write it and its folder",
                                file->path, doing, why);
    case SQLITE_NOMEM:
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "state %.200s: %s failed: out of memory", file->path, doing);
    case SQLITE_FULL:
        is_full = true;
        break;
    default:
        break;
    }
    if (is_full) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "state %.200s: %s failed: the disk is full: free space and try "
                                "again; nothing was changed",
                                file->path, doing);
    }
    if ((status & 0xff) == SQLITE_IOERR) {
        return skrull_error_set(err, SKRULL_ERR_UNAVAILABLE,
                                "state %.200s: %s failed: %s (%s): check the disk and try again",
                                file->path, doing, why, number ? strerror(number) : "no errno");
    }
    return skrull_error_set(err, SKRULL_ERR_INTERNAL, "state %.200s: %s failed: %s", file->path,
                            doing, why);
}

int sqlite_error_memory(const char *path, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "state %.200s: out of memory",
                            path);
}
