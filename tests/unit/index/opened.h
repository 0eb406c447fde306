/* Opening of indexes in tests, by bytes or by path. CMocka's headers come first. */
#pragma once

#include "index/index.h"
#include "temporary.h"

static inline int open_path(const char *path, const struct index_options *options,
                            struct length_index **ret_idx, struct skrull_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), status;

    assert_true(fd >= 0);
    status = index_open(fd, path, options, ret_idx, err);
    assert_int_equal(close(fd), 0); /* borrowed only */
    return status;
}

/* Writes the bytes as NAME in the folder, and opens that. */
static inline int open_bytes(const struct temporary *folder, const char *name, const void *bytes,
                             size_t size, struct length_index **ret_idx, struct skrull_error *err)
{
    temporary_write(folder, name, bytes, size);
    return open_path(temporary_path(folder, name), NULL, ret_idx, err);
}

static inline int temporary_setup(void **state)
{
    static struct temporary folder;

    temporary_make(&folder);
    *state = &folder;
    return 0;
}

static inline int temporary_teardown(void **state)
{
    temporary_remove(*state);
    return 0;
}
