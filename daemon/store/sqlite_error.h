/* What can go wrong with a SQLite state, in our words; each returns the code. */
#pragma once

#include <skrull/error.h>

struct sqlite_file;

/* A system call failed with errno `number` while `doing` ("creating it"). */
int sqlite_error_system(const char *path, const char *doing, int number, struct skrull_error *err);

/* DATA_LOSS: what the file is like, and that it was left so. */
int sqlite_error_damaged(const char *path, const char *what, struct skrull_error *err);

int sqlite_error_memory(const char *path, struct skrull_error *err);

/* SQLite answered `status` while `doing` ("saving a job"). */
int sqlite_error_status(const struct sqlite_file *file, int status, const char *doing,
                        struct skrull_error *err);
