/*
 * The decoder back: loss and head, then each layer's MLP and attention projections in reverse, then
 * the embedding. dstream is the gradient of the residual stream; every branch adds to it. What was
 * not kept is computed again, to the same bits.
 */
#include "decoder.h"

#include <string.h>

/* Gradients of a linear layer; din is written or added to, and may be NULL. */
struct linear_back {
    size_t weight, bias;
    uint32_t n_in, n_out;
    const float *in, *dout;
    float *din;
    bool add_din;
};

static int linear_back(const struct decoder *decoder, const struct linear_back *back,
                       struct skrull_error *err)
{
    const struct skrull_linear_backward linear = {
        .dtype = SKRULL_DTYPE_F32,
        .n_rows = decoder->layout->rows.n_rows,
        .n_in = back->n_in,
        .n_out = back->n_out,
        .in = back->in,
        .weight = decoder->weights + back->weight,
        .dout = back->dout,
        .din = back->din,
        .add_din = back->add_din,
        .dweight = decoder->gradients + back->weight,
        .dbias = back->bias == DECODER_NO_BIAS ? NULL : decoder->gradients + back->bias};

    return decoder->ops->linear_backward(&linear, NULL, err);
}

/* dnormed -> its input's gradient in scratch; `add`: added to dstream. */
static int norm_back(const struct decoder *decoder, const float *in, size_t weight,
                     const float *rstd, bool add, struct skrull_error *err)
{
    uint32_t width = decoder->shape->config.hidden;
    const struct skrull_rms_norm_backward norm = {.dtype = SKRULL_DTYPE_F32,
                                                  .n_rows = decoder->layout->rows.n_rows,
                                                  .width = width,
                                                  .in = in,
                                                  .weight = decoder->weights + weight,
                                                  .dout = decoder->dnormed,
                                                  .rstd = rstd,
                                                  .din = add ? decoder->scratch : decoder->dstream,
                                                  .dweight = decoder->gradients + weight};
    const struct skrull_add sum = {.dtype = SKRULL_DTYPE_F32,
                                   .n = (size_t)norm.n_rows * width,
                                   .a = decoder->dstream,
                                   .b = decoder->scratch,
                                   .out = decoder->dstream};
    int rc = decoder->ops->rms_norm_backward(&norm, NULL, err);

    return rc < 0 || !add ? rc : decoder->ops->add(&sum, NULL, err);
}

int decoder_turn(void *arg, struct skrull_error *err)
{
    struct decoder *decoder = arg;
    const struct decoder_shape *shape = decoder->shape;
    struct skrull_cross_entropy_backward back = {
        .forward = {.dtype = SKRULL_DTYPE_F32,
                    .n_rows = decoder->layout->rows.n_rows,
                    .width = shape->config.hidden,
                    .vocabulary = shape->config.vocabulary,
                    .chunk = shape->config.vocabulary < DECODER_CHUNK ? shape->config.vocabulary
                                                                      : DECODER_CHUNK,
                    .in = decoder->scratch,
                    .head = decoder->weights + shape->head,
                    .target = decoder->target,
                    .loss_weight = decoder->layout->loss_weight,
                    .logits = decoder->logits,
                    .lse = decoder->lse,
                    .loss = &decoder->loss},
        .din = decoder->dnormed,
        .dhead = decoder->gradients + shape->head};
    int rc =
        decoder_norm(decoder, decoder->stream, shape->norm, decoder->scratch, decoder->rstd, err);

    if (rc == 0) {
        rc = decoder->ops->cross_entropy_forward(&back.forward, NULL, err);
    }
    if (rc == 0) {
        rc = decoder->ops->cross_entropy_backward(&back, NULL, err);
    }
    return rc < 0 ? rc
                  : norm_back(decoder, decoder->stream, shape->norm, decoder->rstd, false, err);
}

/* dwide -> dgate and dup -> dnormed. */
static int gates_back(const struct decoder *decoder, uint32_t layer, struct skrull_error *err)
{
    const struct model_config *config = &decoder->shape->config;
    const struct layer_weights *weights = &decoder->shape->layers[layer];
    const struct decoder_kept *kept = &decoder->kept[layer];
    const struct skrull_swiglu_backward swiglu = {.dtype = SKRULL_DTYPE_F32,
                                                  .n_rows = decoder->layout->rows.n_rows,
                                                  .width = config->intermediate,
                                                  .gate = kept->gate,
                                                  .up = kept->up,
                                                  .dout = decoder->dwide,
                                                  .dgate = decoder->dgate,
                                                  .dup = decoder->dup};
    struct linear_back back = {.weight = weights->gate,
                               .bias = DECODER_NO_BIAS,
                               .n_in = config->hidden,
                               .n_out = config->intermediate,
                               .in = kept->normed2,
                               .dout = decoder->dgate,
                               .din = decoder->dnormed};
    int rc = decoder->ops->swiglu_backward(&swiglu, NULL, err);

    if (rc == 0) {
        rc = linear_back(decoder, &back, err);
    }
    back.weight = weights->up;
    back.dout = decoder->dup;
    back.add_din = true;
    return rc < 0 ? rc : linear_back(decoder, &back, err);
}

