/*
 * The maps of the running layout in the device's memory: gathered in page-locked memory of the
 * host, then one asynchronous copy a micro-batch. Two such memories take turns, so that the host
 * can prepare a micro-batch while the one before is still on its way; only a host that is two ahead
 * waits. What a trainer puts goes the same way. On "cpu" the maps stay where they are.
 */
#include "exec.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64u
#define PUT_BYTES_PER_ROW 16u
#define MAX_PUTS 16u

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t exec_maps_bytes(const struct skrull_layout_limits *limits)
{
    size_t groups = limits->groups, sets = groups * ((size_t)limits->group_size + 1) + 2;
    size_t cu = 2 * ((size_t)limits->sequences + 1) * sets;
    /* Positions, weights and both token maps; local positions; of groups: positions of blocks and
     * of keys, two maps. */
    size_t rows = 3 * (size_t)limits->rows + limits->tokens + limits->local_rows +
                  4 * (size_t)limits->distributed_gathered;

    return (cu + rows) * sizeof(int32_t) + (3 * sets + 2 * groups + 8) * ALIGNMENT;
}

static void free_staging(struct skrull_exec *exec, struct exec_staging *staging)
{
    exec->device->ops->release_staging(exec->device, staging->memory);
    staging->memory = NULL;
    staging->capacity = 0;
}

void exec_maps_deinit(struct skrull_exec *exec)
{
    for (int i = 0; i < 2; i++) {
        free_staging(exec, &exec->maps.staging[i]);
        exec->device->ops->event_deinit(exec->device, &exec->maps.staging[i].copied);
    }
    free(exec->maps.groups);
    free(exec->maps.blocks);
    exec->maps = (struct exec_maps){0};
}

/* Staging of this micro-batch, empty; what it held before has left it. */
static int take_staging(struct skrull_exec *exec, struct exec_staging *staging, size_t bytes,
                        struct skrull_error *err)
{
    const struct device_ops *device = exec->device->ops;
    void *memory;
    int rc = 0;

    if (!staging->copied.name) {
        staging->copied.name = "staging copied";
        rc = device->event_init(exec->device, &staging->copied, false, err);
    }
    if (rc == 0 && staging->is_waited_for) {
        rc = exec_wait_for(exec, &staging->copied, err);
    }
    staging->used = 0;
    staging->is_waited_for = false;
    if (rc < 0 || bytes <= staging->capacity) {
        return rc;
    }
    free_staging(exec, staging);
    rc = device->alloc_staging(exec->device, bytes, &memory, err);
    if (rc == 0) {
        staging->memory = memory;
        staging->capacity = bytes;
    }
    return rc;
}

int exec_maps_prepare(struct skrull_exec *exec, const struct skrull_layout_limits *limits,
                      struct skrull_error *err)
{
    struct exec_maps *maps = &exec->maps;
    uint32_t n_groups = limits->groups ? limits->groups : 1;
    uint32_t group_size = limits->group_size ? limits->group_size : 1;
    size_t bytes = exec_maps_bytes(limits) + (size_t)limits->rows * PUT_BYTES_PER_ROW +
                   (size_t)MAX_PUTS * ALIGNMENT;

    if (exec->device->is_host) {
        return 0;
    }
    if (n_groups > maps->n_groups || group_size > maps->group_size) {
        free(maps->groups);
        free(maps->blocks);
        maps->groups = calloc(n_groups, sizeof(maps->groups[0]));
        maps->blocks = calloc((size_t)n_groups * group_size, sizeof(maps->blocks[0]));
        maps->n_groups = maps->groups && maps->blocks ? n_groups : 0;
        maps->group_size = maps->n_groups ? group_size : 0;
        if (!maps->n_groups) {
            return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for maps");
        }
    }
    maps->n_micro_batches++;
    return take_staging(exec, &maps->staging[maps->n_micro_batches & 1], bytes, err);
}

/* Where the maps go: what staging holds lies at `to` in the device, place by place. */
struct upload {
    struct exec_staging *staging;
    char *to;
};

