/*
 * Distributed attention by a ring (Ring Attention, arXiv 2310.01889): blocks of keys and values
 * pass from member to member; each step attends to the block that is here while the next one
 * arrives, and the partial results are merged by their log-sum-exp. Backward the blocks travel once
 * more, each followed by its gradient, which every member adds to and the last step brings home.
 * Where work is not done at once, a member computes its share of a block's gradient while what the
 * others gave is still on its way, and adds it when it lands.
 */
#include "exec.h"

static size_t ring_bytes(const struct skrull_exec *exec, const struct skrull_layout_limits *limits)
{
    size_t width = exec_k_width(exec), q_width = exec_q_width(exec);
    /* All groups: keys and values, here and incoming, and their gradients. One group: a part, and
     * the merged of it where that is not the output itself. */
    size_t elements = 4 * width + q_width;
    size_t floats = (exec->has_shares_apart ? 6 : 4) * width + exec->shape.heads +
                    (exec->dtype == SKRULL_DTYPE_F32 ? 0 : q_width);

    return limits->distributed_rows * (elements * exec->element + floats * sizeof(float));
}

/* What is passed on, and where to the next one comes. */
struct passing {
    enum comm_tag tag;
    const void *from;
    void *to;
    size_t bytes;
};

/* Numbers in the keys of one block. */
static size_t block_numbers(const struct skrull_exec *exec, const struct skrull_layout_group *group)
{
    return group->blocks[group->member].n_rows * exec_k_width(exec);
}

/* Begins to pass two tensors on to the next member, [0] of each, and to take what comes to [1]. */
static int pass(struct skrull_exec *exec, uint32_t i_group, struct exec_traffic *traffic,
                const struct passing *passing, struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    int rc = exec_traffic_begin(exec, traffic, err);

    for (int i = 0; i < 2 && rc == 0; i++) {
        rc = exec_traffic_receive(exec, traffic, group->previous, passing[i].tag, passing[i].to,
                                  passing[i].bytes, err);
    }
    for (int i = 0; i < 2 && rc == 0; i++) {
        rc = exec_traffic_send(exec, traffic, group->next, passing[i].tag, passing[i].from,
                               passing[i].bytes, err);
    }
    return rc < 0 ? rc : exec_traffic_launch(exec, traffic, err);
}

static int pass_keys(struct skrull_exec *exec, uint32_t i_group, struct skrull_error *err)
{
    struct exec_group *held = &exec->groups[i_group];
    size_t bytes = block_numbers(exec, &exec->layout->groups[i_group]) * exec->element;
    const struct passing passing[2] = {{COMM_KEYS, held->k[0], held->k[1], bytes},
                                       {COMM_VALUES, held->v[0], held->v[1], bytes}};

    return pass(exec, i_group, &held->keys, passing, err);
}

static int ring_begin(struct skrull_exec *exec, uint32_t i_group,
                      const struct exec_attention *attention, struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    struct exec_group *held = &exec->groups[i_group];
    size_t n = block_numbers(exec, group), at = group->first_row * exec_k_width(exec);
    int rc;

    for (int i = 0; i < 2; i++) {
        held->k[i] = exec_elements(exec, n);
        held->v[i] = exec_elements(exec, n);
        if (!held->k[i] || !held->v[i]) {
            return exec_no_room(err);
        }
    }
    rc = exec_copy(exec, held->k[0], exec_at(exec, attention->k, at), n * exec->element, err);
    if (rc == 0) {
        rc = exec_copy(exec, held->v[0], exec_at(exec, attention->v, at), n * exec->element, err);
    }
    return rc < 0 ? rc : pass_keys(exec, i_group, err);
}

static void swap(void *pair[2])
{
    void *first = pair[0];

    pair[0] = pair[1];
    pair[1] = first;
}

static void swap_floats(float *pair[2])
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
    rc = exec_traffic_land(exec, &held->keys, err);
    swap(held->k);
    swap(held->v);
    return rc == 0 && i + 2 < group->size ? pass_keys(exec, i_group, err) : rc;
}

/* Results of blocks, merged one by one. */
struct merged {
    float *out;                   /* the output itself, or in float what it is made of */
    struct skrull_attention part; /* where the next one goes */
};

