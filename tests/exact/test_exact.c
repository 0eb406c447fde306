/*
 * Policy joint and the bounds against proven optima of random small batches: up to 10 sequences on
 * up to 4 ranks, both modes, every other one with nodes of two ranks or less. Prints a line a batch
 * and a summary; exits with 1 where joint is off by more than 2 % in the mean or 10 % in one batch,
 * or a bound exceeds an optimum.
 *
 * usage: test_exact N_BATCHES [SECONDS_EACH [SEED]]
 */
#include <stdio.h>
#include <stdlib.h>

#include "plan/exact/exact.h"

#define MAX_SEQUENCES 10
#define MEAN_GAP 0.02
#define WORST_GAP 0.10

struct tally {
    unsigned n_proved, n_optimal, n_wrong;
    double gaps, worst;
};

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint32_t below(uint64_t *state, uint32_t n)
{
    return (uint32_t)((next(state) >> 32) * n >> 32);
}

static void randomize(struct skrull_planner_input *input, struct skrull_sequence *sequences,
                      uint64_t *state)
{
    static const uint32_t grids[][2] = {{1, 2}, {2, 1}, {1, 4}, {2, 2}, {4, 1}, {1, 3}, {3, 1}};
    const uint32_t *grid = grids[below(state, sizeof(grids) / sizeof(grids[0]))];
    uint32_t longest;

    input->options = (struct skrull_planner_options){
        .dp = grid[0],
        .cp = grid[1],
        .cp_mode = below(state, 2) ? SKRULL_CP_MODE_ELASTIC : SKRULL_CP_MODE_FIXED,
        .bucket_tokens = 2048 + below(state, 6144),
        .policy = "joint"};
    longest = (uint32_t)skrull_planner_longest(&input->options);
    input->n_sequences = 2 + below(state, MAX_SEQUENCES - 1);
    for (size_t k = 0; k < input->n_sequences; k++) {
        const uint32_t limits[] = {longest, input->options.bucket_tokens / 2,
                                   input->options.bucket_tokens / 8,
                                   input->options.bucket_tokens / 8};
        const uint32_t length = 1 + below(state, limits[below(state, 4)]);

        sequences[k] =
            (struct skrull_sequence){.sample = k, .length = length, .loss_tokens = length};
    }
    input->sequences = sequences;
}

/* Nodes of two ranks, or of two ranks and two thirds, so that of two pairs one crosses. */
static struct skrull_cost_model *new_cost(const struct skrull_planner_options *options, unsigned i)
{
    const struct skrull_cost_options cost_options = {.preset = "qwen2.5-0.5b",
                                                     .profile = i % 2 ? "h100-nodes" : NULL,
                                                     .ranks = options->dp * options->cp,
                                                     .tp = 3 + i / 2 % 2};
    struct skrull_cost_model *cost = NULL;

    if (skrull_cost_model_new(&cost_options, &cost, NULL)) {
        exit(1);
    }
    return cost;
}

static int64_t plan_ns(const struct skrull_planner_input *input, int64_t *ret_bound_ns)
{
    struct skrull_plan *plan = NULL;
    struct skrull_error err = {0};
    int64_t ns;

    if (skrull_planner_run(input, &plan, &err)) {
        fprintf(stderr, "test_exact: %s\n", err.message);
        exit(1);
    }
    ns = plan->estimate.iteration_ns;
    *ret_bound_ns = plan->estimate.bound_ns;
    skrull_plan_free(plan);
    return ns;
}

static void run_batch(const struct skrull_planner_input *input, double seconds, unsigned i,
                      struct tally *tally)
{
    const struct skrull_planner_options *options = &input->options;
    struct exact_result result;
    struct skrull_error err = {0};
    int64_t joint_ns, bound_ns;
    double gap;

    joint_ns = plan_ns(input, &bound_ns);
    if (exact_solve(input, seconds, &result, &err)) {
        fprintf(stderr, "test_exact: %s\n", err.message);
        exit(1);
    }
    gap = (double)joint_ns / (double)result.best_ns - 1;
    printf("# %3u: %2zu sequences on <%u, %u> %s: joint %.3f ms, best %.3f, bound %.3f, %s (%u "
           "columns)\n",
           i, input->n_sequences, options->dp, options->cp,
           options->cp_mode == SKRULL_CP_MODE_ELASTIC ? "elastic" : "fixed",
           (double)joint_ns * 1e-6, (double)result.best_ns * 1e-6, (double)bound_ns * 1e-6,
           result.is_proved ? "proved" : "not proved", result.n_columns);
    (void)fflush(stdout);
    tally->n_wrong += bound_ns > result.best_ns;
    if (result.is_proved) {
        tally->n_proved++;
        tally->n_optimal += joint_ns <= result.best_ns + result.best_ns / 1000000;
        tally->gaps += gap;
        tally->worst = gap > tally->worst ? gap : tally->worst;
    }
}

int main(int argc, char **argv)
{
    const unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 20;
    const double seconds = argc > 2 ? strtod(argv[2], NULL) : 5;
    uint64_t state = argc > 3 ? strtoull(argv[3], NULL, 10) : 20250926;
    struct skrull_sequence sequences[MAX_SEQUENCES];
    struct tally tally = {0};

    for (unsigned i = 0; i < n; i++) {
        struct skrull_planner_input input = {0};
        struct skrull_cost_model *cost;

        randomize(&input, sequences, &state);
        cost = new_cost(&input.options, i);
        input.cost = cost;
        run_batch(&input, seconds, i, &tally);
        skrull_cost_model_free(cost);
    }
    printf("# %u batches, %u proved: joint optimal in %u, mean gap %.3f %%, worst %.2f %%; bounds "
           "above a plan: %u\n",
           n, tally.n_proved, tally.n_optimal,
           tally.n_proved ? 100 * tally.gaps / tally.n_proved : 0, 100 * tally.worst,
           tally.n_wrong);
    return tally.n_wrong == 0 && tally.n_proved > 0 && tally.gaps <= MEAN_GAP * tally.n_proved &&
                   tally.worst <= WORST_GAP
               ? 0
               : 1;
}
