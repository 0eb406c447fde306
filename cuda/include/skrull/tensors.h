/*
 * Attention of a micro-batch called from the outside, layer by layer, on tensors that somebody else
 * allocated: a framework with its own autograd, say, which hands over raw pointers, or DLPack
 * tensors, and the stream that it computes on (has_stream of skrull_exec_options). Every call only
 * enqueues.
 *
 *     skrull_exec_begin; of each layer skrull_exec_attend; then of each layer, descending,
 *     skrull_exec_attend_backward (or none at all); skrull_exec_end
 *
 * All data ranks make the same calls for the same micro-batch. One thread at a time, any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>
#include <skrull/exec.h>
#include <skrull/layout.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tensors of one layer, dense, in the backend's memory; rows are the layout's packed buffer. */
struct skrull_tensors {
    const void *q;       /* [rows][heads][head_dim] of the exec's dtype */
    const void *k, *v;   /* [rows][kv_heads][head_dim] */
    void *out;           /* [rows][heads][head_dim]; written forth, an input back */
    float *lse;          /* [rows][heads]; the same */
    const void *dout;    /* [rows][heads][head_dim]; from here on: only back */
    float *dq, *dk, *dv; /* written */
};

/* `layout` (borrowed until the end) is within `limits`, which bound all layouts of this exec. */
SKRULL_API int skrull_exec_begin(struct skrull_exec *exec, const struct skrull_layout *layout,
                                 const struct skrull_layout_limits *limits,
                                 const struct skrull_attention_shape *shape,
                                 struct skrull_error *err);
SKRULL_API int skrull_exec_attend(struct skrull_exec *exec, const struct skrull_tensors *tensors,
                                  struct skrull_error *err);
SKRULL_API int skrull_exec_attend_backward(struct skrull_exec *exec,
                                           const struct skrull_tensors *tensors,
                                           struct skrull_error *err);
SKRULL_API int skrull_exec_end(struct skrull_exec *exec, struct skrull_error *err);

/*
 * DLPack, version 1: the memory layout by which frameworks hand tensors to each other (DLTensor and
 * DLManagedTensorVersioned there; https://dmlc.github.io/dlpack). Names are our own, so that its
 * header may be included beside this one. An older, unversioned DLManagedTensor begins with its
 * tensor and may be passed as one.
 */
enum { SKRULL_DL_CPU = 1, SKRULL_DL_CUDA = 2 };
enum { SKRULL_DL_INT = 0, SKRULL_DL_FLOAT = 2, SKRULL_DL_BFLOAT = 4 };
#define SKRULL_DL_MAJOR 1u
#define SKRULL_DL_READ_ONLY UINT64_C(1)

struct skrull_dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t n_dims;
    uint8_t code, bits; /* of the dtype */
    uint16_t lanes;
    int64_t *shape;   /* [n_dims] */
    int64_t *strides; /* [n_dims] in elements; NULL: dense */
    uint64_t byte_offset;
};

struct skrull_dl_managed {
    uint32_t major, minor;
    void *owner;
    void (*deleter)(struct skrull_dl_managed *self);
    uint64_t flags;
    struct skrull_dl_tensor tensor;
};

/* The tensor of a versioned one, which stays its owner's. INVALID_ARGUMENT: another major version,
 * or a read-only one is to be written. */
SKRULL_API int skrull_dl_open(const struct skrull_dl_managed *managed, bool is_written,
                              const struct skrull_dl_tensor **ret_tensor, struct skrull_error *err);

/* struct skrull_tensors as DLPack tensors; NULL where nothing is. */
struct skrull_dl_tensors {
    const struct skrull_dl_tensor *q, *k, *v, *out, *lse, *dout, *dq, *dk, *dv;
};

/* Holds device, dtype, shape and strides of each tensor that is there against the running layout;
 * q, k, v, out and lse must be there. INVALID_ARGUMENT names the tensor. A tensor may also be
 * [rows][heads x head_dim]. */
SKRULL_API int skrull_exec_bind_dl(const struct skrull_exec *exec,
                                   const struct skrull_dl_tensors *tensors,
                                   struct skrull_tensors *ret_tensors, struct skrull_error *err);

/* Maps of the running layout, to be taken over by a framework. */
enum skrull_map {
    SKRULL_MAP_POSITION,    /* int32 [rows] */
    SKRULL_MAP_LOSS_WEIGHT, /* float [rows] */
    SKRULL_MAP_TOKEN_ROW,   /* int32 [tokens]: packs rows that hold a token */
    SKRULL_MAP_ROW_TOKEN,   /* int32 [rows]: the inverse */
};

/* A read-only tensor over a map; its deleter frees the description. The memory is the exec's, until
 * skrull_exec_end: copy it to keep it. */
SKRULL_API int skrull_exec_map_dl(const struct skrull_exec *exec, enum skrull_map map,
                                  struct skrull_dl_managed **ret_managed, struct skrull_error *err);

#ifdef __cplusplus
}
#endif
