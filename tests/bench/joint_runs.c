/* Draws, plans and means. Planning is timed by the processor time of this process: other load on
 * the machine then matters little. */
#include "bench/joint_runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/checker_bound.h"

static double cpu_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static struct skrull_planner_options options_of(const struct runs_plan *plan)
{
    return (struct skrull_planner_options){.dp = plan->setting->dp,
                                           .cp = plan->setting->cp,
                                           .cp_mode = plan->cp_mode,
                                           .bucket_tokens = plan->setting->bucket_tokens,
                                           .mix = plan->mix,
                                           .equal_micro_batches = plan->equal_micro_batches,
                                           .policy = plan->policy,
                                           .effort = plan->effort};
}

struct length_list runs_read_list(const char *folder, const struct joint_setting *setting)
{
    const struct runs_plan plan = {
        .setting = setting, .policy = "skrull", .cp_mode = SKRULL_CP_MODE_FIXED};
    const struct skrull_planner_options options = options_of(&plan);
    char path[4096];

    (void)snprintf(path, sizeof(path), "%s/%s.txt", folder, setting->list);
    return length_list_read(path, skrull_planner_longest(&options), 0);
}

static struct skrull_cost_model *new_cost(const struct runs_plan *plan, const char *profile)
{
    const struct skrull_cost_options options = {.preset = plan->setting->preset,
                                                .profile = profile,
                                                .ranks = plan->setting->dp * plan->setting->cp};
    struct skrull_cost_model *cost = NULL;

    if (skrull_cost_model_new(&options, &cost, NULL)) {
        fprintf(stderr, "bench: no cost model\n");
        exit(1);
    }
    return cost;
}

/* `run_on`: NULL, or what times the plan in the end. */
static struct run run_once(const struct skrull_planner_input *input,
                           const struct skrull_cost_model *run_on, const char *preset)
{
    struct skrull_plan *plan = NULL;
    struct skrull_error err = {0};
    struct run run;
    const double start_ms = cpu_ms();

    if (skrull_planner_run(input, &plan, &err)) {
        fprintf(stderr, "bench: %s\n", err.message);
        exit(1);
    }
    run.planning_ms = cpu_ms() - start_ms;
    if (run_on && skrull_planner_evaluate(&input->options, run_on, false, plan, &err)) {
        fprintf(stderr, "bench: %s\n", err.message);
        exit(1);
    }
    run.time_ms = (double)plan->estimate.iteration_ns * 1e-6;
    run.bound_ms = (double)plan->estimate.bound_ns * 1e-6;
    run.simple_ms = checker_bound_ms(preset, &input->options, input->sequences, input->n_sequences);
    skrull_plan_free(plan);
    return run;
}

struct runs runs_of(const struct runs_plan *plan)
{
    const struct joint_setting *setting = plan->setting;
    struct skrull_sequence *sequences = calloc(setting->n_sequences, sizeof(*sequences));
    struct skrull_cost_model *cost = new_cost(plan, plan->profile);
    struct skrull_cost_model *run_on = plan->run_on ? new_cost(plan, plan->run_on) : NULL;
    struct runs runs = {.n = plan->n_batches};

    if (!sequences) {
        fprintf(stderr, "bench: out of memory\n");
        exit(1);
    }
    for (size_t i = 0; i < runs.n; i++) {
        const struct skrull_planner_input input = {.options = options_of(plan),
                                                   .cost = cost,
                                                   .sequences = sequences,
                                                   .n_sequences = setting->n_sequences};

        length_draw(plan->list, 1000 + i, sequences, setting->n_sequences);
        runs.of[i] = run_once(&input, run_on, setting->preset);
    }
    skrull_cost_model_free(run_on);
    skrull_cost_model_free(cost);
    free(sequences);
    return runs;
}

double runs_ratio(const struct runs *a, const struct runs *b)
{
    double sum = 0;

    for (size_t i = 0; i < a->n; i++) {
        sum += log(a->of[i].time_ms / b->of[i].time_ms);
    }
    return exp(sum / (double)a->n);
}

double runs_gap(const struct runs *runs)
{
    double sum = 0;

    for (size_t i = 0; i < runs->n; i++) {
        sum += runs->of[i].time_ms / runs->of[i].bound_ms - 1;
    }
    return 100 * sum / (double)runs->n;
}

double runs_simple_gap(const struct runs *runs)
{
    double sum = 0;

    for (size_t i = 0; i < runs->n; i++) {
        sum += runs->of[i].time_ms / runs->of[i].simple_ms - 1;
    }
    return 100 * sum / (double)runs->n;
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

double runs_planning_ms(const struct runs *const *runs, size_t n, double quantile)
{
    static double times_ms[16 * RUNS_MAX];
    size_t n_times = 0;

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < runs[i]->n && n_times < 16 * RUNS_MAX; j++) {
            times_ms[n_times++] = runs[i]->of[j].planning_ms;
        }
    }
    qsort(times_ms, n_times, sizeof(times_ms[0]), compare);
    return n_times > 0 ? times_ms[(size_t)((double)(n_times - 1) * quantile)] : 0;
}
