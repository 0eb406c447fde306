/*
 * Opening a job: its indexes are read in full (seconds for billions of rows: not for the loop
 * thread), over-long sequences are decided, the sampler and the cost models are made. Which rows
 * are kept and how long they count is decided once, by the limit of creation that the job's info
 * holds: a later revision shares the data, and is refused where it could not place the longest of
 * it.
 */
#include "job/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <skrull/planner.h>

#include "arena.h"
#include "ckd.h"
#include "cleanup.h"
#include "index/index.h"
#include "job/job_private.h"
#include "job/spec.h"
#include "job_fields.h"
#include "plan/planner.h"

#define MAX_SPEC_BYTES ((size_t)64 << 20)
#define MAX_BATCH 16777216 /* of a revision before: batch.global's in job_fields.def */

static int no_memory(const struct skrull_job *spec, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "job %s: out of memory",
                            spec->name);
}

/* --- one revision: what can be said without an index --- */

static int check_settings(struct job_revision *revision, struct skrull_error *err)
{
    const struct skrull_job *spec = revision->spec;
    struct skrull_planner_options options;
    struct skrull_cost_options cost;
    int result;

    job_planner_options(spec, &options);
    job_cost_options(spec, &cost);
    result = skrull_planner_check_options(&options, err);
    return result ? result : skrull_cost_model_new(&cost, &revision->cost, err);
}

static int revision_new(const struct skrull_job *spec, struct job_revision **ret_revision,
                        struct skrull_error *err)
{
    struct job_revision *revision = calloc(1, sizeof(*revision));
    int result;

    if (!revision) {
        return no_memory(spec, err);
    }
    atomic_init(&revision->n_refs, 1);
    revision->arena = arena_new(MAX_SPEC_BYTES);
    revision->spec = revision->arena ? spec_copy(revision->arena, spec) : NULL;
    result = revision->spec ? check_settings(revision, err) : no_memory(spec, err);
    if (result) {
        job_revision_unref(revision);
        return result;
    }
    if (spec->info.n_revisions) {
        revision->first_step = spec->info.revisions[spec->info.n_revisions - 1].first_step;
    }
    *ret_revision = revision;
    return 0;
}

/* Is the list of revisions one that revisions can have made, up to this one? */
static int check_revisions(const struct skrull_job *spec, struct skrull_error *err)
{
    const struct skrull_revision_info *list = spec->info.revisions;
    uint32_t n = spec->info.n_revisions, i;
    bool is_sound =
        n == 0 || (list[0].first_step == 0 && list[n - 1].global == spec->batch.global &&
                   list[n - 1].revision == spec->revision);

    for (i = 0; is_sound && i < n; i++) {
        is_sound = list[i].revision == i + 1 && list[i].global >= 1 &&
                   list[i].global <= MAX_BATCH &&
                   (i == 0 || list[i].first_step >= list[i - 1].first_step);
    }
    if (is_sound) {
        return 0;
    }
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "info.revisions: not those of revision %" PRIu32 " of job %s",
                            spec->revision, spec->name);
}

/* Do older revisions and the list of the newest say the same? */
static int check_chain(const struct skrull_job *const *specs, uint32_t n, struct skrull_error *err)
{
    const struct skrull_job *newest = specs[n - 1];
    bool is_sound = n == 1 || newest->info.n_revisions == n;

    for (uint32_t i = 0; is_sound && i + 1 < n; i++) {
        is_sound = specs[i]->revision == i + 1 &&
                   specs[i]->batch.global == newest->info.revisions[i].global &&
                   specs[i]->n_data == newest->n_data;
    }
    if (is_sound) {
        return 0;
    }
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "job %s: %" PRIu32 " revisions that do not follow from each other",
                            newest->name, n);
}

/* Takes over one more revision. */
static int add_revision(struct job *job, struct job_revision *revision, struct skrull_error *err)
{
    const size_t n = (size_t)job->n_revisions + 1;
    struct job_revision **revisions = realloc(job->revisions, n * sizeof(struct job_revision *));

    if (!revisions) {
        int result = no_memory(revision->spec, err);

        job_revision_unref(revision);
        return result;
    }
    job->revisions = revisions;
    job->revisions[job->n_revisions++] = revision;
    return 0;
}

/* The newest revision; its spec is still to be filled. */
static struct job_revision *newest_of(const struct job *job)
{
    return job->revisions[job->n_revisions - 1];
}

/* --- the data --- */

static int open_datasets(struct job *job, const struct job_roots *roots, struct skrull_error *err)
{
    const struct skrull_job *spec = job_spec(job);
    int result = 0;

    job->data = calloc(1, sizeof(*job->data));
    if (!job->data) {
        return no_memory(spec, err);
    }
    atomic_init(&job->data->n_refs, 1);
    job->data->n_datasets = spec->n_data;
    job->data->datasets = calloc(spec->n_data, sizeof(*job->data->datasets));
    if (!job->data->datasets) {
        return no_memory(spec, err);
    }
    for (uint32_t i = 0; result == 0 && i < spec->n_data; i++) {
        result = dataset_open(&spec->data[i], i, roots, &job->data->datasets[i], err);
    }
    return result;
}

