/*
 * Policy `uniform`: what static context parallelism does (DeepSpeed, Megatron). DP rank i takes the
 * batch's i-th run of ceil(K / DP) samples in order, one a micro-batch, each sharded over all of
 * CP.
 *
 * Where limits leave only group size 1 of {1, cp}, a sequence stays whole on its DP rank's first
 * rank and the others of the CP group idle: the baseline does not balance.
 */
#include "plan/policy.h"

int policy_uniform_place(const struct batch *batch, struct placement *placements,
                         struct skrull_error *err)
{
    const uint32_t dp = batch->options.dp, cp = batch->options.cp;
    const uint32_t run = batch->n_sequences / dp + (batch->n_sequences % dp != 0);
    const uint32_t size = batch->has_shard ? cp : 1;

    (void)err;
    for (uint32_t k = 0; k < batch->n_sequences; k++) {
        placements[k] = (struct placement){
            .micro_batch = k % run, .group_first = k / run * cp, .group_size = size};
    }
    return 0;
}
