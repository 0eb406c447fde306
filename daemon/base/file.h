/*
 * Files as the daemon needs them: read at an offset, replaced as a whole,
 * recognised again. Functions that name a path only for their messages say so.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>

/* Which state of which file: two equal stamps mean that nobody wrote in between. */
struct file_stamp {
    uint64_t device;
    uint64_t inode;
    uint64_t size;
    int64_t mtime_ns;
    uint32_t mode; /* as stat's; not compared */
};

/* The stamp of an open file; `path` only for messages. */
int file_stamp(int fd, const char *path, struct file_stamp *ret_stamp, struct skrull_error *err);

/* 1: the same state of the same file. */
int file_stamp_equal(const struct file_stamp *a, const struct file_stamp *b);

/* Reads [offset, offset + size) into `bytes`, as much of it as the file has; *ret_size is what
 * came. The descriptor's own position stays. `path` only for messages. */
int file_read_at(int fd, const char *path, void *bytes, size_t size, uint64_t offset,
                 size_t *ret_size, struct skrull_error *err);

/* Writes all of `bytes` at the descriptor's position; `path` only for messages. */
int file_write_all(int fd, const char *path, const void *bytes, size_t size,
                   struct skrull_error *err);

/*
 * A file in the making: written beside its name, put in place at once, so that a reader sees the
 * old file or the new, never a part. A link at `path` is replaced, not followed.
 */
struct file_replace {
    int fd;             /* write here */
    int folder_fd;      /* the folder of `path` */
    const char *path;   /* borrowed until commit or abort */
    char temporary[32]; /* name in the folder */
};

/* Creates the temporary file with `mode` (whatever the umask). After success one of commit and
 * abort. */
int file_replace_begin(const char *path, unsigned int mode, struct file_replace *ret_file,
                       struct skrull_error *err);

/* fsync, rename, fsync of the folder. Whatever comes of it, `file` is done with; where it fails
 * before the rename nothing stays behind. */
int file_replace_commit(struct file_replace *file, struct skrull_error *err);

/* Drops the temporary file. */
void file_replace_abort(struct file_replace *file);