/* Are these the indexes that the job was created with? */
static int check_indexes(const struct job *job, const struct skrull_job_info *info,
                         struct skrull_error *err)
{
    int result = 0;

    if (info->n_indexes && info->n_indexes != job->data->n_datasets) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "info.indexes: %" PRIu32 " entries for %" PRIu32 " data sets",
                                info->n_indexes, job->data->n_datasets);
    }
    for (uint32_t i = 0; result == 0 && i < info->n_indexes; i++) {
        result = dataset_check_info(&job->data->datasets[i], &info->indexes[i], err);
    }
    return result;
}

/* Decides over-length for all data sets, by the limit of creation. */
static int fit_datasets(struct job *job, struct skrull_error *err)
{
    const struct skrull_job *spec = job_spec(job);
    struct skrull_planner_options options;
    char where[128];
    int result = 0;

    job_planner_options(spec, &options);
    job->data->limit = spec->info.limit ? spec->info.limit : skrull_planner_longest(&options);
    if (job->data->limit == 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "batch.bucket_tokens: %" PRIu32 " holds no sequence at all with "
                                "batch.align %" PRIu32,
                                options.bucket_tokens, options.align);
    }
    (void)snprintf(where, sizeof(where),
                   "of bucket_tokens %" PRIu32 " with cp %" PRIu32 " and policy %.32s",
                   options.bucket_tokens, options.cp, options.policy);
    for (uint32_t i = 0; result == 0 && i < spec->n_data; i++) {
        result = dataset_fit(&job->data->datasets[i], spec->data[i].over_length, job->data->limit,
                             where, err);
    }
    return result;
}

/* Sums over the data sets, as the reply has them. */
static int sum_info(const struct job *job, struct skrull_job_info *ret_info,
                    struct skrull_error *err)
{
    struct skrull_job_info info = {.bucket_tokens = job_spec(job)->batch.bucket_tokens,
                                   .limit = job->data->limit};
    bool overflows = false;

