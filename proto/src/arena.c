/* Bump allocation in chunks that double, so that many small pieces cost few calls. */
#include "arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ckd.h"

#define ALIGNMENT alignof(max_align_t)
#define FIRST_CHUNK ((size_t)1024) /* a job: a daemon may hold very many */
#define LARGEST_CHUNK ((size_t)1 << 20)

struct chunk {
    struct chunk *next;
    size_t size, used; /* bytes of data[] */
    alignas(max_align_t) unsigned char data[];
};

struct arena {
    struct chunk *chunks; /* the newest first */
    size_t max_bytes, used, next_chunk;
};

struct arena *arena_new(size_t max_bytes)
{
    struct arena *arena = calloc(1, sizeof(*arena));

    if (arena) {
        arena->max_bytes = max_bytes;
        arena->next_chunk = FIRST_CHUNK;
    }
    return arena;
}

void arena_free(struct arena *arena)
{
    struct chunk *chunk, *next;

    if (!arena) {
        return;
    }
    for (chunk = arena->chunks; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(arena);
}

/* Makes room for `bytes` in the newest chunk. */
static struct chunk *chunk_for(struct arena *arena, size_t bytes)
{
    struct chunk *chunk = arena->chunks;
    size_t size;

    if (chunk && chunk->size - chunk->used >= bytes) {
        return chunk;
    }
    size = bytes > arena->next_chunk ? bytes : arena->next_chunk;
    chunk = malloc(sizeof(*chunk) + size);
    if (!chunk) {
        return NULL;
    }
    *chunk = (struct chunk){.next = arena->chunks, .size = size};
    arena->chunks = chunk;
    if (arena->next_chunk < LARGEST_CHUNK) {
        arena->next_chunk *= 2;
    }
    return chunk;
}

void *arena_alloc(struct arena *arena, size_t count, size_t size)
{
    struct chunk *chunk;
    size_t bytes, total;
    void *memory;

    if (ckd_mul(&bytes, count, size) || ckd_add(&bytes, bytes, ALIGNMENT - 1)) {
        return NULL;
    }
    bytes &= ~(ALIGNMENT - 1);
    if (ckd_add(&total, arena->used, bytes) || total > arena->max_bytes ||
        bytes > SIZE_MAX - sizeof(*chunk)) {
        return NULL;
    }
    chunk = chunk_for(arena, bytes);
    if (!chunk) {
        return NULL;
    }
    memory = chunk->data + chunk->used;
    chunk->used += bytes;
    arena->used = total;
    memset(memory, 0, bytes);
    return memory;
}

char *arena_strndup(struct arena *arena, const char *text, size_t len)
{
    char *copy = len == SIZE_MAX ? NULL : arena_alloc(arena, len + 1, 1);

    if (copy) {
        memcpy(copy, text, len);
        copy[len] = '\0';
    }
    return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    return arena_strndup(arena, text, strlen(text));
}

size_t arena_used(const struct arena *arena)
{
    return arena->used;
}
