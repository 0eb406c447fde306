/* Looks token embeddings up. Gradients are added in row order. No state, any thread. */
#include <inttypes.h>

#include "ref.h"

/* Refuses tokens that the table lacks, before anything is written. */
static int check_tokens(const int32_t *token, size_t n, uint32_t vocabulary,
                        struct skrull_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (token[i] >= 0 && (uint32_t)token[i] >= vocabulary) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "embedding: token %" PRId32 " in a vocabulary of %" PRIu32
                                    "; is the model that of the tokens?",
                                    token[i], vocabulary);
        }
    }
    return 0;
}

int REF(embedding_forward)(const struct skrull_embedding *embedding, void *stream,
                           struct skrull_error *err)
{
    size_t width = embedding->width;
    const float *table = embedding->table;
    float *out = embedding->out;
    int rc = ref_check_dtype(embedding->dtype, err);

    (void)stream;
    if (rc == 0) {
        rc = check_tokens(embedding->token, embedding->n_rows, embedding->vocabulary, err);
    }
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; i < embedding->n_rows; i++, out += width) {
        if (embedding->token[i] >= 0) {
            memcpy(out, table + (size_t)embedding->token[i] * width, width * sizeof(float));
        } else {
            memset(out, 0, width * sizeof(float));
        }
    }
    return 0;
}

int REF(embedding_backward)(const struct skrull_embedding_backward *embedding, void *stream,
                            struct skrull_error *err)
{
    size_t width = embedding->width;
    const float *dout = embedding->dout;
    int rc = ref_check_dtype(embedding->dtype, err);

    (void)stream;
    if (rc == 0) {
        rc = check_tokens(embedding->token, embedding->n_rows, embedding->vocabulary, err);
    }
    if (rc < 0) {
        return rc;
    }
    for (size_t row = 0; row < embedding->n_rows; row++, dout += width) {
        float *to;

        if (embedding->token[row] < 0) {
            continue;
        }
        to = embedding->dtable + (size_t)embedding->token[row] * width;
        for (size_t i = 0; i < width; i++) {
            to[i] += dout[i];
        }
    }
    return 0;
}
