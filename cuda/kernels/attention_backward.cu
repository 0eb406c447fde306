/*
 * Attention backward by tiles: FlashAttention-2 (arXiv 2307.08691, algorithm 2) in two launches, so
 * that every sum has one owner and one order: no atomics, the same bits each time. With p the
 * probabilities, delta = dout . out - dlse:  ds = p (dout v^T - delta);  dq += scale ds k;  dv +=
 * p^T dout;  dk += scale ds^T q. Scores are computed in both launches: 7 products instead of 5.
 *
 * q, dout, out [n_q][heads][DIM], k, v [n_k][kv_heads][DIM], T, rows aligned to 16 bytes; lse, dlse
 * [n_q][heads], dq [n_q][heads][DIM], dk, dv [n_k][kv_heads][DIM] float. Grid: tiles x sequences x
 * heads (of keys). Shared memory, queries and keys: DIM 64: 66, 99 KB; 96: 74, 131 KB; 128: 98, 163
 * KB. Tolerance, relative to the largest: bf16 1e-2, fp16 2e-3.
 */
#include "dev.h"

#include <skrull/cuda.h>

#include "attention_check.h"
#include "attention_of_keys.h"
#include "attention_of_queries.h"

namespace
{
template <class T, int DIM>
int backward_launch(const skrull_attention_backward &p, void *stream, struct skrull_error *err)
{
    const skrull_attention &f = p.forward;
    const uint64_t q_blocks = attention_blocks(f, f.heads, f.max_q_rows, of_queries::n_queries);
    const uint64_t k_blocks = attention_blocks(f, f.kv_heads, f.max_k_rows, of_keys::n_keys);
    int rc = 0;

    if (q_blocks > 0 && k_blocks > 0) {
        rc =
            launch(of_queries::kernel<T, DIM>, dim3((unsigned)q_blocks),
                   dim3(of_queries::n_threads), sizeof(of_queries::shared<T, DIM>), stream, err, p);
        rc = rc ? rc
                : launch(of_keys::kernel<T, DIM>, dim3((unsigned)k_blocks),
                         dim3(of_keys::n_threads), sizeof(of_keys::shared<T, DIM>), stream, err, p);
    }
    return rc;
}

template <class T>
int backward_typed(const skrull_attention_backward &p, void *stream, struct skrull_error *err)
{
    switch (p.forward.head_dim) {
    case 64:
        return backward_launch<T, 64>(p, stream, err);
    case 96:
        return backward_launch<T, 96>(p, stream, err);
    default:
        return backward_launch<T, 128>(p, stream, err);
    }
}
} // namespace

extern "C" int SK_ENTRY(attention_backward)(const struct skrull_attention_backward *params,
                                            void *stream, struct skrull_error *err)
{
    skrull_attention_backward p = *params;
    int rc = attention_prepare(params->forward, &p.forward, err);

    p.dout_stride =
        params->dout_stride ? params->dout_stride : (size_t)p.forward.heads * p.forward.head_dim;
    rc = rc ? rc : attention_check_rows("dout", p.dout, p.dout_stride, err);
    rc = rc ? rc : attention_check_rows("dq", p.dq, 0, err);
    rc = rc ? rc : attention_check_rows("dk", p.dk, 0, err);
    rc = rc ? rc : attention_check_rows("dv", p.dv, 0, err);
    if (rc < 0) {
        return rc;
    }
    return p.forward.dtype == SKRULL_DTYPE_BF16 ? backward_typed<bf16>(p, stream, err)
                                                : backward_typed<fp16>(p, stream, err);
}
