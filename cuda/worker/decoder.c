/*
 * The decoder forth: embedding; in each layer norm, queries, keys and values, turned by position,
 * then attention (not here), its projection, norm, gated MLP. All of it token-wise over the packed
 * rows; rows of padding are zeros and stay harmless. Also what of a layer is kept for the way back.
 */
#include "decoder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TAKES_PER_LAYER 9u
#define OTHER_TAKES 20u
#define ALIGNMENT 64u

size_t decoder_element(const struct decoder *decoder)
{
    return decoder->dtype == SKRULL_DTYPE_F32 ? sizeof(float) : sizeof(uint16_t);
}

const void *decoder_weight(const struct decoder *decoder, size_t at)
{
    return (const char *)decoder->weights + at * decoder_element(decoder);
}

void decoder_frequencies(const struct model_config *config, float *ret_frequencies)
{
    for (uint32_t i = 0; i < config->head_dim / 2; i++) {
        ret_frequencies[i] = powf(config->rope_base, -2.0F * (float)i / (float)config->head_dim);
    }
}

int decoder_init(struct decoder *decoder, struct skrull_error *err)
{
    decoder->kept = calloc(decoder->shape->config.layers, sizeof(decoder->kept[0]));
    return decoder->kept ? 0
                         : skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                            "out of memory for a decoder");
}

void decoder_deinit(struct decoder *decoder)
{
    free(decoder->kept);
    free(decoder->host_tokens);
    decoder->kept = NULL;
    decoder->host_tokens = NULL;
}

static size_t wanted_bytes(void *arg, const struct skrull_layout_limits *limits)
{
    const struct decoder *decoder = arg;
    const struct model_config *config = &decoder->shape->config;
    size_t hidden = config->hidden, inner = config->intermediate, layers = config->layers;
    size_t q = (size_t)config->heads * config->head_dim;
    size_t k = (size_t)config->kv_heads * config->head_dim;
    size_t rows = limits->rows, copies = decoder->recompute ? 1 : layers;
    size_t cast = decoder->dtype == SKRULL_DTYPE_F32 ? 0 : q + 2 * k;
    size_t width =
        layers * 2 * hidden + copies * (2 * hidden + 3 * inner) + 4 * hidden + 3 * inner + cast;
    size_t floats = copies * 2 + DECODER_CHUNK + 4;

    return rows * (width * decoder_element(decoder) + floats * sizeof(float)) +
           (TAKES_PER_LAYER * layers + OTHER_TAKES) * ALIGNMENT;
}

int decoder_linear(const struct decoder *decoder, const void *in, size_t weight, size_t bias,
                   uint32_t n_in, uint32_t n_out, void *out, struct skrull_error *err)
{
    const struct skrull_linear linear = {
        .dtype = decoder->dtype,
        .n_rows = decoder->layout->rows.n_rows,
        .n_in = n_in,
        .n_out = n_out,
        .in = in,
        .weight = decoder_weight(decoder, weight),
        .bias = bias == DECODER_NO_BIAS ? NULL : decoder_weight(decoder, bias),
        .out = out};

    return decoder->ops->linear_forward(&linear, decoder->stream, err);
}

int decoder_norm(const struct decoder *decoder, const void *in, size_t weight, void *out,
                 float *rstd, struct skrull_error *err)
{
    const struct skrull_rms_norm norm = {.dtype = decoder->dtype,
                                         .n_rows = decoder->layout->rows.n_rows,
                                         .width = decoder->shape->config.hidden,
                                         .eps = decoder->shape->config.norm_eps,
                                         .in = in,
                                         .weight = decoder_weight(decoder, weight),
                                         .out = out,
                                         .rstd = rstd};

    return decoder->ops->rms_norm_forward(&norm, decoder->stream, err);
}

static int no_room(struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_INTERNAL, "a decoder's memory was counted too low");
}

