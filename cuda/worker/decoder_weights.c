/* Where each weight lies in the one array, and its first value: a hash of its place, so that ranks
 * need not send them to each other and a run can be repeated anywhere. */
#include <math.h>
#include <stdlib.h>

#include "ckd.h"
#include "decoder.h"

/* Takes [n_out][n_in] weights; SIZE_MAX where there are too many. */
static size_t take(struct decoder_shape *shape, size_t n_out, size_t n_in)
{
    size_t at = shape->n_weights, n;

    if (at == SIZE_MAX || ckd_mul(&n, n_out, n_in) || ckd_add(&shape->n_weights, at, n)) {
        shape->n_weights = SIZE_MAX;
    }
    return at;
}

static void take_layer(struct decoder_shape *shape, struct layer_weights *layer)
{
    const struct model_config *config = &shape->config;
    size_t hidden = config->hidden, inner = config->intermediate;
    size_t q = (size_t)config->heads * config->head_dim;
    size_t k = (size_t)config->kv_heads * config->head_dim;
    bool has_bias = config->has_qkv_bias;

    layer->norm1 = take(shape, 1, hidden);
    layer->q = take(shape, q, hidden);
    layer->k = take(shape, k, hidden);
    layer->v = take(shape, k, hidden);
    layer->q_bias = has_bias ? take(shape, 1, q) : DECODER_NO_BIAS;
    layer->k_bias = has_bias ? take(shape, 1, k) : DECODER_NO_BIAS;
    layer->v_bias = has_bias ? take(shape, 1, k) : DECODER_NO_BIAS;
    layer->o = take(shape, hidden, q);
    layer->norm2 = take(shape, 1, hidden);
    layer->gate = take(shape, inner, hidden);
    layer->up = take(shape, inner, hidden);
    layer->down = take(shape, hidden, inner);
}

int decoder_shape_init(struct decoder_shape *shape, const struct model_config *config,
                       struct skrull_error *err)
{
    *shape = (struct decoder_shape){.config = *config};
    shape->layers = calloc(config->layers, sizeof(shape->layers[0]));
    if (!shape->layers) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for layers");
    }
    shape->embedding = take(shape, config->vocabulary, config->hidden);
    for (uint32_t l = 0; l < config->layers; l++) {
        take_layer(shape, &shape->layers[l]);
    }
    shape->norm = take(shape, 1, config->hidden);
    shape->head =
        config->has_tied_head ? shape->embedding : take(shape, config->vocabulary, config->hidden);
    if (shape->n_weights > SIZE_MAX / 64) {
        decoder_shape_deinit(shape);
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "the model has too many weights");
    }
    return 0;
}

void decoder_shape_deinit(struct decoder_shape *shape)
{
    free(shape->layers);
    shape->layers = NULL;
}

static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void fill_matrix(uint64_t seed, size_t at, size_t n_out, size_t n_in, float *weights)
{
    float width = sqrtf(3.0F / (float)n_in);

    for (size_t i = at; i < at + n_out * n_in; i++) {
        float uniform = (float)(mix(seed ^ mix(i)) >> 40) / (float)(1 << 24);

        weights[i] = (2.0F * uniform - 1.0F) * width;
    }
}

static void fill(size_t at, size_t n, float value, float *weights)
{
    for (size_t i = 0; at != DECODER_NO_BIAS && i < n; i++) {
        weights[at + i] = value;
    }
}

void decoder_first_weights(const struct decoder_shape *shape, uint64_t seed, float *ret_weights)
{
    const struct model_config *config = &shape->config;
    size_t hidden = config->hidden, inner = config->intermediate;
    size_t q = (size_t)config->heads * config->head_dim;
    size_t k = (size_t)config->kv_heads * config->head_dim;

    fill_matrix(seed, shape->embedding, config->vocabulary, hidden, ret_weights);
    for (uint32_t l = 0; l < config->layers; l++) {
        const struct layer_weights *layer = &shape->layers[l];

        fill(layer->norm1, hidden, 1.0F, ret_weights);
        fill(layer->norm2, hidden, 1.0F, ret_weights);
        fill(layer->q_bias, q, 0.0F, ret_weights);
        fill(layer->k_bias, k, 0.0F, ret_weights);
        fill(layer->v_bias, k, 0.0F, ret_weights);
        fill_matrix(seed, layer->q, q, hidden, ret_weights);
        fill_matrix(seed, layer->k, k, hidden, ret_weights);
        fill_matrix(seed, layer->v, k, hidden, ret_weights);
        fill_matrix(seed, layer->o, hidden, q, ret_weights);
        fill_matrix(seed, layer->gate, inner, hidden, ret_weights);
        fill_matrix(seed, layer->up, inner, hidden, ret_weights);
        fill_matrix(seed, layer->down, hidden, inner, ret_weights);
    }
    fill(shape->norm, hidden, 1.0F, ret_weights);
    if (shape->head != shape->embedding) {
        fill_matrix(seed, shape->head, config->vocabulary, hidden, ret_weights);
    }
}