/* Attends to the block that is here. The first is written in place, the others are merged. */
static int attend_block(struct skrull_exec *exec, uint32_t i_group, uint32_t i,
                        const struct exec_attention *attention, const struct merged *merged,
                        struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    const struct skrull_row_set *queries = &group->blocks[group->member];
    const struct skrull_row_set *keys = &group->blocks[group->ring[i].held];
    const struct exec_group *held = &exec->groups[i_group];
    struct skrull_attention whole = exec_parameters(exec, queries, keys);
    struct skrull_merge merge = {.dtype = exec->dtype,
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
    merge.out = merged->out;
    merge.lse = whole.lse;
    merge.part_out = whole.out = merged->part.out;
    merge.part_lse = whole.lse = merged->part.lse;
    rc = exec_attend(exec, &whole, err);
    return rc < 0 ? rc : exec->ops->merge_forward(&merge, exec->compute_stream, err);
}

/* Room for parts, and for what they are merged to. */
static int take_merged(struct skrull_exec *exec, size_t n_rows, void *out, struct merged *ret,
                       struct skrull_error *err)
{
    size_t n = n_rows * exec_q_width(exec);

    *ret = (struct merged){.out = exec->dtype == SKRULL_DTYPE_F32 ? out : exec_floats(exec, n)};
    ret->part.out = exec_elements(exec, n);
    ret->part.lse = exec_floats(exec, n_rows * exec->shape.heads);
    return ret->out && ret->part.out && ret->part.lse ? 0 : exec_no_room(err);
}

static int ring_forward(struct skrull_exec *exec, uint32_t i_group,
                        const struct exec_attention *attention, struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    size_t n_rows = group->blocks[group->member].n_rows, mark = exec->used;
    size_t n = n_rows * exec_q_width(exec);
    void *out = exec_at(exec, attention->out, group->first_row * exec_q_width(exec));
    struct merged merged;
    int rc = take_merged(exec, n_rows, out, &merged, err);
    const struct skrull_cast widen = {.n = n,
                                      .in_dtype = exec->dtype,
                                      .out_dtype = SKRULL_DTYPE_F32,
                                      .in = out,
                                      .out = merged.out};
    const struct skrull_cast narrow = {.n = n,
                                       .in_dtype = SKRULL_DTYPE_F32,
                                       .out_dtype = exec->dtype,
                                       .in = merged.out,
                                       .out = out};
    bool is_apart = (void *)merged.out != out;

    for (uint32_t i = 0; i < group->size && rc == 0; i++) {
        rc = attend_block(exec, i_group, i, attention, &merged, err);
        if (rc == 0 && i == 0 && is_apart) {
            rc = exec->ops->cast(&widen, exec->compute_stream, err);
        }
        if (rc == 0) {
            rc = next_block(exec, i_group, i, err);
        }
    }
    if (rc == 0 && is_apart) {
        rc = exec->ops->cast(&narrow, exec->compute_stream, err);
    }
    exec->used = mark;
    return rc;
}

/* Begins to send the gradient of the block that is here after its block, and to take that of the
 * next one. */
static int pass_gradients(struct skrull_exec *exec, uint32_t i_group, struct skrull_error *err)
{
    struct exec_group *held = &exec->groups[i_group];
    size_t bytes = block_numbers(exec, &exec->layout->groups[i_group]) * sizeof(float);
    const struct passing passing[2] = {
        {COMM_KEY_GRADIENTS, held->dk[0], held->dk[1], bytes},
        {COMM_VALUE_GRADIENTS, held->dv[0], held->dv[1], bytes},
    };

    return pass(exec, i_group, &held->gradients, passing, err);
}

static int land_gradients(struct skrull_exec *exec, uint32_t i_group, struct skrull_error *err)
{
    struct exec_group *held = &exec->groups[i_group];
    int rc = exec_traffic_land(exec, &held->gradients, err);

    swap_floats(held->dk);
    swap_floats(held->dv);
    return rc;
}

/* Where this member's share of a block's gradients goes: to what others have given already, or
 * apart from it, so that it can still be on its way. */
struct share {
    float *dk, *dv;
};

static int attend_block_backward(struct skrull_exec *exec, uint32_t i_group, uint32_t i,
                                 const struct exec_attention *attention, const struct share *share,
                                 struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    const struct exec_group *held = &exec->groups[i_group];
    struct skrull_attention_backward block = {
        .forward = exec_parameters(exec, &group->blocks[group->member],
                                   &group->blocks[group->ring[i].held])};

    exec_bind_gradients(exec, attention, group->first_row, &block);
    block.forward.k = held->k[0];
    block.forward.v = held->v[0];
    block.dk = share->dk;
    block.dv = share->dv;
    return exec_attend_backward(exec, &block, err);
}

static int zero_share(struct skrull_exec *exec, const struct share *share, size_t n,
                      struct skrull_error *err)
{
    int rc = exec_zero(exec, share->dk, n * sizeof(float), err);

    return rc < 0 ? rc : exec_zero(exec, share->dv, n * sizeof(float), err);
}

/* What has landed += the share. */
static int add_share(struct skrull_exec *exec, uint32_t i_group, const struct share *share,
                     size_t n, struct skrull_error *err)
{
    const struct exec_group *held = &exec->groups[i_group];
    const struct skrull_add sums[2] = {
        {.dtype = SKRULL_DTYPE_F32, .n = n, .a = held->dk[0], .b = share->dk, .out = held->dk[0]},
        {.dtype = SKRULL_DTYPE_F32, .n = n, .a = held->dv[0], .b = share->dv, .out = held->dv[0]},
    };
    int rc = exec->ops->add(&sums[0], exec->compute_stream, err);

    return rc < 0 ? rc : exec->ops->add(&sums[1], exec->compute_stream, err);
}

/* One step: the gradients of the step before land after this one's attention, or before it. */
static int backward_step(struct skrull_exec *exec, uint32_t i_group, uint32_t i,
                         const struct exec_attention *attention, const struct share *apart,
                         struct skrull_error *err)
{
    struct exec_group *held = &exec->groups[i_group];
    size_t n = block_numbers(exec, &exec->layout->groups[i_group]);
    bool is_apart = i > 0 && exec->has_shares_apart;
    int rc = i > 0 && !is_apart ? land_gradients(exec, i_group, err) : 0;
    const struct share here = {held->dk[0], held->dv[0]}, *share = is_apart ? apart : &here;

    if (rc == 0 && (i == 0 || is_apart)) {
        rc = zero_share(exec, share, n, err);
    }
    if (rc == 0) {
        rc = attend_block_backward(exec, i_group, i, attention, share, err);
    }
    if (rc == 0 && is_apart) {
        rc = land_gradients(exec, i_group, err);
    }
    if (rc == 0 && is_apart) {
        rc = add_share(exec, i_group, apart, n, err);
    }
    if (rc == 0) {
        rc = next_block(exec, i_group, i, err);
    }
    return rc < 0 ? rc : pass_gradients(exec, i_group, err);
}

/* Room for gradients that travel, and for shares apart from them. */
static int take_gradients(struct skrull_exec *exec, uint32_t i_group, struct share *ret_apart,
                          struct skrull_error *err)
{
    struct exec_group *held = &exec->groups[i_group];
    size_t n = block_numbers(exec, &exec->layout->groups[i_group]);

    for (int i = 0; i < 2; i++) {
        held->dk[i] = exec_floats(exec, n);
        held->dv[i] = exec_floats(exec, n);
        if (!held->dk[i] || !held->dv[i]) {
            return exec_no_room(err);
        }
    }
    if (exec->has_shares_apart) {
        ret_apart->dk = exec_floats(exec, n);
        ret_apart->dv = exec_floats(exec, n);
        if (!ret_apart->dk || !ret_apart->dv) {
            return exec_no_room(err);
        }
    }
    return 0;
}

static int ring_backward(struct skrull_exec *exec, uint32_t i_group,
                         const struct exec_attention *attention, struct skrull_error *err)
{
    const struct skrull_layout_group *group = &exec->layout->groups[i_group];
    const struct exec_group *held = &exec->groups[i_group];
    size_t at = group->first_row * exec_k_width(exec), mark = exec->used;
    size_t bytes = block_numbers(exec, group) * sizeof(float);
    struct share apart = {0};
    int rc = take_gradients(exec, i_group, &apart, err);

    for (uint32_t i = 0; i < group->size && rc == 0; i++) {
        rc = backward_step(exec, i_group, i, attention, &apart, err);
    }
    if (rc == 0) {
        rc = land_gradients(exec, i_group, err);
    }
    if (rc == 0) {
        rc = exec_copy(exec, attention->dk + at, held->dk[0], bytes, err);
    }
    if (rc == 0) {
        rc = exec_copy(exec, attention->dv + at, held->dv[0], bytes, err);
    }
    exec->used = mark;
    return rc;
}

const struct exec_exchange exec_ring = {
    .begin = ring_begin,
    .forward = ring_forward,
    .backward = ring_backward,
    .bytes = ring_bytes,
};
