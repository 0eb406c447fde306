/*
 * Files under the data roots. A path is judged by what the kernel opened, not by its text: opened
 * without access (O_PATH), its resolved name read back from /proc/self/fd and held against the
 * resolved roots, then reopened for reading through the same descriptor. So a link, or a folder
 * swapped in between, cannot lead outside, and a pipe or device is never opened at all.
 *
 * Where a name cannot be opened, only its text is left: outside the roots the answer is the same
 * whether the file exists or not. Thread-safe.
 */
#include "index/index.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "index/format.h"

struct lookup {
    const char *path; /* as asked for */
    const char *const *roots;
    size_t n_roots;
    struct skrull_error *err;
};

static int refuse(const struct lookup *lookup, int code, const char *why)
{
    enum skrull_reason reason = SKRULL_REASON_NONE;

    if (code == SKRULL_ERR_NOT_FOUND) {
        reason = SKRULL_REASON_INDEX_NOT_FOUND;
    } else if (code == SKRULL_ERR_PERMISSION_DENIED) {
        reason = SKRULL_REASON_INDEX_OUTSIDE_ROOTS;
    }
    return skrull_error_because(lookup->err, code, reason, 0, "%s: %s",
                                index_short_path(lookup->path), why);
}

static int outside(const struct lookup *lookup)
{
    return refuse(lookup, SKRULL_ERR_PERMISSION_DENIED,
                  "not under a data root; move it there, or start with --data-root FOLDER");
}

