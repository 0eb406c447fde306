/*
 * Claiming a socket path. The lock file is removed at the end, so the one that was locked may be
 * another than the one that now has the name: claiming looks again after it has the lock, and
 * starts over.
 */
#include "rpc/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct unix_socket {
    char *path, *lock_path;
    int lock_fd;
};

static int system_error(struct skrull_error *err, const char *path)
{
    int code = SKRULL_ERR_UNAVAILABLE;

    if (errno == EACCES || errno == EPERM) {
        code = SKRULL_ERR_PERMISSION_DENIED;
    }
    return skrull_error_set(err, code, "unix:%s: %s", path, strerror(errno));
}

/* The folder is made, one level, and must be nobody's who could put another socket there. */
static int make_folder(const char *path, struct skrull_error *err)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash && slash > path ? (size_t)(slash - path) : 1;
    char *folder = strndup(path, len);
    struct stat status;
    int code = 0;

    if (!folder) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    if (mkdir(folder, 0700) < 0 && errno != EEXIST) {
        code = system_error(err, path);
    } else if (stat(folder, &status) < 0) {
        code = system_error(err, path);
    } else if (status.st_uid != geteuid() && status.st_uid != 0 && geteuid() != 0) {
        code = skrull_error_set(err, SKRULL_ERR_PERMISSION_DENIED,
                                "unix:%s: the folder %s belongs to another user", path, folder);
    }
    free(folder);
    return code;
}

/* 0: locked, and the name is still this file's; 1: again. */
static int lock_once(struct unix_socket *socket, struct skrull_error *err)
{
    struct stat locked, named;

    socket->lock_fd = open(socket->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (socket->lock_fd < 0) {
        return system_error(err, socket->lock_path);
    }
    if (flock(socket->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        return skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                                "unix:%s: another daemon listens there (it holds %s)", socket->path,
                                socket->lock_path);
    }
    if (fstat(socket->lock_fd, &locked) < 0) {
        return system_error(err, socket->lock_path);
    }
    if (stat(socket->lock_path, &named) == 0 && named.st_ino == locked.st_ino &&
        named.st_dev == locked.st_dev) {
        return 0;
    }
    (void)close(socket->lock_fd);
    socket->lock_fd = -1;
    return 1;
}

static int remove_stale(const char *path, struct skrull_error *err)
{
    struct stat status;

    if (lstat(path, &status) < 0) {
        return errno == ENOENT ? 0 : system_error(err, path);
    }
    if (!S_ISSOCK(status.st_mode)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "unix:%s: something is there that is not a socket", path);
    }
    return unlink(path) < 0 && errno != ENOENT ? system_error(err, path) : 0;
}

static void socket_free(struct unix_socket *socket)
{
    if (socket->lock_fd >= 0) {
        (void)close(socket->lock_fd); /* and unlocks */
    }
    free(socket->path);
    free(socket->lock_path);
    free(socket);
}

static struct unix_socket *socket_new(const char *path)
{
    struct unix_socket *socket = calloc(1, sizeof(*socket));

    if (!socket) {
        return NULL;
    }
    socket->lock_fd = -1;
    socket->path = strdup(path);
    if (!socket->path || asprintf(&socket->lock_path, "%s.lock", path) < 0) {
        socket->lock_path = NULL;
        socket_free(socket);
        return NULL;
    }
    return socket;
}

int unix_socket_claim(const char *path, struct unix_socket **ret_socket, struct skrull_error *err)
{
    struct unix_socket *socket = socket_new(path);
    int code;

    if (!socket) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    code = make_folder(path, err);
    if (code == 0) {
        do {
            code = lock_once(socket, err);
        } while (code > 0);
    }
    if (code < 0) {
        socket_free(socket);
        return code;
    }
    code = remove_stale(path, err);
    if (code < 0) {
        (void)unlink(socket->lock_path);
        socket_free(socket);
        return code;
    }
    *ret_socket = socket;
    return 0;
}

int unix_socket_protect(const struct unix_socket *socket, struct skrull_error *err)
{
    return chmod(socket->path, 0600) < 0 ? system_error(err, socket->path) : 0;
}

void unix_socket_release(struct unix_socket *socket)
{
    if (socket) {
        (void)unlink(socket->path);
        (void)unlink(socket->lock_path);
        socket_free(socket);
    }
}