/* Takes [rows][width] elements; false: no room. */
static bool take(struct decoder *decoder, size_t width, void **ret)
{
    size_t rows = decoder->layout->rows.n_rows;

    *ret = skrull_exec_take(decoder->exec, rows * width * decoder_element(decoder));
    return *ret != NULL;
}

/* The same of floats. */
static bool take_floats(struct decoder *decoder, size_t width, float **ret)
{
    size_t rows = decoder->layout->rows.n_rows;

    *ret = skrull_exec_take(decoder->exec, rows * width * sizeof(float));
    return *ret != NULL;
}

static int take_kept(struct decoder *decoder, uint32_t layer, struct skrull_error *err)
{
    const struct model_config *config = &decoder->shape->config;
    struct decoder_kept *kept = &decoder->kept[layer];
    size_t hidden = config->hidden, inner = config->intermediate;

    if (decoder->recompute && layer > 0) {
        *kept = decoder->kept[0];
    } else if (!take(decoder, hidden, &kept->normed1) || !take_floats(decoder, 1, &kept->rstd1) ||
               !take(decoder, hidden, &kept->normed2) || !take_floats(decoder, 1, &kept->rstd2) ||
               !take(decoder, inner, &kept->gate) || !take(decoder, inner, &kept->up) ||
               !take(decoder, inner, &kept->activated)) {
        return no_room(err);
    }
    return take(decoder, hidden, &kept->in) && take(decoder, hidden, &kept->mid) ? 0 : no_room(err);
}

/* Gradients of queries, keys and values come in float. */
static bool take_casts(struct decoder *decoder)
{
    const struct model_config *config = &decoder->shape->config;
    size_t q = (size_t)config->heads * config->head_dim;
    size_t k = (size_t)config->kv_heads * config->head_dim;

    return decoder->dtype == SKRULL_DTYPE_F32 ||
           (take(decoder, q, &decoder->dq) && take(decoder, k, &decoder->dk) &&
            take(decoder, k, &decoder->dv));
}

static int take_shared(struct decoder *decoder, struct skrull_error *err)
{
    const struct model_config *config = &decoder->shape->config;
    size_t hidden = config->hidden, inner = config->intermediate;
    size_t bytes = decoder->layout->rows.n_rows * sizeof(int32_t);

    decoder->token = skrull_exec_take(decoder->exec, bytes);
    decoder->target = skrull_exec_take(decoder->exec, bytes);
    return decoder->token && decoder->target && take(decoder, hidden, &decoder->last) &&
                   take(decoder, hidden, &decoder->dstream) &&
                   take(decoder, hidden, &decoder->scratch) &&
                   take(decoder, hidden, &decoder->dnormed) &&
                   take(decoder, inner, &decoder->dgate) && take(decoder, inner, &decoder->dup) &&
                   take(decoder, inner, &decoder->dwide) && take_casts(decoder) &&
                   take_floats(decoder, DECODER_CHUNK, &decoder->logits) &&
                   take_floats(decoder, 1, &decoder->lse) && take_floats(decoder, 1, &decoder->rstd)
               ? 0
               : no_room(err);
}

/* Tokens of a range and, one further in the sequence, their targets. */
static int fill_range(struct decoder *decoder, const struct skrull_range *range,
                      struct skrull_error *err)
{
    const struct skrull_layout_sequence *sequence = &decoder->layout->sequences[range->i_sequence];
    struct token_range wanted = {.dataset = sequence->dataset,
                                 .index = sequence->index,
                                 .begin = range->token_begin,
                                 .n = range->n_tokens};
    bool has_next = range->token_begin + range->n_tokens < sequence->length;
    int rc;

    if (range->n_tokens == 0) {
        return 0;
    }
    rc = tokens_read(decoder->tokens, &wanted, decoder->host_tokens + range->first_row, err);
    wanted.begin++;
    wanted.n -= !has_next;
    return rc < 0 ? rc
                  : tokens_read(decoder->tokens, &wanted,
                                decoder->host_tokens + decoder->room + range->first_row, err);
}

