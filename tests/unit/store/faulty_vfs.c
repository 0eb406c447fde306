/*
 * A shim over SQLite's unix file system: each file is a real one behind a method table in which
 * write, truncate and sync may fail. One thread; state in this file, because SQLite's methods get
 * no argument that is ours.
 */
#include "unit/store/faulty_vfs.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include <sqlite3.h>

struct faulty_file {
    sqlite3_file base;
    sqlite3_file *real; /* behind this struct, in the same memory */
};

static sqlite3_vfs *real_vfs;
static sqlite3_vfs faulty_vfs;
static int n_calls, fail_at, fail_status;

static int count(void)
{
    n_calls++;
    return fail_at && n_calls >= fail_at ? fail_status : SQLITE_OK;
}

int faulty_vfs_fail(int nth, int status)
{
    int n = n_calls;

    n_calls = 0;
    fail_at = nth;
    fail_status = status;
    return n;
}

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct faulty_file *)(void *)file)->real;
}

static int close_file(sqlite3_file *file)
{
    return real_of(file)->pMethods ? real_of(file)->pMethods->xClose(real_of(file)) : SQLITE_OK;
}

static int read_file(sqlite3_file *file, void *bytes, int n, sqlite3_int64 at)
{
    return real_of(file)->pMethods->xRead(real_of(file), bytes, n, at);
}

static int write_file(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 at)
{
    int status = count();

    return status ? status : real_of(file)->pMethods->xWrite(real_of(file), bytes, n, at);
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 size)
{
    int status = count();

    return status ? status : real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int sync_file(sqlite3_file *file, int flags)
{
    int status = count();

    return status ? status : real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), ret_size);
}

static int lock_file(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int unlock_file(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int check_reserved(sqlite3_file *file, int *ret_is_reserved)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), ret_is_reserved);
}

static int control(sqlite3_file *file, int operation, void *arg)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), operation, arg);
}

static int sector_size(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int characteristics(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

/* Version 1: no shared memory, which an exclusive lock does without, and no mapping. */
static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = close_file,
    .xRead = read_file,
    .xWrite = write_file,
    .xTruncate = truncate_file,
    .xSync = sync_file,
    .xFileSize = file_size,
    .xLock = lock_file,
    .xUnlock = unlock_file,
    .xCheckReservedLock = check_reserved,
    .xFileControl = control,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = characteristics,
};

static int open_file(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags,
                     int *ret_flags)
{
    struct faulty_file *faulty = (struct faulty_file *)(void *)file;
    int status;

    (void)vfs;
    faulty->real = (sqlite3_file *)(void *)(faulty + 1);
    memset(faulty->real, 0, (size_t)real_vfs->szOsFile);
    status = real_vfs->xOpen(real_vfs, name, faulty->real, flags, ret_flags);
    faulty->base.pMethods = faulty->real->pMethods ? &methods : NULL;
    return status;
}

void faulty_vfs_register(void)
{
    real_vfs = sqlite3_vfs_find(NULL);
    assert(real_vfs != &faulty_vfs);
    faulty_vfs = *real_vfs;
    faulty_vfs.zName = "faulty";
    faulty_vfs.pNext = NULL;
    faulty_vfs.szOsFile = real_vfs->szOsFile + (int)sizeof(struct faulty_file);
    faulty_vfs.xOpen = open_file;
    (void)sqlite3_vfs_register(&faulty_vfs, 1);
}
