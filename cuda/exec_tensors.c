/*
 * Attention on tensors of somebody else, and DLPack's descriptions of them. A description is held
 * against what the running layout needs before a pointer is taken out of it; nothing is copied.
 */
#include <skrull/tensors.h>

#include <inttypes.h>
#include <stdlib.h>

#include "exec.h"

int skrull_exec_attend(struct skrull_exec *exec, const struct skrull_tensors *tensors,
                       struct skrull_error *err)
{
    const struct exec_attention attention = {.q = tensors->q,
                                             .k = tensors->k,
                                             .v = tensors->v,
                                             .out = tensors->out,
                                             .lse = tensors->lse};
    int rc = exec->device->ops->enter(exec->device, err);

    if (rc == 0) {
        rc = exec_attention_forward(exec, &attention, err);
    }
    if (rc < 0 && exec->comm) {
        skrull_comm_fail(exec->comm, err);
    }
    return rc;
}

static int zero_rows(struct skrull_exec *exec, float *gradient, size_t width,
                     struct skrull_error *err)
{
    return exec_zero(exec, gradient, exec->layout->rows.n_rows * width * sizeof(float), err);
}

int skrull_exec_attend_backward(struct skrull_exec *exec, const struct skrull_tensors *tensors,
                                struct skrull_error *err)
{
    const struct exec_attention attention = {.q = tensors->q,
                                             .k = tensors->k,
                                             .v = tensors->v,
                                             .out = tensors->out,
                                             .lse = tensors->lse,
                                             .dout = tensors->dout,
                                             .dq = tensors->dq,
                                             .dk = tensors->dk,
                                             .dv = tensors->dv};
    int rc = exec->device->ops->enter(exec->device, err);

    if (rc == 0) {
        rc = zero_rows(exec, tensors->dq, exec_q_width(exec), err);
    }
    if (rc == 0) {
        rc = zero_rows(exec, tensors->dk, exec_k_width(exec), err);
    }
    if (rc == 0) {
        rc = zero_rows(exec, tensors->dv, exec_k_width(exec), err);
    }
    if (rc == 0) {
        rc = exec_attention_backward(exec, &attention, err);
    }
    if (rc < 0 && exec->comm) {
        skrull_comm_fail(exec->comm, err);
    }
    return rc;
}

int skrull_dl_open(const struct skrull_dl_managed *managed, bool is_written,
                   const struct skrull_dl_tensor **ret_tensor, struct skrull_error *err)
{
    if (managed->major != SKRULL_DL_MAJOR) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "a DLPack tensor of version %" PRIu32 ".%" PRIu32
                                "; version %u is understood",
                                managed->major, managed->minor, SKRULL_DL_MAJOR);
    }
    if (is_written && (managed->flags & SKRULL_DL_READ_ONLY)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "a DLPack tensor that is to be written is read-only");
    }
    *ret_tensor = &managed->tensor;
    return 0;
}

/* What a tensor must be. */
struct wanted {
    const char *name;
    enum skrull_dtype dtype;
    size_t heads, head_dim; /* head_dim 0: [rows][heads] */
};

static bool has_dtype(const struct skrull_dl_tensor *tensor, enum skrull_dtype dtype)
{
    uint8_t code = dtype == SKRULL_DTYPE_BF16 ? SKRULL_DL_BFLOAT : SKRULL_DL_FLOAT;
    uint8_t bits = dtype == SKRULL_DTYPE_F32 ? 32 : 16;

    return tensor->code == code && tensor->bits == bits && tensor->lanes == 1;
}

/* [rows][heads][head_dim], or [rows][all of a row]. */
static bool has_shape(const struct skrull_dl_tensor *tensor, size_t rows,
                      const struct wanted *wanted)
{
    size_t row = wanted->heads * (wanted->head_dim ? wanted->head_dim : 1);
    const int64_t *shape = tensor->shape;

    if (tensor->n_dims == 2) {
        return shape[0] == (int64_t)rows && shape[1] == (int64_t)row;
    }
    return tensor->n_dims == 3 && wanted->head_dim && shape[0] == (int64_t)rows &&
           shape[1] == (int64_t)wanted->heads && shape[2] == (int64_t)wanted->head_dim;
}

static bool is_dense(const struct skrull_dl_tensor *tensor)
{
    int64_t stride = 1;

    for (int32_t i = tensor->n_dims; i-- > 0 && tensor->strides;) {
        if (tensor->shape[i] > 1 && tensor->strides[i] != stride) {
            return false;
        }
        stride *= tensor->shape[i];
    }
    return true;
}

static int fault(const struct wanted *wanted, const char *what, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "tensor %s: %s", wanted->name, what);
}

