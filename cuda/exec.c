/*
 * Walks a rank's plan: for each micro-batch its layout, then forth through the layers and back,
 * with the trainer's callbacks and the exchange between them. Memory: one arena, sized from the
 * limits of all of the rank's layouts before the first begins, kept for later steps. A failure is
 * told to the other ranks before this one lets go of memory that they may still read.
 */
#include "exec.h"

#include <stdlib.h>
#include <string.h>

#include "ckd.h"

#define ALIGNMENT 64u

/* Takes of the arena round up; this many may be open at once, beside five a layer. */
#define MAX_TAKES 64u

/* What is kept of a layer's attention. */
struct kept {
    float *q, *k, *v, *out, *lse;
};

int exec_no_room(struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_INTERNAL,
                            "the arena of a micro-batch was sized too small");
}

void *skrull_exec_take(struct skrull_exec *exec, size_t bytes)
{
    size_t size = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *at = exec->memory + exec->used;

    if (size < bytes || size > exec->capacity - exec->used) {
        return NULL;
    }
    exec->used += size;
    exec->peak = exec->used > exec->peak ? exec->used : exec->peak;
    return at;
}

float *exec_floats(struct skrull_exec *exec, size_t n)
{
    return skrull_exec_take(exec, n * sizeof(float));
}

uint64_t skrull_exec_peak_bytes(const struct skrull_exec *exec)
{
    return exec->peak;
}

int skrull_exec_new(const struct skrull_exec_options *options, struct skrull_exec **ret_exec,
                    struct skrull_error *err)
{
    const char *backend = options->backend ? options->backend : "cpu";
    const struct ops *ops = ops_find(backend);
    struct skrull_exec *exec;

    if (!ops) {
        return skrull_error_set(err, SKRULL_ERR_UNIMPLEMENTED, "no backend %s was built", backend);
    }
    exec = calloc(1, sizeof(*exec));
    if (!exec) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "out of memory for the execution of plans");
    }
    exec->ops = ops;
    exec->comm = options->comm;
    exec->exchange = options->exchange;
    *ret_exec = exec;
    return 0;
}

static void free_groups(struct skrull_exec *exec)
{
    for (size_t g = 0; g < exec->n_groups; g++) {
        comm_batch_deinit(&exec->groups[g].keys);
        comm_batch_deinit(&exec->groups[g].gradients);
    }
    free(exec->groups);
    exec->groups = NULL;
    exec->n_groups = 0;
}

void skrull_exec_free(struct skrull_exec *exec)
{
    if (exec) {
        free_groups(exec);
        free(exec->memory);
        free(exec);
    }
}

/* Room for the messages of so many groups of so many ranks. */
static int prepare_groups(struct skrull_exec *exec, const struct skrull_layout_limits *limits,
                          struct skrull_error *err)
{
    size_t n_messages = 4 * (size_t)limits->group_size;

    if (limits->groups <= exec->n_groups && limits->group_size <= exec->group_size) {
        return 0;
    }
    free_groups(exec);
    exec->groups = calloc(limits->groups, sizeof(exec->groups[0]));
    if (!exec->groups) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for groups");
    }
    exec->group_size = limits->group_size;
    for (; exec->n_groups < limits->groups; exec->n_groups++) {
        struct exec_group *group = &exec->groups[exec->n_groups];
        int rc = comm_batch_init(&group->keys, n_messages, err);

        if (rc == 0) {
            rc = comm_batch_init(&group->gradients, n_messages, err);
            if (rc < 0) {
                comm_batch_deinit(&group->keys);
            }
        }
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* Bytes of the arena for layouts within `limits`; 0: more than there can be. */
static size_t arena_bytes(const struct skrull_exec *exec, const struct skrull_trainer *trainer,
                          const struct skrull_layout_limits *limits)
{
    const struct skrull_attention_shape *shape = &trainer->shape;
    const struct exec_exchange *exchange =
        exec->exchange == SKRULL_EXCHANGE_RING ? &exec_ring : &exec_gather;
    size_t q_width = (size_t)shape->heads * shape->head_dim, layers = trainer->n_layers;
    size_t k_width = (size_t)shape->kv_heads * shape->head_dim;
    size_t copies = trainer->recompute && layers ? 1 : layers;
    size_t width = layers * (q_width + shape->heads) + copies * (q_width + 2 * k_width) +
                   2 * q_width + 2 * k_width;
    size_t floats, bytes, own = trainer->bytes ? trainer->bytes(trainer->arg, limits) : 0;

    if (ckd_mul(&floats, width, (size_t)limits->rows) ||
        ckd_add(&floats, floats, exchange->floats(limits, shape)) ||
        ckd_mul(&bytes, floats, sizeof(float)) || ckd_add(&bytes, bytes, own) ||
        ckd_add(&bytes, bytes, (MAX_TAKES + 8 * layers + 8 * (size_t)limits->groups) * ALIGNMENT)) {
        return 0;
    }
    return bytes;
}

static int prepare_arena(struct skrull_exec *exec, const struct skrull_trainer *trainer,
                         const struct skrull_layout_limits *limits, struct skrull_error *err)
{
    size_t bytes = arena_bytes(exec, trainer, limits);

    if (bytes && bytes <= exec->capacity) {
        return 0;
    }
    free(exec->memory);
    exec->capacity = 0;
    exec->memory =
        bytes ? aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT) : NULL;
    if (!exec->memory) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "out of memory: a micro-batch of %u rows takes %zu bytes; lower "
                                "batch.bucket_tokens",
                                limits->rows, bytes);
    }
    exec->capacity = bytes;
    return 0;
}

