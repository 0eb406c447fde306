/*
 * The six speed-ups of the paper's Figure 3 by the model: median over 100 steps of (uniform + step
 * cost) over (skrull + step cost), over-long rows dropped, at the paper's settings. Prints them
 * beside the figures to meet; exits with 1 where one is off by more than 15 %.
 *
 * usage: paper_medians LENGTHS_DIR
 */
#include <stdio.h>
#include <stdlib.h>

#include <skrull/planner.h>

#include "bench/length_list.h"

#define N_STEPS 100
#define MAX_BATCH 256
#define TOLERANCE 0.15

struct setting {
    const char *preset, *list;
    uint32_t dp, cp, bucket_tokens;
    size_t n_sequences;
    double wanted, paper; /* by the model; as the paper measured */
};

static const struct setting settings[] = {
    {"qwen2.5-0.5b", "wikipedia", 4, 8, 26624, 256, 7.1, 7.54},
    {"qwen2.5-0.5b", "lmsyschat1m", 4, 8, 26624, 256, 6.9, 6.17},
    {"qwen2.5-0.5b", "chatqa2", 4, 8, 26624, 256, 1.55, 2.79},
    {"qwen2.5-7b", "wikipedia", 4, 8, 13312, 256, 2.1, 2.60},
    {"qwen2.5-7b", "lmsyschat1m", 4, 8, 13312, 256, 2.15, 2.14},
    {"qwen2.5-7b", "chatqa2", 2, 16, 13312, 80, 1.22, 1.35},
};

static int64_t iteration_ns(struct skrull_planner_input *input, const char *policy)
{
    struct skrull_plan *plan = NULL;
    struct skrull_error err = {0};
    int64_t ns;

    input->options.policy = policy;
    if (skrull_planner_run(input, &plan, &err)) {
        fprintf(stderr, "paper_medians: %s\n", err.message);
        exit(1);
    }
    ns = plan->estimate.iteration_ns;
    skrull_plan_free(plan);
    return ns;
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

static double median_speedup(const char *folder, const struct setting *setting,
                             const struct skrull_cost_model *cost)
{
    static struct skrull_sequence batch[MAX_BATCH];
    const int64_t step_ns = skrull_cost_step_ns(cost);
    double speedups[N_STEPS];
    struct skrull_planner_input input = {
        .options = {.dp = setting->dp, .cp = setting->cp, .bucket_tokens = setting->bucket_tokens},
        .cost = cost,
        .sequences = batch,
        .n_sequences = setting->n_sequences};
    struct length_list list;
    char path[4096];

    (void)snprintf(path, sizeof(path), "%s/%s.txt", folder, setting->list);
    list = length_list_read(path, skrull_planner_longest(&input.options), 1);
    for (uint64_t step = 0; step < N_STEPS; step++) {
        length_list_batch(&list, step, batch, setting->n_sequences);
        speedups[step] = (double)(iteration_ns(&input, "uniform") + step_ns) /
                         (double)(iteration_ns(&input, "skrull") + step_ns);
    }
    length_list_free(&list);
    qsort(speedups, N_STEPS, sizeof(speedups[0]), compare);
    return (speedups[N_STEPS / 2 - 1] + speedups[N_STEPS / 2]) / 2;
}

int main(int argc, char **argv)
{
    bool is_met = true;

    if (argc != 2) {
        fprintf(stderr, "usage: paper_medians LENGTHS_DIR\n");
        return 2;
    }
    printf("speed-up of skrull over uniform, median of %d steps\n", N_STEPS);
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        const struct setting *setting = &settings[i];
        const struct skrull_cost_options options = {.preset = setting->preset};
        struct skrull_cost_model *cost = NULL;
        struct skrull_error err = {0};
        double speedup, off;

        if (skrull_cost_model_new(&options, &cost, &err)) {
            fprintf(stderr, "paper_medians: %s\n", err.message);
            return 1;
        }
        speedup = median_speedup(argv[1], setting, cost);
        skrull_cost_model_free(cost);
        off = speedup / setting->wanted - 1;
        is_met &= off >= -TOLERANCE && off <= TOLERANCE;
        printf("%-12s %-12s <%u, %2u>: %5.2f, wanted %4.2f (%+.1f %%); the paper measured %.2f\n",
               setting->preset, setting->list, setting->dp, setting->cp, speedup, setting->wanted,
               off * 100, setting->paper);
    }
    return is_met ? 0 : 1;
}
