/*
 * Opening a job and planning its steps. Opening reads every index in full (seconds for billions of
 * rows: not for the loop thread); a plan then costs a look at each file's identity, the sampler's
 * permutation and the planner. All of an opened job is constant but its reference count, so any
 * thread may plan.
 */
#include "job/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skrull/planner.h>

#include "arena.h"
#include "base/clock.h"
#include "ckd.h"
#include "cleanup.h"
#include "index/index.h"
#include "job/job_private.h"
#include "job/spec.h"
#include "job_fields.h"
#include "plan/planner.h"
#include "plan_check.h"
#include "sample/sample.h"

#define MAX_SPEC_BYTES ((size_t)64 << 20)

struct job *job_ref(struct job *job)
{
    (void)atomic_fetch_add_explicit(&job->n_refs, 1, memory_order_relaxed);
    return job;
}

static void close_job(struct job *job)
{
    uint32_t i;

    for (i = 0; job->datasets && i < job->spec->n_data; i++) {
        dataset_close(&job->datasets[i]);
    }
    free(job->datasets);
    sampler_free(job->sampler);
    skrull_cost_model_free(job->cost);
    arena_free(job->arena);
    free(job);
}

void job_unref(struct job *job)
{
    if (job && atomic_fetch_sub_explicit(&job->n_refs, 1, memory_order_acq_rel) == 1) {
        close_job(job);
    }
}

const struct skrull_job *job_spec(const struct job *job)
{
    return job->spec;
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
    };
}

static int no_memory(const struct skrull_job *spec, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "job %s: out of memory",
                            spec->name);
}

static int open_datasets(struct job *job, const struct job_roots *roots, struct skrull_error *err)
{
    const struct skrull_job *spec = job->spec;
    int result = 0;
    uint32_t i;

    job->datasets = calloc(spec->n_data, sizeof(*job->datasets));
    if (!job->datasets) {
        return no_memory(spec, err);
    }
    for (i = 0; result == 0 && i < spec->n_data; i++) {
        result = dataset_open(&spec->data[i], i, roots, &job->datasets[i], err);
    }
    return result;
}

/* Are these the indexes that the job was created with? */
static int check_indexes(const struct job *job, const struct skrull_job_info *info,
                         struct skrull_error *err)
{
    int result = 0;
    uint32_t i;

    if (info->n_indexes && info->n_indexes != job->spec->n_data) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "info.indexes: %" PRIu32 " entries for %" PRIu32 " data sets",
                                info->n_indexes, job->spec->n_data);
    }
    for (i = 0; result == 0 && i < info->n_indexes; i++) {
        result = dataset_check_info(&job->datasets[i], &info->indexes[i], err);
    }
    return result;
}

/* Decides over-length for all data sets. */
static int fit_datasets(struct job *job, struct skrull_error *err)
{
    const struct skrull_job *spec = job->spec;
    struct skrull_planner_options options;
    char where[128];
    uint64_t limit;
    int result = 0;
    uint32_t i;

    job_planner_options(spec, &options);
    limit = skrull_planner_longest(&options);
    if (limit == 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "batch.bucket_tokens: %" PRIu32 " holds no sequence at all with "
                                "batch.align %" PRIu32,
                                options.bucket_tokens, options.align);
    }
    (void)snprintf(where, sizeof(where),
                   "of bucket_tokens %" PRIu32 " with cp %" PRIu32 " and policy %.32s",
                   options.bucket_tokens, options.cp, options.policy);
    for (i = 0; result == 0 && i < spec->n_data; i++) {
        result = dataset_fit(&job->datasets[i], spec->data[i].over_length, limit, where, err);
    }
    return result;
}