/* Room for what is kept of every layer; queries and keys only once where they are recomputed. */
static int take_kept(struct skrull_exec *exec, uint32_t layer, const struct kept *first,
                     struct kept *ret_kept)
{
    size_t rows = exec->layout->rows.n_rows;

    ret_kept->out = exec_floats(exec, rows * exec_q_width(exec));
    ret_kept->lse = exec_floats(exec, rows * exec->trainer->shape.heads);
    if (layer > 0 && exec->trainer->recompute) {
        ret_kept->q = first->q;
        ret_kept->k = first->k;
        ret_kept->v = first->v;
    } else {
        ret_kept->q = exec_floats(exec, rows * exec_q_width(exec));
        ret_kept->k = exec_floats(exec, rows * exec_k_width(exec));
        ret_kept->v = exec_floats(exec, rows * exec_k_width(exec));
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

static int layer_backward(struct skrull_exec *exec, uint32_t layer, const struct kept *kept,
                          struct kept *gradient, struct skrull_error *err)
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
    size_t rows = exec->layout->rows.n_rows;
    int rc = 0;

    memset(gradient->q, 0, rows * exec_q_width(exec) * sizeof(float));
    memset(gradient->k, 0, rows * exec_k_width(exec) * sizeof(float));
    memset(gradient->v, 0, rows * exec_k_width(exec) * sizeof(float));
    if (trainer->recompute) {
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

/* Forth and back; `kept` [n_layers + 1], the last one for gradients. */
static int walk(struct skrull_exec *exec, struct kept *kept, struct skrull_error *err)
{
    const struct skrull_trainer *trainer = exec->trainer;
    struct kept *gradient = &kept[trainer->n_layers];
    size_t rows = exec->layout->rows.n_rows;
    int rc = trainer->begin(trainer->arg, exec, exec->layout, err);

    for (uint32_t l = 0; l < trainer->n_layers && rc == 0; l++) {
        rc = take_kept(exec, l, &kept[0], &kept[l]) < 0 ? exec_no_room(err)
                                                        : layer_forward(exec, l, &kept[l], err);
    }
    if (rc == 0) {
        rc = trainer->turn(trainer->arg, err);
    }
    gradient->out = exec_floats(exec, rows * exec_q_width(exec));
    gradient->q = exec_floats(exec, rows * exec_q_width(exec));
    gradient->k = exec_floats(exec, rows * exec_k_width(exec));
    gradient->v = exec_floats(exec, rows * exec_k_width(exec));
    if (rc == 0 && (!gradient->out || !gradient->q || !gradient->k || !gradient->v)) {
        rc = exec_no_room(err);
    }
    for (uint32_t l = trainer->n_layers; l-- > 0 && rc == 0;) {
        rc = layer_backward(exec, l, &kept[l], gradient, err);
    }
    return rc < 0 ? rc : trainer->end(trainer->arg, err);
}

/* Every group needs its other ranks. */
static int check_groups(const struct skrull_exec *exec, struct skrull_error *err)
{
    const struct skrull_layout *layout = exec->layout;
    uint32_t size = exec->comm ? exec->comm->size : 1;

    for (uint32_t g = 0; g < layout->n_groups; g++) {
        if ((uint64_t)layout->groups[g].first_rank + layout->groups[g].size > size) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "the plan has a group of data ranks %u to %u; here are %u",
                                    layout->groups[g].first_rank,
                                    layout->groups[g].first_rank + layout->groups[g].size - 1,
                                    size);
        }
        exec->groups[g].members = (struct comm_group){.first = layout->groups[g].first_rank,
                                                      .size = layout->groups[g].size,
                                                      .member = layout->groups[g].member};
    }
    return 0;
}

static void note_times(const struct skrull_exec *exec, int64_t elapsed_ns,
                       struct skrull_exec_times *ret_times)
{
    *ret_times = (struct skrull_exec_times){
        .compute_busy_ns = elapsed_ns - exec->times.wait_ns,
        .compute_wait_ns = exec->times.wait_ns,
        .exchange_busy_ns = exec->times.busy_ns,
        .exchange_wait_ns = exec->times.wait_ns,
    };
}

int skrull_exec_run_layout(struct skrull_exec *exec, const struct skrull_layout *layout,
                           const struct skrull_layout_limits *limits,
                           const struct skrull_trainer *trainer, struct skrull_exec_times *times,
                           struct skrull_error *err)
{
    struct kept *kept = calloc((size_t)trainer->n_layers + 1, sizeof(*kept));
    int64_t started = comm_now_ns();
    int rc = kept
                 ? prepare_arena(exec, trainer, limits, err)
                 : skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for layers");

