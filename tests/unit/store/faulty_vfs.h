/* A file system for SQLite that fails on demand: wraps the real one, counts writes and syncs. */
#pragma once

/* Makes it SQLite's default. Once. */
void faulty_vfs_register(void);

/* The `nth` write or sync from now on (1: the next) answers `status` (SQLITE_FULL,
 * SQLITE_IOERR_FSYNC), and so do all after it until 0 is given as `nth`. Returns how many there
 * were since the last call. */
int faulty_vfs_fail(int nth, int status);
