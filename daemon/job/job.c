/*
 * An opened job: its revisions, and the plans of its steps. A plan costs a look at each file's
 * identity, the sampler's permutation and the planner, all by the revision in force at its step.
 * All of an opened job is constant but its reference count, so any thread may plan.
 */
#include "job/job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <skrull/planner.h>

#include "arena.h"
#include "base/clock.h"
#include "cleanup.h"
#include "job/job_private.h"
#include "job_fields.h"
#include "plan_check.h"

struct job *job_ref(struct job *job)
{
    (void)atomic_fetch_add_explicit(&job->n_refs, 1, memory_order_relaxed);
    return job;
}

void job_revision_unref(struct job_revision *revision)
{
    if (revision && atomic_fetch_sub_explicit(&revision->n_refs, 1, memory_order_acq_rel) == 1) {
        skrull_cost_model_free(revision->cost);
        arena_free(revision->arena);
        free(revision);
    }
}

void job_data_unref(struct job_data *data)
{
    if (data && atomic_fetch_sub_explicit(&data->n_refs, 1, memory_order_acq_rel) == 1) {
        for (uint32_t i = 0; data->datasets && i < data->n_datasets; i++) {
            dataset_close(&data->datasets[i]);
        }
        free(data->datasets);
        free(data);
    }
}

void job_unref(struct job *job)
{
    if (job && atomic_fetch_sub_explicit(&job->n_refs, 1, memory_order_acq_rel) == 1) {
        sampler_free(job->sampler);
        job_data_unref(job->data);
        for (uint32_t i = 0; i < job->n_revisions; i++) {
            job_revision_unref(job->revisions[i]);
        }
        free(job->revisions);
        free(job);
    }
}

const struct skrull_job *job_spec(const struct job *job)
{
    return job->revisions[job->n_revisions - 1]->spec;
}

uint32_t job_n_revisions(const struct job *job)
{
    return job->n_revisions;
}

const struct skrull_job *job_revision_at(const struct job *job, uint32_t i,
                                         uint64_t *ret_first_step)
{
    *ret_first_step = job->revisions[i]->first_step;
    return job->revisions[i]->spec;
}

/* The last revision that begins at the step or before; NULL: the job does not know it. */
static const struct job_revision *find_revision(const struct job *job, uint64_t step)
{
    uint32_t low = 0, high = job->n_revisions;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (job->revisions[middle]->first_step <= step) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 ? job->revisions[low - 1] : NULL;
}

int job_revision_of(const struct job *job, uint64_t step, const struct job_revision **ret_revision,
                    struct skrull_error *err)
{
    const struct skrull_job *spec = job_spec(job);
    const struct job_revision *revision = find_revision(job, step);

    if (!revision) {
        return skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                                "step %" PRIu64 " is of a revision before %" PRIu32
                                " of job %s, whose settings only its daemon has: ask it",
                                step, spec->revision, spec->name);
    }
    *ret_revision = revision;
    return 0;
}

const struct skrull_job *job_spec_at(const struct job *job, uint64_t step)
{
    const struct job_revision *revision = find_revision(job, step);

    return revision ? revision->spec : NULL;
}

uint32_t job_n_ranks(const struct job *job, uint64_t step)
{
    const struct skrull_job *spec = job_spec_at(job, step);

    return spec ? spec->parallel.dp * spec->parallel.cp : 0;
}

uint64_t job_spec_end(const struct job *job, uint64_t step)
{
    uint64_t steps = job_spec(job)->info.steps, end = steps;

    for (uint32_t i = job->n_revisions; i > 0 && job->revisions[i - 1]->first_step > step; i--) {
        end = job->revisions[i - 1]->first_step;
    }
    return end < steps ? end : steps;
}

/* Steps of a complete spec's effort: a word or a number. */
static uint64_t effort_steps(const struct skrull_job *spec)
{
    const char *effort = spec->effort ? spec->effort : "";

    if (strcmp(effort, "low") == 0) {
        return SKRULL_EFFORT_LOW;
    }
    if (strcmp(effort, "high") == 0) {
        return SKRULL_EFFORT_HIGH;
    }
    return strtoull(effort, NULL, 10); /* 0, and so the default, for that word */
}

void job_planner_options(const struct skrull_job *spec, struct skrull_planner_options *ret_options)
{
    *ret_options = (struct skrull_planner_options){
        .dp = spec->parallel.dp,
        .cp = spec->parallel.cp,
        .cp_mode = spec->parallel.cp_mode,
        .min_degree = spec->parallel.min_degree,
        .max_degree = spec->parallel.max_degree,
        .ranks_per_node = spec->parallel.ranks_per_node,
        .bucket_tokens = spec->batch.bucket_tokens,
        .align = spec->batch.align,
        .shard = spec->batch.shard,
        .equal_micro_batches = job_is_equal_micro_batches(spec),
        .micro_batches = spec->batch.micro_batches,
        .micro_batch_multiple = spec->batch.micro_batch_multiple,
        .micro_batch_min = spec->batch.micro_batch_min,
        .micro_batch_order = spec->batch.micro_batch_order,
        .mix = spec->batch.mix,
        .loss = spec->loss,
        .policy = spec->policy,
        .effort = effort_steps(spec),
    };
}

