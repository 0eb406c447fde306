/*
 * The layout of a .skx, in one place: where its arrays stand, and the hash of them. Layout: 64-byte
 * header, then the arrays that the flags name, each from the next multiple of 64, gaps zero, the
 * file ending with the last array.
 */
#pragma once

#include <stdint.h>

#include <skrull/error.h>

#include "index/index.h"

#define SKX_HEADER_SIZE 64
#define SKX_ALIGN 64
#define SKX_VERSION 1u

enum skx_flag { SKX_LOSS_TOKENS = 1, SKX_SCORES = 2 };
#define SKX_KNOWN_FLAGS ((uint32_t)(SKX_LOSS_TOKENS | SKX_SCORES))

/* The header as it stands in the file; every field is at its natural alignment. */
struct skx_header {
    char magic[SKX_MAGIC_SIZE];
    uint32_t version;
    uint32_t flags;
    uint64_t count;
    uint64_t tokens;
    uint64_t loss_tokens;
    uint64_t reserved;
    uint64_t payload_hash;
    uint64_t header_hash; /* of the 56 bytes before */
};

_Static_assert(sizeof(struct skx_header) == SKX_HEADER_SIZE, "the header is 64 bytes");

/* Byte offsets in the file. */
struct skx_layout {
    uint64_t lengths;
    uint64_t loss_tokens; /* 0: none */
    uint64_t scores;      /* 0: none */
    uint64_t size;        /* of the file */
};

/* 0, or -1: no file can be that large. */
int skx_layout_of(uint64_t count, uint32_t flags, struct skx_layout *ret_layout);

/* The flags of an index as a .skx. */
uint32_t skx_flags_of(const struct length_index *idx);

/* XXH3-64 (seed 0) over the payload that `idx` would have as a .skx. */
int payload_hash(const struct length_index *idx, uint64_t *ret_hash, struct skrull_error *err);

/* Checks every row and the sums: a length of 0, more loss tokens than tokens, sums that are not
 * idx->tokens and n_loss_tokens are DATA_LOSS. */
int payload_check_rows(const struct length_index *idx, struct skrull_error *err);
