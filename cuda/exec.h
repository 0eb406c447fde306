/*
 * Inside the execution of a plan.
 *
 *   exec.c            a rank's micro-batches, the walk through layers, the arena
 *   exec_attention.c  attention of one layer, both ways: begin exchanges, local, distributed
 *   exec_gather.c     distributed attention by all-gather and reduce-scatter
 *   exec_ring.c       distributed attention by a ring
 *
 * One arena, sized before a rank's first micro-batch from its layouts' limits: what lives through
 * the micro-batch lies at its bottom, what lives through one layer's attention above the mark.
 */
#pragma once

#include <skrull/exec.h>

#include "comm.h"
#include "ops.h"

/* What a group's exchange holds while it runs. */
struct exec_group {
    struct comm_group members;
    struct comm_batch keys, gradients; /* keys and values; their gradients */
    float *k[2], *v[2];                /* gathered, in [0]; ring: here and incoming */
    float *dk[2], *dv[2];              /* ring: here and incoming */
};

struct skrull_exec {
    const struct ops *ops;
    struct skrull_comm *comm; /* borrowed or NULL */
    enum skrull_exchange exchange;

    char *memory; /* [capacity] */
    size_t capacity, used;
    uint64_t peak;

    struct exec_group *groups; /* [n_groups] */
    size_t n_groups;           /* room, each for group_size ranks */
    uint32_t group_size;

    /* Of the running micro-batch. */
    const struct skrull_layout *layout;
    const struct skrull_trainer *trainer;
    struct comm_times times;
};

/* Attention of one layer over the packed buffer; all [rows][heads or kv_heads][head_dim]. */
struct exec_attention {
    const float *q, *k, *v;
    float *out, *lse;
    /* On the way back; out and lse are inputs. dq, dk, dv are added to. */
    const float *dout;
    float *dq, *dk, *dv;
};

int exec_attention_forward(struct skrull_exec *exec, const struct exec_attention *attention,
                           struct skrull_error *err);
int exec_attention_backward(struct skrull_exec *exec, const struct exec_attention *attention,
                            struct skrull_error *err);

/* n floats of the arena; NULL: it was sized too small. */
float *exec_floats(struct skrull_exec *exec, size_t n);

/* Width of a row of queries and of keys. */
static inline size_t exec_q_width(const struct skrull_exec *exec)
{
    return (size_t)exec->trainer->shape.heads * exec->trainer->shape.head_dim;
}

static inline size_t exec_k_width(const struct skrull_exec *exec)
{
    return (size_t)exec->trainer->shape.kv_heads * exec->trainer->shape.head_dim;
}

/* The parameters of attention of `queries` against `keys`; pointers to tensors are left out. */
struct skrull_attention exec_parameters(const struct skrull_exec *exec,
                                        const struct skrull_row_set *queries,
                                        const struct skrull_row_set *keys);

/* The same rows of `attention`'s tensors, as parameters of the queries of group `i_group`. */
void exec_bind_queries(const struct skrull_exec *exec, const struct exec_attention *attention,
                       uint32_t first_row, struct skrull_attention *ret);
void exec_bind_gradients(const struct skrull_exec *exec, const struct exec_attention *attention,
                         uint32_t first_row, struct skrull_attention_backward *ret);

/* By the trainer or the backend. */
int exec_attend(struct skrull_exec *exec, const struct skrull_attention *attention,
                struct skrull_error *err);
int exec_attend_backward(struct skrull_exec *exec,
                         const struct skrull_attention_backward *attention,
                         struct skrull_error *err);

/* One way of exchange: begin for each group by ascending size, then finish in the same order. */
struct exec_exchange {
    int (*begin)(struct skrull_exec *exec, uint32_t i_group, const struct exec_attention *attention,
                 struct skrull_error *err);
    int (*forward)(struct skrull_exec *exec, uint32_t i_group,
                   const struct exec_attention *attention, struct skrull_error *err);
    int (*backward)(struct skrull_exec *exec, uint32_t i_group,
                    const struct exec_attention *attention, struct skrull_error *err);
    /* Bytes of the arena that both ways take for one layer's attention. */
    size_t (*floats)(const struct skrull_layout_limits *limits,
                     const struct skrull_attention_shape *shape);
};

extern const struct exec_exchange exec_gather, exec_ring;

int exec_no_room(struct skrull_error *err);
