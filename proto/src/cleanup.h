/* `_cleanup_(fn)` runs fn(&variable) at the end of the scope; for daemon and ctl, not for headers. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(fn) __attribute__((cleanup(fn)))

static inline void cleanup_free(void *pointer)
{
    free(*(void **)pointer);
}

static inline void cleanup_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
    }
}

static inline void cleanup_file(FILE **file)
{
    if (*file) {
        (void)fclose(*file);
    }
}

/* Defines cleanup_NAME for a pointer type whose destructor takes NULL. */
#define DEFINE_CLEANUP(type, destructor)                                                           \
    static inline void cleanup_##destructor(type **pointer)                                        \
    {                                                                                              \
        destructor(*pointer);                                                                      \
    }
