/* What a decoder is: its sizes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <skrull/error.h>

struct model_config {
    uint32_t hidden, layers, heads, kv_heads, head_dim, intermediate, vocabulary;
    float norm_eps, rope_base;
    bool has_tied_head, has_qkv_bias;
    uint32_t window; /* of attention; 0: none */
};

/* "tiny", for tests and for trying things out, "tiny64", the same with heads of 64 for GPUs, or the
 * path of a Hugging Face config.json. UNIMPLEMENTED names what of it this decoder has not (experts,
 * scaled positions, ...). */
int model_config_read(const char *model, struct model_config *ret, struct skrull_error *err);
