/* What forward and backward attention share: who sees whom, by tiles of queries and keys. */
#pragma once

#include "gemm.h"

#define ATTENTION_TILE 64u

/* Rows [first, first + n) of one side, a tile of one sequence. */
struct attention_tile {
    size_t first, n;
    int32_t least, most; /* positions of its tokens; least > most: only padding */
};

struct attention_tile REF(attention_tile_at)(const int32_t *position, size_t first, size_t end);

/* Does any query of `q` see any key of `k`, by position? May say yes too often, never no. */
bool REF(attention_sees)(const struct skrull_attention *attention, const struct attention_tile *q,
                         const struct attention_tile *k);

/* Positions that the query at `position` sees: [least, most], empty for padding. */
void REF(attention_reach)(const struct skrull_attention *attention, int32_t position,
                          int32_t *ret_least, int32_t *ret_most);

/* Packs a tile's rows [n][head_dim] for products that sum over rows; padding counts as zeros,
 * whatever it holds, since 0 x NaN would be NaN. */
void REF(attention_pack)(const struct gemm_matrix *rows, const struct attention_tile *tile,
                         const int32_t *position, size_t head_dim, float *ret_packed);

/* 0, or what is wrong with the parameters. */
int REF(attention_check)(const struct skrull_attention *attention, struct skrull_error *err);
