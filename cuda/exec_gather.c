/*
 * Distributed attention by all-gather: every member gets all keys and values of its group, puts
 * them in the order of their tokens, and attends to them with its own queries. Backward, the
 * gradients of all keys go back into the order of members, and a reduce-scatter adds each member's
 * up at its owner, in an order that does not depend on who is faster.
 */
#include "exec.h"

static size_t gather_bytes(const struct skrull_exec *exec,
                           const struct skrull_layout_limits *limits)
{
    size_t width = exec_k_width(exec), one = limits->gathered_rows;
    /* All groups' gathered, and one group's in the order of tokens; of one group: gradients in that
     * order, by member, and on the host received. */
    size_t elements = 2 * (limits->distributed_gathered + one);
    size_t floats = (exec->device->is_host ? 6 : 4) * one;

    return width * (elements * exec->element + floats * sizeof(float));
}

static int gather_begin(struct skrull_exec *exec, uint32_t i_group,
                        const struct exec_attention *attention, struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    struct exec_group *held = &exec->groups[i_group];
    size_t width = exec_k_width(exec), n = group->blocks[group->member].n_rows * width;
    size_t mine = group->member * n, at = group->first_row * width, bytes = n * exec->element;
    int rc;

    held->k[0] = exec_elements(exec, n * group->size);
    held->v[0] = exec_elements(exec, n * group->size);
    if (!held->k[0] || !held->v[0]) {
        return exec_no_room(err);
    }
    rc = exec_copy(exec, exec_at(exec, held->k[0], mine), exec_at(exec, attention->k, at), bytes,
                   err);
    if (rc == 0) {
        rc = exec_copy(exec, exec_at(exec, held->v[0], mine), exec_at(exec, attention->v, at),
                       bytes, err);
    }
    if (rc == 0) {
        rc = exec_traffic_begin(exec, &held->keys, err);
    }
    if (rc == 0) {
        rc = exec_traffic_gather(exec, &held->keys, &held->members, COMM_KEYS, held->k[0], bytes,
                                 err);
    }
    if (rc == 0) {
        rc = exec_traffic_gather(exec, &held->keys, &held->members, COMM_VALUES, held->v[0], bytes,
                                 err);
    }
    return rc < 0 ? rc : exec_traffic_launch(exec, &held->keys, err);
}

/* Moves rows of keys by `map`: out[i] = in[map[i]]. Rows of floats go as rows of as many bytes. */
static int pack(const struct skrull_exec *exec, const int32_t *map, uint32_t n_rows, const void *in,
                void *out, size_t bytes, struct skrull_error *err)
{
    const struct skrull_rows rows = {.dtype = exec->dtype,
                                     .n_rows = n_rows,
                                     .width =
                                         (uint32_t)(exec_k_width(exec) * bytes / exec->element),
                                     .row = map,
                                     .in = in,
                                     .out = out};

    return exec->ops->pack_rows(&rows, exec->compute_stream, err);
}

/* Lets keys and values land and puts them in the order of their tokens. */
static int take_keys(struct skrull_exec *exec, uint32_t i_group, const void **ret_k,
                     const void **ret_v, struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    struct exec_group *held = &exec->groups[i_group];
    uint32_t n_rows = group->keys.n_rows;
    void *k = exec_elements(exec, n_rows * exec_k_width(exec));
    void *v = exec_elements(exec, n_rows * exec_k_width(exec));
    int rc;

    if (!k || !v) {
        return exec_no_room(err);
    }
    rc = exec_traffic_land(exec, &held->keys, err);
    if (rc == 0) {
        rc = pack(exec, group->gathered_row, n_rows, held->k[0], k, exec->element, err);
    }
    if (rc == 0) {
        rc = pack(exec, group->gathered_row, n_rows, held->v[0], v, exec->element, err);
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
    const void *k, *v;
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

/* Room for the sum of one gradient [n], and its parts by member. */
static int pack_gradient(struct skrull_exec *exec, uint32_t i_group, const float *gradient,
                         struct exec_sum *sum, struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    float *parts = exec_floats(exec, sum->n * group->size);

    sum->parts = parts;
    sum->received = exec->device->is_host ? exec_floats(exec, sum->n * group->size) : NULL;
    return parts && (sum->received || !exec->device->is_host)
               ? pack(exec, group->key_row, group->keys.n_rows, gradient, parts, sizeof(float), err)
               : exec_no_room(err);
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
    struct exec_sum sums[2] = {{.sum = attention->dk + at, .n = n},
                               {.sum = attention->dv + at, .n = n}};
    int rc = pack_gradient(exec, i_group, dk, &sums[0], err);

    if (rc == 0) {
        rc = pack_gradient(exec, i_group, dv, &sums[1], err);
    }
    if (rc == 0) {
        rc = exec_traffic_begin(exec, &held->gradients, err);
    }
    if (rc == 0) {
        rc = exec_traffic_sum(exec, &held->gradients, &held->members, COMM_KEY_GRADIENTS, &sums[0],
                              err);
    }
    if (rc == 0) {
        rc = exec_traffic_sum(exec, &held->gradients, &held->members, COMM_VALUE_GRADIENTS,
                              &sums[1], err);
    }
    if (rc == 0) {
        rc = exec_traffic_launch(exec, &held->gradients, err);
    }
    if (rc == 0) {
        rc = exec_traffic_land(exec, &held->gradients, err);
    }
    for (int i = 0; i < 2 && rc == 0; i++) {
        exec_traffic_add(exec, &held->members, &sums[i]);
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
    const void *k, *v;
    int rc = take_keys(exec, i_group, &k, &v, err);

    shard.dk = exec_floats(exec, n);
    shard.dv = exec_floats(exec, n);
    if (rc == 0 && (!shard.dk || !shard.dv)) {
        rc = exec_no_room(err);
    }
    if (rc == 0) {
        rc = exec_zero(exec, shard.dk, n * sizeof(float), err);
    }
    if (rc == 0) {
        rc = exec_zero(exec, shard.dv, n * sizeof(float), err);
    }
    if (rc == 0) {
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
    .bytes = gather_bytes,
};
