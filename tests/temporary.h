/* A folder for one test, gone with all that is in it afterwards. CMocka's headers come first. */
#pragma once

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPORARY_PATH_SIZE 512

struct temporary {
    char path[64]; /* absolute, links resolved */
};

static inline void temporary_make(struct temporary *folder)
{
    char resolved[4096];

    (void)snprintf(folder->path, sizeof(folder->path), "/tmp/skrull-test-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    assert_non_null(realpath(folder->path, resolved));
    assert_true(strlen(resolved) < sizeof(folder->path));
    (void)snprintf(folder->path, sizeof(folder->path), "%.63s", resolved);
}

static inline int temporary_unlink(const char *path, const struct stat *info, int type,
                                   struct FTW *at)
{
    (void)info;
    (void)type;
    (void)at;
    return remove(path);
}

static inline void temporary_remove(struct temporary *folder)
{
    (void)nftw(folder->path, temporary_unlink, 8, FTW_DEPTH | FTW_PHYS);
}

/* FOLDER/NAME, in a static buffer good for the next call but one. */
static inline const char *temporary_path(const struct temporary *folder, const char *name)
{
    static char paths[2][TEMPORARY_PATH_SIZE];
    static int next;

    next = !next;
    (void)snprintf(paths[next], sizeof(paths[next]), "%s/%s", folder->path, name);
    return paths[next];
}

static inline void temporary_write(const struct temporary *folder, const char *name,
                                   const void *bytes, size_t size)
{
    int fd = open(temporary_path(folder, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    assert_int_equal(close(fd), 0);
}

static inline int temporary_open(const struct temporary *folder, const char *name)
{
    int fd = open(temporary_path(folder, name), O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    assert_true(fd >= 0);
    return fd;
}
