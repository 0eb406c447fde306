/*
 * The plan of one step in C words: flat arrays in one arena, freed by one call. A whole plan has
 * dp x cp ranks; what one worker receives (a RankPlan) is the same struct with one rank.
 *
 * Padding. Every segment owns a slot of `padded_tokens` in its rank's packed buffer, its real
 * tokens first. A local sequence's slot is its length rounded up to `align`. A distributed one is
 * cut into n (contiguous) or 2n (zigzag) equal chunks of ceil(S / (chunks x align)) x align tokens;
 * chunk i holds the real tokens of [i x chunk, (i + 1) x chunk) that exist; a chunk that is all
 * padding stays, with token_begin = token_end = sequence_length.
 *
 * Order in a micro-batch: larger groups first, then ascending sample; zigzag: member m holds chunk
 * m, then chunk 2n - 1 - m, adjacent.
 *
 * Dummies: `dummy` is set on every micro-batch that holds no sequence, and only there. With equal
 * counts they must be run; otherwise they only keep the numbering equal and none ends a rank.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>
#include <skrull/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SKRULL_DIGEST_SIZE 16
#define SKRULL_DIGEST_HEX_SIZE 33 /* with NUL */
#define SKRULL_UID_HEX_SIZE 33    /* with NUL */

/* Planner version: a change that alters plans gets a new one. */
#define SKRULL_PLANNER_VERSION 0

struct skrull_segment {
    uint64_t sample; /* place in the job's stream of samples */
    uint64_t index;  /* row in the data set's index */
    uint32_t dataset;
    uint32_t sequence_length;        /* tokens of the whole sequence */
    uint32_t token_begin, token_end; /* held here */
    uint32_t padded_tokens;          /* size of the slot */
    uint32_t group_first, group_size;
    double loss_weight; /* of each loss token, in a sum over all data ranks */
};

/*
 * Modelled nanoseconds. Micro-batch: iteration = its clock's advance on this rank; comp = the sum
 * of fixed, local and distributed time; comm = exchange beyond the local time; idle = the wait for
 * its groups. Rank: iteration = the plan's; comp and comm the sums; idle the rest. Plan: iteration
 * = the largest clock; the others the ranks' means, rounded down; bound only here.
 */
struct skrull_estimate {
    int64_t iteration_ns, bound_ns, comp_ns, comm_ns, idle_ns;
};

struct skrull_micro_batch {
    size_t first_segment; /* in the plan's segments */
    uint32_t n_segments;
    bool dummy;
    uint64_t tokens, padded_tokens;
    struct skrull_estimate estimate;
};

struct skrull_rank {
    uint32_t data_rank;
    uint32_t n_micro_batches;
    size_t first_micro_batch; /* in the plan's micro_batches */
    uint8_t digest[SKRULL_DIGEST_SIZE];
    struct skrull_estimate estimate;
};

/* Of the whole global batch, also in a plan of few ranks: the loss denominators. */
struct skrull_totals {
    uint64_t sequences, tokens, loss_tokens;
};

struct skrull_plan {
    const char *job;    /* name; "" where there is none */
    const char *uid;    /* "" where there is none */
    const char *policy; /* name */
    uint32_t revision, planner_version;
    uint64_t step, epoch;
    uint32_t dp, cp;
    uint8_t digest[SKRULL_DIGEST_SIZE]; /* of the whole plan */
    struct skrull_totals totals;
    struct skrull_estimate estimate; /* zero in a RankPlan: see its rank's */
    size_t n_ranks, n_micro_batches, n_segments;
    struct skrull_rank *ranks; /* [n_ranks], ascending data_rank */
    struct skrull_micro_batch *micro_batches;
    struct skrull_segment *segments;
    struct arena *arena; /* owns all of the above and this struct */
};

/* Frees a plan and all it points to; NULL is fine. */
SKRULL_API void skrull_plan_free(struct skrull_plan *plan);

/* Padded tokens that one member of a group of `group_size` ranks holds of a sequence of `length`
 * tokens (both chunks of a zigzag shard together). 64 bits: rounding up may pass 2^32. */
SKRULL_API uint64_t skrull_slot_tokens(uint64_t length, uint32_t group_size, uint32_t align,
                                       enum skrull_shard shard);

/* Segments that one member holds of a sequence: 2 for a zigzag shard, else 1. */
SKRULL_API uint32_t skrull_slot_segments(uint32_t group_size, enum skrull_shard shard);

/* Fills token_begin, token_end and padded_tokens of the segments ([skrull_slot_segments]) that
 * member `member` of the group holds of a sequence. The slot must fit 32 bits. */
SKRULL_API void skrull_slot_cut(uint32_t length, uint32_t group_size, uint32_t member,
                                uint32_t align, enum skrull_shard shard,
                                struct skrull_segment *segments);

/* Tokens of the longest sequence whose slot in a group of `group_size` fits `bucket_tokens`. */
SKRULL_API uint64_t skrull_longest_tokens(uint32_t bucket_tokens, uint32_t group_size,
                                          uint32_t align, enum skrull_shard shard);

/*
 * Digest of all that rank `ranks[i_rank]` acts on: the first 16 bytes of SHA-256 over
 * "skrull-rank-1" and a NUL; step, epoch u64; dp, cp, data_rank u32; u32 count of micro-batches;
 * per micro-batch u8 dummy, u32 count of segments; per segment sample u64, dataset u32, index u64,
 * sequence_length, token_begin, token_end, padded_tokens, group_first, group_size u32, loss_weight
 * f64; all little-endian. No name, revision or estimate: the same plan has the same digest wherever
 * it was made. Returns 0, or INTERNAL where the hash library fails.
 */
SKRULL_API int skrull_rank_digest(const struct skrull_plan *plan, size_t i_rank,
                                  uint8_t ret_digest[SKRULL_DIGEST_SIZE]);

/* Digest of a whole plan from its ranks' digests ([n_ranks][16], by data rank): what workers
 * recompute after they all-gathered theirs. The first 16 bytes of SHA-256 over "skrull-plan-1", a
 * NUL and them. */
SKRULL_API int skrull_plan_digest(const uint8_t *rank_digests, size_t n_ranks,
                                  uint8_t ret_digest[SKRULL_DIGEST_SIZE]);

/* 32 lower-case hex digits and NUL; and back (INVALID_ARGUMENT unless it is exactly that). */
SKRULL_API void skrull_digest_to_hex(const uint8_t digest[SKRULL_DIGEST_SIZE],
                                     char ret_hex[SKRULL_DIGEST_HEX_SIZE]);
SKRULL_API int skrull_digest_from_hex(const char *hex, uint8_t ret_digest[SKRULL_DIGEST_SIZE]);

#ifdef __cplusplus
}
#endif
