/*
 * Distributed attention by a ring (Ring Attention, arXiv 2310.01889): blocks of keys and values
 * pass from member to member; each step attends to the block that is here while the next one
 * arrives, and the partial results are merged by their log-sum-exp. Backward the blocks travel once
 * more, each followed by its gradient, which every member adds to and the last step brings home.
 */
#include <string.h>

#include "exec.h"

static size_t ring_floats(const struct skrull_layout_limits *limits,
                          const struct skrull_attention_shape *shape)
{
    size_t width = (size_t)shape->kv_heads * shape->head_dim;
    size_t q_width = (size_t)shape->heads * shape->head_dim;

    /* All groups: keys and values, here and incoming, and their gradients. One group: a part. */
    return 8 * width * (size_t)limits->distributed_rows +
           (q_width + shape->heads) * (size_t)limits->distributed_rows;
}

/* Floats of one block. */
static size_t block_floats(const struct skrull_exec *exec, const struct skrull_layout_group *group)
{
    return group->blocks[group->member].n_rows * exec_k_width(exec);
}

/* Begins to pass on the block that is here, and to take the next one. */
static int pass_keys(struct skrull_exec *exec, uint32_t i_group, struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    struct exec_group *held = &exec->groups[i_group];
    size_t bytes = block_floats(exec, group) * sizeof(float);
    int rc = comm_batch_receive(&held->keys, exec->comm, group->previous, COMM_KEYS, held->k[1],
                                bytes, err);

    if (rc == 0) {
        rc = comm_batch_receive(&held->keys, exec->comm, group->previous, COMM_VALUES, held->v[1],
                                bytes, err);
    }
    if (rc == 0) {
        rc = comm_batch_send(&held->keys, exec->comm, group->next, COMM_KEYS, held->k[0], bytes,
                             err);
    }
    if (rc == 0) {
        rc = comm_batch_send(&held->keys, exec->comm, group->next, COMM_VALUES, held->v[0], bytes,
                             err);
    }
    return rc;
}

static int ring_begin(struct skrull_exec *exec, uint32_t i_group,
                      const struct exec_attention *attention, struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    struct exec_group *held = &exec->groups[i_group];
    size_t n = block_floats(exec, group), at = group->first_row * exec_k_width(exec);

    for (int i = 0; i < 2; i++) {
        held->k[i] = exec_floats(exec, n);
        held->v[i] = exec_floats(exec, n);
        if (!held->k[i] || !held->v[i]) {
            return exec_no_room(err);
        }
    }
    memcpy(held->k[0], attention->k + at, n * sizeof(float));
    memcpy(held->v[0], attention->v + at, n * sizeof(float));
    return pass_keys(exec, i_group, err);
}

static void swap(float *pair[2])
{
    float *first = pair[0];

    pair[0] = pair[1];
    pair[1] = first;
}

/* After step `i`: the incoming block is here; the one after it begins to travel. */
static int next_block(struct skrull_exec *exec, uint32_t i_group, uint32_t i,
                      struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    struct exec_group *held = &exec->groups[i_group];
    int rc;

    if (i + 1 == group->size) {
        return 0;
    }
    rc = comm_batch_wait(&held->keys, exec->comm, &exec->times, err);
    swap(held->k);
    swap(held->v);
    return rc == 0 && i + 2 < group->size ? pass_keys(exec, i_group, err) : rc;
}

/* Attends to the block that is here. The first is written in place, the others are merged. */
static int attend_block(struct skrull_exec *exec, uint32_t i_group, uint32_t i,
                        const struct exec_attention *attention, struct skrull_attention *part,
                        struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    const struct skrull_row_set *queries = &group->blocks[group->member];
    const struct skrull_row_set *keys = &group->blocks[group->ring[i].held];
    const struct exec_group *held = &exec->groups[i_group];
    struct skrull_attention whole = exec_parameters(exec, queries, keys);
    struct skrull_merge merge = {.dtype = SKRULL_DTYPE_F32,
                                 .n_rows = queries->n_rows,
                                 .heads = whole.heads,
                                 .head_dim = whole.head_dim};
    int rc;

    exec_bind_queries(exec, attention, group->first_row, &whole);
    whole.k = held->k[0];
    whole.v = held->v[0];
    if (i == 0) {
        return exec_attend(exec, &whole, err);
    }
    merge.out = whole.out;
    merge.lse = whole.lse;
    merge.part_out = whole.out = part->out;
    merge.part_lse = whole.lse = part->lse;
    rc = exec_attend(exec, &whole, err);
    return rc < 0 ? rc : exec->ops->merge_forward(&merge, NULL, err);
}

