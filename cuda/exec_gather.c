/*
 * Distributed attention by all-gather: every member gets all keys and values of its group, puts
 * them in the order of their tokens, and attends to them with its own queries. Backward, the
 * gradients of all keys go back into the order of members, and a reduce-scatter adds each member's
 * up at its owner, by ascending member, so that the sum does not depend on who is faster.
 */
#include <string.h>

#include "exec.h"

static size_t gather_floats(const struct skrull_layout_limits *limits,
                            const struct skrull_attention_shape *shape)
{
    size_t width = (size_t)shape->kv_heads * shape->head_dim;

    /* All groups' gathered; of one group: packed, their gradients packed, unpacked, received. */
    return width * (2 * (size_t)limits->distributed_gathered + 8 * (size_t)limits->gathered_rows);
}

static int gather_begin(struct skrull_exec *exec, uint32_t i_group,
                        const struct exec_attention *attention, struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    struct exec_group *held = &exec->groups[i_group];
    size_t width = exec_k_width(exec), n = group->blocks[group->member].n_rows * width;
    size_t mine = group->member * n, at = group->first_row * width;
    int rc;

    held->k[0] = exec_floats(exec, n * group->size);
    held->v[0] = exec_floats(exec, n * group->size);
    if (!held->k[0] || !held->v[0]) {
        return exec_no_room(err);
    }
    memcpy(held->k[0] + mine, attention->k + at, n * sizeof(float));
    memcpy(held->v[0] + mine, attention->v + at, n * sizeof(float));
    rc = comm_begin_gather(&held->keys, exec->comm, &held->members, COMM_KEYS, held->k[0],
                           n * sizeof(float), err);
    return rc < 0 ? rc
                  : comm_begin_gather(&held->keys, exec->comm, &held->members, COMM_VALUES,
                                      held->v[0], n * sizeof(float), err);
}

/* Moves rows by `map`: out[i] = in[map[i]]. */
static int pack(const struct skrull_exec *exec, const int32_t *map, uint32_t n_rows,
                const float *in, float *out, struct skrull_error *err)
{
    const struct skrull_rows rows = {.dtype = SKRULL_DTYPE_F32,
                                     .n_rows = n_rows,
                                     .width = (uint32_t)exec_k_width(exec),
                                     .row = map,
                                     .in = in,
                                     .out = out};

    return exec->ops->pack_rows(&rows, NULL, err);
}

/* Waits for keys and values and puts them in the order of their tokens. */
static int take_keys(struct skrull_exec *exec, uint32_t i_group, const float **ret_k,
                     const float **ret_v, struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    struct exec_group *held = &exec->groups[i_group];
    uint32_t n_rows = group->keys.n_rows;
    float *k = exec_floats(exec, n_rows * exec_k_width(exec));
    float *v = exec_floats(exec, n_rows * exec_k_width(exec));
    int rc;

    if (!k || !v) {
        return exec_no_room(err);
    }
    rc = comm_batch_wait(&held->keys, exec->comm, &exec->times, err);
    if (rc == 0) {
        rc = pack(exec, group->gathered_row, n_rows, held->k[0], k, err);
    }
    if (rc == 0) {
        rc = pack(exec, group->gathered_row, n_rows, held->v[0], v, err);
    }
    *ret_k = k;
    *ret_v = v;
    return rc;
}

static int gather_forward(struct skrull_exec *exec, uint32_t i_group,
                          const struct exec_attention *attention, struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    struct skrull_attention shard =
        exec_parameters(exec, &group->blocks[group->member], &group->keys);
    const float *k, *v;
    size_t mark = exec->used;
    int rc = take_keys(exec, i_group, &k, &v, err);

    if (rc == 0) {
        exec_bind_queries(exec, attention, group->first_row, &shard);
        shard.k = k;
        shard.v = v;
        rc = exec_attend(exec, &shard, err);
    }
    exec->used = mark;
    return rc;
}

/* Sends the gradients of all keys to their owners and adds up this member's. */
static int return_gradients(struct skrull_exec *exec, uint32_t i_group, const float *dk,
                            const float *dv, const struct exec_attention *attention,
                            struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    struct exec_group *held = &exec->groups[i_group];
    size_t width = exec_k_width(exec), n = group->blocks[group->member].n_rows * width;
    size_t at = group->first_row * width;
    float *parts[2], *received[2], *const sums[2] = {attention->dk + at, attention->dv + at};
    const float *const gradients[2] = {dk, dv};
    static const enum comm_tag tags[2] = {COMM_KEY_GRADIENTS, COMM_VALUE_GRADIENTS};
    int rc = 0;

    for (int i = 0; i < 2 && rc == 0; i++) {
        parts[i] = exec_floats(exec, n * group->size);
        received[i] = exec_floats(exec, n * group->size);
        if (!parts[i] || !received[i]) {
            return exec_no_room(err);
        }
        rc = pack(exec, group->key_row, group->keys.n_rows, gradients[i], parts[i], err);
        if (rc == 0) {
            rc = comm_begin_scatter(&held->gradients, exec->comm, &held->members, tags[i], parts[i],
                                    received[i], n, err);
        }
    }
    if (rc == 0) {
        rc = comm_batch_wait(&held->gradients, exec->comm, &exec->times, err);
    }
    for (int i = 0; i < 2 && rc == 0; i++) {
        comm_add_parts(&held->members, parts[i] + group->member * n, received[i], n, sums[i]);
    }
    return rc;
}

static int gather_backward(struct skrull_exec *exec, uint32_t i_group,
                           const struct exec_attention *attention, struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    struct skrull_attention_backward shard = {
        .forward = exec_parameters(exec, &group->blocks[group->member], &group->keys)};
    size_t n = group->keys.n_rows * exec_k_width(exec), mark = exec->used;
    const float *k, *v;
    int rc = take_keys(exec, i_group, &k, &v, err);

    shard.dk = exec_floats(exec, n);
    shard.dv = exec_floats(exec, n);
    if (rc == 0 && (!shard.dk || !shard.dv)) {
        rc = exec_no_room(err);
    }
    if (rc == 0) {
        memset(shard.dk, 0, n * sizeof(float));
        memset(shard.dv, 0, n * sizeof(float));
        exec_bind_gradients(exec, attention, group->first_row, &shard);
        shard.forward.k = k;
        shard.forward.v = v;
        rc = exec_attend_backward(exec, &shard, err);
    }
    if (rc == 0) {
        rc = return_gradients(exec, i_group, shard.dk, shard.dv, attention, err);
    }
    exec->used = mark;
    return rc;
}

const struct exec_exchange exec_gather = {
    .begin = gather_begin,
    .forward = gather_forward,
    .backward = gather_backward,
    .floats = gather_floats,
};
