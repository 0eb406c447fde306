/*
 * A tournament tree (Knuth, The Art of Computer Programming 3, 5.4.1): each inner node names the
 * better of its two children, so that the root names the least key, and a change replays one path.
 */
#include "plan/least.h"

#include <skrull/error.h>

#include "arena.h"

int least_init(struct least *least, uint32_t n, struct arena *arena)
{
    uint32_t n_leaves = 1;

    while (n_leaves < n) {
        n_leaves *= 2;
    }
    *least = (struct least){.keys = ARENA_ARRAY(arena, int64_t, n),
                            .winners = ARENA_ARRAY(arena, uint32_t, 2 * (size_t)n_leaves),
                            .n = n,
                            .n_leaves = n_leaves};
    if (!least->keys || !least->winners) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (uint32_t i = 0; i < n_leaves; i++) {
        least->winners[n_leaves + i] = i;
    }
    least_fill(least, 0);
    return 0;
}

/* The better of two places; leaves past the end lose to all. The first is the lower one. */
static uint32_t better(const struct least *least, uint32_t a, uint32_t b)
{
    return b < least->n && least->keys[b] < least->keys[a] ? b : a;
}

void least_fill(struct least *least, int64_t key)
{
    for (uint32_t i = 0; i < least->n; i++) {
        least->keys[i] = key;
    }
    for (uint32_t node = least->n_leaves - 1; node > 0; node--) {
        least->winners[node] = least->winners[2 * node]; /* all equal: the lowest place */
    }
}

void least_set(struct least *least, uint32_t i, int64_t key)
{
    least->keys[i] = key;
    for (uint32_t node = (least->n_leaves + i) / 2; node > 0; node /= 2) {
        least->winners[node] =
            better(least, least->winners[2 * node], least->winners[2 * node + 1]);
    }
}
