/*
 * Attention forward: for each sequence and key head the keys and values are packed once; each tile
 * of queries of each head then runs over the tiles of keys that it can see, with the running
 * maximum and sum of FlashAttention (arXiv 2205.14135). Time as the visible tiles; scratch as the
 * longest sequence's keys. No state, any thread.
 */
#include <math.h>
#include <stdlib.h>

#include "attention_tiles.h"

/* Scratch of a call, in one block. */
struct scratch {
    float *keys, *values;                   /* packed, tile by tile */
    float *scores;                          /* [tile][tile] */
    float *sums;                            /* [tile][head_dim] */
    float *max, *total;                     /* [tile] */
    struct attention_tile *tiles;           /* of the sequence's keys */
    size_t n_tiles, keys_size, values_size; /* of one packed tile */
    void *block;
};

static int scratch_init(struct scratch *s, const struct skrull_attention *attention)
{
    size_t dim = attention->head_dim;
    size_t max_tiles = ((size_t)attention->max_k_rows + ATTENTION_TILE - 1) / ATTENTION_TILE;
    size_t n_floats;

    s->keys_size = gemm_packed_size(dim, ATTENTION_TILE);
    s->values_size = gemm_packed_size(ATTENTION_TILE, dim);
    n_floats = max_tiles * (s->keys_size + s->values_size) + ATTENTION_TILE * ATTENTION_TILE +
               ATTENTION_TILE * dim + 2 * (size_t)ATTENTION_TILE;
    s->tiles = malloc(max_tiles * sizeof(struct attention_tile) + n_floats * sizeof(float));
    if (!s->tiles) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    s->block = s->tiles;
    s->keys = (float *)(void *)(s->tiles + max_tiles);
    s->values = s->keys + max_tiles * s->keys_size;
    s->scores = s->values + max_tiles * s->values_size;
    s->sums = s->scores + (size_t)ATTENTION_TILE * ATTENTION_TILE;
    s->max = s->sums + ATTENTION_TILE * dim;
    s->total = s->max + ATTENTION_TILE;
    return 0;
}

/* Packs the keys and values of one sequence and key head. */
static void pack_sequence(struct scratch *s, const struct skrull_attention *attention, size_t i,
                          size_t kv_head)
{
    size_t dim = attention->head_dim, dense = attention->kv_heads * dim;
    size_t k_stride = ref_stride(attention->k_stride, dense);
    size_t v_stride = ref_stride(attention->v_stride, dense);
    size_t end = (size_t)attention->k_cu_rows[i + 1];

    s->n_tiles = 0;
    for (size_t first = (size_t)attention->k_cu_rows[i]; first < end; first += ATTENTION_TILE) {
        struct attention_tile tile = REF(attention_tile_at)(attention->k_position, first, end);
        struct gemm_matrix keys = {(const float *)attention->k + first * k_stride + kv_head * dim,
                                   1, k_stride};
        struct gemm_matrix values = {(const float *)attention->v + first * v_stride + kv_head * dim,
                                     v_stride, 1};

        REF(gemm_pack)(&keys, dim, tile.n, s->keys + s->n_tiles * s->keys_size);
        REF(attention_pack)
        (&values, &tile, attention->k_position, dim, s->values + s->n_tiles * s->values_size);
        s->tiles[s->n_tiles++] = tile;
    }
}

/* Scores of one row become exponentials; its maximum and sum move on, its sums are rescaled. */
static void soften_row(struct scratch *s, const struct skrull_attention *attention, size_t row,
                       int32_t q_position, const struct attention_tile *keys)
{
    const int32_t *position = attention->k_position + keys->first;
    float *scores = s->scores + row * ATTENTION_TILE;
    float *sums = s->sums + row * attention->head_dim;
    float scale = attention->scale, max, rescale;
    int32_t least, most;

    REF(attention_reach)(attention, q_position, &least, &most);
    for (size_t j = 0; j < keys->n; j++) {
        bool is_seen = (position[j] >= least) & (position[j] <= most);

        scores[j] = is_seen ? scores[j] * scale : -INFINITY;
    }
    max = ref_max(scores, keys->n, s->max[row]);
    if (isinf(max)) {
        memset(scores, 0, keys->n * sizeof(float));
        return;
    }
    for (size_t j = 0; j < keys->n; j++) {
        scores[j] = ref_exp(scores[j] - max);
    }
    rescale = ref_exp(s->max[row] - max);
    s->total[row] = s->total[row] * rescale + ref_sum(scores, keys->n);
    s->max[row] = max;
    for (size_t d = 0; d < attention->head_dim; d++) {
        sums[d] *= rescale;
    }
}

