/*
 * Masks by position. A query's reach is an interval of positions, so one comparison at either end
 * masks causality, the window, and padding (position -1) alike. No state, any thread.
 */
#include "attention_tiles.h"

struct attention_tile REF(attention_tile_at)(const int32_t *position, size_t first, size_t end)
{
    struct attention_tile tile = {.first = first, .least = INT32_MAX, .most = -1};

    tile.n = end - first < ATTENTION_TILE ? end - first : ATTENTION_TILE;
    for (size_t i = first; i < first + tile.n; i++) {
        if (position[i] >= 0) {
            tile.least = position[i] < tile.least ? position[i] : tile.least;
            tile.most = position[i] > tile.most ? position[i] : tile.most;
        }
    }
    return tile;
}

void REF(attention_reach)(const struct skrull_attention *attention, int32_t position,
                          int32_t *ret_least, int32_t *ret_most)
{
    int64_t least = 0, most = INT32_MAX;

    if (attention->window) {
        least = (int64_t)position - attention->window + 1;
        most = (int64_t)position + attention->window - 1;
    }
    if (attention->causal) {
        most = position;
    }
    least = least > 0 ? least : 0;
    most = most < INT32_MAX ? most : INT32_MAX;
    *ret_least = position < 0 ? INT32_MAX : (int32_t)least;
    *ret_most = position < 0 ? -1 : (int32_t)most;
}

bool REF(attention_sees)(const struct skrull_attention *attention, const struct attention_tile *q,
                         const struct attention_tile *k)
{
    int32_t least, most, unused;

    if (q->most < 0 || k->most < 0) {
        return false;
    }
    REF(attention_reach)(attention, q->least, &least, &unused);
    REF(attention_reach)(attention, q->most, &unused, &most);
    return k->most >= least && k->least <= most;
}

void REF(attention_pack)(const struct gemm_matrix *rows, const struct attention_tile *tile,
                         const int32_t *position, size_t head_dim, float *ret_packed)
{
    REF(gemm_pack)(rows, tile->n, head_dim, ret_packed);
    for (size_t i = 0; i < tile->n; i++) {
        if (position[tile->first + i] >= 0) {
            continue;
        }
        for (size_t column = 0; column < head_dim; column += GEMM_COLUMNS) {
            memset(ret_packed + column * tile->n + i * GEMM_COLUMNS, 0,
                   GEMM_COLUMNS * sizeof(float));
        }
    }
}

int REF(attention_check)(const struct skrull_attention *attention, struct skrull_error *err)
{
    if (attention->kv_heads == 0 || attention->heads % attention->kv_heads != 0 ||
        attention->head_dim == 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "attention: %u heads do not divide by %u key heads, or head "
                                "dimension %u",
                                attention->heads, attention->kv_heads, attention->head_dim);
    }
    return ref_check_dtype(attention->dtype, err);
}
