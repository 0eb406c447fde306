/*
 * Holds a plan against a job: the rules of every plan (plan_check.c), with the lengths and the
 * group sizes of this job, and then that it is this step's batch: each sample is the row that the
 * sampler drew.
 */
#include "job/job.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skrull/planner.h>

#include "cleanup.h"
#include "job/job_private.h"
#include "job_fields.h"
#include "plan/degrees.h"
#include "plan_check.h"

/* Where faults go, and how many went there. */
struct faults {
    plan_check_fault fault;
    void *arg;
    size_t n;
};

static void count_fault(void *arg, const char *message)
{
    struct faults *faults = arg;

    faults->n++;
    faults->fault(faults->arg, message);
}

static void add_fault(struct faults *faults, const char *format, ...) SKRULL_PRINTF(2, 3);

static void add_fault(struct faults *faults, const char *format, ...)
{
    char message[256];
    va_list args;

    if (faults->n < PLAN_CHECK_MAX_FAULTS) {
        va_start(args, format);
        (void)vsnprintf(message, sizeof(message), format, args);
        va_end(args);
        count_fault(faults, message);
    }
}

static void look_up(void *arg, uint32_t dataset, uint64_t row, struct plan_check_sequence *ret)
{
    const struct job *job = arg;

    *ret = (struct plan_check_sequence){0};
    if (dataset < job->data->n_datasets) {
        ret->length = dataset_length(&job->data->datasets[dataset], row);
    }
    if (ret->length) {
        ret->loss_tokens = dataset_loss_tokens(&job->data->datasets[dataset], row);
    }
}

static bool differs(const char *a, const char *b)
{
    return a && *a && b && *b && strcmp(a, b) != 0;
}

/* Does the head name this job? Plans made without a daemon have no uid and no revision. */
static void check_head(const struct skrull_job *spec, const struct skrull_plan *plan,
                       struct faults *faults)
{
    if (differs(plan->job, spec->name)) {
        add_fault(faults, "the plan is of job %s, not of %s", plan->job, spec->name);
    }
    if (differs(plan->uid, spec->uid)) {
        add_fault(faults, "the plan is of uid %s, the job has %s", plan->uid, spec->uid);
    }
    if (plan->revision && spec->revision && plan->revision != spec->revision) {
        add_fault(faults, "the plan is of revision %" PRIu32 ", the job has %" PRIu32,
                  plan->revision, spec->revision);
    }
}

/* Is each sample the row that the sampler drew for it? That each is there once is plan_check's. */
static void check_samples(const struct skrull_plan *plan, const struct skrull_sequence *sequences,
                          size_t n_sequences, struct faults *faults)
{
    const struct skrull_segment *segment;
    uint64_t place;
    size_t i;

    for (i = 0; i < plan->n_segments; i++) {
        segment = &plan->segments[i];
        place = segment->sample - sequences[0].sample; /* wraps where it is smaller */
        if (place >= n_sequences) {
            add_fault(faults, "sample %" PRIu64 " is not of step %" PRIu64, segment->sample,
                      plan->step);
        } else if (sequences[place].dataset != segment->dataset ||
                   sequences[place].index != segment->index) {
            add_fault(faults,
                      "sample %" PRIu64 " is row %" PRIu64 " of data set %" PRIu32
                      ", the sampler drew row %" PRIu64 " of data set %" PRIu32,
                      segment->sample, segment->index, segment->dataset, sequences[place].index,
                      sequences[place].dataset);
        }
    }
}

/* Holds the plan against the batch of its step. */
static void check_batch(const struct skrull_plan *plan, const struct skrull_sequence *sequences,
                        const struct sample_batch *batch, struct faults *faults)
{
    if (plan->epoch != batch->epoch) {
        add_fault(faults, "epoch is %" PRIu64 ", step %" PRIu64 " is of epoch %" PRIu64,
                  plan->epoch, plan->step, batch->epoch);
    }
    check_samples(plan, sequences, batch->n_rows, faults);
}

/* What plan_check needs of a job: `degrees` is filled and borrowed. */
static int rules_of(const struct skrull_job *spec, struct degrees *degrees,
                    struct plan_check_rules *ret_rules, struct skrull_error *err)
{
    struct skrull_planner_options options;
    int result;

    job_planner_options(spec, &options);
    result = degrees_of_job(&options, degrees, err);
    if (result) {
        return result;
    }
    *ret_rules = (struct plan_check_rules){
        .dp = options.dp,
        .cp = options.cp,
        .degrees = degrees->sizes,
        .n_degrees = degrees->n,
        .bucket_tokens = options.bucket_tokens,
        .align = options.align,
        .shard = options.shard,
        .loss = options.loss,
        .equal_micro_batches = options.equal_micro_batches,
        .micro_batches = options.micro_batches,
        .micro_batch_multiple = options.micro_batch_multiple,
        .micro_batch_min = options.micro_batch_min,
        .mix = options.mix,
        .n_sequences = spec->batch.global,
    };
    return 0;
}

int job_check_plan(const struct job *job, const struct skrull_plan *plan,
                   void (*fault)(void *arg, const char *message), void *arg,
                   struct skrull_error *err)
{
    struct faults faults = {.fault = fault, .arg = arg};
    _cleanup_(cleanup_free) struct skrull_sequence *sequences = NULL;
    const uint64_t steps = job_spec(job)->info.steps;
    bool has_step = plan->step < steps;
    const struct job_revision *revision;
    struct sample_batch batch = {0};
    struct plan_check_rules rules;
    struct degrees degrees;
    int result = job_revision_of(job, plan->step, &revision, err);

    if (result == 0) {
        batch.n_rows = revision->spec->batch.global;
        result = rules_of(revision->spec, &degrees, &rules, err);
    }
    if (result == 0) {
        result = has_step ? job_batch(job, plan->step, &sequences, &batch, err)
                          : job_check_unchanged(job, err);
    }
    if (result) {
        return result;
    }
    rules.n_sequences = batch.n_rows;
    rules.lookup = look_up;
    rules.arg = (void *)(uintptr_t)job; /* only read */
    result = plan_check(plan, &rules, count_fault, &faults);
    if (result < 0) {
        return skrull_error_set(err, result, "job %s: out of memory", revision->spec->name);
    }
    check_head(revision->spec, plan, &faults);
    if (has_step) {
        check_batch(plan, sequences, &batch, &faults);
    } else {
        add_fault(&faults, "step %" PRIu64 " is past the job's %" PRIu64 " steps", plan->step,
                  steps);
    }
    if (faults.n) {
        result = job_check_unchanged(job, err); /* perhaps the plan is right and the index is not */
        return result ? result : PLAN_CHECK_UNSOUND;
    }
    return 0;
}

int job_check_plan_unseen(const struct skrull_job *spec, const struct skrull_plan *plan,
                          void (*fault)(void *arg, const char *message), void *arg,
                          struct skrull_error *err)
{
    struct faults faults = {.fault = fault, .arg = arg};
    struct plan_check_rules rules;
    struct degrees degrees;
    int result;

    result = rules_of(spec, &degrees, &rules, err);
    if (result) {
        return result;
    }
    if (spec->last_batch == SKRULL_LAST_BATCH_KEEP && plan->totals.sequences < rules.n_sequences) {
        rules.n_sequences = plan->totals.sequences; /* perhaps the last of an epoch */
    }
    result = plan_check(plan, &rules, count_fault, &faults);
    if (result < 0) {
        return skrull_error_set(err, result, "job %s: out of memory", spec->name);
    }
    check_head(spec, plan, &faults);
    return faults.n ? PLAN_CHECK_UNSOUND : 0;
}
