/* The arena of an execution: sized once for all layouts within limits, taken from bottom to top. */
#include "exec.h"

#include "ckd.h"

#define ALIGNMENT 64u

/* Takes of the arena round up; this many may be open at once, beside eight a layer and a group. */
#define MAX_TAKES 64u

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

void *exec_elements(struct skrull_exec *exec, size_t n)
{
    return skrull_exec_take(exec, n * exec->element);
}

uint64_t skrull_exec_peak_bytes(const struct skrull_exec *exec)
{
    return exec->peak;
}

/* What a row takes in the walk through all layers: attention's tensors that are kept, and
 * gradients. */
static size_t row_bytes(const struct skrull_exec *exec)
{
    const struct skrull_trainer *trainer = exec->trainer;
    size_t q_width = exec_q_width(exec), k_width = exec_k_width(exec);
    size_t layers = trainer ? trainer->n_layers : 0;
    size_t copies = layers && trainer->recompute ? 1 : layers;
    size_t elements = layers * q_width + copies * (q_width + 2 * k_width) + q_width;
    size_t floats = layers * exec->shape.heads + q_width + 2 * k_width;

    return trainer ? elements * exec->element + floats * sizeof(float) : 0;
}

/* 0: more than there can be. */
static size_t arena_bytes(const struct skrull_exec *exec, const struct skrull_layout_limits *limits,
                          size_t own)
{
    const struct exec_exchange *exchange =
        exec->exchange == SKRULL_EXCHANGE_RING ? &exec_ring : &exec_gather;
    size_t layers = exec->trainer ? exec->trainer->n_layers : 0;
    size_t n_takes = MAX_TAKES + 8 * layers + 8 * (size_t)limits->groups, bytes;

    if (ckd_mul(&bytes, row_bytes(exec), (size_t)limits->rows) ||
        ckd_add(&bytes, bytes, exchange->bytes(exec, limits)) || ckd_add(&bytes, bytes, own) ||
        ckd_add(&bytes, bytes, n_takes * ALIGNMENT) ||
        ckd_add(&bytes, bytes, exec->device->is_host ? 0 : exec_maps_bytes(limits))) {
        return 0;
    }
    return bytes;
}

int exec_arena_prepare(struct skrull_exec *exec, const struct skrull_layout_limits *limits,
                       size_t own, struct skrull_error *err)
{
    const struct device_ops *device = exec->device->ops;
    size_t bytes = arena_bytes(exec, limits, own);
    void *memory;

    if (bytes && bytes <= exec->capacity) {
        return 0;
    }
    device->release(exec->device, exec->memory);
    exec->memory = NULL;
    exec->capacity = 0;
    if (!bytes || device->alloc(exec->device, bytes, &memory, NULL) < 0) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "out of memory: a micro-batch of %u rows takes %zu bytes; lower "
                                "batch.bucket_tokens",
                                limits->rows, bytes);
    }
    exec->memory = memory;
    exec->capacity = bytes;
    return 0;
}
