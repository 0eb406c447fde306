/*
 * Builds a layout in one arena from a shape that was read and checked: the packed buffer's rows in
 * segment order, then for each group the blocks of all members, computed from the sequence's length
 * and chunk size alone, so that what A says it sends B is what B says A sends. No state, any
 * thread.
 */
#include <skrull/layout.h>

#include <stdint.h>

#include "arena.h"
#include "row_set.h"
#include "shape.h"

/* The public struct is `layout`; here because its parts are const to readers. */
struct build {
    struct skrull_layout layout;
    struct arena *arena;
};

struct builder {
    struct build *build;
    const struct shape *shape;
    struct skrull_layout_sequence *sequences;
    struct skrull_range *ranges;
    struct skrull_layout_group *groups;
    float *loss_weight;
};

static int out_of_memory(struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                            "out of memory for the layout of a micro-batch");
}

/* The range of a chunk that starts at `first_row` of some buffer. */
static struct skrull_range chunk_range(const struct shape_sequence *sequence, uint32_t i_chunk,
                                       uint32_t i_sequence, uint32_t first_row)
{
    struct skrull_range range = {
        .i_sequence = i_sequence, .first_row = first_row, .n_rows = sequence->chunk_rows};

    range.token_begin = shape_chunk_tokens(sequence, i_chunk, &range.n_tokens);
    return range;
}

/* Weights of a range's rows; the sequence's last token has no target. */
static void weigh(float *loss_weight, const struct skrull_range *range,
                  const struct skrull_layout_sequence *sequence)
{
    for (uint32_t t = 0; t < range->n_tokens; t++) {
        if (range->token_begin + t + 1 < sequence->length) {
            loss_weight[range->first_row + t] = (float)sequence->loss_weight;
        }
    }
}

/* The packed buffer: sequences, ranges, rows, weights. */
static int build_rows(struct builder *b)
{
    struct skrull_layout *layout = &b->build->layout;
    const struct shape *shape = b->shape;
    struct row_set rows;
    uint32_t i_sequence = 0;

    if (row_set_init(&rows, b->build->arena, shape->n_sequences, shape->rows) < 0) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (uint32_t i = 0; i < shape->n_segments; i_sequence++) {
        struct shape_sequence held = shape_sequence_at(shape, i);
        struct skrull_layout_sequence *sequence = &b->sequences[i_sequence];

        *sequence = (struct skrull_layout_sequence){.sample = held.segments->sample,
                                                    .index = held.segments->index,
                                                    .dataset = held.segments->dataset,
                                                    .length = held.segments->sequence_length,
                                                    .first_range = i,
                                                    .n_ranges = held.n_segments,
                                                    .loss_weight = held.segments->loss_weight};
        for (uint32_t s = 0; s < held.n_segments; s++) {
            uint32_t i_chunk = shape_member_chunk(&held, held.member, s);

            b->ranges[i + s] = chunk_range(&held, i_chunk, i_sequence, rows.set.n_rows);
            row_set_add(&rows, &b->ranges[i + s]);
            weigh(b->loss_weight, &b->ranges[i + s], sequence);
        }
        row_set_end_sequence(&rows);
        i += held.n_segments;
    }
    layout->rows = row_set_finish(&rows);
    return 0;
}

/* token_row and its inverse. */
static int build_token_maps(struct builder *b)
{
    struct skrull_layout *layout = &b->build->layout;
    int32_t *token_row = ARENA_ARRAY(b->build->arena, int32_t, layout->rows.n_tokens);
    int32_t *row_token = ARENA_ARRAY(b->build->arena, int32_t, layout->rows.n_rows);
    int32_t n_tokens = 0;

    if (!token_row || !row_token) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (uint32_t row = 0; row < layout->rows.n_rows; row++) {
        bool is_token = layout->rows.position[row] != SKRULL_NO_POSITION;

        row_token[row] = is_token ? n_tokens : -1;
        if (is_token) {
            token_row[n_tokens++] = (int32_t)row;
        }
    }
    layout->token_row = token_row;
    layout->row_token = row_token;
    return 0;
}

