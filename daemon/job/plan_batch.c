/*
 * A batch without a job behind it: the request's own lengths take the place of index and sampler,
 * everything after them is as in job.c. Nothing is kept, so that the same request always has the
 * same plan. Any thread.
 */
#include "job/plan_batch.h"

#include <inttypes.h>
#include <stdlib.h>

#include <skrull/planner.h>

#include "cleanup.h"
#include "job/job.h"
#include "job_fields.h"
#include "plan_check.h"

/* What becomes of sequences longer than the limit. */
struct fit {
    enum skrull_over_length over_length;
    uint64_t limit, n_over;
    uint32_t longest;
    size_t first; /* place of the first that is over */
};

static int check_counts(const struct job_lengths *batch, struct skrull_error *err)
{
    if (batch->n == 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "lengths: the batch is empty, at least one sequence is needed");
    }
    if (batch->n > JOB_PLAN_BATCH_MAX) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "lengths: %zu sequences are too many, at most %" PRIu32
                                " are allowed",
                                batch->n, JOB_PLAN_BATCH_MAX);
    }
    if (batch->n_loss_tokens != 0 && batch->n_loss_tokens != batch->n) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "loss_tokens: %zu numbers for %zu lengths, none or as many are "
                                "allowed",
                                batch->n_loss_tokens, batch->n);
    }
    return 0;
}

static int check_numbers(const struct job_lengths *batch, struct skrull_error *err)
{
    for (size_t i = 0; i < batch->n; i++) {
        if (batch->lengths[i] == 0) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "lengths[%zu]: 0 tokens, at least 1 is needed", i);
        }
        if (batch->n_loss_tokens && batch->loss_tokens[i] > batch->lengths[i]) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "loss_tokens[%zu]: %" PRIu32
                                    " are more than the sequence's %" PRIu32 " tokens",
                                    i, batch->loss_tokens[i], batch->lengths[i]);
        }
    }
    return 0;
}

static void find_over_length(const struct job_lengths *batch, struct fit *fit)
{
    for (size_t i = 0; i < batch->n; i++) {
        if (batch->lengths[i] > fit->limit && fit->n_over++ == 0) {
            fit->first = i;
        }
        fit->longest = batch->lengths[i] > fit->longest ? batch->lengths[i] : fit->longest;
    }
}

static int check_over_length(const struct job_lengths *batch, const struct skrull_job *job,
                             const struct fit *fit, struct skrull_error *err)
{
    if (fit->n_over == 0) {
        return 0;
    }
    if (fit->over_length == SKRULL_OVER_LENGTH_REJECT) {
        return skrull_error_set(
            err, SKRULL_ERR_INVALID_ARGUMENT,
            "lengths[%zu]: %" PRIu64 " of the %zu sequences are longer than %" PRIu64
            " tokens, the limit of bucket_tokens %" PRIu32 " with cp %" PRIu32
            " and policy %.32s; the longest has %" PRIu32
            ": set data[0].over_length to truncate or drop, or choose a larger "
            "batch.bucket_tokens or parallel.cp",
            fit->first, fit->n_over, batch->n, fit->limit, job->batch.bucket_tokens,
            job->parallel.cp, job->policy, fit->longest);
    }
    if (fit->over_length == SKRULL_OVER_LENGTH_TRUNCATE && batch->n_loss_tokens) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "data[0].over_length: truncate would cut %" PRIu64
                                " sequences, whose loss_tokens would no longer hold: drop them, "
                                "or leave loss_tokens out",
                                fit->n_over);
    }
    if (fit->over_length == SKRULL_OVER_LENGTH_DROP && fit->n_over == batch->n) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "data[0].over_length: all %zu sequences are longer than %" PRIu64
                                " tokens, drop leaves none",
                                batch->n, fit->limit);
    }
    return 0;
}

/* The sequences that are planned. Returns how many. */
static uint32_t fill_sequences(const struct job_lengths *batch, const struct fit *fit,
                               struct skrull_sequence *sequences)
{
    uint32_t n = 0;