void job_cost_options(const struct skrull_job *spec, struct skrull_cost_options *ret_options)
{
    *ret_options = (struct skrull_cost_options){
        .preset = spec->model.preset,
        .profile = spec->hardware.profile,
        .flops = spec->model.flops,
        .ranks = spec->parallel.dp * spec->parallel.cp,
        .tp = spec->parallel.tp,
        .pp = spec->parallel.pp,
        .ranks_per_node = spec->parallel.ranks_per_node,
    };
}

static int no_memory(const struct job *job, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "job %s: out of memory",
                            job_spec(job)->name);
}

int job_check_unchanged(const struct job *job, struct skrull_error *err)
{
    int result = 0;
    uint32_t i;

    for (i = 0; result == 0 && i < job->data->n_datasets; i++) {
        result = dataset_check_unchanged(&job->data->datasets[i], err);
    }
    return result;
}

int job_batch(const struct job *job, uint64_t step, struct skrull_sequence **ret_sequences,
              struct sample_batch *ret_batch, struct skrull_error *err)
{
    uint32_t size = sampler_batch_size(job->sampler, step), i;
    _cleanup_(cleanup_free) struct sample_row *rows = calloc(size, sizeof(*rows));
    struct skrull_sequence *sequences = calloc(size, sizeof(*sequences));
    struct sample_batch batch = {0};
    const struct dataset *dataset;
    int result = rows && sequences ? job_check_unchanged(job, err) : no_memory(job, err);

    if (result == 0) {
        result = sampler_step(job->sampler, step, rows, &batch, err);
    }
    for (i = 0; result == 0 && i < batch.n_rows; i++) {
        dataset = &job->data->datasets[rows[i].dataset];
        sequences[i] = (struct skrull_sequence){
            .sample = batch.first_sample + i,
            .index = rows[i].row,
            .dataset = rows[i].dataset,
            .length = dataset_length(dataset, rows[i].row),
            .loss_tokens = dataset_loss_tokens(dataset, rows[i].row),
        };
    }
    if (result == 0) {
        result = job_check_unchanged(job, err);
    }
    if (result) {
        free(sequences);
        return result;
    }
    *ret_sequences = sequences;
    *ret_batch = batch;
    return 0;
}

/* Remembers the first fault. */
static void keep_fault(void *arg, const char *message)
{
    struct skrull_error *fault = arg;

    if (!fault->code) {
        (void)skrull_error_set(fault, SKRULL_ERR_INTERNAL, "%s", message);
    }
}

/* Holds a fresh plan against the rules: builds for development do so for every plan. */
static int check_own_plan(const struct job *job, const struct skrull_plan *plan,
                          struct skrull_error *err)
{
    struct skrull_error fault = {0};
    int result = job_check_plan(job, plan, keep_fault, &fault, err);

    if (result == PLAN_CHECK_UNSOUND) {
        return skrull_error_set(err, SKRULL_ERR_INTERNAL,
                                "policy %s made an unsound plan of step %" PRIu64 " of job %s: %s",
                                plan->policy, plan->step, job_spec(job)->name, fault.message);
    }
    return result;
}

int job_plan_by(const struct job *job, uint64_t step, const char *policy,
                struct skrull_plan **ret_plan, int64_t *planning_ns, struct skrull_error *err)
{
    _cleanup_(cleanup_free) struct skrull_sequence *sequences = NULL;
    const struct job_revision *revision;
    struct skrull_planner_input input = {.step = step};
    struct skrull_plan *plan = NULL;
    struct sample_batch batch;
    int64_t begin_ns, end_ns;
    int result = job_batch(job, step, &sequences, &batch, err);

    if (result == 0) {
        result = job_revision_of(job, step, &revision, err);
    }
    if (result) {
        return result;
    }
    input.cost = revision->cost;
    input.job = revision->spec->name;
    input.uid = revision->spec->uid;
    input.revision = revision->spec->revision;
    input.sequences = sequences;
    input.n_sequences = batch.n_rows;
    input.epoch = batch.epoch;
    job_planner_options(revision->spec, &input.options);
    input.options.policy = policy ? policy : revision->spec->policy;
    begin_ns = clock_monotonic_ns();
    result = skrull_planner_run(&input, &plan, err);
    end_ns = clock_monotonic_ns();
    if (result == 0 && JOB_CHECKS_PLANS) {
        result = check_own_plan(job, plan, err);
    }
    if (result) {
        skrull_plan_free(plan);
        return result;
    }
    if (planning_ns) {
        *planning_ns = end_ns - begin_ns;
    }
    *ret_plan = plan;
    return 0;
}

int job_plan(const struct job *job, uint64_t step, struct skrull_plan **ret_plan,
             int64_t *planning_ns, struct skrull_error *err)
{
    return job_plan_by(job, step, NULL, ret_plan, planning_ns, err);
}