/* The sequences [first_sequence, ...) of the rank alone, as a set of their own. */
static int build_local(struct builder *b)
{
    struct skrull_layout *layout = &b->build->layout;
    const struct shape_group *local = &b->shape->groups[b->shape->n_groups];
    uint32_t first_range = layout->n_ranges - local->n_ranges;
    struct row_set rows;

    if (row_set_init(&rows, b->build->arena, local->n_sequences, local->rows) < 0) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (uint32_t i = first_range; i < layout->n_ranges; i++) {
        row_set_add(&rows, &b->ranges[i]);
        row_set_end_sequence(&rows);
    }
    layout->local = row_set_finish(&rows);
    layout->local_row = layout->rows.n_rows - local->rows;
    return 0;
}

/* What member `member` of a group holds: its ranges and rows. */
static int build_block(struct builder *b, const struct skrull_layout_group *group,
                       const struct shape_group *held, uint32_t member, struct skrull_range *ranges,
                       struct skrull_row_set *ret_block)
{
    struct row_set rows;
    uint32_t i_range = 0;

    if (row_set_init(&rows, b->build->arena, held->n_sequences, held->rows) < 0) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (uint32_t k = 0; k < held->n_sequences; k++) {
        uint32_t i_sequence = group->first_sequence + k;
        struct shape_sequence sequence =
            shape_sequence_at(b->shape, b->sequences[i_sequence].first_range);

        for (uint32_t s = 0; s < sequence.n_segments; s++, i_range++) {
            uint32_t i_chunk = shape_member_chunk(&sequence, member, s);

            ranges[i_range] = chunk_range(&sequence, i_chunk, i_sequence, rows.set.n_rows);
            row_set_add(&rows, &ranges[i_range]);
        }
        row_set_end_sequence(&rows);
    }
    *ret_block = row_set_finish(&rows);
    return 0;
}

static int build_blocks(struct builder *b, struct skrull_layout_group *group,
                        const struct shape_group *held)
{
    struct arena *arena = b->build->arena;
    struct skrull_row_set *blocks = ARENA_ARRAY(arena, struct skrull_row_set, group->size);
    struct skrull_range *ranges =
        ARENA_ARRAY(arena, struct skrull_range, (size_t)group->size * held->n_ranges);

    if (!blocks || !ranges) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (uint32_t m = 0; m < group->size; m++) {
        int rc = build_block(b, group, held, m, ranges + (size_t)m * held->n_ranges, &blocks[m]);

        if (rc < 0) {
            return rc;
        }
    }
    group->blocks = blocks;
    group->ranges = ranges;
    group->n_ranges = held->n_ranges;
    return 0;
}

/* Maps between the gathered buffer (by member) and one sequence's keys (by token). */
static void map_keys(const struct shape_sequence *sequence, uint32_t block_rows, uint32_t slot_row,
                     uint32_t first_key, int32_t *gathered_row, int32_t *key_row)
{
    for (uint32_t i_chunk = 0; i_chunk < sequence->n_chunks; i_chunk++) {
        uint32_t i_segment, member = shape_chunk_member(sequence, i_chunk, &i_segment);
        uint32_t row = member * block_rows + slot_row + i_segment * sequence->chunk_rows;
        uint32_t key = first_key + i_chunk * sequence->chunk_rows;

        for (uint32_t t = 0; t < sequence->chunk_rows; t++) {
            gathered_row[key + t] = (int32_t)(row + t);
            key_row[row + t] = (int32_t)(key + t);
        }
    }
}

static int build_keys(struct builder *b, struct skrull_layout_group *group,
                      const struct shape_group *held)
{
    struct arena *arena = b->build->arena;
    int32_t *gathered_row = ARENA_ARRAY(arena, int32_t, held->gathered_rows);
    int32_t *key_row = ARENA_ARRAY(arena, int32_t, held->gathered_rows);
    struct row_set keys;
    uint32_t slot_row = 0;

    if (!gathered_row || !key_row ||
        row_set_init(&keys, arena, held->n_sequences, held->gathered_rows) < 0) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (uint32_t k = 0; k < held->n_sequences; k++) {
        uint32_t i_sequence = group->first_sequence + k;
        struct shape_sequence sequence =
            shape_sequence_at(b->shape, b->sequences[i_sequence].first_range);
        struct skrull_range whole = {.n_tokens = sequence.segments->sequence_length,
                                     .n_rows = sequence.n_chunks * sequence.chunk_rows};

        map_keys(&sequence, held->rows, slot_row, keys.set.n_rows, gathered_row, key_row);
        row_set_add(&keys, &whole);
        row_set_end_sequence(&keys);
        slot_row += sequence.n_segments * sequence.chunk_rows;
    }
    group->keys = row_set_finish(&keys);
    group->gathered_row = gathered_row;
    group->key_row = key_row;
    return 0;
}