static int make_sampler(struct job *job, struct skrull_error *err)
{
    const struct skrull_job *spec = job->spec;
    _cleanup_(cleanup_free) struct sample_rows *rows = calloc(spec->n_data, sizeof(*rows));
    const struct sample_span span = {.batch = spec->batch.global};
    struct sampler_options options = {
        .seed = spec->seed,
        .order = spec->order,
        .last_batch = spec->last_batch,
        .spans = &span,
        .n_spans = 1,
        .epochs = spec->epochs,
        .steps = spec->steps,
        .rows = rows,
        .n_datasets = spec->n_data,
    };
    uint64_t n_dropped = 0;
    uint32_t i;
    int result;

    if (!rows) {
        return no_memory(spec, err);
    }
    for (i = 0; i < spec->n_data; i++) {
        rows[i] = (struct sample_rows){
            .count = job->datasets[i].idx->count,
            .n_kept = job->datasets[i].n_kept,
            .kept = job->datasets[i].kept,
            .weight = spec->data[i].weight,
            .lengths = job->datasets[i].idx->lengths,
            .limit = job->datasets[i].limit,
        };
        n_dropped += job->datasets[i].n_dropped;
    }
    result = sampler_new(&options, &job->sampler, err);
    if (result && n_dropped) {
        (void)skrull_error_prefix(err, result, "%" PRIu64 " over-long sequences were dropped",
                                  n_dropped);
    }
    if (result == 0 && sampler_samples(job->sampler) > INT64_MAX) {
        result = skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                  "%s: the job would have more than 2^63 - 1 samples",
                                  spec->steps ? "steps" : "epochs");
    }
    return result;
}

/* What can be refused without reading an index. */
static int check_settings(struct job *job, struct skrull_error *err)
{
    const struct skrull_job *spec = job->spec;
    struct skrull_cost_options cost = {
        .preset = spec->model.preset,
        .profile = spec->hardware.profile,
        .flops = spec->model.flops,
    };
    struct skrull_planner_options options;
    int result;

    job_planner_options(spec, &options);
    result = skrull_planner_check_options(&options, err);
    return result ? result : skrull_cost_model_new(&cost, &job->cost, err);
}

/* A count that no batch can keep, full ones at the latest. */
static int check_counts(const struct job *job, uint64_t n_sequences, struct skrull_error *err)
{
    const uint32_t batch = job->spec->batch.global;
    struct skrull_planner_options options;

    job_planner_options(job->spec, &options);
    return planner_check_counts(&options, n_sequences < batch ? n_sequences : batch, err);
}

/* Sums over the data sets, as the reply has them. */
static int sum_info(const struct job *job, struct skrull_job_info *ret_info,
                    struct skrull_error *err)
{
    struct skrull_job_info info = {.bucket_tokens = job->spec->batch.bucket_tokens};
    const struct dataset *dataset;
    bool overflows = false;
    uint32_t i;

    for (i = 0; i < job->spec->n_data; i++) {
        dataset = &job->datasets[i];
        overflows |= ckd_add(&info.sequences, info.sequences, dataset->n_kept);
        overflows |= ckd_add(&info.tokens, info.tokens, dataset->tokens);
        overflows |= ckd_add(&info.dropped, info.dropped, dataset->n_dropped);
        overflows |= ckd_add(&info.truncated, info.truncated, dataset->n_truncated);
        info.longest = dataset->longest > info.longest ? dataset->longest : info.longest;
    }
    if (overflows || info.tokens > INT64_MAX) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "data: an epoch has more than 2^63 - 1 tokens");
    }
    *ret_info = info;
    return 0;
}

/* The decisions that were made at creation must come out again: steps and samples are counted by
 * them. */
static int check_info(const struct skrull_job_info *created, const struct skrull_job_info *found,
                      struct skrull_error *err)
{
    const struct {
        const char *what;
        uint64_t created, found;
    } facts[] = {
        {"sequences", created->sequences, found->sequences},
        {"dropped", created->dropped, found->dropped},
        {"truncated", created->truncated, found->truncated},
        {"steps", created->steps, found->steps},
        {"longest", created->longest, found->longest},
        {"bucket_tokens", created->bucket_tokens, found->bucket_tokens},
    };
    size_t i;

    for (i = 0; i < sizeof(facts) / sizeof(*facts); i++) {
        if (facts[i].created != facts[i].found) {
            return skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                                    "info.%s: the job was created with %" PRIu64
                                    ", its index and settings give %" PRIu64
                                    ": create a new job, or run the skrulld that created it",
                                    facts[i].what, facts[i].created, facts[i].found);
        }
    }
    return 0;
}