/* Its pointer, once it is found to be what it must. */
static int bind_tensor(const struct skrull_exec *exec, const struct skrull_dl_tensor *tensor,
                       const struct wanted *wanted, void **ret, struct skrull_error *err)
{
    int32_t device_type = exec->device->is_host ? SKRULL_DL_CPU : SKRULL_DL_CUDA;

    if (!tensor) {
        *ret = NULL;
        return 0;
    }
    if (tensor->device_type != device_type ||
        (!exec->device->is_host && tensor->device_id != exec->device->idx)) {
        return fault(wanted, "it lies on another device", err);
    }
    if (!has_dtype(tensor, wanted->dtype)) {
        return fault(wanted, "it is of another dtype", err);
    }
    if (tensor->n_dims < 0 || !has_shape(tensor, exec->layout->rows.n_rows, wanted)) {
        return fault(wanted, "its shape is not [rows][heads][head_dim] of the layout", err);
    }
    if (!is_dense(tensor)) {
        return fault(wanted, "it is not dense", err);
    }
    *ret = (char *)tensor->data + tensor->byte_offset;
    return 0;
}

int skrull_exec_bind_dl(const struct skrull_exec *exec, const struct skrull_dl_tensors *tensors,
                        struct skrull_tensors *ret_tensors, struct skrull_error *err)
{
    size_t heads = exec->shape.heads, kv_heads = exec->shape.kv_heads, dim = exec->shape.head_dim;
    const struct {
        const struct skrull_dl_tensor *tensor;
        struct wanted wanted;
        bool is_needed;
    } all[] = {
        {tensors->q, {"q", exec->dtype, heads, dim}, true},
        {tensors->k, {"k", exec->dtype, kv_heads, dim}, true},
        {tensors->v, {"v", exec->dtype, kv_heads, dim}, true},
        {tensors->out, {"out", exec->dtype, heads, dim}, true},
        {tensors->lse, {"lse", SKRULL_DTYPE_F32, heads, 0}, true},
        {tensors->dout, {"dout", exec->dtype, heads, dim}, false},
        {tensors->dq, {"dq", SKRULL_DTYPE_F32, heads, dim}, false},
        {tensors->dk, {"dk", SKRULL_DTYPE_F32, kv_heads, dim}, false},
        {tensors->dv, {"dv", SKRULL_DTYPE_F32, kv_heads, dim}, false},
    };
    void *at[sizeof(all) / sizeof(all[0])];

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        int rc = all[i].is_needed && !all[i].tensor
                     ? fault(&all[i].wanted, "it is missing", err)
                     : bind_tensor(exec, all[i].tensor, &all[i].wanted, &at[i], err);

        if (rc < 0) {
            return rc;
        }
    }
    *ret_tensors = (struct skrull_tensors){.q = at[0],
                                           .k = at[1],
                                           .v = at[2],
                                           .out = at[3],
                                           .lse = at[4],
                                           .dout = at[5],
                                           .dq = at[6],
                                           .dk = at[7],
                                           .dv = at[8]};
    return 0;
}

/* A description and its one dimension. */
struct map_tensor {
    struct skrull_dl_managed managed;
    int64_t shape[1];
};

static void delete_map(struct skrull_dl_managed *self)
{
    free(self);
}

int skrull_exec_map_dl(const struct skrull_exec *exec, enum skrull_map map,
                       struct skrull_dl_managed **ret_managed, struct skrull_error *err)
{
    const struct skrull_layout *layout = exec->layout;
    const void *const maps[] = {layout->rows.position, layout->loss_weight, layout->token_row,
                                layout->row_token};
    bool is_of_tokens = map == SKRULL_MAP_TOKEN_ROW;
    struct map_tensor *new = calloc(1, sizeof(*new));

    if (!new) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a tensor");
    }
    new->shape[0] = is_of_tokens ? layout->rows.n_tokens : layout->rows.n_rows;
    new->managed = (struct skrull_dl_managed){
        .major = SKRULL_DL_MAJOR,
        .deleter = delete_map,
        .flags = SKRULL_DL_READ_ONLY,
        .tensor = {.data = (void *)(uintptr_t)maps[map],
                   .device_type = exec->device->is_host ? SKRULL_DL_CPU : SKRULL_DL_CUDA,
                   .device_id = exec->device->idx,
                   .n_dims = 1,
                   .code = map == SKRULL_MAP_LOSS_WEIGHT ? SKRULL_DL_FLOAT : SKRULL_DL_INT,
                   .bits = 32,
                   .lanes = 1,
                   .shape = new->shape}};
    *ret_managed = &new->managed;
    return 0;
}
