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
    const void *in, *dout;
    void *din;
    bool add_din;
};

static int linear_back(const struct decoder *decoder, const struct linear_back *back,
                       struct skrull_error *err)
{
    const struct skrull_linear_backward linear = {
        .dtype = decoder->dtype,
        .n_rows = decoder->layout->rows.n_rows,
        .n_in = back->n_in,
        .n_out = back->n_out,
        .in = back->in,
        .weight = decoder_weight(decoder, back->weight),
        .dout = back->dout,
        .din = back->din,
        .add_din = back->add_din,
        .dweight = decoder->gradients + back->weight,
        .dbias = back->bias == DECODER_NO_BIAS ? NULL : decoder->gradients + back->bias};

    return decoder->ops->linear_backward(&linear, decoder->stream, err);
}

/* dnormed -> its input's gradient in scratch; `add`: added to dstream. */
static int norm_back(const struct decoder *decoder, const void *in, size_t weight,
                     const float *rstd, bool add, struct skrull_error *err)
{
    uint32_t width = decoder->shape->config.hidden;
    const struct skrull_rms_norm_backward norm = {.dtype = decoder->dtype,
                                                  .n_rows = decoder->layout->rows.n_rows,
                                                  .width = width,
                                                  .in = in,
                                                  .weight = decoder_weight(decoder, weight),
                                                  .dout = decoder->dnormed,
                                                  .rstd = rstd,
                                                  .din = add ? decoder->scratch : decoder->dstream,
                                                  .dweight = decoder->gradients + weight};
    const struct skrull_add sum = {.dtype = decoder->dtype,
                                   .n = (size_t)norm.n_rows * width,
                                   .a = decoder->dstream,
                                   .b = decoder->scratch,
                                   .out = decoder->dstream};
    int rc = decoder->ops->rms_norm_backward(&norm, decoder->stream, err);

    return rc < 0 || !add ? rc : decoder->ops->add(&sum, decoder->stream, err);
}

int decoder_turn(void *arg, struct skrull_error *err)
{
    struct decoder *decoder = arg;
    const struct decoder_shape *shape = decoder->shape;
    struct skrull_cross_entropy_backward back = {
        .forward = {.dtype = decoder->dtype,
                    .n_rows = decoder->layout->rows.n_rows,
                    .width = shape->config.hidden,
                    .vocabulary = shape->config.vocabulary,
                    .chunk = shape->config.vocabulary < DECODER_CHUNK ? shape->config.vocabulary
                                                                      : DECODER_CHUNK,
                    .in = decoder->scratch,
                    .head = decoder_weight(decoder, shape->head),
                    .target = decoder->target,
                    .loss_weight = decoder->layout->loss_weight,
                    .logits = decoder->logits,
                    .lse = decoder->lse,
                    .loss = decoder->loss},
        .din = decoder->dnormed,
        .dhead = decoder->gradients + shape->head};
    int rc =
        decoder_norm(decoder, decoder->last, shape->norm, decoder->scratch, decoder->rstd, err);

    if (rc == 0) {
        rc = decoder->ops->cross_entropy_forward(&back.forward, decoder->stream, err);
    }
    if (rc == 0) {
        rc = decoder->ops->cross_entropy_backward(&back, decoder->stream, err);
    }
    return rc < 0 ? rc : norm_back(decoder, decoder->last, shape->norm, decoder->rstd, false, err);
}

/* dwide -> dgate and dup -> dnormed. */
static int gates_back(const struct decoder *decoder, uint32_t layer, struct skrull_error *err)
{
    const struct model_config *config = &decoder->shape->config;
    const struct layer_weights *weights = &decoder->shape->layers[layer];
    const struct decoder_kept *kept = &decoder->kept[layer];
    const struct skrull_swiglu_backward swiglu = {.dtype = decoder->dtype,
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
    int rc = decoder->ops->swiglu_backward(&swiglu, decoder->stream, err);

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

static int turn_back(const struct decoder *decoder, void *rows, uint32_t heads,
                     struct skrull_error *err)
{
    const struct skrull_rotary rotary = {.dtype = decoder->dtype,
                                         .n_rows = decoder->layout->rows.n_rows,
                                         .heads = heads,
                                         .head_dim = decoder->shape->config.head_dim,
                                         .position = decoder->layout->rows.position,
                                         .frequency = decoder->frequencies,
                                         .in = rows,
                                         .out = rows};

    return decoder->ops->rotary_backward(&rotary, decoder->stream, err);
}

/* A gradient [rows][width] in the dtype: as it is, or narrowed into `to`. */
static int narrow(const struct decoder *decoder, float *gradient, uint32_t width, void *to,
                  void **ret, struct skrull_error *err)
{
    const struct skrull_cast cast = {.n = (size_t)decoder->layout->rows.n_rows * width,
                                     .in_dtype = SKRULL_DTYPE_F32,
                                     .out_dtype = decoder->dtype,
                                     .in = gradient,
                                     .out = to};

    *ret = decoder->dtype == SKRULL_DTYPE_F32 ? gradient : to;
    return decoder->dtype == SKRULL_DTYPE_F32 ? 0 : decoder->ops->cast(&cast, decoder->stream, err);
}

int decoder_before_attention_backward(void *arg, uint32_t layer, float *dq, float *dk, float *dv,
                                      struct skrull_error *err)
{
    struct decoder *decoder = arg;
    const struct model_config *config = &decoder->shape->config;
    const struct layer_weights *weights = &decoder->shape->layers[layer];
    const struct decoder_kept *kept = &decoder->kept[layer];
    uint32_t q_width = config->heads * config->head_dim;
    uint32_t k_width = config->kv_heads * config->head_dim;
    void *q = NULL, *k = NULL, *v = NULL;
    int rc = narrow(decoder, dq, q_width, decoder->dq, &q, err);

    if (rc == 0) {
        rc = narrow(decoder, dk, k_width, decoder->dk, &k, err);
    }
    if (rc == 0) {
        rc = narrow(decoder, dv, k_width, decoder->dv, &v, err);
    }
    if (rc == 0) {
        rc = turn_back(decoder, q, config->heads, err);
    }
    if (rc == 0) {
        rc = turn_back(decoder, k, config->kv_heads, err);
    }
    const struct linear_back backs[] = {
        {weights->q, weights->q_bias, config->hidden, q_width, kept->normed1, q, decoder->dnormed,
         false},
        {weights->k, weights->k_bias, config->hidden, k_width, kept->normed1, k, decoder->dnormed,
         true},
        {weights->v, weights->v_bias, config->hidden, k_width, kept->normed1, v, decoder->dnormed,
         true},
    };
    for (size_t i = 0; i < sizeof(backs) / sizeof(backs[0]) && rc == 0; i++) {
        rc = linear_back(decoder, &backs[i], err);
    }
    return rc < 0 ? rc : norm_back(decoder, kept->in, weights->norm1, kept->rstd1, true, err);
}

int decoder_end(void *arg, struct skrull_error *err)
{
    struct decoder *decoder = arg;
    const struct skrull_embedding_backward back = {.dtype = decoder->dtype,
                                                   .n_rows = decoder->layout->rows.n_rows,
                                                   .width = decoder->shape->config.hidden,
                                                   .vocabulary = decoder->shape->config.vocabulary,
                                                   .token = decoder->token,
                                                   .dout = decoder->dstream,
                                                   .dtable = decoder->gradients +
                                                             decoder->shape->embedding};

    return decoder->ops->embedding_backward(&back, decoder->stream, err);
}
