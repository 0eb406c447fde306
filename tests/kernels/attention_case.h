/*
 * Cases of attention with their answer in double. A case is a batch of sequences of which the query
 * side and the key side each hold some positions, in the shapes that plans have: whole sequences,
 * one member's zigzag chunks, a block of another member, nothing at all. Rows of padding hold NaN
 * wherever a kernel could read them. Values are multiples of 1/128, which every dtype holds.
 */
#pragma once

#include "kernels/kernel.h"

struct attention_shape {
    uint32_t heads, kv_heads, head_dim;
    bool causal;
    uint32_t window;
};

/* Which rows of a sequence one side holds. */
enum attention_side {
    SIDE_NONE,
    SIDE_WHOLE,   /* and two rows of padding */
    SIDE_FIRST,   /* member 0 of 4, zigzag: the first chunk and the last */
    SIDE_SECOND,  /* member 1 */
    SIDE_BEGIN,   /* the first half */
    SIDE_END,     /* the second half: for queries in the first all of it is in the future */
    SIDE_PADDING, /* a shard that is all padding */
    SIDE_START,   /* the first 128 rows */
    SIDE_TAIL,    /* the last 128 rows */
    SIDE_HOLES    /* every third run of seven rows is padding */
};

struct attention_rows {
    uint32_t length; /* of the sequence */
    enum attention_side q, k;
};

struct attention_case {
    struct attention_shape shape;
    uint32_t n_sequences;
    int32_t *q_cu_rows, *k_cu_rows, *q_position, *k_position;
    uint32_t max_q_rows, max_k_rows;
    size_t n_q, n_k; /* rows */
    float *q, *k, *v, *dout, *dlse;

    /* Outputs of an operator. */
    float *out, *lse, *dq, *dk, *dv;

    /* The answer. */
    double *true_out, *true_lse, *true_dq, *true_dk, *true_dv; /* gradients: NULL without */
};

/* A case with random contents and its answer; asserts memory. */
void attention_case_init(struct attention_case *c, const struct attention_shape *shape,
                         const struct attention_rows *rows, uint32_t n_sequences, uint64_t seed);
/* The same without the answer of gradients, which takes most of the time. */
void attention_case_init_forward(struct attention_case *c, const struct attention_shape *shape,
                                 const struct attention_rows *rows, uint32_t n_sequences,
                                 uint64_t seed);
/* The answer of gradients without dlse, and dlse zero. */
void attention_case_forget_dlse(struct attention_case *c);
void attention_case_deinit(struct attention_case *c);

/* The operators' parameters for a case, outputs into it. */
struct skrull_attention attention_case_forward(const struct attention_case *c);
struct skrull_attention_backward attention_case_backward(const struct attention_case *c);

/* The answer of a case again, after its doubles changed: forward only, from q, k, v in double. */
struct attention_doubles {
    const struct attention_case *c;
    double *q, *k, *v;
    double *out, *lse;
};
void attention_naive_forward(const struct attention_doubles *d);
