/*
 * Defaults and rules of a whole job: first each field by the table, then what ties fields together.
 * Every message begins with the path of the field to change, so that the file reader can add its
 * line. Pure functions of the job.
 */
#include "job_fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ckd.h"
#include "text.h"

#define MAX_DATA_RANKS 65536U
#define MAX_RANKS INT32_MAX /* trainers number them in an int */
#define MAX_SEARCH_STEPS 1000000000U

static int missing(const char *path, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "%s: is required", path);
}

static int complete_number(const struct job_field *field, void *base, const char *path,
                           struct skrull_error *err)
{
    if (job_field_number(field, base) == 0) {
        if (field->is_required) {
            return missing(path, err);
        }
        job_field_set_number(field, base, field->number);
        return 0;
    }
    return job_field_check_number(field, path, job_field_number(field, base), err);
}

static int complete_text(const struct job_field *field, void *base, const char *path,
                         struct skrull_error *err)
{
    const char *text = job_field_text(field, base);

    if (!text || !*text) {
        if (field->is_required) {
            return missing(path, err);
        }
        job_field_set_text(field, base, field->text);
        return 0;
    }
    return job_field_check_text(field, path, text, err);
}

/* All fields of the job, or of one data set; `prefix` stands before the path in messages. */
static int complete_fields(const struct job_field *fields, void *base, const char *prefix,
                           struct skrull_error *err)
{
    char path[JOB_PATH_SIZE];
    int rc = 0;

    for (const struct job_field *field = fields; field->path && !rc; field++) {
        (void)snprintf(path, sizeof(path), "%s%s", prefix, field->path);
        switch (field->kind) {
        case JOB_FIELD_U32:
        case JOB_FIELD_U64:
        case JOB_FIELD_WORD:
            rc = complete_number(field, base, path, err);
            break;
        case JOB_FIELD_DOUBLE:
            rc = job_field_check_double(field, path, job_field_double(field, base), err);
            break;
        case JOB_FIELD_TEXT:
            rc = complete_text(field, base, path, err);
            break;
        }
    }
    return rc;
}

static int complete_data(struct skrull_job *job, struct skrull_error *err)
{
    char prefix[JOB_PATH_SIZE];
    int rc = 0;

    if (job->n_data == 0) {
        return missing("data", err);
    }
    if (job->n_data > JOB_MAX_DATA) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "data: %" PRIu32 " data sets are too many, at most %d are allowed",
                                job->n_data, JOB_MAX_DATA);
    }
    for (uint32_t i = 0; i < job->n_data && !rc; i++) {
        (void)snprintf(prefix, sizeof(prefix), "data[%" PRIu32 "].", i);
        rc = complete_fields(job_data_fields, &job->data[i], prefix, err);
    }
    return rc;
}

static int check_name(const struct skrull_job *job, struct skrull_error *err)
{
    const size_t len = strlen(job->name);
    char clip[TEXT_CLIP_SIZE];

    if (strspn(job->name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len && job->name[0] != '-' &&
        job->name[len - 1] != '-') {
        return 0;
    }
    return skrull_error_set(
        err, SKRULL_ERR_INVALID_ARGUMENT,
        "name: %s is not a name: 1 to 63 of a-z, 0-9 and -, the first and the last "
        "not -, are allowed",
        text_clip(job->name, clip));
}

/* A permutation of the five dimensions; the length was checked against the longest, which all have.
 */
static bool is_dimension_order(const char *order)
{
    static const char dims[][3] = {"tp", "cp", "ep", "dp", "pp"};
    const size_t n_dims = sizeof(dims) / sizeof(dims[0]);
    unsigned seen = 0;

    if (strlen(order) != n_dims * 3 - 1) {
        return false;
    }
    for (size_t place = 0; place < n_dims; place++) {
        const char *dim = order + place * 3;

        for (size_t i = 0; i < n_dims; i++) {
            if (strncmp(dim, dims[i], 2) == 0) {
                seen |= 1U << i;
            }
        }
        if (place + 1 < n_dims && dim[2] != '-') {
            return false;
        }
    }
    return seen == (1U << n_dims) - 1;
}

static int check_model(const struct skrull_job *job, struct skrull_error *err)
{
    if (!job->model.preset && !job->model.config) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "model.preset: is required (or model.config)");
    }
    if (job->model.preset && job->model.config) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "model.config: model.preset is given too, only one is allowed");
    }
    return 0;
}

static int check_grid(const struct skrull_job *job, struct skrull_error *err)
{
    const uint64_t data_ranks = (uint64_t)job->parallel.dp * job->parallel.cp;
    char clip[TEXT_CLIP_SIZE];
    uint64_t ranks;

    if (data_ranks > MAX_DATA_RANKS) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "parallel.dp: dp x cp is %" PRIu64 ", at most %u are allowed",
                                data_ranks, MAX_DATA_RANKS);
    }
    if (ckd_mul(&ranks, data_ranks, job->parallel.tp) || ckd_mul(&ranks, ranks, job->parallel.pp) ||
        ranks > MAX_RANKS) {
        return skrull_error_set(
            err, SKRULL_ERR_INVALID_ARGUMENT,
            "parallel.tp: dp x cp x tp x pp is too large, at most %d are allowed", MAX_RANKS);
    }
    if (job->parallel.min_degree > data_ranks) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "parallel.min_degree: %" PRIu32 " is more than dp x cp = %" PRIu64,
                                job->parallel.min_degree, data_ranks);
    }
    if (job->parallel.max_degree && job->parallel.max_degree < job->parallel.min_degree) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "parallel.max_degree: %" PRIu32
                                " is less than min_degree = %" PRIu32
                                ", 0 (no limit) or more are allowed",
                                job->parallel.max_degree, job->parallel.min_degree);
    }
    if (!is_dimension_order(job->parallel.order)) {
        return skrull_error_set(
            err, SKRULL_ERR_INVALID_ARGUMENT,
            "parallel.order: %s is not an order of tp, cp, ep, dp and pp, joined "
            "by - (tp-cp-ep-dp-pp)",
            text_clip(job->parallel.order, clip));
    }
    return 0;
}

