/*
 * Where the tokens of a micro-batch lie: from one rank of a plan to what kernels and exchanges
 * take. Plain C without allocation by the caller, without I/O, clock or device; part of
 * libskrull-plan.
 *
 * Rows. A rank's packed buffer has one row for each padded token of its micro-batch, in segment
 * order: larger groups first, local sequences last. Every map below counts rows; all of them were
 * checked to stay below 2^31, so kernels may use 32-bit indices.
 *
 * Order of exchanges, the same on every rank, hence free of deadlock: micro-batches by number;
 * inside one, groups by ascending size (`groups` has this order). Groups are nested, and a rank is
 * in at most one of each size. Ring steps of one group by number. A gathered exchange is one
 * collective a group. A group whose chunk here is all padding still takes part.
 *
 * Targets. The target of token i of a sequence is token i + 1 of the sequence, whatever shard holds
 * it: who fills the buffer looks token_begin + 1 .. token_begin + n_tokens up in the sample, never
 * in the neighbouring row. The last token has no target, so `loss_weight` is the segment's weight
 * for every other real token and 0 for it and for padding. A trainer that masks tokens multiplies
 * by the mask of the target. Every rank of every layout gives the same token the same weight.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>
#include <skrull/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Position of a row that holds no token. */
#define SKRULL_NO_POSITION (-1)

/* Consecutive tokens of one sequence in consecutive rows: what a segment holds. n_tokens may be 0.
 */
struct skrull_range {
    uint32_t i_sequence;            /* in the layout's sequences */
    uint32_t token_begin, n_tokens; /* real tokens, in the first rows */
    uint32_t first_row, n_rows;     /* in the buffer that the range is of */
};

/*
 * The rows of a buffer, sequence by sequence: what variable-length attention takes on either side.
 * Sequence i owns rows [cu_rows[i], cu_rows[i + 1]), of which cu_tokens[i + 1] - cu_tokens[i] hold
 * a token; `position` says which. Row 0 is the set's first row, not the packed buffer's.
 */
struct skrull_row_set {
    uint32_t n_sequences;
    uint32_t n_rows, n_tokens;     /* padded and real */
    uint32_t max_rows, max_tokens; /* of one sequence */
    const int32_t *cu_rows;        /* [n_sequences + 1] padded */
    const int32_t *cu_tokens;      /* [n_sequences + 1] real */
    const int32_t *position;       /* [n_rows] in the sequence; SKRULL_NO_POSITION: padding */
};

/* A sequence of which this rank holds something. */
struct skrull_layout_sequence {
    uint64_t sample, index;
    uint32_t dataset, length;
    uint32_t first_range, n_ranges; /* in the layout's ranges; 2 for a zigzag shard, else 1 */
    double loss_weight;             /* of each token that has a target */
};

/*
 * One step of a ring, from this rank's view. Before the step it holds keys and values of member
 * `held`'s block; it computes with them, sends them to the next member and receives `incoming` from
 * the previous one. Keys travel in all steps but the last. Gradients of keys travel in all steps,
 * each time with the block that was just computed with, so that the last brings them home.
 */
struct skrull_ring_step {
    uint32_t held, incoming; /* members, hence blocks */
};

/* A group of ranks that share sequences in this micro-batch. */
struct skrull_layout_group {
    uint32_t first_rank, size; /* data ranks [first_rank, first_rank + size) */
    uint32_t member;           /* which of them this rank is */
    uint32_t first_sequence;   /* its sequences, consecutive in the layout's */
    uint32_t first_row; /* its rows, consecutive in the packed buffer: rows->n_rows of them */

    /* Rows of each member, [size], all of one shape, so that every block has equally many: what the
     * member holds, what it sends. blocks[member] is the query side, and here. */
    const struct skrull_row_set *blocks;
    /* Which tokens those are: ranges[m x n_ranges + i], in rows of member m's block. */
    const struct skrull_range *ranges;
    uint32_t n_ranges; /* a member */

    /* Ring: [size] steps, to data rank `next` and from `previous`. */
    const struct skrull_ring_step *ring;
    uint32_t next, previous;

    /* All-gather: the blocks lie one behind the other, by member; `keys` are the same rows by
     * sequence, each in the order of its tokens, real ones first. keys.position[i] belongs to row
     * gathered_row[i] of the gathered buffer, and gathered_row[key_row[j]] is j: pack by the first
     * map, return gradients by the second. Both are [size x rows of a block]. */
    struct skrull_row_set keys;
    const int32_t *gathered_row, *key_row;
};

/* One micro-batch of one rank. */
struct skrull_layout {
    uint32_t data_rank, i_micro_batch;
    bool dummy;           /* no rows, no groups; weight 0 */
    uint32_t n_sequences; /* held here: distributed ones first */
    uint32_t n_ranges, n_groups;
    const struct skrull_layout_sequence *sequences; /* packed order */
    const struct skrull_range *ranges; /* [n_ranges] packed order, rows of the packed buffer */
    const struct skrull_layout_group *groups; /* ascending size: the order of exchanges */

    struct skrull_row_set rows; /* the whole packed buffer */
    const float *loss_weight;   /* [rows.n_rows] */
    const int32_t *token_row;   /* [rows.n_tokens] row of each real token, packed order: packs */
    const int32_t *row_token;   /* [rows.n_rows] the inverse; -1: padding: unpacks */

    /* Sequences that are whole here, from rows[local_row] on: both sides of local attention. */
    struct skrull_row_set local;
    uint32_t local_row;
};

/*
 * A new layout of micro-batch `i_micro_batch` of rank `i_rank` of `plan` (0 for a RankPlan), which
 * is not needed afterwards; freed by skrull_layout_free. INVALID_ARGUMENT: the plan has no such
 * micro-batch, or it breaks a rule of skrull/plan.h (order, shape of a shard, group); names the
 * segment. RESOURCE_EXHAUSTED: a buffer of 2^31 rows or more, or out of memory. Linear in the rows
 * of this rank and of what it gathers. Any thread.
 */
SKRULL_API int skrull_layout_new(const struct skrull_plan *plan, size_t i_rank,
                                 uint32_t i_micro_batch, struct skrull_layout **ret_layout,
                                 struct skrull_error *err);
SKRULL_API void skrull_layout_free(struct skrull_layout *layout);

/* The largest of a rank's micro-batches, each field by itself: what buffers must hold. */
struct skrull_layout_limits {
    uint32_t rows, tokens;           /* of the packed buffer, padded and real */
    uint32_t local_rows, block_rows; /* of one exchange buffer of a ring */
    uint32_t gathered_rows;          /* of one gathered buffer */
    uint32_t distributed_rows;       /* blocks of all of a micro-batch's groups */
    uint32_t distributed_gathered;   /* gathered buffers of all of a micro-batch's groups */
    uint32_t sequences, groups, group_size;
};

/* Limits of rank `i_rank` of `plan`, without building a layout. Errors as skrull_layout_new. */
SKRULL_API int skrull_layout_measure(const struct skrull_plan *plan, size_t i_rank,
                                     struct skrull_layout_limits *ret_limits,
                                     struct skrull_error *err);

#ifdef __cplusplus
}
#endif
