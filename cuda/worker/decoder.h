/*
 * A decoder of Llama's kind as a trainer (skrull/exec.h): what runs between attentions, forth and
 * back. Its weights are one array of the dtype, its gradients another of the same shape in float.
 * All but the host's tokens lies in the backend's memory; nothing waits for the device.
 *
 *   decoder_weights.c   where each weight lies, and the first values
 *   decoder.c           forth        decoder_backward.c   back
 */
#pragma once

#include <skrull/exec.h>

#include "model_config.h"
#include "ops.h"
#include "tokens.h"

/* Offsets into the weights; all matrices are [out][in]. */
struct layer_weights {
    size_t norm1, q, k, v, q_bias, k_bias, v_bias, o, norm2, gate, up, down;
};

struct decoder_shape {
    struct model_config config;
    size_t n_weights;
    size_t embedding, norm, head; /* a tied head is the embedding */
    struct layer_weights *layers; /* [config.layers] */
};

int decoder_shape_init(struct decoder_shape *shape, const struct model_config *config,
                       struct skrull_error *err);
void decoder_shape_deinit(struct decoder_shape *shape);

/* First values, the same on every rank: uniform, of variance 1 / inputs; norms 1, biases 0. */
void decoder_first_weights(const struct decoder_shape *shape, uint64_t seed, float *ret_weights);

/* What a layer keeps for its way back; those after `mid` only once if recomputed. */
struct decoder_kept {
    void *in, *mid;              /* [rows][hidden] before attention, and before the MLP */
    void *normed1, *normed2;     /* inputs of q, k, v, and of the MLP */
    void *gate, *up, *activated; /* [rows][intermediate] */
    float *rstd1, *rstd2;        /* [rows] of both norms */
};

struct decoder {
    const struct decoder_shape *shape;
    const struct ops *ops;
    const struct token_source *tokens;
    const void *weights; /* borrowed */
    float *gradients;    /* borrowed; added to */
    double *loss;        /* [1], borrowed; added to */
    float *frequencies;  /* [head_dim / 2], borrowed */
    bool recompute;
    enum skrull_dtype dtype;

    /* Of the running micro-batch. */
    struct skrull_exec *exec;
    void *stream;                       /* to enqueue on */
    const struct skrull_layout *layout; /* maps in the backend's memory */
    int32_t *host_tokens;               /* [2][room], owned: tokens and targets on their way */
    uint32_t room;                      /* rows */
    int32_t *token, *target;            /* [rows]; -1: none */
    struct decoder_kept *kept;          /* [layers] */
    void *last, *dstream;               /* [rows][hidden]: behind the last layer; the gradient */
    void *scratch, *dnormed;            /* [rows][hidden] */
    void *dgate, *dup, *dwide;          /* [rows][intermediate] */
    void *dq, *dk, *dv;                 /* [rows][...] gradients in the dtype, unless that is F32 */
    float *logits;                      /* [rows][DECODER_CHUNK] */
    float *lse, *rstd;                  /* [rows] */
};

#define DECODER_CHUNK 1024u /* columns of the vocabulary at a time */

/* First values of the frequencies, on the host. */
void decoder_frequencies(const struct model_config *config, float *ret_frequencies);

/* `decoder` holds what stands first. */
int decoder_init(struct decoder *decoder, struct skrull_error *err);
void decoder_deinit(struct decoder *decoder);

/* Its callbacks; valid as long as the decoder. */
struct skrull_trainer decoder_trainer(struct decoder *decoder);

/* Used by both files. */
const void *decoder_weight(const struct decoder *decoder, size_t at);
size_t decoder_element(const struct decoder *decoder);
int decoder_linear(const struct decoder *decoder, const void *in, size_t weight, size_t bias,
                   uint32_t n_in, uint32_t n_out, void *out, struct skrull_error *err);
int decoder_norm(const struct decoder *decoder, const void *in, size_t weight, void *out,
                 float *rstd, struct skrull_error *err);
int decoder_mlp_inner(const struct decoder *decoder, uint32_t layer, struct skrull_error *err);

/* The way back, in decoder_backward.c. */
int decoder_turn(void *arg, struct skrull_error *err);
int decoder_after_attention_backward(void *arg, uint32_t layer, const void *out, void *dout,
                                     struct skrull_error *err);
int decoder_before_attention_backward(void *arg, uint32_t layer, float *dq, float *dk, float *dv,
                                      struct skrull_error *err);
int decoder_end(void *arg, struct skrull_error *err);

#define DECODER_NO_BIAS SIZE_MAX