/* 1: `path` is `root` or below it; both absolute and without "." or "..". */
static bool is_under(const char *path, const char *root)
{
    size_t len = strlen(root);

    while (len > 0 && root[len - 1] == '/') {
        len--;
    }
    return strncmp(path, root, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* The kernel's name of an open file, links resolved. */
static int resolved_name(int fd, char ret_name[PATH_MAX])
{
    char proc[40];
    ssize_t len;

    (void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
    len = readlink(proc, ret_name, PATH_MAX - 1);
    if (len <= 0 || len >= PATH_MAX - 1 || ret_name[0] != '/') {
        return -1;
    }
    ret_name[len] = '\0';
    return 0;
}

static bool is_under_a_root(const struct lookup *lookup, const char *name)
{
    char root_name[PATH_MAX];

    for (size_t i = 0; i < lookup->n_roots; i++) {
        int fd = open(lookup->roots[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
        bool found;

        if (fd < 0) {
            continue;
        }
        found = resolved_name(fd, root_name) == 0 && is_under(name, root_name);
        (void)close(fd);
        if (found) {
            return true;
        }
    }
    return false;
}

/* `path` without empty, "." and ".." parts, by its text alone. -1: too long. */
static int normalised(const char *path, char ret_text[PATH_MAX])
{
    size_t len = 0;

    while (*path) {
        size_t part = strcspn(path, "/");

        if (part == 2 && path[0] == '.' && path[1] == '.') {
            while (len > 0 && ret_text[--len] != '/') {
            }
        } else if (part > 0 && !(part == 1 && path[0] == '.')) {
            if (len + part + 2 > PATH_MAX) {
                return -1;
            }
            ret_text[len++] = '/';
            memcpy(ret_text + len, path, part);
            len += part;
        }
        path += part + (path[part] == '/');
    }
    ret_text[len] = '\0';
    return 0;
}

/* For a name that cannot be opened: whether its text lies under a root, as given or resolved. */
static bool is_text_under_a_root(const struct lookup *lookup, const char *path)
{
    char text[PATH_MAX];

    if (normalised(path, text) != 0) {
        return false;
    }
    for (size_t i = 0; i < lookup->n_roots; i++) {
        if (is_under(text, lookup->roots[i])) {
            return true;
        }
    }
    return is_under_a_root(lookup, text);
}

enum { IS_ABSENT = 1 };

static int cannot_open(const struct lookup *lookup, const char *full, int error)
{
    if (error == ENOENT || error == ENOTDIR) {
        return IS_ABSENT;
    }
    if (error == ENAMETOOLONG) {
        return refuse(lookup, SKRULL_ERR_INVALID_ARGUMENT, "the path is too long");
    }
    if (!is_text_under_a_root(lookup, full)) {
        return outside(lookup);
    }
    switch (error) {
    case EACCES:
    case EPERM:
        return refuse(lookup, SKRULL_ERR_PERMISSION_DENIED,
                      "may not be read by the user that the program runs as");
    case ELOOP:
        return refuse(lookup, SKRULL_ERR_INVALID_ARGUMENT, "too many symbolic links, or a loop");
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return refuse(lookup, SKRULL_ERR_RESOURCE_EXHAUSTED, strerror(error));
    default:
        return refuse(lookup, SKRULL_ERR_UNAVAILABLE, strerror(error));
    }
}

/* Reopens for reading what O_PATH found: the same file, whatever its name leads to by now. */
static int reopen(const struct lookup *lookup, const char *full, int path_fd, int *ret_fd)
{
    char proc[40];
    int fd;

    (void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", path_fd);
    fd = open(proc, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return cannot_open(lookup, full, errno);
    }
    *ret_fd = fd;
    return 0;
}

/* Opens one absolute path. IS_ABSENT: there is no such file. */
static int open_one(const struct lookup *lookup, const char *full, int *ret_fd)
{
    char name[PATH_MAX];
    struct stat info;
    _cleanup_(cleanup_fd) int fd = open(full, O_PATH | O_CLOEXEC);

    if (fd < 0) {
        return cannot_open(lookup, full, errno);
    }
    if (resolved_name(fd, name) != 0 || !is_under_a_root(lookup, name)) {
        return outside(lookup);
    }
    if (fstat(fd, &info) != 0) {
        return refuse(lookup, SKRULL_ERR_UNAVAILABLE, strerror(errno));
    }
    if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
        return detect_not_a_file(fd, index_short_path(lookup->path), info.st_mode, lookup->err);
    }
    return reopen(lookup, full, fd, ret_fd);
}

static int absent(const struct lookup *lookup, bool may_tell)
{
    return may_tell ? refuse(lookup, SKRULL_ERR_NOT_FOUND, "no such file under the data roots")
                    : outside(lookup);
}

static int open_absolute(const struct lookup *lookup, int *ret_fd)
{
    int status = open_one(lookup, lookup->path, ret_fd);

    return status == IS_ABSENT ? absent(lookup, is_text_under_a_root(lookup, lookup->path))
                               : status;
}

static int open_relative(const struct lookup *lookup, int *ret_fd)
{
    bool may_tell = false;

    for (size_t i = 0; i < lookup->n_roots; i++) {
        _cleanup_(cleanup_free) char *full = NULL;
        int status;

        if (asprintf(&full, "%s/%s", lookup->roots[i], lookup->path) < 0) {
            full = NULL;
            return refuse(lookup, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
        }
        status = open_one(lookup, full, ret_fd);
        if (status != IS_ABSENT) {
            return status;
        }
        may_tell = may_tell || is_text_under_a_root(lookup, full);
    }
    return absent(lookup, may_tell);
}

int index_open_under_roots(const char *path, const char *const *roots, size_t n_roots, int *ret_fd,
                           struct skrull_error *err)
{
    struct lookup lookup = {.path = path, .roots = roots, .n_roots = n_roots, .err = err};

    if (path[0] == '\0') {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "the path of an index is empty");
    }
    if (n_roots == 0) {
        return refuse(
            &lookup, SKRULL_ERR_PERMISSION_DENIED,
            "no data root is given, so no path is allowed; start with --data-root FOLDER");
    }
    return path[0] == '/' ? open_absolute(&lookup, ret_fd) : open_relative(&lookup, ret_fd);
}
