/*
 * The compute path in plain C: what the operators take. No CUDA header is needed; a backend says
 * what its pointers point to (host or device memory) and what a `stream` is.
 *
 * Conventions. Tensors are row-major, one row a token; `name [rows][heads][dim]`. A `_stride` is
 * the distance of rows in elements, 0: dense. `const void *` and `void *` tensors are of `dtype`;
 * all that is accumulated (gradients of weights, keys and queries; sums; optimizer states) is
 * float. "Written" overwrites; "added to" needs a defined value before. Outputs must not overlap
 * inputs unless it says so. Rows of position SKRULL_NO_POSITION are padding. Counts of 0 are
 * allowed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>
#include <skrull/layout.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The CPU backend knows F32 only. */
enum skrull_dtype { SKRULL_DTYPE_F32 = 1, SKRULL_DTYPE_BF16, SKRULL_DTYPE_F16 };

/* Moves rows by a map. pack: out[i] = in[row[i]], zeros where row[i] is negative. unpack:
 * out[row[i]] = in[i] for every row[i] >= 0, which must differ; other rows of out stay. */
struct skrull_rows {
    enum skrull_dtype dtype;
    uint32_t n_rows; /* of the map */
    uint32_t width;
    const int32_t *row; /* [n_rows] */
    const void *in;     /* [][width] */
    void *out;          /* [][width] */
    size_t in_stride, out_stride;
};

/* out = a + b, elementwise; out may be a or b. */
struct skrull_add {
    enum skrull_dtype dtype;
    size_t n;
    const void *a, *b; /* [n] */
    void *out;         /* [n] */
};

/* out[i] = in[i], rounded to nearest even where out is narrower. Not in place. */
struct skrull_cast {
    size_t n;
    enum skrull_dtype in_dtype, out_dtype;
    const void *in; /* [n] */
    void *out;      /* [n] */
};

/* out = in x factor, elementwise: gradients by the inverse of a loss scale, or to a norm. out may
 * be in. */
struct skrull_scale {
    enum skrull_dtype dtype;
    size_t n;
    float factor;
    const void *in; /* [n] */
    void *out;      /* [n] */
};

/*
 * Attention of any rows of queries to any rows of keys of the same sequences. Query row i of a
 * sequence sees key row j of it where both hold a token and, with p = position: p[j] <= p[i] if
 * `causal`, |p[i] - p[j]| < window if `window` (without causal: to both sides). Head h uses key
 * head h / (heads / kv_heads). Documents are sequences of their own.
 *
 * out [n_q][heads][head_dim] = softmax(scale q k) v, written; lse [n_q][heads], written: the
 * natural logarithm of the sum of exponentials. A query that sees no key, or is padding: out 0, lse
 * -inf.
 */
struct skrull_attention {
    enum skrull_dtype dtype;
    uint32_t n_sequences;
    const int32_t *q_cu_rows, *k_cu_rows;   /* [n_sequences + 1] */
    const int32_t *q_position, *k_position; /* [rows]; ascending in a sequence but for padding */
    uint32_t max_q_rows, max_k_rows;        /* of one sequence */
    uint32_t heads, kv_heads, head_dim;     /* kv_heads divides heads */
    float scale;
    bool causal;
    uint32_t window;       /* 0: none */
    const void *q, *k, *v; /* [rows][heads or kv_heads][head_dim] */
    size_t q_stride, k_stride, v_stride;
    void *out;
    float *lse;
    size_t out_stride;
};

/*
 * Gradients of the above for one set of keys out of several: `out` and `lse` are the merged ones
 * over all keys, dout is the gradient of the merged out. dq, dk, dv (float, dense) are added to, so
 * partial results sum up by themselves. In `forward` out and lse are inputs.
 */
struct skrull_attention_backward {
    struct skrull_attention forward;
    const void *dout; /* [n_q][heads][head_dim] */
    size_t dout_stride;
    const float *dlse; /* [n_q][heads]; NULL: zero */
    float *dq;         /* [n_q][heads][head_dim] */
    float *dk, *dv;    /* [n_k][kv_heads][head_dim] */
};

/* Adds the result over other keys (part_out, part_lse) to what is in (out, lse): their softmax over
 * both. Start from the first part, or from out 0, lse -inf. */
struct skrull_merge {
    enum skrull_dtype dtype; /* of part_out */
    uint32_t n_rows, heads, head_dim;
    const void *part_out;  /* [n_rows][heads][head_dim] */
    const float *part_lse; /* [n_rows][heads] */
    float *out;            /* [n_rows][heads][head_dim] */
    float *lse;            /* [n_rows][heads] */
};

/* Gradients of one part of a merge (any number of parts: each by itself), given the merged out and
 * lse and their gradients. dpart_out and dpart_lse are written. */
struct skrull_merge_backward {
    enum skrull_dtype dtype; /* of part_out and dpart_out */
    uint32_t n_rows, heads, head_dim;
    const void *part_out;
    const float *part_lse;
    const float *out, *lse, *dout;
    const float *dlse; /* NULL: zero */
    void *dpart_out;
    float *dpart_lse;
};

/* Rotary embedding by position, halves (x[i], x[i + head_dim / 2]) as pairs: turned by position x
 * frequency[i]. Backward turns gradients back. out may be in; padding is copied. head_dim is even.
 */
