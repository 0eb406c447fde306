/*
 * 1 LENGTH INDEX: a file of sequence lengths, opened read-only. To add a format: index_x.c and a line
 * in formats.def. Rows are immutable after opening; any number of threads may read.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>

struct length_index {
    const char *format;          /* name in formats.def; static */
    const uint32_t *lengths;     /* [count] tokens, at least 1 each; owned: parsed, or mapped in place */
    const uint32_t *loss_tokens; /* [count], or NULL: the index does not say */
    uint64_t count;
    uint64_t tokens;
    uint64_t n_loss_tokens; /* sum, 0 where loss_tokens is NULL */
};

struct index_stats {
    const char *format;
    uint64_t count, tokens, loss_tokens, min, max, p50, p90, p99, p999;
    double mean;
    uint64_t bins[33]; /* bins[i]: sequences of [2^(i-1), 2^i); 2^32 - 1 is the longest */
};

struct index_options {
    const char *format; /* NULL or "auto": by content */
};

/*
 * Opens the index behind `fd` (borrowed; `path` only for messages). Checks the header and the size;
 * text is parsed. Errors name the path, the line or offset, the limit and the remedy. INVALID_ARGUMENT:
 * unknown format, or not such a file; "FORMAT is not built yet" for formats still to come.
 */
int index_open(int fd, const char *path, const struct index_options *options,
               struct length_index **ret_idx, struct skrull_error *err);

/* NULL is fine. */
void index_close(struct length_index *idx);

/* Reads the whole payload: checks .skx's stored hash, every length and the stored sums; returns the
 * XXH3-64 of the payload as if the index were .skx. DATA_LOSS: it does not match. */
int index_verify(const struct length_index *idx, uint64_t *ret_payload_hash, struct skrull_error *err);

/* Counts, quantiles by nearest rank (exact), histogram. */
int index_describe(const struct length_index *idx, struct index_stats *ret_stats,
                   struct skrull_error *err);

/* Writes the index as .skx, atomically (temporary file, fsync, rename). */
int index_write_skx(const struct length_index *idx, const char *path, struct skrull_error *err);

/*
 * Opens a file under one of `roots` ([n_roots] absolute paths): `path` absolute, or relative to the first
 * root that has it; after resolving links it must lie under a root. PERMISSION_DENIED: outside, or no
 * roots at all; NOT_FOUND: in no root. Returns a descriptor in *ret_fd, the caller's.
 */
int index_open_under_roots(const char *path, const char *const *roots, size_t n_roots, int *ret_fd,
                           struct skrull_error *err);
