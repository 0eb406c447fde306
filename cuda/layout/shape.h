/* What a rank holds of a micro-batch, sequence by sequence, checked: the reading half of a layout.
 */
#pragma once

#include <skrull/error.h>
#include <skrull/plan.h>

/* Groups of a rank in one micro-batch: each size divides the one before. */
#define SHAPE_MAX_GROUPS 32

/* A sequence here: one segment, or both chunks of a zigzag shard. Chunk i holds the real tokens of
 * [i x chunk_rows, (i + 1) x chunk_rows). */
struct shape_sequence {
    const struct skrull_segment *segments; /* [n_segments], borrowed from the plan */
    uint32_t n_segments;
    uint32_t chunk_rows, n_chunks; /* of the whole sequence */
    uint32_t member;               /* which of the group's ranks this is */
};

/* Sequences of one group, consecutive; the last group may be the rank alone (size 1). */
struct shape_group {
    uint32_t first_rank, size, member;
    uint32_t n_sequences, n_ranges;
    uint32_t rows, tokens;  /* on this rank, padded and real */
    uint32_t gathered_rows; /* of all members */
};

struct shape {
    uint32_t data_rank, i_micro_batch;
    bool dummy;
    const struct skrull_segment *segments; /* [n_segments], borrowed from the plan */
    uint32_t n_segments, n_sequences;
    uint32_t rows, tokens;
    uint32_t n_groups;                               /* of more than one rank, larger first, */
    struct shape_group groups[SHAPE_MAX_GROUPS + 1]; /* behind them the rank alone, maybe empty */
};

/* Reads and checks micro-batch `i_micro_batch` of rank `i_rank`. Errors as skrull_layout_new. */
int shape_read(const struct skrull_plan *plan, size_t i_rank, uint32_t i_micro_batch,
               struct shape *ret_shape, struct skrull_error *err);

/* The sequence whose first segment is `i_segment`, of a shape that was read. */
struct shape_sequence shape_sequence_at(const struct shape *shape, uint32_t i_segment);

/* The member that holds chunk `i_chunk`, and which of its segments that is (0 or 1). */
uint32_t shape_chunk_member(const struct shape_sequence *sequence, uint32_t i_chunk,
                            uint32_t *ret_i_segment);

/* The chunk that segment `i_segment` (0 or 1) of member `member` is. */
uint32_t shape_member_chunk(const struct shape_sequence *sequence, uint32_t member,
                            uint32_t i_segment);

/* First token of a chunk and how many real ones it has; past the sequence's end: its length and 0.
 */
uint32_t shape_chunk_tokens(const struct shape_sequence *sequence, uint32_t i_chunk,
                            uint32_t *ret_n_tokens);