struct skrull_rotary {
    enum skrull_dtype dtype;
    uint32_t n_rows, heads, head_dim;
    const int32_t *position; /* [n_rows] */
    const float *frequency;  /* [head_dim / 2], base^(-2i / head_dim) where nothing is scaled */
    const void *in;
    void *out; /* [n_rows][heads][head_dim], written */
    size_t in_stride, out_stride;
};

/* out = in x rstd x weight, rstd = 1 / sqrt(mean(in^2) + eps); out and rstd are written. */
struct skrull_rms_norm {
    enum skrull_dtype dtype;
    uint32_t n_rows, width;
    float eps;
    const void *in;     /* [n_rows][width] */
    const void *weight; /* [width] */
    void *out;          /* [n_rows][width] */
    float *rstd;        /* [n_rows] */
};

struct skrull_rms_norm_backward {
    enum skrull_dtype dtype;
    uint32_t n_rows, width;
    const void *in, *weight, *dout;
    const float *rstd;
    void *din;      /* [n_rows][width], written; may be dout */
    float *dweight; /* [width], added to */
};

/* A linear layer: out [n_rows][n_out] = in [n_rows][n_in] weight [n_out][n_in]^T + bias, written.
 */
struct skrull_linear {
    enum skrull_dtype dtype;
    uint32_t n_rows, n_in, n_out;
    const void *in, *weight;
    const void *bias; /* [n_out]; NULL: none */
    void *out;
    size_t in_stride, out_stride;
};

/* Its gradients; each is skipped where its pointer is NULL. */
struct skrull_linear_backward {
    enum skrull_dtype dtype;
    uint32_t n_rows, n_in, n_out;
    const void *in, *weight, *dout;
    size_t in_stride, dout_stride, din_stride;
    void *din;      /* [n_rows][n_in], written, or added to if add_din */
    bool add_din;   /* several layers on one input */
    float *dweight; /* [n_out][n_in], added to */
    float *dbias;   /* [n_out], added to */
};

/* The middle of a gated MLP: out = silu(gate) x up, written. */
struct skrull_swiglu {
    enum skrull_dtype dtype;
    uint32_t n_rows, width;
    const void *gate, *up;        /* [n_rows][width] */
    void *out;                    /* [n_rows][width] */
    size_t in_stride, out_stride; /* of gate and up; of out */
};

struct skrull_swiglu_backward {
    enum skrull_dtype dtype;
    uint32_t n_rows, width;
    const void *gate, *up, *dout;
    void *dgate, *dup;            /* written; may be gate and up */
    size_t in_stride, out_stride; /* of gate, up, dgate, dup; of dout */
};

/* out[i] = table[token[i]], written; zeros where token[i] is negative (padding). A token that is
 * not below vocabulary is refused; on a device, where nobody waits to hear of it, its row is NaN.
 */
struct skrull_embedding {
    enum skrull_dtype dtype;
    uint32_t n_rows, width, vocabulary;
    const int32_t *token; /* [n_rows], below vocabulary */
    const void *table;    /* [vocabulary][width] */
    void *out;            /* [n_rows][width] */
};

struct skrull_embedding_backward {
    enum skrull_dtype dtype;
    uint32_t n_rows, width, vocabulary;
    const int32_t *token;
    const void *dout;
    float *dtable; /* [vocabulary][width], added to */
};

/*
 * The head and its loss, `chunk` columns of the vocabulary at a time, so that no more than n_rows x
 * chunk logits exist: logits = in head^T; loss += sum over rows of loss_weight x (lse - logit of
 * the target). Rows of weight 0 count for nothing; their target may be anything (-1, say). On a
 * device, where nobody waits to hear of it, a target beyond the vocabulary makes the loss NaN. In a
 * short dtype the gradients of logits are of it, too: scale weights that it would round to 0.
 */
struct skrull_cross_entropy {
    enum skrull_dtype dtype;
    uint32_t n_rows, width, vocabulary, chunk;
    const void *in;           /* [n_rows][width] */
    const void *head;         /* [vocabulary][width] */
    const int32_t *target;    /* [n_rows] */
    const float *loss_weight; /* [n_rows] */
    float *logits;            /* [n_rows][chunk], scratch */
    float *lse;               /* [n_rows], written */
    double *loss;             /* [1], added to */
};

/* Gradients of the loss; the logits are computed again. In `forward` lse is an input, loss unused.
 */
struct skrull_cross_entropy_backward {
    struct skrull_cross_entropy forward;
    void *din;      /* [n_rows][width], written */
    float *dhead;   /* [vocabulary][width], added to */
    float *din_sum; /* [n_rows][width], scratch; NULL: din is rounded to dtype after each chunk */
};

/* AdamW (arXiv 1711.05101) with bias correction; step counts from 1. */
struct skrull_adamw {
    size_t n;
    float *weight, *m, *v; /* [n], updated */
    const float *gradient; /* [n], taken times gradient_scale */
    float gradient_scale;
    float learning_rate, beta1, beta2, eps, weight_decay;
    uint64_t step;
    enum skrull_dtype copy_dtype; /* of copy */
    void *copy;                   /* [n] the weights for the next step, written; NULL: none */
};

#ifdef __cplusplus
}
#endif
