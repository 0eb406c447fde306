/*
 * Attention backward by tiles (arXiv 2205.14135, algorithm 4): probabilities are computed again
 * from the merged log-sum-exp, so that any set of keys gives its own share of the gradients. With p
 * the probabilities, delta = dout . out: dv += p^T dout;  ds = p (dout v^T - delta + dlse);  dq +=
 * scale ds k;  dk += scale ds^T q No state, any thread.
 */
#include <math.h>
#include <stdlib.h>

#include "attention_tiles.h"

/* Scratch of a call, in one block; packed tiles of a sequence's keys, then those of one query tile.
 */
struct scratch {
    float *k_across, *v_across, *k_along; /* keys and values [dim][tile]; keys [tile][dim] */
    float *q_along, *dout_along;          /* [tile][dim] */
    float *probabilities, *dscores;       /* [tile][tile] */
    float *delta;                         /* [tile] delta - dlse */
    struct attention_tile *tiles;
    size_t n_tiles, across_size, along_size;
};

static int scratch_init(struct scratch *s, const struct skrull_attention *forward)
{
    size_t dim = forward->head_dim, square = (size_t)ATTENTION_TILE * ATTENTION_TILE;
    size_t max_tiles = ((size_t)forward->max_k_rows + ATTENTION_TILE - 1) / ATTENTION_TILE;
    size_t n_floats;

    s->across_size = gemm_packed_size(dim, ATTENTION_TILE);
    s->along_size = gemm_packed_size(ATTENTION_TILE, dim);
    n_floats = max_tiles * (2 * s->across_size + s->along_size) + 2 * s->along_size + 2 * square +
               ATTENTION_TILE;
    s->tiles = malloc(max_tiles * sizeof(struct attention_tile) + n_floats * sizeof(float));
    if (!s->tiles) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    s->k_across = (float *)(void *)(s->tiles + max_tiles);
    s->v_across = s->k_across + max_tiles * s->across_size;
    s->k_along = s->v_across + max_tiles * s->across_size;
    s->q_along = s->k_along + max_tiles * s->along_size;
    s->dout_along = s->q_along + s->along_size;
    s->probabilities = s->dout_along + s->along_size;
    s->dscores = s->probabilities + square;
    s->delta = s->dscores + square;
    return 0;
}

static void pack_sequence(struct scratch *s, const struct skrull_attention *forward, size_t i,
                          size_t kv_head)
{
    size_t dim = forward->head_dim, dense = forward->kv_heads * dim;
    size_t k_stride = ref_stride(forward->k_stride, dense);
    size_t v_stride = ref_stride(forward->v_stride, dense);
    size_t end = (size_t)forward->k_cu_rows[i + 1];

    s->n_tiles = 0;
    for (size_t first = (size_t)forward->k_cu_rows[i]; first < end; first += ATTENTION_TILE) {
        struct attention_tile tile = REF(attention_tile_at)(forward->k_position, first, end);
        const float *k = (const float *)forward->k + first * k_stride + kv_head * dim;
        const float *v = (const float *)forward->v + first * v_stride + kv_head * dim;
        struct gemm_matrix k_across = {k, 1, k_stride}, v_across = {v, 1, v_stride};
        struct gemm_matrix k_along = {k, k_stride, 1};

        REF(gemm_pack)(&k_across, dim, tile.n, s->k_across + s->n_tiles * s->across_size);
        REF(gemm_pack)(&v_across, dim, tile.n, s->v_across + s->n_tiles * s->across_size);
        REF(attention_pack)
        (&k_along, &tile, forward->k_position, dim, s->k_along + s->n_tiles * s->along_size);
        s->tiles[s->n_tiles++] = tile;
    }
}

/* A tile of queries of one head, with what belongs to it. */
struct queries {
    const struct skrull_attention_backward *backward;
    struct attention_tile tile;
    size_t head, kv_head;
    struct gemm_matrix q, dout; /* the tile's rows */
};

static struct queries queries_at(const struct skrull_attention_backward *backward,
                                 const struct attention_tile *tile, size_t head)
{
    const struct skrull_attention *forward = &backward->forward;
    size_t dim = forward->head_dim, dense = forward->heads * dim;
    size_t q_stride = ref_stride(forward->q_stride, dense);
    size_t dout_stride = ref_stride(backward->dout_stride, dense);

    return (struct queries){
        .backward = backward,
        .tile = *tile,
        .head = head,
        .kv_head = head / (forward->heads / forward->kv_heads),
        .q = {(const float *)forward->q + tile->first * q_stride + head * dim, q_stride, 1},
        .dout = {(const float *)backward->dout + tile->first * dout_stride + head * dim,
                 dout_stride, 1},
    };
}

/* Packs a tile of queries and computes its delta. */
static void pack_queries(struct scratch *s, const struct queries *queries)
{
    const struct skrull_attention_backward *backward = queries->backward;
    const struct skrull_attention *forward = &backward->forward;
    size_t dim = forward->head_dim, heads = forward->heads;
    size_t out_stride = ref_stride(forward->out_stride, heads * dim);

    REF(attention_pack)(&queries->q, &queries->tile, forward->q_position, dim, s->q_along);
    REF(attention_pack)(&queries->dout, &queries->tile, forward->q_position, dim, s->dout_along);
    for (size_t row = 0; row < queries->tile.n; row++) {
        size_t at = queries->tile.first + row;
        const float *out = (const float *)forward->out + at * out_stride + queries->head * dim;

        s->delta[row] = ref_dot(queries->dout.at + row * queries->dout.row, out, dim);
        if (backward->dlse) {
            s->delta[row] -= backward->dlse[at * heads + queries->head];
        }
    }
}

