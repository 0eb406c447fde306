/*
 * 1 LENGTH INDEX: a file of sequence lengths, opened read-only. To add a format: index_x.c and a
 * line in formats.def. Rows are immutable after opening; any number of threads may read.
 *
 * A .skx file is used where it lies, mapped. Where somebody truncates it meanwhile, its lost rows
 * read as 0 in a process that called map_guard_install, and index_check_whole says so: who reads
 * rows asks afterwards. Replace an index by rename, as index_write_skx does: the mapping then keeps
 * the old file. Text is read once, into memory.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>
#include <skrull/types.h>

/* The first bytes of a .skx. */
#define SKX_MAGIC "SKRULLX" /* and its NUL: 8 bytes */
#define SKX_MAGIC_SIZE 8

struct length_index {
    const char *format; /* name in formats.def; static */
    const uint32_t
        *lengths; /* [count] tokens, at least 1 each; owned: parsed, or mapped in place */
    const uint32_t *loss_tokens; /* [count], or NULL: the index does not say */
    const uint32_t *score_bits;  /* [count] f32 as stored, or NULL; only carried along, to a .skx */
    uint64_t count;              /* rows; 0 only where the format can say so (Megatron) */
    uint64_t tokens;
    uint64_t n_loss_tokens; /* sum, 0 where loss_tokens is NULL */
    const void *map;        /* owned: the mapped file (base/map.h); NULL: rows are in memory */
};

struct index_stats {
    const char *format;
    uint64_t count, tokens, loss_tokens, min, max, p50, p90, p99, p999;
    double mean;
    uint64_t bins[33]; /* bins[i]: sequences of [2^(i-1), 2^i); 2^32 - 1 is the longest */
};

struct index_options {
    const char *format; /* NULL, "" or "auto": by content */
    /* What holds the lengths: the name of a column or field (its number, from 1, in a table without
     * names), or several to be added, "prompt+response"; NULL or "": the obvious one. */
    const char *column;
    enum skrull_unit unit; /* 0: sequence */
    uint64_t max_count;    /* rows that may be read into memory; 0: INDEX_MAX_COUNT. Mapped: any */
    uint64_t max_decoded;  /* bytes that a compressed file may inflate to; 0: INDEX_MAX_DECODED */
};

/* 8 GiB of lengths. */
#define INDEX_MAX_COUNT (UINT64_C(1) << 31)
/* 64 GiB. */
#define INDEX_MAX_DECODED (UINT64_C(1) << 36)

/*
 * Opens the index behind `fd` (borrowed, only until the call returns; `path` only for messages;
 * `options` may be NULL). Checks the header and the size; text is parsed, in full. Errors name the
 * path, the line, record or offset, the limit and the remedy. INVALID_ARGUMENT: unknown format, or
 * not such a file; "FORMAT is not built yet" for formats still to come. DATA_LOSS: such a file, but
 * damaged or cut. FAILED_PRECONDITION: somebody wrote to it meanwhile.
 *
 * Where a .skx was opened, its lengths have not been looked at before index_verify says so: until
 * then one may be 0, or a loss-token count larger than its length, and the sums are the file's
 * word.
 */
int index_open(int fd, const char *path, const struct index_options *options,
               struct length_index **ret_idx, struct skrull_error *err);

/* NULL is fine. */
void index_close(struct length_index *idx);

/* Refuses an index without rows where one is needed: INVALID_ARGUMENT, naming `path`. */
int index_refuse_empty(const char *path, struct skrull_error *err);

/* DATA_LOSS: the file was cut while it was open, and rows that were read may be 0. */
int index_check_whole(const struct length_index *idx, struct skrull_error *err);

/* Reads the whole payload: checks .skx's stored hash, every length and the stored sums; returns the
 * XXH3-64 of the payload as if the index were .skx. DATA_LOSS: it does not match. O(count). */
int index_verify(const struct length_index *idx, uint64_t *ret_payload_hash,
                 struct skrull_error *err);

/* Counts, quantiles by nearest rank (exact), histogram. O(count), whatever the order. */
int index_describe(const struct length_index *idx, struct index_stats *ret_stats,
                   struct skrull_error *err);

/* Writes the index as .skx, atomically (temporary file beside it, fsync, rename), mode 0644. */
int index_write_skx(const struct length_index *idx, const char *path, struct skrull_error *err);

/*
 * Opens a file or folder under one of `roots` ([n_roots] absolute paths): `path` absolute, or
 * relative to the first root that has it; after resolving links it must lie under a root. Anything
 * else (a pipe, a device) is refused unopened. PERMISSION_DENIED: outside, or no roots at all;
 * NOT_FOUND: in no root; INVALID_ARGUMENT: no usable path. Returns a descriptor in *ret_fd, the
 * caller's.
 */
int index_open_under_roots(const char *path, const char *const *roots, size_t n_roots, int *ret_fd,
                           struct skrull_error *err);