/* The smallest slot of a sequence must fit: one align, or two chunks of it. */
static int check_bucket(const struct skrull_job *job, struct skrull_error *err)
{
    const bool is_cut_in_two = job->batch.shard == SKRULL_SHARD_ZIGZAG && job->parallel.cp > 1;
    const uint32_t least = job->batch.align * (is_cut_in_two ? 2 : 1);

    if (job->batch.bucket_tokens >= least) {
        return 0;
    }
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "batch.bucket_tokens: %" PRIu32 " is less than %s = %" PRIu32
                            ", the least%s",
                            job->batch.bucket_tokens, is_cut_in_two ? "2 x align" : "align", least,
                            is_cut_in_two ? " with shard zigzag and cp > 1" : "");
}

/* A mixture is one by all its data sets, and has no epochs to count. */
static int check_weights(const struct skrull_job *job, struct skrull_error *err)
{
    const bool is_mixture = job->data[0].weight > 0;

    for (uint32_t i = 1; i < job->n_data; i++) {
        if ((job->data[i].weight > 0) != is_mixture) {
            const uint32_t without = is_mixture ? i : 0, with = is_mixture ? 0 : i;

            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "data[%" PRIu32 "].weight: is missing or 0, data[%" PRIu32
                                    "] has one: all data sets have a weight, or none has",
                                    without, with);
        }
    }
    if (is_mixture && job->epochs) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "epochs: a mixture (data[0].weight) has none, give steps");
    }
    if (is_mixture && !job->steps) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "steps: is required for a mixture (data[0].weight)");
    }
    return 0;
}

/* What can be said of counts before there is a batch; the planner says it again of its options. */
static int check_counts(const struct skrull_job *job, struct skrull_error *err)
{
    const uint32_t exact = job->batch.micro_batches, multiple = job->batch.micro_batch_multiple;
    const bool is_auto = job->batch.equal_micro_batches == SKRULL_EQUAL_AUTO;

    if (!job_is_equal_micro_batches(job) && (multiple > 1 || job->batch.micro_batch_min > 1)) {
        return skrull_error_set(
            err, SKRULL_ERR_INVALID_ARGUMENT,
            "batch.%s: %" PRIu32
            " needs equal counts, batch.equal_micro_batches is %s: set that to "
            "true, or this to 1",
            multiple > 1 ? "micro_batch_multiple" : "micro_batch_min",
            multiple > 1 ? multiple : job->batch.micro_batch_min,
            is_auto ? "auto, which is false by training.zero_stage and parallel.pp" : "false");
    }
    if (exact % multiple != 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "batch.micro_batches: %" PRIu32
                                " is no multiple of batch.micro_batch_multiple = %" PRIu32,
                                exact, multiple);
    }
    if (exact > 0 && exact < job->batch.micro_batch_min) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "batch.micro_batches: %" PRIu32
                                " is less than batch.micro_batch_min = %" PRIu32,
                                exact, job->batch.micro_batch_min);
    }
    return 0;
}

static int complete_length(struct skrull_job *job, struct skrull_error *err)
{
    if (job->epochs && job->steps) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "steps: epochs is given too, only one of both is allowed");
    }
    if (!job->epochs && !job->steps) {
        job->epochs = 1;
    }
    return 0;
}

static int check_effort(const struct skrull_job *job, struct skrull_error *err)
{
    static const struct job_field search_steps = {
        .path = "effort", .kind = JOB_FIELD_U64, .min = 1, .max = MAX_SEARCH_STEPS};
    const char *effort = job->effort;
    char clip[TEXT_CLIP_SIZE];
    uint64_t steps;

    if (strcmp(effort, "low") == 0 || strcmp(effort, "default") == 0 ||
        strcmp(effort, "high") == 0 ||
        job_field_parse_number(&search_steps, "effort", effort, &steps, NULL) == 0) {
        return 0;
    }
    return skrull_error_set(
        err, SKRULL_ERR_INVALID_ARGUMENT,
        "effort: %s is unknown, allowed: low, default, high or a number of search "
        "steps, 1 to %u",
        text_clip(effort, clip), MAX_SEARCH_STEPS);
}

int job_complete(struct skrull_job *job, struct skrull_error *err)
{
    int rc = complete_fields(job_fields, job, "", err);

    if (!rc) {
        rc = complete_data(job, err);
    }
    if (!rc) {
        rc = check_name(job, err);
    }
    if (!rc) {
        rc = check_model(job, err);
    }
    if (!rc) {
        rc = check_grid(job, err);
    }
    if (!rc) {
        rc = check_bucket(job, err);
    }
    if (!rc) {
        rc = check_weights(job, err);
    }
    if (!rc) {
        rc = check_counts(job, err);
    }
    if (!rc) {
        rc = complete_length(job, err);
    }
    if (!rc) {
        rc = check_effort(job, err);
    }
    return rc;
}

bool job_is_equal_micro_batches(const struct skrull_job *job)
{
    if (job->batch.micro_batches > 0) {
        return true;
    }
    if (job->batch.equal_micro_batches != SKRULL_EQUAL_AUTO) {
        return job->batch.equal_micro_batches == SKRULL_EQUAL_TRUE;
    }
    return job->training.zero_stage > SKRULL_ZERO_STAGE_1 || job->parallel.pp > 1;
}
