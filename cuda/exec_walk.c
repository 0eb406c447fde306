/* The walk through a micro-batch: forth through the layers and back, with the trainer's callbacks
 * and attention between them. */
#include <stdlib.h>

#include "exec.h"

/* What is kept of a layer's attention. */
struct kept {
    void *q, *k, *v, *out;
    float *lse;
};

/* Gradients of one layer, used by all in turn. */
struct gradient {
    void *out;
    float *q, *k, *v;
};

/* Room for what is kept of every layer; queries and keys only once where they are recomputed. */
static int take_kept(struct skrull_exec *exec, uint32_t layer, const struct kept *first,
                     struct kept *ret_kept)
{
    size_t rows = exec->layout->rows.n_rows;

    ret_kept->out = exec_elements(exec, rows * exec_q_width(exec));
    ret_kept->lse = exec_floats(exec, rows * exec->shape.heads);
    if (layer > 0 && exec->trainer->recompute) {
        ret_kept->q = first->q;
        ret_kept->k = first->k;
        ret_kept->v = first->v;
    } else {
        ret_kept->q = exec_elements(exec, rows * exec_q_width(exec));
        ret_kept->k = exec_elements(exec, rows * exec_k_width(exec));
        ret_kept->v = exec_elements(exec, rows * exec_k_width(exec));
    }
    return ret_kept->out && ret_kept->lse && ret_kept->q && ret_kept->k && ret_kept->v ? 0 : -1;
}

static int layer_forward(struct skrull_exec *exec, uint32_t layer, const struct kept *kept,
                         struct skrull_error *err)
{
    const struct skrull_trainer *trainer = exec->trainer;
    const struct exec_attention attention = {
        .q = kept->q, .k = kept->k, .v = kept->v, .out = kept->out, .lse = kept->lse};
    int rc = trainer->before_attention(trainer->arg, layer, kept->q, kept->k, kept->v, err);

    if (rc == 0) {
        rc = exec_attention_forward(exec, &attention, err);
    }
    return rc < 0 ? rc : trainer->after_attention(trainer->arg, layer, kept->out, err);
}

static int zero_gradients(struct skrull_exec *exec, const struct gradient *gradient,
                          struct skrull_error *err)
{
    size_t rows = exec->layout->rows.n_rows;
    size_t q_bytes = rows * exec_q_width(exec) * sizeof(float);
    size_t k_bytes = rows * exec_k_width(exec) * sizeof(float);
    int rc = exec_zero(exec, gradient->q, q_bytes, err);

    if (rc == 0) {
        rc = exec_zero(exec, gradient->k, k_bytes, err);
    }
    return rc < 0 ? rc : exec_zero(exec, gradient->v, k_bytes, err);
}

static int layer_backward(struct skrull_exec *exec, uint32_t layer, const struct kept *kept,
                          const struct gradient *gradient, struct skrull_error *err)
{
    const struct skrull_trainer *trainer = exec->trainer;
    const struct exec_attention attention = {.q = kept->q,
                                             .k = kept->k,
                                             .v = kept->v,
                                             .out = kept->out,
                                             .lse = kept->lse,
                                             .dout = gradient->out,
                                             .dq = gradient->q,
                                             .dk = gradient->k,
                                             .dv = gradient->v};
    int rc = zero_gradients(exec, gradient, err);

    if (rc == 0 && trainer->recompute) {
        rc = trainer->before_attention(trainer->arg, layer, kept->q, kept->k, kept->v, err);
    }
    if (rc == 0) {
        rc = trainer->after_attention_backward(trainer->arg, layer, kept->out, gradient->out, err);
    }
    if (rc == 0) {
        rc = exec_attention_backward(exec, &attention, err);
    }
    return rc < 0 ? rc
                  : trainer->before_attention_backward(trainer->arg, layer, gradient->q,
                                                       gradient->k, gradient->v, err);
}

static int take_gradient(struct skrull_exec *exec, struct gradient *ret_gradient,
                         struct skrull_error *err)
{
    size_t rows = exec->layout->rows.n_rows;

    ret_gradient->out = exec_elements(exec, rows * exec_q_width(exec));
    ret_gradient->q = exec_floats(exec, rows * exec_q_width(exec));
    ret_gradient->k = exec_floats(exec, rows * exec_k_width(exec));
    ret_gradient->v = exec_floats(exec, rows * exec_k_width(exec));
    return ret_gradient->out && ret_gradient->q && ret_gradient->k && ret_gradient->v
               ? 0
               : exec_no_room(err);
}

static int walk(struct skrull_exec *exec, struct kept *kept, struct skrull_error *err)
{
    const struct skrull_trainer *trainer = exec->trainer;
    struct gradient gradient;
    int rc = trainer->begin(trainer->arg, exec, exec->host_layout, err);

    for (uint32_t l = 0; l < trainer->n_layers && rc == 0; l++) {
        rc = take_kept(exec, l, &kept[0], &kept[l]) < 0 ? exec_no_room(err)
                                                        : layer_forward(exec, l, &kept[l], err);
    }
    if (rc == 0) {
        rc = trainer->turn ? trainer->turn(trainer->arg, err) : 0;
    }
    if (rc == 0 && !trainer->after_attention_backward) {
        return trainer->end ? trainer->end(trainer->arg, err) : 0;
    }
    if (rc == 0) {
        rc = take_gradient(exec, &gradient, err);
    }
    for (uint32_t l = trainer->n_layers; l-- > 0 && rc == 0;) {
        rc = layer_backward(exec, l, &kept[l], &gradient, err);
    }
    return rc < 0 || !trainer->end ? rc : trainer->end(trainer->arg, err);
}

int exec_walk(struct skrull_exec *exec, struct skrull_error *err)
{
    struct kept *kept = calloc((size_t)exec->trainer->n_layers + 1, sizeof(*kept));
    int rc = kept
                 ? walk(exec, kept, err)
                 : skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for layers");

    free(kept);
    return rc;
}
