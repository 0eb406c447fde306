/* Options to rules. */
#include "plan_rules.h"

#include "plan/options.h"

int plan_rules_init(const struct skrull_planner_options *options, struct plan_rules *ret)
{
    int rc = options_complete(options, &ret->options, NULL);

    rc = rc ? rc : degrees_of_job(&ret->options, &ret->degrees, NULL);
    if (rc) {
        return rc;
    }
    ret->rules =
        (struct plan_check_rules){.dp = ret->options.dp,
                                  .cp = ret->options.cp,
                                  .degrees = ret->degrees.sizes,
                                  .n_degrees = ret->degrees.n,
                                  .bucket_tokens = ret->options.bucket_tokens,
                                  .align = ret->options.align,
                                  .shard = ret->options.shard,
                                  .loss = ret->options.loss,
                                  .equal_micro_batches = ret->options.equal_micro_batches,
                                  .micro_batches = ret->options.micro_batches,
                                  .micro_batch_multiple = ret->options.micro_batch_multiple,
                                  .micro_batch_min = ret->options.micro_batch_min,
                                  .mix = ret->options.mix};
    return 0;
}
