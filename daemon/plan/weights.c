/*
 * Loss weights. One IEEE division each, the product before it in u64 (2^24 sequences of 2^32 tokens
 * fit), so that every machine writes the same bits.
 */
#include "plan/weights.h"

void weights_init(struct weights *weights, const struct batch *batch,
                  struct skrull_totals *ret_totals)
{
    struct skrull_totals totals = {.sequences = batch->n_sequences};
    uint64_t scored = 0;

    for (uint32_t k = 0; k < batch->n_sequences; k++) {
        totals.tokens += batch->sequences[k].length;
        totals.loss_tokens += batch->sequences[k].loss_tokens;
        scored += batch->sequences[k].loss_tokens > 0;
    }
    *weights = (struct weights){
        .loss = batch->options.loss, .loss_tokens = totals.loss_tokens, .scored = scored};
    *ret_totals = totals;
}

double weights_of(const struct weights *weights, uint32_t loss_tokens)
{
    if (loss_tokens == 0 || weights->loss == SKRULL_LOSS_NONE) {
        return 0.0;
    }
    if (weights->loss == SKRULL_LOSS_SEQUENCE_MEAN) {
        return 1.0 / (double)(weights->scored * loss_tokens);
    }
    return 1.0 / (double)weights->loss_tokens;
}
