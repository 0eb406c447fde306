/*
 * The reference operators as work of fake streams: enough to test the order of work, in float. The
 * parameters are copied when an operator is called, as real launches do, and every pointer in them
 * is held against the device's allocations when it runs.
 */
#include <stddef.h>
#include <string.h>

#include <skrull/cuda.h>

#include "fake.h"
#include "ops.h"
#include "ops_cuda.h"

/* Pointers in the parameters of each operator, which may be NULL. */
struct place {
    const char *name;
    size_t at;
};

#define AT(op, params, field)                                                                      \
    {                                                                                              \
#op, offsetof(struct params, field)                                                        \
    }
#define ATTENTION(op, params, p)                                                                   \
    AT(op, params, p q_cu_rows), AT(op, params, p k_cu_rows), AT(op, params, p q_position),        \
        AT(op, params, p k_position), AT(op, params, p q), AT(op, params, p k),                    \
        AT(op, params, p v), AT(op, params, p out), AT(op, params, p lse)
#define ROWS(op) AT(op, skrull_rows, row), AT(op, skrull_rows, in), AT(op, skrull_rows, out)
#define ROTARY(op)                                                                                 \
    AT(op, skrull_rotary, position), AT(op, skrull_rotary, frequency), AT(op, skrull_rotary, in),  \
        AT(op, skrull_rotary, out)
#define LOSS(op, params, p)                                                                        \
    AT(op, params, p in), AT(op, params, p head), AT(op, params, p target),                        \
        AT(op, params, p loss_weight), AT(op, params, p logits), AT(op, params, p lse),            \
        AT(op, params, p loss)

/* clang-format off */
static const struct place places[] = {
    ROWS(pack_rows), ROWS(unpack_rows),
    AT(add, skrull_add, a), AT(add, skrull_add, b), AT(add, skrull_add, out),
    AT(cast, skrull_cast, in), AT(cast, skrull_cast, out),
    AT(scale, skrull_scale, in), AT(scale, skrull_scale, out),
    ATTENTION(attention_forward, skrull_attention, ),
    ATTENTION(attention_backward, skrull_attention_backward, forward.),
    AT(attention_backward, skrull_attention_backward, dout), AT(attention_backward, skrull_attention_backward, dlse),
    AT(attention_backward, skrull_attention_backward, dq), AT(attention_backward, skrull_attention_backward, dk),
    AT(attention_backward, skrull_attention_backward, dv),
    AT(merge_forward, skrull_merge, part_out), AT(merge_forward, skrull_merge, part_lse),
    AT(merge_forward, skrull_merge, out), AT(merge_forward, skrull_merge, lse),
    ROTARY(rotary_forward), ROTARY(rotary_backward),
    AT(rms_norm_forward, skrull_rms_norm, in), AT(rms_norm_forward, skrull_rms_norm, weight),
    AT(rms_norm_forward, skrull_rms_norm, out), AT(rms_norm_forward, skrull_rms_norm, rstd),
    AT(rms_norm_backward, skrull_rms_norm_backward, in), AT(rms_norm_backward, skrull_rms_norm_backward, weight),
    AT(rms_norm_backward, skrull_rms_norm_backward, dout), AT(rms_norm_backward, skrull_rms_norm_backward, rstd),
    AT(rms_norm_backward, skrull_rms_norm_backward, din), AT(rms_norm_backward, skrull_rms_norm_backward, dweight),
    AT(linear_forward, skrull_linear, in), AT(linear_forward, skrull_linear, weight),
    AT(linear_forward, skrull_linear, bias), AT(linear_forward, skrull_linear, out),
    AT(linear_backward, skrull_linear_backward, in), AT(linear_backward, skrull_linear_backward, weight),
    AT(linear_backward, skrull_linear_backward, dout), AT(linear_backward, skrull_linear_backward, din),
    AT(linear_backward, skrull_linear_backward, dweight), AT(linear_backward, skrull_linear_backward, dbias),
    AT(swiglu_forward, skrull_swiglu, gate), AT(swiglu_forward, skrull_swiglu, up), AT(swiglu_forward, skrull_swiglu, out),
    AT(swiglu_backward, skrull_swiglu_backward, gate), AT(swiglu_backward, skrull_swiglu_backward, up),
    AT(swiglu_backward, skrull_swiglu_backward, dout), AT(swiglu_backward, skrull_swiglu_backward, dgate),
    AT(swiglu_backward, skrull_swiglu_backward, dup),
    AT(embedding_forward, skrull_embedding, token), AT(embedding_forward, skrull_embedding, table),
    AT(embedding_forward, skrull_embedding, out),
    AT(embedding_backward, skrull_embedding_backward, token), AT(embedding_backward, skrull_embedding_backward, dout),
    AT(embedding_backward, skrull_embedding_backward, dtable),
    LOSS(cross_entropy_forward, skrull_cross_entropy, ),
    LOSS(cross_entropy_backward, skrull_cross_entropy_backward, forward.),
    AT(cross_entropy_backward, skrull_cross_entropy_backward, din),
    AT(cross_entropy_backward, skrull_cross_entropy_backward, dhead),
    AT(cross_entropy_backward, skrull_cross_entropy_backward, din_sum),
    AT(adamw, skrull_adamw, weight), AT(adamw, skrull_adamw, m), AT(adamw, skrull_adamw, v),
    AT(adamw, skrull_adamw, gradient), AT(adamw, skrull_adamw, copy),
};
/* clang-format on */

static bool check_pointers(const char *name, const void *params)
{
    bool is_sound = true;

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const void *pointer;

        if (strcmp(places[i].name, name) == 0) {
            memcpy(&pointer, (const char *)params + places[i].at, sizeof(pointer));
            is_sound = (!pointer || fake_check_device(name, pointer, 0)) && is_sound;
        }
    }
    return is_sound;
}

/* Set before threads run. */
static const char *backend = "cpu";

void fake_use(const char *host_backend)
{
    backend = host_backend;
}

#define OP(file, name, params)                                                                     \
    static void run_##name(const void *copied)                                                     \
    {                                                                                              \
        struct skrull_error err = {0};                                                             \
        if (check_pointers(#name, copied) && ops_find(backend)->name(copied, NULL, &err) < 0) {    \
            fake_report("%s: %s", #name, err.message);                                             \
        }                                                                                          \
    }                                                                                              \
    static int put_##name(const struct params *given, void *stream, struct skrull_error *err)      \
    {                                                                                              \
        (void)err;                                                                                 \
        fake_stream_call(stream, #name, run_##name, given, sizeof(*given));                        \
        return 0;                                                                                  \
    }
#include "ops.def"
#undef OP

/* In place of the kernels. */
const struct ops *ops_cuda(void)
{
    return fake_ops();
}

const struct ops *fake_ops(void)
{
    static const struct ops table = {
        .backend = "cuda",
#define OP(file, name, params) .name = put_##name,
#include "ops.def"
#undef OP
    };

    return &table;
}