static int ring_forward(struct skrull_exec *exec, uint32_t i_group,
                        const struct exec_attention *attention, struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    size_t n_rows = group->blocks[group->member].n_rows, mark = exec->used;
    struct skrull_attention part = {0};
    int rc = 0;

    part.out = exec_floats(exec, n_rows * exec_q_width(exec));
    part.lse = exec_floats(exec, n_rows * exec->trainer->shape.heads);
    if (!part.out || !part.lse) {
        return exec_no_room(err);
    }
    for (uint32_t i = 0; i < group->size && rc == 0; i++) {
        rc = attend_block(exec, i_group, i, attention, &part, err);
        if (rc == 0) {
            rc = next_block(exec, i_group, i, err);
        }
    }
    exec->used = mark;
    return rc;
}

/* Sends the gradient of the block that is here after its block, and takes that of the next one. */
static int pass_gradients(struct skrull_exec *exec, uint32_t i_group, struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    struct exec_group *held = &exec->groups[i_group];
    struct comm_batch *batch = &held->gradients;
    size_t bytes = block_floats(exec, group) * sizeof(float);
    int rc = comm_batch_receive(batch, exec->comm, group->previous, COMM_KEY_GRADIENTS, held->dk[1],
                                bytes, err);

    if (rc == 0) {
        rc = comm_batch_receive(batch, exec->comm, group->previous, COMM_VALUE_GRADIENTS,
                                held->dv[1], bytes, err);
    }
    if (rc == 0) {
        rc = comm_batch_send(batch, exec->comm, group->next, COMM_KEY_GRADIENTS, held->dk[0], bytes,
                             err);
    }
    if (rc == 0) {
        rc = comm_batch_send(batch, exec->comm, group->next, COMM_VALUE_GRADIENTS, held->dv[0],
                             bytes, err);
    }
    if (rc == 0) {
        rc = comm_batch_wait(batch, exec->comm, &exec->times, err);
    }
    swap(held->dk);
    swap(held->dv);
    return rc;
}

static int attend_block_backward(struct skrull_exec *exec, uint32_t i_group, uint32_t i,
                                 const struct exec_attention *attention, struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    const struct exec_group *held = &exec->groups[i_group];
    struct skrull_attention_backward block = {
        .forward = exec_parameters(exec, &group->blocks[group->member],
                                   &group->blocks[group->ring[i].held])};

    exec_bind_gradients(exec, attention, group->first_row, &block);
    block.forward.k = held->k[0];
    block.forward.v = held->v[0];
    block.dk = held->dk[0];
    block.dv = held->dv[0];
    return exec_attend_backward(exec, &block, err);
}

static int ring_backward(struct skrull_exec *exec, uint32_t i_group,
                         const struct exec_attention *attention, struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    struct exec_group *held = &exec->groups[i_group];
    size_t n = block_floats(exec, group), at = group->first_row * exec_k_width(exec);
    size_t mark = exec->used;
    int rc = 0;

    for (int i = 0; i < 2; i++) {
        held->dk[i] = exec_floats(exec, n);
        held->dv[i] = exec_floats(exec, n);
        if (!held->dk[i] || !held->dv[i]) {
            return exec_no_room(err);
        }
    }
    memset(held->dk[0], 0, n * sizeof(float));
    memset(held->dv[0], 0, n * sizeof(float));
    for (uint32_t i = 0; i < group->size && rc == 0; i++) {
        rc = attend_block_backward(exec, i_group, i, attention, err);
        if (rc == 0) {
            rc = next_block(exec, i_group, i, err);
        }
        if (rc == 0) {
            rc = pass_gradients(exec, i_group, err);
        }
    }
    for (size_t i = 0; i < n && rc == 0; i++) {
        attention->dk[at + i] += held->dk[0][i];
        attention->dv[at + i] += held->dv[0][i];
    }
    exec->used = mark;
    return rc;
}

const struct exec_exchange exec_ring = {
    .begin = ring_begin,
    .forward = ring_forward,
    .backward = ring_backward,
    .floats = ring_floats,
};
