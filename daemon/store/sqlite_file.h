/*
 * The file behind store_sqlite: created whole or not at all, locked against a second daemon,
 * checked before it is used, never overwritten. Beside PATH stand PATH.lock (never removed; holds
 * the daemon's process id) and PATH-wal.
 */
#pragma once

#include <skrull/error.h>

struct sqlite3;

struct sqlite_file {
    char *path;         /* owned */
    int lock_fd;        /* -1: none */
    struct sqlite3 *db; /* locked; write-ahead log, synced at every commit */
};

/* Makes the folders above `path` that are missing (mode 700). */
int sqlite_file_make_folder(const char *path, struct skrull_error *err);

/*
 * Opens or creates the state at `path`. NOT_FOUND: its folder is missing; FAILED_PRECONDITION:
 * another program has it, it is of a newer skrulld, or it is not a state at all; DATA_LOSS:
 * damaged; PERMISSION_DENIED; RESOURCE_EXHAUSTED: disk full.
 */
int sqlite_file_open(const char *path, struct sqlite_file *ret_file, struct skrull_error *err);

/* Half-opened files are fine. */
void sqlite_file_close(struct sqlite_file *file);

/* Runs SQL that gives no rows. */
int sqlite_file_exec(const struct sqlite_file *file, const char *sql, const char *doing,
                     struct skrull_error *err);
