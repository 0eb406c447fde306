/* Memory of one plan, job or message: bump allocation, freed at once. Not thread-safe. */
#pragma once

#include <stddef.h>

struct arena;

/* A new arena that hands out at most `max_bytes`; NULL: out of memory. */
struct arena *arena_new(size_t max_bytes);

/* Frees the arena and all it handed out; NULL is fine. */
void arena_free(struct arena *arena);

/* Zeroed memory for `count` items of `size` bytes, aligned for any type; NULL: out of memory, past the
 * arena's limit, or the product overflows. Zero bytes give a valid pointer. */
void *arena_alloc(struct arena *arena, size_t count, size_t size);

/* A copy of `text` ([len], no NUL needed), NUL-terminated; NULL: out of memory. */
char *arena_strndup(struct arena *arena, const char *text, size_t len);
char *arena_strdup(struct arena *arena, const char *text);

/* Bytes handed out so far. */
size_t arena_used(const struct arena *arena);

#define ARENA_NEW(arena, type) ((type *)arena_alloc((arena), 1, sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_alloc((arena), (count), sizeof(type)))