static int make_room(struct decoder *decoder, uint32_t rows, struct skrull_error *err)
{
    if (rows <= decoder->room && decoder->host_tokens) {
        return 0;
    }
    free(decoder->host_tokens);
    decoder->host_tokens = calloc(2 * ((size_t)rows + 1), sizeof(int32_t));
    decoder->room = rows;
    return decoder->host_tokens ? 0
                                : skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                                   "out of memory for the tokens of %u rows", rows);
}

static int fill_tokens(struct decoder *decoder, struct skrull_error *err)
{
    size_t rows = decoder->layout->rows.n_rows, bytes = rows * sizeof(int32_t);
    int rc = make_room(decoder, decoder->layout->rows.n_rows, err);

    for (size_t row = 0; row < rows && rc == 0; row++) {
        decoder->host_tokens[row] = decoder->host_tokens[decoder->room + row] = -1;
    }
    for (uint32_t i = 0; i < decoder->layout->n_ranges && rc == 0; i++) {
        rc = fill_range(decoder, &decoder->layout->ranges[i], err);
    }
    if (rc == 0) {
        rc = skrull_exec_put(decoder->exec, decoder->token, decoder->host_tokens, bytes, err);
    }
    return rc < 0 ? rc
                  : skrull_exec_put(decoder->exec, decoder->target,
                                    decoder->host_tokens + decoder->room, bytes, err);
}

static int begin(void *arg, struct skrull_exec *exec, const struct skrull_layout *layout,
                 struct skrull_error *err)
{
    struct decoder *decoder = arg;
    struct skrull_embedding embedding = {.dtype = decoder->dtype,
                                         .n_rows = layout->rows.n_rows,
                                         .width = decoder->shape->config.hidden,
                                         .vocabulary = decoder->shape->config.vocabulary,
                                         .table =
                                             decoder_weight(decoder, decoder->shape->embedding)};
    int rc;

    decoder->exec = exec;
    decoder->stream = skrull_exec_stream(exec);
    decoder->layout = skrull_exec_layout(exec);
    rc = take_shared(decoder, err);
    for (uint32_t l = 0; l < decoder->shape->config.layers && rc == 0; l++) {
        rc = take_kept(decoder, l, err);
    }
    if (rc == 0) {
        rc = fill_tokens(decoder, err);
    }
    if (rc < 0) {
        return rc;
    }
    embedding.token = decoder->token;
    embedding.out = decoder->kept[0].in;
    return decoder->ops->embedding_forward(&embedding, decoder->stream, err);
}

static int turn_by_position(const struct decoder *decoder, void *rows, uint32_t heads,
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

    return decoder->ops->rotary_forward(&rotary, decoder->stream, err);
}

static int before_attention(void *arg, uint32_t layer, void *q, void *k, void *v,
                            struct skrull_error *err)
{
    struct decoder *decoder = arg;
    const struct model_config *config = &decoder->shape->config;
    const struct layer_weights *weights = &decoder->shape->layers[layer];
    struct decoder_kept *kept = &decoder->kept[layer];
    uint32_t hidden = config->hidden, q_width = config->heads * config->head_dim;
    uint32_t k_width = config->kv_heads * config->head_dim;
    const void *in = kept->normed1;
    int rc = decoder_norm(decoder, kept->in, weights->norm1, kept->normed1, kept->rstd1, err);

    if (rc == 0) {
        rc = decoder_linear(decoder, in, weights->q, weights->q_bias, hidden, q_width, q, err);
    }
    if (rc == 0) {
        rc = decoder_linear(decoder, in, weights->k, weights->k_bias, hidden, k_width, k, err);
    }
    if (rc == 0) {
        rc = decoder_linear(decoder, in, weights->v, weights->v_bias, hidden, k_width, v, err);
    }
    if (rc == 0) {
        rc = turn_by_position(decoder, q, config->heads, err);
    }
    return rc < 0 ? rc : turn_by_position(decoder, k, config->kv_heads, err);
}

