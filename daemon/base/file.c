/*
 * Reading and mapping of files, and the stamp by which a changed one is found out. Only regular
 * files are expected: callers check. Thread-safe: no state.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRITE_PIECE ((size_t)4 << 20)

int file_stamp(int fd, const char *path, struct file_stamp *ret_stamp, struct skrull_error *err)
{
    struct stat info;

    if (fstat(fd, &info) != 0) {
        return skrull_error_set(err, SKRULL_ERR_UNAVAILABLE, "%s: %s", path, strerror(errno));
    }
    ret_stamp->device = info.st_dev;
    ret_stamp->inode = info.st_ino;
    ret_stamp->size = (uint64_t)info.st_size;
    ret_stamp->mtime_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    ret_stamp->mode = info.st_mode;
    return 0;
}

int file_stamp_equal(const struct file_stamp *a, const struct file_stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->mtime_ns == b->mtime_ns;
}

int file_read_at(int fd, const char *path, void *bytes, size_t size, uint64_t offset,
                 size_t *ret_size, struct skrull_error *err)
{
    size_t done = 0;

    while (done < size) {
        size_t want = size - done < SSIZE_MAX ? size - done : SSIZE_MAX;
        ssize_t n = pread(fd, (char *)bytes + done, want, (off_t)(offset + done));

        if (n == 0) {
            break;
        }
        if (n < 0 && errno != EINTR) {
            return skrull_error_set(err, SKRULL_ERR_UNAVAILABLE, "%s: reading: %s", path,
                                    strerror(errno));
        }
        done += n > 0 ? (size_t)n : 0;
    }
    *ret_size = done;
    return 0;
}

int file_write_all(int fd, const char *path, const void *bytes, size_t size,
                   struct skrull_error *err)
{
    const char *at = bytes;

    while (size > 0) {
        ssize_t n = write(fd, at, size < WRITE_PIECE ? size : WRITE_PIECE);

        if (n < 0 && errno != EINTR) {
            return skrull_error_set(err, SKRULL_ERR_UNAVAILABLE, "%s: writing: %s", path,
                                    strerror(errno));
        }
        at += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
        if (size > 0) {
            /* A hint: the disk begins now, and not only with the fsync that follows. */
            (void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
        }
    }
    return 0;
}
