/*
 * How long planning takes on one core, from lengths to the finished plan with weights, digests,
 * estimate and bound. Exits with 1 where a median is over its limit.
 *
 * usage: bench_planner LENGTHS_DIR [REPEATS]; limits hold without REPEATS
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <skrull/planner.h>

#include "bench/figure.h"
#include "bench/length_list.h"

struct bench_case {
    const char *list, *policy;
    uint32_t dp, cp;
    size_t n_sequences;
    unsigned repeats;
    double limit_ms; /* of the median; 0: none */
};

static const struct bench_case cases[] = {
    {"wikipedia", "skrull", 4, 8, 256, 1000, 0.3},
    {"lmsyschat1m", "skrull", 4, 8, 256, 1000, 0.3},
    {"chatqa2", "skrull", 4, 8, 256, 1000, 0.3},
    {"wikipedia", "round_robin", 4, 8, 256, 1000, 0},
    {"wikipedia", "uniform", 4, 8, 256, 300, 0},
    {"wikipedia", "skrull", 512, 8, 16384, 50, 40},
    {"chatqa2", "skrull", 512, 8, 16384, 50, 40},
    {"chatqa2", "skrull", 64, 64, 16384, 10, 0}, /* 1.4 million segments */
};

static double plan_once(const struct skrull_planner_input *input)
{
    struct skrull_plan *plan = NULL;
    struct skrull_error err = {0};
    const double start_ms = figure_now_ms();
    double end_ms;

    if (skrull_planner_run(input, &plan, &err)) {
        fprintf(stderr, "bench_planner: %s\n", err.message);
        exit(1);
    }
    end_ms = figure_now_ms();
    skrull_plan_free(plan);
    return end_ms - start_ms;
}

/* True: within the limit. */
static bool run_case(const char *folder, const struct bench_case *bench, unsigned repeats,
                     bool has_limit, const struct skrull_cost_model *cost)
{
    struct skrull_sequence *batch = calloc(bench->n_sequences, sizeof(*batch));
    double *times_ms = calloc(repeats, sizeof(*times_ms));
    struct skrull_planner_input input = {.options = {.dp = bench->dp,
                                                     .cp = bench->cp,
                                                     .bucket_tokens = 26624,
                                                     .equal_micro_batches = true,
                                                     .policy = bench->policy},
                                         .cost = cost,
                                         .sequences = batch,
                                         .n_sequences = bench->n_sequences};
    struct length_list list;
    char path[4096], what[128];
    const struct figure figure = {
        .what = what, .unit = "ms", .limit = has_limit ? bench->limit_ms : 0};
    bool is_within;

    if (!batch || !times_ms) {
        fprintf(stderr, "bench_planner: out of memory\n");
        exit(1);
    }
    (void)snprintf(path, sizeof(path), "%s/%s.txt", folder, bench->list);
    list = length_list_read(path, skrull_planner_longest(&input.options), 1);
    for (unsigned i = 0; i < repeats; i++) {
        length_list_batch(&list, i, batch, bench->n_sequences);
        input.step = i;
        times_ms[i] = plan_once(&input);
    }
    (void)snprintf(what, sizeof(what), "%s, %s, <%" PRIu32 ", %" PRIu32 ">, %zu sequences",
                   bench->list, bench->policy, bench->dp, bench->cp, bench->n_sequences);
    is_within = figure_print(&figure, times_ms, repeats);
    length_list_free(&list);
    free(times_ms);
    free(batch);
    return is_within;
}

int main(int argc, char **argv)
{
    const struct skrull_cost_options options = {.preset = "qwen2.5-0.5b"};
    struct skrull_cost_model *cost = NULL;
    bool is_within = true;

    if (argc < 2 || skrull_cost_model_new(&options, &cost, NULL)) {
        fprintf(stderr, "usage: bench_planner LENGTHS_DIR [REPEATS]\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned repeats = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : cases[i].repeats;

        is_within &= run_case(argv[1], &cases[i], repeats ? repeats : 1, argc <= 2, cost);
    }
    skrull_cost_model_free(cost);
    return is_within ? 0 : 1;
}