/* From `mid` to `activated`: again on the way back where it was not kept. */
int decoder_mlp_inner(const struct decoder *decoder, uint32_t layer, struct skrull_error *err)
{
    const struct model_config *config = &decoder->shape->config;
    const struct layer_weights *weights = &decoder->shape->layers[layer];
    const struct decoder_kept *kept = &decoder->kept[layer];
    const struct skrull_swiglu swiglu = {.dtype = decoder->dtype,
                                         .n_rows = decoder->layout->rows.n_rows,
                                         .width = config->intermediate,
                                         .gate = kept->gate,
                                         .up = kept->up,
                                         .out = kept->activated};
    int rc = decoder_norm(decoder, kept->mid, weights->norm2, kept->normed2, kept->rstd2, err);

    if (rc == 0) {
        rc = decoder_linear(decoder, kept->normed2, weights->gate, DECODER_NO_BIAS, config->hidden,
                            config->intermediate, kept->gate, err);
    }
    if (rc == 0) {
        rc = decoder_linear(decoder, kept->normed2, weights->up, DECODER_NO_BIAS, config->hidden,
                            config->intermediate, kept->up, err);
    }
    return rc < 0 ? rc : decoder->ops->swiglu_forward(&swiglu, decoder->stream, err);
}

/* out = a + b over the stream. */
static int add(const struct decoder *decoder, const void *a, const void *b, void *out,
               struct skrull_error *err)
{
    const struct skrull_add sum = {.dtype = decoder->dtype,
                                   .n = (size_t)decoder->layout->rows.n_rows *
                                        decoder->shape->config.hidden,
                                   .a = a,
                                   .b = b,
                                   .out = out};

    return decoder->ops->add(&sum, decoder->stream, err);
}

static int after_attention(void *arg, uint32_t layer, const void *out, struct skrull_error *err)
{
    struct decoder *decoder = arg;
    const struct model_config *config = &decoder->shape->config;
    const struct layer_weights *weights = &decoder->shape->layers[layer];
    const struct decoder_kept *kept = &decoder->kept[layer];
    bool is_last = layer + 1 == config->layers;
    void *next = is_last ? decoder->last : decoder->kept[layer + 1].in;
    int rc =
        decoder_linear(decoder, out, weights->o, DECODER_NO_BIAS, config->heads * config->head_dim,
                       config->hidden, decoder->scratch, err);

    if (rc == 0) {
        rc = add(decoder, kept->in, decoder->scratch, kept->mid, err);
    }
    if (rc == 0) {
        rc = decoder_mlp_inner(decoder, layer, err);
    }
    if (rc == 0) {
        rc = decoder_linear(decoder, kept->activated, weights->down, DECODER_NO_BIAS,
                            config->intermediate, config->hidden, decoder->scratch, err);
    }
    return rc < 0 ? rc : add(decoder, kept->mid, decoder->scratch, next, err);
}

struct skrull_trainer decoder_trainer(struct decoder *decoder)
{
    const struct model_config *config = &decoder->shape->config;

    return (struct skrull_trainer){
        .arg = decoder,
        .n_layers = config->layers,
        .shape = {.heads = config->heads,
                  .kv_heads = config->kv_heads,
                  .head_dim = config->head_dim,
                  .scale = 1.0F / sqrtf((float)config->head_dim),
                  .causal = true,
                  .window = config->window},
        .recompute = decoder->recompute,
        .bytes = wanted_bytes,
        .begin = begin,
        .before_attention = before_attention,
        .after_attention = after_attention,
        .turn = decoder_turn,
        .after_attention_backward = decoder_after_attention_backward,
        .before_attention_backward = decoder_before_attention_backward,
        .end = decoder_end,
    };
}