int decoder_after_attention_backward(void *arg, uint32_t layer, const void *out, void *dout,
                                     struct skrull_error *err)
{
    struct decoder *decoder = arg;
    const struct model_config *config = &decoder->shape->config;
    const struct layer_weights *weights = &decoder->shape->layers[layer];
    const struct decoder_kept *kept = &decoder->kept[layer];
    const struct linear_back down = {.weight = weights->down,
                                     .bias = DECODER_NO_BIAS,
                                     .n_in = config->intermediate,
                                     .n_out = config->hidden,
                                     .in = kept->activated,
                                     .dout = decoder->dstream,
                                     .din = decoder->dwide};
    const struct linear_back projection = {.weight = weights->o,
                                           .bias = DECODER_NO_BIAS,
                                           .n_in = config->heads * config->head_dim,
                                           .n_out = config->hidden,
                                           .in = out,
                                           .dout = decoder->dstream,
                                           .din = dout};
    int rc = decoder->recompute ? decoder_mlp_inner(decoder, layer, err) : 0;

    if (rc == 0) {
        rc = linear_back(decoder, &down, err);
    }
    if (rc == 0) {
        rc = gates_back(decoder, layer, err);
    }
    if (rc == 0) {
        rc = norm_back(decoder, kept->mid, weights->norm2, kept->rstd2, true, err);
    }
    return rc < 0 ? rc : linear_back(decoder, &projection, err);
}

static int turn_back(const struct decoder *decoder, float *rows, uint32_t heads,
                     struct skrull_error *err)
{
    const struct skrull_rotary rotary = {.dtype = SKRULL_DTYPE_F32,
                                         .n_rows = decoder->layout->rows.n_rows,
                                         .heads = heads,
                                         .head_dim = decoder->shape->config.head_dim,
                                         .position = decoder->layout->rows.position,
                                         .frequency = decoder->frequencies,
                                         .in = rows,
                                         .out = rows};

    return decoder->ops->rotary_backward(&rotary, NULL, err);
}

int decoder_before_attention_backward(void *arg, uint32_t layer, float *dq, float *dk, float *dv,
                                      struct skrull_error *err)
{
    struct decoder *decoder = arg;
    const struct model_config *config = &decoder->shape->config;
    const struct layer_weights *weights = &decoder->shape->layers[layer];
    const struct decoder_kept *kept = &decoder->kept[layer];
    uint32_t k_width = config->kv_heads * config->head_dim;
    const struct linear_back backs[] = {
        {weights->q, weights->q_bias, config->hidden, config->heads * config->head_dim,
         kept->normed1, dq, decoder->dnormed, false},
        {weights->k, weights->k_bias, config->hidden, k_width, kept->normed1, dk, decoder->dnormed,
         true},
        {weights->v, weights->v_bias, config->hidden, k_width, kept->normed1, dv, decoder->dnormed,
         true},
    };
    int rc = turn_back(decoder, dq, config->heads, err);

    if (rc == 0) {
        rc = turn_back(decoder, dk, config->kv_heads, err);
    }
    for (size_t i = 0; i < sizeof(backs) / sizeof(backs[0]) && rc == 0; i++) {
        rc = linear_back(decoder, &backs[i], err);
    }
    return rc < 0 ? rc : norm_back(decoder, kept->in, weights->norm1, kept->rstd1, true, err);
}

int decoder_end(void *arg, struct skrull_error *err)
{
    struct decoder *decoder = arg;
    const struct skrull_embedding_backward back = {.dtype = SKRULL_DTYPE_F32,
                                                   .n_rows = decoder->layout->rows.n_rows,
                                                   .width = decoder->shape->config.hidden,
                                                   .vocabulary = decoder->shape->config.vocabulary,
                                                   .token = decoder->token,
                                                   .dout = decoder->dstream,
                                                   .dtable = decoder->gradients +
                                                             decoder->shape->embedding};

    return decoder->ops->embedding_backward(&back, NULL, err);
}
