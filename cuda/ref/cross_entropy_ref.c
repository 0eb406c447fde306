/*
 * Head and loss, a chunk of the vocabulary at a time. The log-sum-exp of a row grows chunk by
 * chunk; the loss is summed in double, since it is compared over ways to split the same tokens.
 * Backward computes each chunk's logits again: dlogits = loss_weight (e^(logit - lse) - is_target),
 * then din += dlogits head and dhead += dlogits^T in. No state, any thread.
 */
#include <inttypes.h>
#include <math.h>

#include "gemm.h"

static bool has_weight(const struct skrull_cross_entropy *loss, size_t row)
{
    return loss->loss_weight[row] > 0.0F || loss->loss_weight[row] < 0.0F;
}

static int check(const struct skrull_cross_entropy *loss, struct skrull_error *err)
{
    if (loss->chunk == 0 || loss->vocabulary == 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "cross-entropy: chunks of %" PRIu32 " of a vocabulary of %" PRIu32,
                                loss->chunk, loss->vocabulary);
    }
    for (size_t row = 0; row < loss->n_rows; row++) {
        if (has_weight(loss, row) &&
            (loss->target[row] < 0 || (uint32_t)loss->target[row] >= loss->vocabulary)) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "cross-entropy: target %" PRId32 " in a vocabulary of %" PRIu32
                                    "; is the model that of the tokens?",
                                    loss->target[row], loss->vocabulary);
        }
    }
    return ref_check_dtype(loss->dtype, err);
}

static size_t chunk_width(const struct skrull_cross_entropy *loss, size_t first)
{
    return loss->vocabulary - first < loss->chunk ? loss->vocabulary - first : loss->chunk;
}

/* The logits of columns [first, first + n) of the vocabulary. */
static int compute_logits(const struct skrull_cross_entropy *loss, size_t first, size_t n,
                          struct skrull_error *err)
{
    size_t width = loss->width;
    struct gemm_matrix head = {(const float *)loss->head + first * width, 1, width};
    struct gemm_product product = {.m = loss->n_rows,
                                   .n = n,
                                   .k = width,
                                   .a = {loss->in, width, 1},
                                   .c = loss->logits,
                                   .c_row = loss->chunk};

    return REF(gemm)(&product, &head, err);
}

/* Is the row's target in the chunk? */
static bool holds_target(const struct skrull_cross_entropy *loss, size_t row, size_t first,
                         size_t n)
{
    return loss->target[row] >= 0 && (size_t)loss->target[row] >= first &&
           (size_t)loss->target[row] < first + n;
}

/* The log-sum-exp so far and a chunk's. */
static float grow(float lse, const float *logits, size_t n)
{
    float lanes[REF_LANES] = {0}, max = ref_max(logits, n, lse), sum;
    size_t i = 0;

    for (; i + REF_LANES <= n; i += REF_LANES) {
        for (size_t l = 0; l < REF_LANES; l++) {
            lanes[l] += ref_exp(logits[i + l] - max);
        }
    }
    for (size_t l = 0; i < n; i++, l++) {
        lanes[l] += ref_exp(logits[i] - max);
    }
    sum = ref_sum_lanes(lanes) + ref_exp(lse - max);
    return max + logf(sum);
}

int REF(cross_entropy_forward)(const struct skrull_cross_entropy *loss, void *stream,
                               struct skrull_error *err)
{
    double total = 0.0;
    int rc = check(loss, err);

    (void)stream;
    for (size_t row = 0; row < loss->n_rows; row++) {
        loss->lse[row] = -INFINITY;
    }
    for (size_t first = 0; rc == 0 && first < loss->vocabulary; first += loss->chunk) {
        size_t n = chunk_width(loss, first);

        rc = compute_logits(loss, first, n, err);
        for (size_t row = 0; rc == 0 && row < loss->n_rows; row++) {
            const float *logits = loss->logits + row * loss->chunk;

            loss->lse[row] = grow(loss->lse[row], logits, n);
            if (has_weight(loss, row) && holds_target(loss, row, first, n)) {
                total -= (double)loss->loss_weight[row] *
                         (double)logits[(size_t)loss->target[row] - first];
            }
        }
    }
    if (rc < 0) {
        return rc;
    }
    for (size_t row = 0; row < loss->n_rows; row++) {
        if (has_weight(loss, row)) {
            total += (double)loss->loss_weight[row] * (double)loss->lse[row];
        }
    }
    *loss->loss += total;
    return 0;
}

/* Logits of a chunk become their gradients. */
static void differentiate_logits(const struct skrull_cross_entropy *loss, size_t first, size_t n)
{
    for (size_t row = 0; row < loss->n_rows; row++) {
        float *logits = loss->logits + row * loss->chunk;
        float weight = loss->loss_weight[row], lse = loss->lse[row];

        if (!has_weight(loss, row)) {
            memset(logits, 0, n * sizeof(float));
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            logits[i] = weight * ref_exp(logits[i] - lse);
        }
        if (holds_target(loss, row, first, n)) {
            logits[(size_t)loss->target[row] - first] -= weight;
        }
    }
}

static int add_gradients(const struct skrull_cross_entropy_backward *backward, size_t first,
                         size_t n, struct skrull_error *err)
{
    const struct skrull_cross_entropy *loss = &backward->forward;
    size_t width = loss->width;
    struct gemm_matrix head = {(const float *)loss->head + first * width, width, 1};
    struct gemm_matrix in = {loss->in, width, 1};
    struct gemm_product din = {.m = loss->n_rows,
                               .n = width,
                               .k = n,
                               .a = {loss->logits, loss->chunk, 1},
                               .c = backward->din,
                               .c_row = width,
                               .add = first > 0};
    struct gemm_product dhead = {.m = n,
                                 .n = width,
                                 .k = loss->n_rows,
                                 .a = {loss->logits, 1, loss->chunk},
                                 .c = backward->dhead + first * width,
                                 .c_row = width,
                                 .add = true};
    int rc = REF(gemm)(&din, &head, err);

    return rc < 0 ? rc : REF(gemm)(&dhead, &in, err);
}

int REF(cross_entropy_backward)(const struct skrull_cross_entropy_backward *backward, void *stream,
                                struct skrull_error *err)
{
    const struct skrull_cross_entropy *loss = &backward->forward;
    int rc = check(loss, err);

    (void)stream;
    for (size_t first = 0; rc == 0 && first < loss->vocabulary; first += loss->chunk) {
        size_t n = chunk_width(loss, first);

        rc = compute_logits(loss, first, n, err);
        if (rc == 0) {
            differentiate_logits(loss, first, n);
            rc = add_gradients(backward, first, n, err);
        }
    }
    return rc;
}
