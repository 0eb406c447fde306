/* Measures policies and sums them up: means, nearest-rank quantiles, ratios of means; the gap is a
 * mean of ratios. */
#include "comparison.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckd.h"
#include "job/job.h"

/* The plan's time and bound: its own, or with the barrier anew. */
static int time_plan(const struct job *job, const struct comparison_options *options,
                     const struct skrull_cost_model *model, struct skrull_plan *plan,
                     struct skrull_error *err)
{
    struct skrull_planner_options planner;

    if (!options->is_barrier) {
        return 0;
    }
    job_planner_options(job_spec(job), &planner);
    return skrull_planner_evaluate(&planner, model, true, plan, err);
}

static int measure_steps(const struct job *job, const struct comparison_options *options,
                         const struct skrull_cost_model *model, struct comparison_times *times,
                         struct skrull_error *err)
{
    for (uint64_t step = 0; step < options->n_steps; step++) {
        struct skrull_plan *plan;
        int r = job_plan_by(job, step, times->policy, &plan, &times->planning_ns[step], err);

        if (r < 0) {
            return r;
        }
        r = time_plan(job, options, model, plan, err);
        times->iteration_ns[step] = plan->estimate.iteration_ns;
        times->bound_ns[step] = plan->estimate.bound_ns;
        skrull_plan_free(plan);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int comparison_measure(const struct job *job, const struct comparison_options *options,
                       const char *policy, struct comparison_times *ret_times,
                       struct skrull_error *err)
{
    const struct skrull_job *spec = job_spec(job);
    struct skrull_cost_options cost;
    struct skrull_cost_model *model;
    struct skrull_error why;
    int r;

    *ret_times = (struct comparison_times){
        .policy = policy,
        .iteration_ns = calloc(options->n_steps, sizeof(int64_t)),
        .bound_ns = calloc(options->n_steps, sizeof(int64_t)),
        .planning_ns = calloc(options->n_steps, sizeof(int64_t)),
    };
    if (!ret_times->iteration_ns || !ret_times->bound_ns || !ret_times->planning_ns) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "out of memory for %" PRIu64 " steps", options->n_steps);
    }
    job_cost_options(spec, &cost);
    r = skrull_cost_model_new(&cost, &model, err);
    if (r < 0) {
        return r;
    }
    r = measure_steps(job, options, model, ret_times, &why);
    skrull_cost_model_free(model);
    if (r == SKRULL_ERR_INVALID_ARGUMENT) {
        memcpy(ret_times->refused, why.message, sizeof(ret_times->refused));
        return 0;
    }
    if (r < 0 && err) {
        *err = why;
    }
    return r;
}

void comparison_times_deinit(struct comparison_times *times)
{
    free(times->iteration_ns);
    free(times->bound_ns);
    free(times->planning_ns);
    times->iteration_ns = times->bound_ns = times->planning_ns = NULL;
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* The nearest-rank quantile of sorted times: the smallest that `percent` of them do not exceed. */
static int64_t quantile(const int64_t *sorted, uint64_t n, uint64_t percent)
{
    uint64_t rank = (n * percent + 99) / 100;

    return sorted[rank ? rank - 1 : 0];
}

static int64_t mean(const int64_t *times, uint64_t n)
{
    int64_t sum = 0;

    for (uint64_t i = 0; i < n; i++) {
        if (ckd_add(&sum, sum, times[i])) {
            return INT64_MAX;
        }
    }
    return sum / (int64_t)n;
}

/* How many times `b` goes into `a`; 0 where that says nothing. */
static double ratio(int64_t a, int64_t b)
{
    return a > 0 && b > 0 ? (double)a / (double)b : 0.0;
}

/* How far the steps lie above their bounds: the mean over the steps, in which a short one counts as
 * much as a long one. */
static double mean_gap(const struct comparison_times *times, uint64_t n_steps)
{
    double sum = 0.0;

    for (uint64_t i = 0; i < n_steps; i++) {
        sum += ratio(times->iteration_ns[i] - times->bound_ns[i], times->bound_ns[i]);
    }
    return sum / (double)n_steps;
}

void comparison_row(struct comparison_times *times, const struct comparison_times *uniform,
                    uint64_t n_steps, int64_t step_ns, struct codec_text_comparison_row *ret_row)
{
    struct codec_text_comparison_row row = {.policy = times->policy, .refused = times->refused};

    if (!times->refused[0]) {
        int64_t mean_ns = mean(times->iteration_ns, n_steps);
        int64_t uniform_ns = uniform->refused[0] ? 0 : mean(uniform->iteration_ns, n_steps);

        row.gap = mean_gap(times, n_steps);
        qsort(times->iteration_ns, n_steps, sizeof(int64_t), compare_times);
        qsort(times->planning_ns, n_steps, sizeof(int64_t), compare_times);
        row.mean_ns = mean_ns;
        row.p50_ns = quantile(times->iteration_ns, n_steps, 50);
        row.p95_ns = quantile(times->iteration_ns, n_steps, 95);
        row.planning_ns = quantile(times->planning_ns, n_steps, 50);
        row.speedup = ratio(uniform_ns, mean_ns);
        row.speedup_with_step = uniform_ns ? ratio(uniform_ns + step_ns, mean_ns + step_ns) : 0.0;
    }
    *ret_row = row;
}
