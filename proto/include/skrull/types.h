/*
 * The words of a job, as enums. 0 is "not given" everywhere and becomes the default when a job is
 * completed (skrull_job_complete). The values are those of proto/skrull/v1/job.proto.
 */
#pragma once

enum skrull_flops { SKRULL_FLOPS_PAPER = 1, SKRULL_FLOPS_EXACT };
enum skrull_zero_stage {
    SKRULL_ZERO_STAGE_0 = 1,
    SKRULL_ZERO_STAGE_1,
    SKRULL_ZERO_STAGE_2,
    SKRULL_ZERO_STAGE_3
};
enum skrull_recompute {
    SKRULL_RECOMPUTE_NONE = 1,
    SKRULL_RECOMPUTE_SELECTIVE,
    SKRULL_RECOMPUTE_FULL
};
enum skrull_cp_mode { SKRULL_CP_MODE_FIXED = 1, SKRULL_CP_MODE_ELASTIC };
enum skrull_shard { SKRULL_SHARD_ZIGZAG = 1, SKRULL_SHARD_CONTIGUOUS };
enum skrull_equal { SKRULL_EQUAL_AUTO = 1, SKRULL_EQUAL_TRUE, SKRULL_EQUAL_FALSE };
enum skrull_micro_batch_order {
    SKRULL_MICRO_BATCH_ORDER_AS_PLANNED = 1,
    SKRULL_MICRO_BATCH_ORDER_LARGEST_FIRST,
    SKRULL_MICRO_BATCH_ORDER_HEAVY_MIDDLE
};
enum skrull_mix { SKRULL_MIX_ANY = 1, SKRULL_MIX_UNIFORM };
enum skrull_over_length {
    SKRULL_OVER_LENGTH_REJECT = 1,
    SKRULL_OVER_LENGTH_TRUNCATE,
    SKRULL_OVER_LENGTH_DROP
};
enum skrull_unit { SKRULL_UNIT_SEQUENCE = 1, SKRULL_UNIT_DOCUMENT };
enum skrull_order { SKRULL_ORDER_SHUFFLE = 1, SKRULL_ORDER_SEQUENTIAL, SKRULL_ORDER_SORTED };
enum skrull_last_batch {
    SKRULL_LAST_BATCH_DROP = 1,
    SKRULL_LAST_BATCH_KEEP,
    SKRULL_LAST_BATCH_WRAP
};
enum skrull_loss { SKRULL_LOSS_TOKEN_MEAN = 1, SKRULL_LOSS_SEQUENCE_MEAN, SKRULL_LOSS_NONE };