/* Scores and dout v^T of one row become probabilities and scaled gradients of scores. */
static void differentiate_row(struct scratch *s, const struct queries *queries, size_t row,
                              const struct attention_tile *keys)
{
    const struct skrull_attention *forward = &queries->backward->forward;
    const int32_t *position = forward->k_position + keys->first;
    size_t at = queries->tile.first + row;
    float lse = forward->lse[at * forward->heads + queries->head];
    float scale = forward->scale, delta = s->delta[row];
    float *p = s->probabilities + row * ATTENTION_TILE, *ds = s->dscores + row * ATTENTION_TILE;
    int32_t least, most;

    REF(attention_reach)(forward, forward->q_position[at], &least, &most);
    for (size_t j = 0; j < keys->n; j++) {
        bool is_seen = (position[j] >= least) & (position[j] <= most);
        float probability = ref_exp(p[j] * scale - lse);

        p[j] = is_seen ? probability : 0.0F;
        ds[j] = is_seen ? probability * (ds[j] - delta) * scale : 0.0F;
    }
}

/* Gradients between one tile of queries and one tile of keys. */
static void differentiate_tile(struct scratch *s, const struct queries *queries, size_t i_tile)
{
    const struct skrull_attention_backward *backward = queries->backward;
    const struct skrull_attention *forward = &backward->forward;
    const struct attention_tile *keys = &s->tiles[i_tile];
    size_t dim = forward->head_dim, n_q = queries->tile.n;
    size_t q_row = forward->heads * dim, k_row = forward->kv_heads * dim;
    size_t key_at = keys->first * k_row + queries->kv_head * dim;
    struct gemm_product scores = {.m = n_q,
                                  .n = keys->n,
                                  .k = dim,
                                  .a = queries->q,
                                  .packed = s->k_across + i_tile * s->across_size,
                                  .c = s->probabilities,
                                  .c_row = ATTENTION_TILE};
    struct gemm_product dp = {.m = n_q,
                              .n = keys->n,
                              .k = dim,
                              .a = queries->dout,
                              .packed = s->v_across + i_tile * s->across_size,
                              .c = s->dscores,
                              .c_row = ATTENTION_TILE};
    struct gemm_product dq = {.m = n_q,
                              .n = dim,
                              .k = keys->n,
                              .add = true,
                              .a = {s->dscores, ATTENTION_TILE, 1},
                              .packed = s->k_along + i_tile * s->along_size,
                              .c = backward->dq + queries->tile.first * q_row + queries->head * dim,
                              .c_row = q_row};
    struct gemm_product dk = {.m = keys->n,
                              .n = dim,
                              .k = n_q,
                              .add = true,
                              .a = {s->dscores, 1, ATTENTION_TILE},
                              .packed = s->q_along,
                              .c = backward->dk + key_at,
                              .c_row = k_row};
    struct gemm_product dv = {.m = keys->n,
                              .n = dim,
                              .k = n_q,
                              .add = true,
                              .a = {s->probabilities, 1, ATTENTION_TILE},
                              .packed = s->dout_along,
                              .c = backward->dv + key_at,
                              .c_row = k_row};

    REF(gemm_multiply)(&scores);
    REF(gemm_multiply)(&dp);
    for (size_t row = 0; row < n_q; row++) {
        differentiate_row(s, queries, row, keys);
    }
    REF(gemm_multiply)(&dq);
    REF(gemm_multiply)(&dk);
    REF(gemm_multiply)(&dv);
}

static void differentiate_head(struct scratch *s, const struct skrull_attention_backward *backward,
                               size_t i, size_t head)
{
    const struct skrull_attention *forward = &backward->forward;
    size_t end = (size_t)forward->q_cu_rows[i + 1];

    for (size_t first = (size_t)forward->q_cu_rows[i]; first < end; first += ATTENTION_TILE) {
        struct attention_tile tile = REF(attention_tile_at)(forward->q_position, first, end);
        struct queries queries = queries_at(backward, &tile, head);

        pack_queries(s, &queries);
        for (size_t t = 0; t < s->n_tiles; t++) {
            if (REF(attention_sees)(forward, &tile, &s->tiles[t])) {
                differentiate_tile(s, &queries, t);
            }
        }
    }
}

int REF(attention_backward)(const struct skrull_attention_backward *backward, void *stream,
                            struct skrull_error *err)
{
    const struct skrull_attention *forward = &backward->forward;
    size_t per_key;
    struct scratch s;
    int rc = REF(attention_check)(forward, err);

    (void)stream;
    if (rc < 0) {
        return rc;
    }
    if (scratch_init(&s, forward) < 0) {
        return ref_out_of_memory(err);
    }
    per_key = forward->heads / forward->kv_heads;
    for (size_t i = 0; i < forward->n_sequences; i++) {
        for (size_t kv_head = 0; kv_head < forward->kv_heads; kv_head++) {
            pack_sequence(&s, forward, i, kv_head);
            for (size_t h = 0; h < per_key; h++) {
                differentiate_head(&s, backward, i, kv_head * per_key + h);
            }
        }
    }
    free(s.tiles);
    return 0;
}
