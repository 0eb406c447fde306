/* Loss weights: what makes a sum over all data ranks the mean that the job asked for. */
#pragma once

#include "plan/batch.h"

struct weights {
    enum skrull_loss loss;
    uint64_t loss_tokens; /* of the global batch */
    uint64_t scored;      /* sequences with a loss token */
};

/* Sums up the batch; fills its totals too. */
void weights_init(struct weights *weights, const struct batch *batch,
                  struct skrull_totals *ret_totals);

/* Weight of each loss token of a sequence with `loss_tokens`: token_mean: 1 / loss tokens of the
 * batch; sequence_mean: 1 / (scored sequences x its loss tokens); none, or without loss tokens: 0.
 */
double weights_of(const struct weights *weights, uint32_t loss_tokens);