/* Keeps what was found in the job's own copy of its spec. */
static int keep_info(struct job *job, const struct skrull_job_info *found, struct skrull_error *err)
{
    struct skrull_job *spec = job->spec;
    struct skrull_index_info *indexes =
        ARENA_ARRAY(job->arena, struct skrull_index_info, spec->n_data);
    uint32_t i;

    if (!indexes) {
        return no_memory(spec, err);
    }
    for (i = 0; i < spec->n_data; i++) {
        indexes[i] = (struct skrull_index_info){
            .count = job->datasets[i].idx->count,
            .tokens = job->datasets[i].idx->tokens,
            .payload_hash = job->datasets[i].payload_hash,
        };
    }
    spec->info = *found;
    spec->info.indexes = indexes;
    spec->info.n_indexes = spec->n_data;
    return 0;
}

/* The steps of opening, in the order of the data. */
static int open_parts(struct job *job, const struct job_roots *roots, struct skrull_error *err)
{
    struct skrull_job_info found = {0};
    int result = check_settings(job, err);

    if (result == 0) {
        result = open_datasets(job, roots, err);
    }
    if (result == 0) {
        result = check_indexes(job, &job->spec->info, err);
    }
    if (result == 0) {
        result = fit_datasets(job, err);
    }
    if (result == 0) {
        result = sum_info(job, &found, err);
    }
    if (result == 0) {
        result = make_sampler(job, err);
    }
    if (result == 0) {
        result = check_counts(job, found.sequences, err);
    }
    if (result == 0) {
        found.steps = sampler_steps(job->sampler);
        result =
            planner_check_load(job->cost, job->spec->batch.global, (uint32_t)found.longest, err);
    }
    if (result == 0 && job->spec->info.steps) {
        result = check_info(&job->spec->info, &found, err);
    }
    return result ? result : keep_info(job, &found, err);
}

int job_open(const struct skrull_job *spec, const struct job_roots *roots, struct job **ret_job,
             struct skrull_error *err)
{
    struct job *job = calloc(1, sizeof(*job));
    int result;

    if (!job) {
        return no_memory(spec, err);
    }
    atomic_init(&job->n_refs, 1);
    job->arena = arena_new(MAX_SPEC_BYTES);
    job->spec = job->arena ? spec_copy(job->arena, spec) : NULL;
    result = job->spec ? open_parts(job, roots, err) : no_memory(spec, err);
    if (result) {
        job_unref(job);
        return result;
    }
    *ret_job = job;
    return 0;
}

int job_check_unchanged(const struct job *job, struct skrull_error *err)
{
    int result = 0;
    uint32_t i;

    for (i = 0; result == 0 && i < job->spec->n_data; i++) {
        result = dataset_check_unchanged(&job->datasets[i], err);
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
    int result = rows && sequences ? job_check_unchanged(job, err) : no_memory(job->spec, err);

    if (result == 0) {
        result = sampler_step(job->sampler, step, rows, &batch, err);
    }
    for (i = 0; result == 0 && i < batch.n_rows; i++) {
        dataset = &job->datasets[rows[i].dataset];
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
                                plan->policy, plan->step, job->spec->name, fault.message);
    }
    return result;
}

int job_plan_by(const struct job *job, uint64_t step, const char *policy,
                struct skrull_plan **ret_plan, int64_t *planning_ns, struct skrull_error *err)
{
    const struct skrull_job *spec = job->spec;
    _cleanup_(cleanup_free) struct skrull_sequence *sequences = NULL;
    struct skrull_planner_input input = {
        .cost = job->cost,
        .step = step,
        .job = spec->name,
        .uid = spec->uid,
        .revision = spec->revision,
    };
    struct skrull_plan *plan = NULL;
    struct sample_batch batch;
    int64_t begin_ns, end_ns;
    int result = job_batch(job, step, &sequences, &batch, err);

    if (result) {
        return result;
    }
    input.sequences = sequences;
    input.n_sequences = batch.n_rows;
    input.epoch = batch.epoch;
    job_planner_options(spec, &input.options);
    input.options.policy = policy;
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
    return job_plan_by(job, step, job->spec->policy, ret_plan, planning_ns, err);
}
