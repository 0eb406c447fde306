/*
 * Planner options: what may be left out, what may not be. A user's input until it has passed here.
 */
#include "plan/options.h"

#include "ckd.h"
#include "plan/counts.h"
#include "plan/degrees.h"
#include "plan/policy.h"

static void fill_defaults(struct skrull_planner_options *options)
{
    options->cp_mode = options->cp_mode ? options->cp_mode : SKRULL_CP_MODE_FIXED;
    options->min_degree = options->min_degree ? options->min_degree : 1;
    options->align = options->align ? options->align : 1;
    /* An exact count is the same on every rank. */
    options->equal_micro_batches |= options->micro_batches > 0;
    options->micro_batch_multiple =
        options->micro_batch_multiple ? options->micro_batch_multiple : 1;
    options->micro_batch_min = options->micro_batch_min ? options->micro_batch_min : 1;
    options->micro_batch_order = options->micro_batch_order ? options->micro_batch_order
                                                            : SKRULL_MICRO_BATCH_ORDER_AS_PLANNED;
    options->mix = options->mix ? options->mix : SKRULL_MIX_ANY;
    options->shard = options->shard ? options->shard : SKRULL_SHARD_ZIGZAG;
    options->loss = options->loss ? options->loss : SKRULL_LOSS_TOKEN_MEAN;
    options->effort = options->effort ? options->effort : SKRULL_EFFORT_DEFAULT;
}

static int check_words(const struct skrull_planner_options *options, struct skrull_error *err)
{
    const struct {
        const char *name;
        int value, max;
    } words[] = {
        {"parallel.cp_mode", (int)options->cp_mode, SKRULL_CP_MODE_ELASTIC},
        {"batch.shard", (int)options->shard, SKRULL_SHARD_CONTIGUOUS},
        {"loss", (int)options->loss, SKRULL_LOSS_NONE},
        {"batch.micro_batch_order", (int)options->micro_batch_order,
         SKRULL_MICRO_BATCH_ORDER_HEAVY_MIDDLE},
        {"batch.mix", (int)options->mix, SKRULL_MIX_UNIFORM},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (words[i].value < 1 || words[i].value > words[i].max) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "%s: %d is out of range, 1 to %d are allowed", words[i].name,
                                    words[i].value, words[i].max);
        }
    }
    return 0;
}

static int check_grid(const struct skrull_planner_options *options, struct skrull_error *err)
{
    uint32_t ranks;

    if (options->dp == 0 || options->cp == 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "parallel: dp %u, cp %u: both must be at least 1", options->dp,
                                options->cp);
    }
    if (ckd_mul(&ranks, options->dp, options->cp) || ranks > PLANNER_MAX_RANKS) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "parallel: dp %u x cp %u is more than %u ranks", options->dp,
                                options->cp, PLANNER_MAX_RANKS);
    }
    return 0;
}

static int check_bucket(const struct skrull_planner_options *options, struct skrull_error *err)
{
    const uint64_t chunks = options->shard == SKRULL_SHARD_ZIGZAG && options->cp > 1 ? 2 : 1;

    if (options->bucket_tokens < chunks * options->align || options->bucket_tokens == 0) {
        return skrull_error_set(
            err, SKRULL_ERR_INVALID_ARGUMENT,
            "batch.bucket_tokens: %u is less than %llu x align (%u): raise it or lower batch.align",
            options->bucket_tokens, (unsigned long long)chunks, options->align);
    }
    if (options->bucket_tokens > PLANNER_MAX_BUCKET) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "batch.bucket_tokens: %u is more than %d: lower it",
                                options->bucket_tokens, PLANNER_MAX_BUCKET);
    }
    return 0;
}

int options_complete(const struct skrull_planner_options *options,
                     struct skrull_planner_options *ret_options, struct skrull_error *err)
{
    struct skrull_planner_options completed = *options;
    int rc;

    fill_defaults(&completed);
    rc = check_words(&completed, err);
    rc = rc ? rc : check_grid(&completed, err);
    rc = rc ? rc : check_bucket(&completed, err);
    rc = rc ? rc : counts_check_options(&completed, err);
    if (rc) {
        return rc;
    }
    *ret_options = completed;
    return 0;
}

int skrull_planner_check_options(const struct skrull_planner_options *options,
                                 struct skrull_error *err)
{
    struct skrull_planner_options completed;
    const struct policy *policy = NULL;
    struct degrees degrees;
    int rc;

    rc = policy_find(options->policy, &policy, err);
    rc = rc ? rc : options_complete(options, &completed, err);
    rc = rc ? rc : degrees_of_job(&completed, &degrees, err);
    return rc ? rc : policy_degrees(&completed, &degrees, err);
}

uint64_t skrull_planner_longest(const struct skrull_planner_options *options)
{
    struct skrull_planner_options completed;
    struct degrees degrees;
    uint64_t longest = 0;

    if (options_complete(options, &completed, NULL) || policy_degrees(&completed, &degrees, NULL)) {
        return 0;
    }
    for (size_t i = 0; i < degrees.n; i++) {
        const uint64_t tokens = skrull_longest_tokens(completed.bucket_tokens, degrees.sizes[i],
                                                      completed.align, completed.shard);

        longest = tokens > longest ? tokens : longest;
    }
    return longest;
}