    exec->layout = layout;
    exec->trainer = trainer;
    exec->used = 0;
    exec->times = (struct comm_times){0};
    if (rc == 0) {
        rc = prepare_groups(exec, limits, err);
    }
    if (rc == 0) {
        rc = check_groups(exec, err);
    }
    if (rc == 0) {
        rc = walk(exec, kept, err);
    }
    if (rc < 0 && exec->comm) {
        skrull_comm_fail(exec->comm, err);
    }
    if (rc == 0 && times) {
        note_times(exec, comm_now_ns() - started, times);
    }
    free(kept);
    return rc;
}

/* Is the plan one for these ranks? */
static int check_plan(const struct skrull_exec *exec, const struct skrull_plan *plan, size_t i_rank,
                      struct skrull_error *err)
{
    uint64_t n_ranks = (uint64_t)plan->dp * plan->cp;

    if (exec->comm && n_ranks != exec->comm->size) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "the plan is for %u x %u data ranks; here are %u", plan->dp,
                                plan->cp, exec->comm->size);
    }
    if (exec->comm && plan->ranks[i_rank].data_rank != exec->comm->rank) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "the plan is that of data rank %u; here is %u",
                                plan->ranks[i_rank].data_rank, exec->comm->rank);
    }
    return 0;
}

static int run_micro_batch(struct skrull_exec *exec, const struct skrull_plan *plan, size_t i_rank,
                           uint32_t i, const struct skrull_layout_limits *limits,
                           const struct skrull_trainer *trainer, struct skrull_exec_times *times,
                           struct skrull_error *err)
{
    struct skrull_layout *layout;
    int rc = skrull_layout_new(plan, i_rank, i, &layout, err);

    if (rc < 0) {
        return rc;
    }
    rc = skrull_exec_run_layout(exec, layout, limits, trainer, times, err);
    skrull_layout_free(layout);
    return rc;
}

int skrull_exec_run(struct skrull_exec *exec, const struct skrull_plan *plan, size_t i_rank,
                    const struct skrull_trainer *trainer, struct skrull_exec_times *times,
                    struct skrull_error *err)
{
    struct skrull_layout_limits limits;
    int rc = skrull_layout_measure(plan, i_rank, &limits, err);

    if (rc == 0) {
        rc = check_plan(exec, plan, i_rank, err);
    }
    for (uint32_t i = 0; rc == 0 && i < plan->ranks[i_rank].n_micro_batches; i++) {
        rc =
            run_micro_batch(exec, plan, i_rank, i, &limits, trainer, times ? &times[i] : NULL, err);
    }
    if (rc < 0 && exec->comm) {
        skrull_comm_fail(exec->comm, err);
    }
    return rc;
}