/* One tile of queries against one tile of keys. */
static void attend_tile(struct scratch *s, const struct skrull_attention *attention,
                        const struct attention_tile *queries, size_t head, size_t i_tile)
{
    const struct attention_tile *keys = &s->tiles[i_tile];
    size_t dim = attention->head_dim;
    size_t q_stride = ref_stride(attention->q_stride, attention->heads * dim);
    const float *q = (const float *)attention->q + queries->first * q_stride + head * dim;
    struct gemm_product scores = {.m = queries->n,
                                  .n = keys->n,
                                  .k = dim,
                                  .a = {q, q_stride, 1},
                                  .packed = s->keys + i_tile * s->keys_size,
                                  .c = s->scores,
                                  .c_row = ATTENTION_TILE};
    struct gemm_product sums = {.m = queries->n,
                                .n = dim,
                                .k = keys->n,
                                .a = {s->scores, ATTENTION_TILE, 1},
                                .packed = s->values + i_tile * s->values_size,
                                .c = s->sums,
                                .c_row = dim,
                                .add = true};

    REF(gemm_multiply)(&scores);
    for (size_t row = 0; row < queries->n; row++) {
        soften_row(s, attention, row, attention->q_position[queries->first + row], keys);
    }
    REF(gemm_multiply)(&sums);
}

static void write_tile(const struct scratch *s, const struct skrull_attention *attention,
                       const struct attention_tile *queries, size_t head)
{
    size_t dim = attention->head_dim, heads = attention->heads;
    size_t stride = ref_stride(attention->out_stride, heads * dim);

    for (size_t row = 0; row < queries->n; row++) {
        float *out = (float *)attention->out + (queries->first + row) * stride + head * dim;
        float factor = s->total[row] > 0.0F ? 1.0F / s->total[row] : 0.0F;

        for (size_t d = 0; d < dim; d++) {
            out[d] = s->sums[row * dim + d] * factor;
        }
        attention->lse[(queries->first + row) * heads + head] =
            s->total[row] > 0.0F ? s->max[row] + logf(s->total[row]) : -INFINITY;
    }
}

/* All queries of a sequence, one head, against the packed keys. */
static void attend_head(struct scratch *s, const struct skrull_attention *attention, size_t i,
                        size_t head)
{
    size_t end = (size_t)attention->q_cu_rows[i + 1];

    for (size_t first = (size_t)attention->q_cu_rows[i]; first < end; first += ATTENTION_TILE) {
        struct attention_tile queries = REF(attention_tile_at)(attention->q_position, first, end);

        memset(s->sums, 0, queries.n * attention->head_dim * sizeof(float));
        for (size_t row = 0; row < queries.n; row++) {
            s->max[row] = -INFINITY;
            s->total[row] = 0.0F;
        }
        for (size_t t = 0; t < s->n_tiles; t++) {
            if (REF(attention_sees)(attention, &queries, &s->tiles[t])) {
                attend_tile(s, attention, &queries, head, t);
            }
        }
        write_tile(s, attention, &queries, head);
    }
}

int REF(attention_forward)(const struct skrull_attention *attention, void *stream,
                           struct skrull_error *err)
{
    size_t kv_heads = attention->kv_heads, per_key;
    struct scratch s;
    int rc = REF(attention_check)(attention, err);

    (void)stream;
    if (rc < 0) {
        return rc;
    }
    if (scratch_init(&s, attention) < 0) {
        return ref_out_of_memory(err);
    }
    per_key = attention->heads / kv_heads;
    for (size_t i = 0; i < attention->n_sequences; i++) {
        for (size_t kv_head = 0; kv_head < kv_heads; kv_head++) {
            pack_sequence(&s, attention, i, kv_head);
            for (size_t h = 0; h < per_key; h++) {
                attend_head(&s, attention, i, kv_head * per_key + h);
            }
        }
    }
    free(s.block);
    return 0;
}
