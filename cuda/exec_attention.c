/*
 * Attention of one layer. The exchange of all distributed sequences begins first, group by
 * ascending size; attention over local sequences runs meanwhile; then, in the same order, each
 * group's part is waited for and computed. Backward is the same with gradients: keys travel once
 * more rather than being kept. One thread a rank.
 */
#include <string.h>

#include "exec.h"

struct skrull_attention exec_parameters(const struct skrull_exec *exec,
                                        const struct skrull_row_set *queries,
                                        const struct skrull_row_set *keys)
{
    const struct skrull_attention_shape *shape = &exec->shape;

    return (struct skrull_attention){
        .dtype = exec->dtype,
        .n_sequences = queries->n_sequences,
        .q_cu_rows = queries->cu_rows,
        .k_cu_rows = keys->cu_rows,
        .q_position = queries->position,
        .k_position = keys->position,
        .max_q_rows = queries->max_rows,
        .max_k_rows = keys->max_rows,
        .heads = shape->heads,
        .kv_heads = shape->kv_heads,
        .head_dim = shape->head_dim,
        .scale = shape->scale,
        .causal = shape->causal,
        .window = shape->window,
    };
}

void exec_bind_queries(const struct skrull_exec *exec, const struct exec_attention *attention,
                       uint32_t first_row, struct skrull_attention *ret)
{
    size_t at = first_row * exec_q_width(exec);

    ret->q = exec_at(exec, attention->q, at);
    ret->out = exec_at(exec, attention->out, at);
    ret->lse = attention->lse + (size_t)first_row * exec->shape.heads;
}

void exec_bind_gradients(const struct skrull_exec *exec, const struct exec_attention *attention,
                         uint32_t first_row, struct skrull_attention_backward *ret)
{
    size_t at = first_row * exec_q_width(exec);

    exec_bind_queries(exec, attention, first_row, &ret->forward);
    ret->dout = exec_at(exec, attention->dout, at);
    ret->dq = attention->dq + at;
}

int exec_attend(struct skrull_exec *exec, const struct skrull_attention *attention,
                struct skrull_error *err)
{
    const struct skrull_trainer *trainer = exec->trainer;

    return trainer && trainer->attention
               ? trainer->attention(trainer->arg, attention, err)
               : exec->ops->attention_forward(attention, exec->compute_stream, err);
}

int exec_attend_backward(struct skrull_exec *exec,
                         const struct skrull_attention_backward *attention,
                         struct skrull_error *err)
{
    const struct skrull_trainer *trainer = exec->trainer;

    return trainer && trainer->attention_backward
               ? trainer->attention_backward(trainer->arg, attention, err)
               : exec->ops->attention_backward(attention, exec->compute_stream, err);
}

static const struct exec_exchange *exchange_of(const struct skrull_exec *exec)
{
    return exec->exchange == SKRULL_EXCHANGE_RING ? &exec_ring : &exec_gather;
}

static int begin_exchanges(struct skrull_exec *exec, const struct exec_attention *attention,
                           struct skrull_error *err)
{
    int rc = 0;

    for (uint32_t g = 0; g < exec->layout->n_groups && rc == 0; g++) {
        rc = exchange_of(exec)->begin(exec, g, attention, err);
    }
    return rc;
}

static int local_forward(struct skrull_exec *exec, const struct exec_attention *attention,
                         struct skrull_error *err)
{
    const struct skrull_layout *layout = exec->layout;
    struct skrull_attention local = exec_parameters(exec, &layout->local, &layout->local);
    size_t at = layout->local_row * exec_k_width(exec);

    if (layout->local.n_rows == 0) {
        return 0;
    }
    exec_bind_queries(exec, attention, layout->local_row, &local);
    local.k = exec_at(exec, attention->k, at);
    local.v = exec_at(exec, attention->v, at);
    return exec_attend(exec, &local, err);
}

static int local_backward(struct skrull_exec *exec, const struct exec_attention *attention,
                          struct skrull_error *err)
{
    const struct skrull_layout *layout = exec->layout;
    struct skrull_attention_backward local = {
        .forward = exec_parameters(exec, &layout->local, &layout->local)};
    size_t at = layout->local_row * exec_k_width(exec);

    if (layout->local.n_rows == 0) {
        return 0;
    }
    exec_bind_gradients(exec, attention, layout->local_row, &local);
    local.forward.k = exec_at(exec, attention->k, at);
    local.forward.v = exec_at(exec, attention->v, at);
    local.dk = attention->dk + at;
    local.dv = attention->dv + at;
    return exec_attend_backward(exec, &local, err);
}

int exec_attention_forward(struct skrull_exec *exec, const struct exec_attention *attention,
                           struct skrull_error *err)
{
    size_t mark = exec->used;
    int rc = begin_exchanges(exec, attention, err);

    if (rc == 0) {
        rc = local_forward(exec, attention, err);
    }
    for (uint32_t g = 0; g < exec->layout->n_groups && rc == 0; g++) {
        rc = exchange_of(exec)->forward(exec, g, attention, err);
    }
    exec->used = mark;
    return rc;
}

int exec_attention_backward(struct skrull_exec *exec, const struct exec_attention *attention,
                            struct skrull_error *err)
{
    size_t mark = exec->used;
    int rc = begin_exchanges(exec, attention, err);

    if (rc == 0) {
        rc = local_backward(exec, attention, err);
    }
    for (uint32_t g = 0; g < exec->layout->n_groups && rc == 0; g++) {
        rc = exchange_of(exec)->backward(exec, g, attention, err);
    }
    exec->used = mark;
    return rc;
}