    for (size_t i = 0; i < batch->n; i++) {
        uint32_t length = batch->lengths[i];

        if (length > fit->limit) {
            if (fit->over_length == SKRULL_OVER_LENGTH_DROP) {
                continue;
            }
            length = (uint32_t)fit->limit;
        }
        sequences[n++] = (struct skrull_sequence){
            .sample = i,
            .index = i,
            .length = length,
            .loss_tokens = batch->n_loss_tokens ? batch->loss_tokens[i] : length,
        };
    }
    return n;
}

/* Remembers the first fault. */
static void keep_fault(void *arg, const char *message)
{
    struct skrull_error *fault = arg;

    if (!fault->code) {
        (void)skrull_error_set(fault, SKRULL_ERR_INTERNAL, "%s", message);
    }
}

static int check_own_plan(const struct skrull_job *job, const struct skrull_plan *plan,
                          struct skrull_error *err)
{
    struct skrull_error fault = {0};
    const int result = job_check_plan_unseen(job, plan, keep_fault, &fault, err);

    if (result == PLAN_CHECK_UNSOUND) {
        return skrull_error_set(err, SKRULL_ERR_INTERNAL, "policy %s made an unsound plan: %s",
                                plan->policy, fault.message);
    }
    return result;
}

/* Plans the sequences by the completed job. */
static int plan_sequences(const struct skrull_job *job, const struct skrull_sequence *sequences,
                          struct skrull_plan **ret_plan, struct skrull_error *err)
{
    struct skrull_planner_input input = {
        .sequences = sequences, .n_sequences = job->batch.global, .job = job->name};
    struct skrull_cost_options cost;
    struct skrull_cost_model *model = NULL;
    struct skrull_plan *plan = NULL;
    int result;

    job_cost_options(job, &cost);
    result = skrull_cost_model_new(&cost, &model, err);
    if (result) {
        return result;
    }
    job_planner_options(job, &input.options);
    input.cost = model;
    result = skrull_planner_run(&input, &plan, err);
    skrull_cost_model_free(model);
    if (result == 0 && JOB_CHECKS_PLANS) {
        result = check_own_plan(job, plan, err);
    }
    if (result) {
        skrull_plan_free(plan);
        return result;
    }
    *ret_plan = plan;
    return 0;
}

/* Fits the batch into the completed job, whose batch.global becomes the number of its sequences. */
static int plan_lengths(struct skrull_job *job, const struct job_lengths *batch,
                        struct skrull_plan **ret_plan, struct skrull_error *err)
{
    struct fit fit = {.over_length = job->data[0].over_length};
    _cleanup_(cleanup_free) struct skrull_sequence *sequences = NULL;
    struct skrull_planner_options options;
    int result;

    job_planner_options(job, &options);
    result = skrull_planner_check_options(&options, err);
    if (result) {
        return result;
    }
    fit.limit = skrull_planner_longest(&options);
    find_over_length(batch, &fit);
    result = check_over_length(batch, job, &fit, err);
    if (result) {
        return result;
    }
    sequences = calloc(batch->n, sizeof(*sequences));
    if (!sequences) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "out of memory for a batch of %zu sequences", batch->n);
    }
    job->batch.global = fill_sequences(batch, &fit, sequences);
    return plan_sequences(job, sequences, ret_plan, err);
}

int job_plan_batch(const struct skrull_job *spec, const struct job_lengths *batch,
                   struct skrull_plan **ret_plan, struct skrull_error *err)
{
    struct skrull_dataset data = {.index = "-"}; /* stands for the request itself */
    struct skrull_job job = *spec;
    int result;

    if (spec->n_data > 0) {
        data.over_length = spec->data[0].over_length;
    }
    result = check_counts(batch, err);
    result = result ? result : check_numbers(batch, err);
    if (result) {
        return result;
    }
    job.data = &data;
    job.n_data = 1;
    job.batch.global = (uint32_t)batch->n;
    job.seed = 0;
    job.order = 0;
    job.last_batch = 0;
    job.epochs = job.steps = 0;
    job.uid = NULL; /* there is no such job */
    job.revision = 0;
    job.info = (struct skrull_job_info){0};
    result = job_complete(&job, err);
    return result ? result : plan_lengths(&job, batch, ret_plan, err);
}
