/*
 * Files mapped read-only, which somebody may truncate meanwhile. A touch of a page that the file no
 * longer has raises SIGBUS; with map_guard_install the page reads as zeros instead, and
 * map_is_whole says so afterwards. Who reads a mapping asks after reading, before the values are
 * believed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <skrull/error.h>

/* Mappings at a time. */
#define MAP_MAX 16384

/*
 * Handles SIGBUS for the mappings of this file; any other fault goes to the handler that was there
 * before. Called before mappings are read; again is harmless, and right where somebody else may
 * have taken the signal meanwhile. Any thread. Without it a lost page ends the process.
 */
void map_guard_install(void);

/* Maps the first `size` > 0 bytes; `path` only for messages. Free with map_close.
 * RESOURCE_EXHAUSTED: no memory, or MAP_MAX mappings. */
int map_open(int fd, const char *path, size_t size, const void **ret_bytes,
             struct skrull_error *err);

/* NULL is fine. */
void map_close(const void *bytes, size_t size);

/* False: a page was lost since map_open, and what was read may be zeros. NULL is whole. */
bool map_is_whole(const void *bytes);
