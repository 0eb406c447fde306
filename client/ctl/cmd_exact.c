/*
 * exact: the optimum of a small batch, as a reference for what policies do with it. Made in this
 * process; how long it may take is a limit, and what it reached by then is said.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <skrull/planner.h>

#include "cmd.h"
#include "ctl.h"
#include "job/job.h"
#include "plan/exact/exact.h"
#include "plan_print.h"
#include "plan_source.h"

#define DEFAULT_SECONDS 60
#define MAX_SECONDS 86400

static int compare_samples(const void *left, const void *right)
{
    const struct skrull_sequence *a = left, *b = right;

    return a->sample < b->sample ? -1 : a->sample > b->sample;
}

/* The sequences of a plan, each once, by sample; *ret_n of them, owned. NULL: out of memory. */
static struct skrull_sequence *collect_sequences(const struct skrull_plan *plan, size_t *ret_n)
{
    struct skrull_sequence *sequences = calloc(plan->n_segments + 1, sizeof(*sequences));
    size_t n = 0;

    if (!sequences) {
        return NULL;
    }
    for (size_t i = 0; i < plan->n_segments; i++) {
        const struct skrull_segment *segment = &plan->segments[i];

        sequences[i] = (struct skrull_sequence){.sample = segment->sample,
                                                .index = segment->index,
                                                .dataset = segment->dataset,
                                                .length = segment->sequence_length};
    }
    qsort(sequences, plan->n_segments, sizeof(*sequences), compare_samples);
    for (size_t i = 0; i < plan->n_segments; i++) {
        if (n == 0 || sequences[i].sample != sequences[n - 1].sample) {
            sequences[n++] = sequences[i];
        }
    }
    *ret_n = n;
    return sequences;
}

static int solve(const struct job *job, uint64_t step, double seconds,
                 const struct skrull_plan *plan, struct exact_result *ret_result,
                 struct skrull_error *err)
{
    const struct skrull_job *spec = job_spec_at(job, step);
    struct skrull_cost_options options;
    struct skrull_planner_input input = {.step = step};
    struct skrull_sequence *sequences = collect_sequences(plan, &input.n_sequences);
    struct skrull_cost_model *cost = NULL;
    int r;

    job_cost_options(spec, &options);
    r = sequences ? skrull_cost_model_new(&options, &cost, err)
                  : skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    if (r == 0) {
        job_planner_options(spec, &input.options);
        input.cost = cost;
        input.sequences = sequences;
        r = exact_solve(&input, seconds, ret_result, err);
        skrull_cost_model_free(cost);
    }
    free(sequences);
    return r;
}

static void print_result(const struct ctl *ctl, const struct exact_result *result)
{
    const char *proved = result->is_proved ? "yes" : "no";
    char best[PLAN_MS_SIZE], joint[PLAN_MS_SIZE], bound[PLAN_MS_SIZE];

    if (ctl->format == CTL_JSON) {
        (void)printf("{\"bestNs\": \"%" PRId64 "\", \"proved\": %s, \"jointNs\": \"%" PRId64
                     "\", \"boundNs\": \"%" PRId64 "\", \"programs\": %" PRIu32
                     ", \"columns\": %" PRIu32 "}\n",
                     result->best_ns, result->is_proved ? "true" : "false", result->joint_ns,
                     result->bound_ns, result->n_programs, result->n_columns);
        return;
    }
    if (ctl->format == CTL_CSV) {
        (void)printf("best_ns,proved,joint_ns,bound_ns\n%" PRId64 ",%s,%" PRId64 ",%" PRId64 "\n",
                     result->best_ns, proved, result->joint_ns, result->bound_ns);
        return;
    }
    (void)plan_ms(result->best_ns, best);
    (void)plan_ms(result->joint_ns, joint);
    (void)plan_ms(result->bound_ns, bound);
    (void)printf("best %s ms  proved %s  joint at high effort %s ms  bound %s ms\n", best, proved,
                 joint, bound);
}

int cmd_exact(struct ctl *ctl)
{
    struct exact_result result;
    struct skrull_plan *plan;
    struct skrull_error err;
    struct job *job;
    uint64_t step, seconds = DEFAULT_SECONDS;
    int status = ctl_number(ctl, "--step", UINT64_MAX, 0, &step), r;

    if (status == CTL_DONE) {
        status = ctl_number(ctl, "--seconds", MAX_SECONDS, DEFAULT_SECONDS, &seconds);
    }
    if (status == CTL_DONE) {
        status = plan_source_open_job(ctl, ctl_text(ctl, "-f"), &job);
    }
    if (status != CTL_DONE) {
        return status;
    }
    r = job_plan_by(job, step, "joint", &plan, NULL, &err);
    if (r == 0) {
        r = solve(job, step, (double)seconds, plan, &result, &err);
        skrull_plan_free(plan);
    }
    job_unref(job);
    if (r < 0) {
        return ctl_fail(ctl, &err);
    }
    print_result(ctl, &result);
    return CTL_DONE;
}
