/*
 * The arena of builds with a sanitizer: every piece is a block of its own, of exactly the bytes
 * asked for, so that one byte past an array is seen. Limits and counts are those of arena.c.
 */
#include "arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ckd.h"

#define ALIGNMENT alignof(max_align_t)
#define LARGEST_PIECE                                                                              \
    ((size_t)1 << 36) /* sanitizers end the process at sizes that no machine has */

struct piece {
    struct piece *next;
    void *memory;
};

struct arena {
    struct piece *pieces; /* the newest first */
    size_t max_bytes, used;
};

struct arena *arena_new(size_t max_bytes)
{
    struct arena *arena = calloc(1, sizeof(*arena));

    if (arena) {
        arena->max_bytes = max_bytes;
    }
    return arena;
}

void arena_free(struct arena *arena)
{
    struct piece *piece, *next;

    if (!arena) {
        return;
    }
    for (piece = arena->pieces; piece; piece = next) {
        next = piece->next;
        free(piece->memory);
        free(piece);
    }
    free(arena);
}

void *arena_alloc(struct arena *arena, size_t count, size_t size)
{
    size_t bytes, rounded, total;
    struct piece *piece;

    if (ckd_mul(&bytes, count, size) || ckd_add(&rounded, bytes, ALIGNMENT - 1) ||
        ckd_add(&total, arena->used, rounded & ~(ALIGNMENT - 1)) || total > arena->max_bytes ||
        bytes > LARGEST_PIECE) {
        return NULL;
    }
    piece = malloc(sizeof(*piece));
    if (!piece) {
        return NULL;
    }
    *piece = (struct piece){.next = arena->pieces, .memory = calloc(1, bytes > 0 ? bytes : 1)};
    if (!piece->memory) {
        free(piece);
        return NULL;
    }
    arena->pieces = piece;
    arena->used = total;
    return piece->memory;
}

char *arena_strndup(struct arena *arena, const char *text, size_t len)
{
    char *copy = len == SIZE_MAX ? NULL : arena_alloc(arena, len + 1, 1);

    if (copy) {
        memcpy(copy, text, len);
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