static int build_ring(struct builder *b, struct skrull_layout_group *group)
{
    struct skrull_ring_step *ring =
        ARENA_ARRAY(b->build->arena, struct skrull_ring_step, group->size);
    uint32_t size = group->size;

    if (!ring) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (uint32_t s = 0; s < size; s++) {
        ring[s].held = (group->member + (size - s)) % size;
        ring[s].incoming = (group->member + (size - s - 1)) % size;
    }
    group->ring = ring;
    group->next = group->first_rank + (group->member + 1) % size;
    group->previous = group->first_rank + (group->member + size - 1) % size;
    return 0;
}

/* Groups lie in the packed buffer larger first, and are listed smaller first. */
static int build_groups(struct builder *b)
{
    uint32_t first_sequence = 0, first_row = 0;

    for (uint32_t g = 0; g < b->shape->n_groups; g++) {
        const struct shape_group *held = &b->shape->groups[g];
        struct skrull_layout_group *group = &b->groups[b->shape->n_groups - 1 - g];

        group->first_rank = held->first_rank;
        group->size = held->size;
        group->member = held->member;
        group->first_sequence = first_sequence;
        group->first_row = first_row;
        if (build_blocks(b, group, held) < 0 || build_ring(b, group) < 0 ||
            build_keys(b, group, held) < 0) {
            return SKRULL_ERR_RESOURCE_EXHAUSTED;
        }
        first_sequence += held->n_sequences;
        first_row += held->rows;
    }
    return 0;
}

static int build(struct build *build, const struct shape *shape)
{
    struct arena *arena = build->arena;
    struct skrull_layout *layout = &build->layout;
    struct builder b = {
        .build = build,
        .shape = shape,
        .sequences = ARENA_ARRAY(arena, struct skrull_layout_sequence, shape->n_sequences),
        .ranges = ARENA_ARRAY(arena, struct skrull_range, shape->n_segments),
        .groups = ARENA_ARRAY(arena, struct skrull_layout_group, shape->n_groups),
        .loss_weight = ARENA_ARRAY(arena, float, shape->rows),
    };

    if (!b.sequences || !b.ranges || !b.groups || !b.loss_weight) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    layout->data_rank = shape->data_rank;
    layout->i_micro_batch = shape->i_micro_batch;
    layout->dummy = shape->dummy;
    layout->n_sequences = shape->n_sequences;
    layout->n_ranges = shape->n_segments;
    layout->n_groups = shape->n_groups;
    layout->sequences = b.sequences;
    layout->ranges = b.ranges;
    layout->groups = b.groups;
    layout->loss_weight = b.loss_weight;
    if (build_rows(&b) < 0 || build_token_maps(&b) < 0 || build_local(&b) < 0 ||
        build_groups(&b) < 0) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    return 0;
}

int skrull_layout_new(const struct skrull_plan *plan, size_t i_rank, uint32_t i_micro_batch,
                      struct skrull_layout **ret_layout, struct skrull_error *err)
{
    struct shape shape;
    struct arena *arena;
    struct build *new;
    int rc = shape_read(plan, i_rank, i_micro_batch, &shape, err);

    if (rc < 0) {
        return rc;
    }
    arena = arena_new(SIZE_MAX);
    new = arena ? ARENA_NEW(arena, struct build) : NULL;
    if (new) {
        new->arena = arena;
    }
    if (!new || build(new, &shape) < 0) {
        arena_free(arena);
        return out_of_memory(err);
    }
    *ret_layout = &new->layout;
    return 0;
}

void skrull_layout_free(struct skrull_layout *layout)
{
    if (layout) {
        /* The layout is the first member of what was allocated. */
        arena_free(((struct build *)(void *)layout)->arena);
    }
}
