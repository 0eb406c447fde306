/*
 * What attention's operators check before a launch, on the host: limits of the kernels, named with
 * a remedy, and strides and windows made explicit. No state, any thread.
 */
#pragma once

#include <cmath>
#include <cstdint>

#include <skrull/cuda.h>

namespace
{
/* The grid's one dimension, and rows, of which a tile may lie beyond the end. */
constexpr uint64_t attention_max_blocks = INT32_MAX, attention_max_rows = INT32_MAX - 1024;

inline uint64_t attention_blocks(const skrull_attention &p, uint32_t heads, uint32_t max_rows,
                                 uint32_t tile_rows)
{
    return ((uint64_t)max_rows + tile_rows - 1) / tile_rows * p.n_sequences * heads;
}

/* Rows are copied 16 bytes at a time. */
inline bool attention_is_aligned(const void *rows, size_t stride)
{
    return (uintptr_t)rows % 16 == 0 && stride % 8 == 0;
}

inline int attention_check_shape(const skrull_attention &p, struct skrull_error *err)
{
    if (p.dtype != SKRULL_DTYPE_BF16 && p.dtype != SKRULL_DTYPE_F16) {
        return skrull_error_set(err, SKRULL_ERR_UNIMPLEMENTED,
                                "attention on the GPU takes bf16 or fp16, not dtype %d: convert "
                                "the rows, or choose backend cpu",
                                (int)p.dtype);
    }
    if (p.kv_heads == 0 || p.heads % p.kv_heads != 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "attention: %u heads do not divide by %u key heads", p.heads,
                                p.kv_heads);
    }
    if (p.head_dim != 64 && p.head_dim != 96 && p.head_dim != 128) {
        return skrull_error_set(err, SKRULL_ERR_UNIMPLEMENTED,
                                "attention on the GPU has head dimensions 64, 96 and 128, not %u: "
                                "pad heads with zeros, or choose backend cpu",
                                p.head_dim);
    }
    if (!std::isfinite(p.scale) || p.scale <= 0.0F) {
        return skrull_error_set(err, SKRULL_ERR_UNIMPLEMENTED,
                                "attention on the GPU takes a scale above 0, not %g: scale the "
                                "queries instead",
                                (double)p.scale);
    }
    return 0;
}

inline int attention_check_size(const skrull_attention &p, struct skrull_error *err)
{
    const uint64_t heads = p.heads,
                   rows = p.max_q_rows > p.max_k_rows ? p.max_q_rows : p.max_k_rows;

    if (rows > attention_max_rows || heads * p.n_sequences > attention_max_blocks ||
        (rows / 64 + 1) * (heads * p.n_sequences) > attention_max_blocks) {
        return skrull_error_set(
            err, SKRULL_ERR_INVALID_ARGUMENT,
            "attention: %u sequences of at most %llu rows and %u heads are more "
            "than one launch of %llu blocks holds: split the batch",
            p.n_sequences, (unsigned long long)rows, p.heads,
            (unsigned long long)attention_max_blocks);
    }
    return 0;
}

inline int attention_check_rows(const char *name, const void *rows, size_t stride,
                                struct skrull_error *err)
{
    return attention_is_aligned(rows, stride)
               ? 0
               : skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                  "attention: %s must start at a multiple of 16 bytes and have a "
                                  "row stride that is a multiple of 8 elements, not %p and %zu",
                                  name, rows, stride);
}

/* A copy with strides and window made explicit; 0, or what the kernels do not take. */
inline int attention_prepare(const skrull_attention &p, skrull_attention *ret,
                             struct skrull_error *err)
{
    skrull_attention copy = p;
    const size_t q_dense = (size_t)p.heads * p.head_dim, k_dense = (size_t)p.kv_heads * p.head_dim;
    int rc = attention_check_shape(p, err);

    copy.q_stride = p.q_stride ? p.q_stride : q_dense;
    copy.out_stride = p.out_stride ? p.out_stride : q_dense;
    copy.k_stride = p.k_stride ? p.k_stride : k_dense;
    copy.v_stride = p.v_stride ? p.v_stride : k_dense;
    copy.window = p.window < INT32_MAX ? p.window : INT32_MAX;
    rc = rc ? rc : attention_check_size(p, err);
    rc = rc ? rc : attention_check_rows("q", p.q, copy.q_stride, err);
    rc = rc ? rc : attention_check_rows("k", p.k, copy.k_stride, err);
    rc = rc ? rc : attention_check_rows("v", p.v, copy.v_stride, err);
    rc = rc ? rc : attention_check_rows("out", p.out, copy.out_stride, err);
    if (rc == 0) {
        *ret = copy;
    }
    return rc;
}
} // namespace