    for (uint32_t i = 0; i < job->data->n_datasets; i++) {
        const struct dataset *dataset = &job->data->datasets[i];

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

/* --- steps --- */

/* Spans of batches: one a revision. NULL: out of memory. */
static struct sample_span *spans_of(const struct skrull_job *spec, uint32_t *ret_n)
{
    const uint32_t n = spec->info.n_revisions;
    struct sample_span *spans = calloc(n ? n : 1, sizeof(*spans));

    if (spans) {
        spans[0] = (struct sample_span){.batch = spec->batch.global};
        for (uint32_t i = 0; i < n; i++) {
            spans[i] = (struct sample_span){.first_step = spec->info.revisions[i].first_step,
                                            .batch = spec->info.revisions[i].global};
        }
        *ret_n = n ? n : 1;
    }
    return spans;
}

static int make_sampler(struct job *job, struct skrull_error *err)
{
    const struct skrull_job *spec = job_spec(job);
    uint32_t n_spans = 0;
    _cleanup_(cleanup_free) struct sample_span *spans = spans_of(spec, &n_spans);
    _cleanup_(cleanup_free) struct sample_rows *rows = calloc(spec->n_data, sizeof(*rows));
    struct sampler_options options = {
        .seed = spec->seed,
        .order = spec->order,
        .last_batch = spec->last_batch,
        .spans = spans,
        .n_spans = n_spans,
        .epochs = spec->epochs,
        .steps = spec->steps,
        .rows = rows,
        .n_datasets = spec->n_data,
    };
    uint64_t n_dropped = 0;
    int result;

    if (!rows || !spans) {
        return no_memory(spec, err);
    }
    for (uint32_t i = 0; i < spec->n_data; i++) {
        const struct dataset *dataset = &job->data->datasets[i];

        rows[i] = (struct sample_rows){
            .count = dataset->idx->count,
            .n_kept = dataset->n_kept,
            .kept = dataset->kept,
            .weight = spec->data[i].weight,
            .lengths = dataset->idx->lengths,
            .limit = dataset->limit,
        };
        n_dropped += dataset->n_dropped;
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

/* Can the batches of a revision be planned: the longest sequence placed, and the counts kept? */
static int check_batches(const struct job_revision *revision, const struct skrull_job_info *info,
                         struct skrull_error *err)
{
    const struct skrull_job *spec = revision->spec;
    const uint32_t batch = spec->batch.global;
    struct skrull_planner_options options;
    uint64_t longest;
    int result;

    job_planner_options(spec, &options);
    longest = skrull_planner_longest(&options);
    if (info->longest > longest) {
        return skrull_error_because(
            err, SKRULL_ERR_INVALID_ARGUMENT, SKRULL_REASON_OVER_LENGTH, longest,
            "batch.bucket_tokens: the longest sequence kept has %" PRIu64 " tokens, but %" PRIu32
            " with cp %" PRIu32 " and policy %.32s hold at most %" PRIu64
            ": choose a larger batch.bucket_tokens or parallel.cp, or create "
            "a new job",
            info->longest, options.bucket_tokens, options.cp, options.policy, longest);
    }
    result = planner_check_counts(&options, info->sequences < batch ? info->sequences : batch, err);
    return result ? result
                  : planner_check_load(revision->cost, batch, (uint32_t)info->longest, err);
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

/* Keeps what was found in the newest revision's own copy of its spec. */
static int keep_info(struct job *job, const struct skrull_job_info *found, struct skrull_error *err)
{
    struct job_revision *revision = newest_of(job);
    struct skrull_job *spec = revision->spec;
    struct skrull_index_info *indexes =
        ARENA_ARRAY(revision->arena, struct skrull_index_info, spec->n_data);
    struct skrull_job_info info = *found;

    if (!indexes) {
        return no_memory(spec, err);
    }
    for (uint32_t i = 0; i < spec->n_data; i++) {
        const struct dataset *dataset = &job->data->datasets[i];

        indexes[i] = (struct skrull_index_info){
            .count = dataset->idx->count,
            .tokens = dataset->idx->tokens,
            .payload_hash = dataset->payload_hash,
        };
    }
    info.indexes = indexes;
    info.n_indexes = spec->n_data;
    info.revisions = spec->info.revisions;
    info.n_revisions = spec->info.n_revisions;
    spec->info = info;
    return 0;
}

/* What follows once revisions and data are there. */
static int finish(struct job *job, struct skrull_error *err)
{
    const struct skrull_job *spec = job_spec(job);
    struct skrull_job_info found = {0};
    int result = sum_info(job, &found, err);

    if (result == 0) {
        result = make_sampler(job, err);
    }
    for (uint32_t i = job->n_revisions; result == 0 && i > 0; i--) {
        result = check_batches(job->revisions[i - 1], &found, err);
    }
    if (result == 0) {
        found.steps = sampler_steps(job->sampler);
    }
    if (result == 0 && spec->info.steps) {
        result = check_info(&spec->info, &found, err);
    }
    return result ? result : keep_info(job, &found, err);
}

static int open_parts(struct job *job, const struct skrull_job *const *specs, uint32_t n,
                      const struct job_roots *roots, struct skrull_error *err)
{
    struct job_revision *revision;
    int result = 0;

    for (uint32_t i = 0; result == 0 && i < n; i++) {
        result = check_revisions(specs[i], err);
    }
    if (result == 0) {
        result = check_chain(specs, n, err);
    }
    for (uint32_t i = 0; result == 0 && i < n; i++) {
        result = revision_new(specs[i], &revision, err);
        if (result == 0) {
            result = add_revision(job, revision, err);
        }
    }
    if (result == 0) {
        result = open_datasets(job, roots, err);
    }
    if (result == 0) {
        result = check_indexes(job, &job_spec(job)->info, err);
    }
    if (result == 0) {
        result = fit_datasets(job, err);
    }
    return result ? result : finish(job, err);
}

int job_open_all(const struct skrull_job *const *specs, uint32_t n, const struct job_roots *roots,
                 struct job **ret_job, struct skrull_error *err)
{
    struct job *job = calloc(1, sizeof(*job));
    int result;

    if (!job) {
        return no_memory(specs[0], err);
    }
    atomic_init(&job->n_refs, 1);
    result = open_parts(job, specs, n, roots, err);
    if (result) {
        job_unref(job);
        return result;
    }
    *ret_job = job;
    return 0;
}

int job_open(const struct skrull_job *spec, const struct job_roots *roots, struct job **ret_job,
             struct skrull_error *err)
{
    return job_open_all(&spec, 1, roots, ret_job, err);
}

static int revise_parts(const struct job *old, const struct skrull_job *spec, struct job *job,
                        struct skrull_error *err)
{
    struct job_revision *revision;
    int result = check_revisions(spec, err);

    for (uint32_t i = 0; result == 0 && i < old->n_revisions; i++) {
        revision = old->revisions[i];
        (void)atomic_fetch_add_explicit(&revision->n_refs, 1, memory_order_relaxed);
        result = add_revision(job, revision, err);
    }
    if (result == 0) {
        result = revision_new(spec, &revision, err);
    }
    if (result == 0) {
        result = add_revision(job, revision, err);
    }
    if (result) {
        return result;
    }
    (void)atomic_fetch_add_explicit(&old->data->n_refs, 1, memory_order_relaxed);
    job->data = old->data;
    result = job_check_unchanged(job, err); /* sorting reads the lengths */
    return result ? result : finish(job, err);
}

int job_revise(const struct job *old, const struct skrull_job *spec, struct job **ret_job,
               struct skrull_error *err)
{
    struct job *job = calloc(1, sizeof(*job));
    int result;

    if (!job) {
        return no_memory(spec, err);
    }
    atomic_init(&job->n_refs, 1);
    result = revise_parts(old, spec, job, err);
    if (result) {
        job_unref(job);
        return result;
    }
    *ret_job = job;
    return 0;
}
