/*
 * A file replaced as a whole: temporary file in the same folder (rename does not cross file
 * systems), fsync, rename, fsync of the folder, since the rename itself lives there. A process that
 * is killed in between leaves `.skrull-*.tmp` behind and the old file untouched.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"

static int fail(const char *path, const char *what, struct skrull_error *err)
{
    int code = errno == EACCES || errno == EPERM || errno == EROFS ? SKRULL_ERR_PERMISSION_DENIED
               : errno == ENOENT || errno == ENOTDIR               ? SKRULL_ERR_NOT_FOUND
                                                                   : SKRULL_ERR_UNAVAILABLE;

    return skrull_error_set(err, code, "%s: %s: %s", path, what, strerror(errno));
}

/* What follows the last slash; "" for a folder. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static int open_folder(const char *path, int *ret_fd, struct skrull_error *err)
{
    size_t len = (size_t)(base_name(path) - path);
    char *folder = len == 0 ? strdup(".") : strndup(path, len);
    int fd;

    if (!folder) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "%s: out of memory", path);
    }
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (fd < 0) {
        return fail(path, "opening its folder", err);
    }
    *ret_fd = fd;
    return 0;
}

static int create_temporary(struct file_replace *file, unsigned int mode, struct skrull_error *err)
{
    char hex[17];
    int status = rng_hex(hex, 8, err);

    if (status < 0) {
        return status;
    }
    (void)snprintf(file->temporary, sizeof(file->temporary), ".skrull-%s.tmp", hex);
    file->fd = openat(file->folder_fd, file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                      (mode_t)mode);
    if (file->fd < 0) {
        return fail(file->path, "creating a temporary file beside it", err);
    }
    if (fchmod(file->fd, (mode_t)mode) != 0) {
        status = fail(file->path, "setting its mode", err);
        (void)unlinkat(file->folder_fd, file->temporary, 0);
        (void)close(file->fd);
        return status;
    }
    return 0;
}

int file_replace_begin(const char *path, unsigned int mode, struct file_replace *ret_file,
                       struct skrull_error *err)
{
    struct file_replace file = {.fd = -1, .folder_fd = -1, .path = path};
    int status;

    if (base_name(path)[0] == '\0') {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "%s: not the name of a file",
                                path[0] ? path : "(empty path)");
    }
    status = open_folder(path, &file.folder_fd, err);
    if (status < 0) {
        return status;
    }
    status = create_temporary(&file, mode, err);
    if (status < 0) {
        (void)close(file.folder_fd);
        return status;
    }
    *ret_file = file;
    return 0;
}

int file_replace_commit(struct file_replace *file, struct skrull_error *err)
{
    int status = 0;

    if (fsync(file->fd) != 0) {
        status = fail(file->path, "fsync", err);
    } else if (renameat(file->folder_fd, file->temporary, file->folder_fd, base_name(file->path)) !=
               0) {
        status = fail(file->path, "putting it in place", err);
    }
    if (status < 0) {
        file_replace_abort(file);
        return status;
    }
    /* Some file systems cannot fsync a folder; EINVAL says so, and the rename holds all the same.
     */
    if (fsync(file->folder_fd) != 0 && errno != EINVAL) {
        status = fail(file->path, "fsync of its folder", err);
    }
    (void)close(file->fd);
    (void)close(file->folder_fd);
    return status;
}

void file_replace_abort(struct file_replace *file)
{
    (void)unlinkat(file->folder_fd, file->temporary, 0);
    (void)close(file->fd);
    (void)close(file->folder_fd);
}