/* Stages `bytes`; returns where they will be. */
static const void *stage(struct upload *upload, const void *from, size_t bytes)
{
    struct exec_staging *staging = upload->staging;
    size_t at = staging->used;

    if (bytes) {
        memcpy(staging->memory + at, from, bytes);
    }
    staging->used += aligned(bytes);
    return upload->to + at;
}

static struct skrull_row_set stage_set(struct upload *upload, const struct skrull_row_set *set)
{
    struct skrull_row_set there = *set;
    size_t n = set->cu_rows ? (size_t)set->n_sequences + 1 : 0;

    there.cu_rows = stage(upload, set->cu_rows, n * sizeof(int32_t));
    there.cu_tokens = stage(upload, set->cu_tokens, n * sizeof(int32_t));
    there.position = stage(upload, set->position, set->n_rows * sizeof(int32_t));
    return there;
}

static void stage_group(struct upload *upload, const struct skrull_layout_group *group,
                        struct skrull_row_set *blocks, struct skrull_layout_group *ret_group)
{
    size_t bytes = group->keys.n_rows * sizeof(int32_t);

    *ret_group = *group;
    for (uint32_t m = 0; m < group->size; m++) {
        blocks[m] = stage_set(upload, &group->blocks[m]);
    }
    ret_group->blocks = blocks;
    ret_group->keys = stage_set(upload, &group->keys);
    ret_group->gathered_row = stage(upload, group->gathered_row, bytes);
    ret_group->key_row = stage(upload, group->key_row, bytes);
}

static void stage_layout(struct upload *upload, struct exec_maps *maps,
                         const struct skrull_layout *layout)
{
    struct skrull_layout *there = &maps->layout;
    size_t n_map = layout->row_token ? layout->rows.n_rows : 0;

    *there = *layout;
    there->rows = stage_set(upload, &layout->rows);
    there->local = stage_set(upload, &layout->local);
    there->loss_weight = stage(upload, layout->loss_weight, layout->rows.n_rows * sizeof(float));
    there->row_token = stage(upload, layout->row_token, n_map * sizeof(int32_t));
    there->token_row =
        stage(upload, layout->token_row, (n_map ? layout->rows.n_tokens : 0) * sizeof(int32_t));
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        stage_group(upload, &layout->groups[g], &maps->blocks[(size_t)g * maps->group_size],
                    &maps->groups[g]);
    }
    there->groups = maps->groups;
}

int exec_maps_upload(struct skrull_exec *exec, const struct skrull_layout_limits *limits,
                     struct skrull_error *err)
{
    struct exec_maps *maps = &exec->maps;
    struct upload upload = {.staging = &maps->staging[maps->n_micro_batches & 1]};

    if (exec->device->is_host) {
        exec->layout = exec->host_layout;
        return 0;
    }
    upload.to = skrull_exec_take(exec, exec_maps_bytes(limits));
    if (!upload.to) {
        return exec_no_room(err);
    }
    stage_layout(&upload, maps, exec->host_layout);
    exec->layout = &maps->layout;
    return exec_copy(exec, upload.to, upload.staging->memory, upload.staging->used, err);
}

int exec_maps_end(struct skrull_exec *exec, struct skrull_error *err)
{
    struct exec_staging *staging = &exec->maps.staging[exec->maps.n_micro_batches & 1];

    if (exec->device->is_host) {
        return 0;
    }
    staging->is_waited_for = true;
    return exec->device->ops->record(exec->device, &staging->copied, exec->compute_stream, err);
}

int skrull_exec_put(struct skrull_exec *exec, void *to, const void *from, size_t bytes,
                    struct skrull_error *err)
{
    struct exec_staging *staging = &exec->maps.staging[exec->maps.n_micro_batches & 1];
    char *at = staging->memory + staging->used;

    if (exec->device->is_host) {
        return exec_copy(exec, to, from, bytes, err);
    }
    if (bytes > staging->capacity - staging->used) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "a trainer puts more than %u bytes a row in a micro-batch",
                                PUT_BYTES_PER_ROW);
    }
    if (bytes) {
        memcpy(at, from, bytes);
    }
    staging->used += aligned(bytes) < staging->capacity - staging->used
                         ? aligned(bytes)
                         : staging->capacity - staging->used;
    return exec_copy(exec, to, at, bytes, err);
}
