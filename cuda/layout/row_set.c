/* Rows of a buffer with their positions and cumulative lengths. No state, any thread. */
#include "row_set.h"

#include <assert.h>

#include "arena.h"

int row_set_init(struct row_set *rows, struct arena *arena, uint32_t n_sequences, uint32_t n_rows)
{
    *rows = (struct row_set){
        .cu_rows = ARENA_ARRAY(arena, int32_t, (size_t)n_sequences + 1),
        .cu_tokens = ARENA_ARRAY(arena, int32_t, (size_t)n_sequences + 1),
        .position = ARENA_ARRAY(arena, int32_t, n_rows),
    };
    return rows->cu_rows && rows->cu_tokens && rows->position ? 0 : SKRULL_ERR_RESOURCE_EXHAUSTED;
}

void row_set_add(struct row_set *rows, const struct skrull_range *range)
{
    int32_t *position = rows->position + rows->set.n_rows;

    assert(range->n_tokens <= range->n_rows);
    for (uint32_t t = 0; t < range->n_rows; t++) {
        position[t] = t < range->n_tokens ? (int32_t)(range->token_begin + t) : SKRULL_NO_POSITION;
    }
    rows->set.n_rows += range->n_rows;
    rows->set.n_tokens += range->n_tokens;
}

void row_set_end_sequence(struct row_set *rows)
{
    struct skrull_row_set *set = &rows->set;
    uint32_t n_rows = set->n_rows - (uint32_t)rows->cu_rows[set->n_sequences];
    uint32_t n_tokens = set->n_tokens - (uint32_t)rows->cu_tokens[set->n_sequences];

    set->n_sequences++;
    rows->cu_rows[set->n_sequences] = (int32_t)set->n_rows;
    rows->cu_tokens[set->n_sequences] = (int32_t)set->n_tokens;
    set->max_rows = n_rows > set->max_rows ? n_rows : set->max_rows;
    set->max_tokens = n_tokens > set->max_tokens ? n_tokens : set->max_tokens;
}

struct skrull_row_set row_set_finish(const struct row_set *rows)
{
    struct skrull_row_set set = rows->set;

    set.cu_rows = rows->cu_rows;
    set.cu_tokens = rows->cu_tokens;
    set.position = rows->position;
    return set;
}
