/* Trains on threads. Every rank takes its part of one whole plan; lengths come from a fixed rule.
 */
#include "ranks.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "nested_plan.h"

#define TIMEOUT_MS 60000
#define MAX_SEQUENCES 64

struct rank {
    const struct ranks_run *run;
    struct skrull_comm *comm;
    struct skrull_plan *const *plans; /* [n_steps] */
    uint32_t data_rank;
    struct ranks_result result;
    int rc;
    struct skrull_error err;
};

static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Many short ones, few long ones, and lengths of 1 and 2. */
static uint32_t length_of(const struct ranks_run *run, uint64_t sample)
{
    uint64_t dice = mix(sample);
    uint32_t most = (dice & 3) == 0 ? run->longest : run->longest / 8;

    if (sample == run->n_sequences) {
        return 4 * run->longest; /* the first of step 1 */
    }
    return 1 + (uint32_t)((dice >> 8) % most);
}

static void batch_of(const struct ranks_run *run, uint32_t step, struct skrull_sequence *sequences)
{
    for (uint32_t i = 0; i < run->n_sequences; i++) {
        uint64_t sample = (uint64_t)step * run->n_sequences + i;
        uint32_t length = length_of(run, sample);

        sequences[i] = (struct skrull_sequence){
            .sample = sample, .index = sample, .length = length, .loss_tokens = length};
    }
}

static struct training_options options_of(const struct ranks_run *run)
{
    struct training_options options = {.exchange = run->exchange,
                                       .is_sharded = run->is_sharded,
                                       .recompute = run->recompute,
                                       .learning_rate = TRAINING_LEARNING_RATE,
                                       .eps = TRAINING_EPS,
                                       .weight_decay = 0.01F,
                                       .seed = 1};

    if (run->backend) {
        options.backend = run->backend->name;
        options.dtype = run->backend->dtype;
    }
    assert_int_equal(model_config_read(run->model ? run->model : "tiny", &options.model, NULL), 0);
    options.model.window = run->window;
    return options;
}

static int keep_weights(struct training *training, struct ranks_result *ret,
                        struct skrull_error *err)
{
    ret->n_weights = training->shape.n_weights;
    ret->weights = calloc(ret->n_weights, sizeof(float));
    ret->peak_bytes = training_peak_bytes(training);
    return ret->weights ? training_read_weights(training, ret->weights, err)
                        : SKRULL_ERR_RESOURCE_EXHAUSTED;
}

static int step(struct rank *rank, struct training *training, uint32_t s)
{
    const struct skrull_plan *plan = rank->plans[s];
    uint32_t n = plan->ranks[rank->data_rank].n_micro_batches;
    struct skrull_exec_times *times = calloc(n + 1, sizeof(*times)), *sum = &rank->result.times;
    int rc =
        times ? training_step(training, plan, rank->data_rank, rank->run->is_timed ? times : NULL,
                              &rank->result.losses[s], &rank->err)
              : SKRULL_ERR_RESOURCE_EXHAUSTED;

    for (uint32_t i = 0; i < n && rc == 0; i++) {
        sum->compute_busy_ns += times[i].compute_busy_ns;
        sum->compute_wait_ns += times[i].compute_wait_ns;
        sum->exchange_busy_ns += times[i].exchange_busy_ns;
        sum->exchange_wait_ns += times[i].exchange_wait_ns;
    }
    free(times);
    return rc;
}

static void train(struct rank *rank)
{
    struct training_options options = options_of(rank->run);
    struct token_source *tokens = NULL;
    struct training training;

    options.device = rank->run->backend ? (int)rank->data_rank : 0;
    rank->rc = tokens_generated(options.model.vocabulary, &tokens, &rank->err);
    if (rank->rc == 0) {
        rank->rc = training_init(&training, &options, rank->comm, tokens, &rank->err);
    }
    if (rank->rc < 0) {
        skrull_comm_fail(rank->comm, &rank->err);
        tokens_free(tokens);
        return;
    }
    if (rank->run->plant) {
        rank->run->plant(&training);
    }
    for (uint32_t s = 0; s < rank->run->n_steps && rank->rc == 0; s++) {
        rank->rc = step(rank, &training, s);
    }
    if (rank->rc == 0) {
        rank->rc = keep_weights(&training, &rank->result, &rank->err);
    }
    training_deinit(&training);
    tokens_free(tokens);
}

static void *run_rank(void *arg)
{
    struct rank *rank = arg;
    const struct ranks_backend *backend = rank->run->backend;

    rank->rc = backend ? backend->open(rank->comm, &rank->comm, &rank->err) : 0;
    if (rank->rc == 0) {
        train(rank);
    }
    skrull_comm_free(rank->comm);
    if (backend) {
        backend->end();
    }
    return NULL;
}

static struct skrull_plan *plan_of(const struct ranks_run *run,
                                   const struct skrull_cost_model *cost, uint32_t step)
{
    struct skrull_sequence sequences[MAX_SEQUENCES];
    struct skrull_planner_input input = {.options = {.dp = run->dp,
                                                     .cp = run->cp,
                                                     .cp_mode = run->cp_mode,
                                                     .bucket_tokens = 2 * run->longest + 64,
                                                     .align = run->align ? run->align : 1,
                                                     .shard = run->shard,
                                                     .equal_micro_batches = true,
                                                     .loss = run->loss,
                                                     .policy = run->policy},
                                         .cost = cost,
                                         .sequences = sequences,
                                         .n_sequences = run->n_sequences,
                                         .step = step};
    struct skrull_error err = {0};
    struct skrull_plan *plan = NULL;

    batch_of(run, step, sequences);
    if (!run->policy) {
        return nested_plan_new(sequences, run->n_sequences, step, input.options.align, run->shard);
    }
    if (skrull_planner_run(&input, &plan, &err) < 0) {
        fail_msg("no plan of step %u: %s", step, err.message);
    }
    return plan;
}

static void make_plans(const struct ranks_run *run, struct skrull_plan **plans)
{
    const struct skrull_cost_options options = {.preset = "qwen2.5-0.5b"};
    struct skrull_cost_model *cost = NULL;

    assert_int_equal(skrull_cost_model_new(&options, &cost, NULL), 0);
    for (uint32_t s = 0; s < run->n_steps; s++) {
        plans[s] = plan_of(run, cost, s);
    }
    skrull_cost_model_free(cost);
}

static void free_plans(const struct ranks_run *run, struct skrull_plan **plans)
{
    for (uint32_t s = 0; s < run->n_steps; s++) {
        if (run->policy) {
            skrull_plan_free(plans[s]);
        } else {
            assert_true(s != 1 || nested_plan_groups(plans[s]) == 3);
            nested_plan_free(plans[s]);
        }
    }
}

int ranks_try(const struct ranks_run *run, struct ranks_result *ret, struct skrull_error *err)
{
    struct skrull_plan *plans[RANKS_STEPS_MAX];
    struct skrull_comm *comms[RANKS_MAX];
    struct rank *ranks = calloc(RANKS_MAX, sizeof(*ranks));
    pthread_t threads[RANKS_MAX];
    uint32_t n_ranks = run->dp * run->cp;
    int rc = 0;

    assert_non_null(ranks);
    assert_in_range(n_ranks, 1, RANKS_MAX);
    make_plans(run, plans);
    assert_int_equal(
        skrull_comm_threads(n_ranks, run->timeout_ms ? run->timeout_ms : TIMEOUT_MS, comms, NULL),
        0);
    for (uint32_t r = 0; r < n_ranks; r++) {
        ranks[r] = (struct rank){.run = run, .comm = comms[r], .plans = plans, .data_rank = r};
        assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &ranks[r]), 0);
    }
    for (uint32_t r = 0; r < n_ranks; r++) {
        assert_int_equal(pthread_join(threads[r], NULL), 0);
    }
    for (uint32_t r = 0; r < n_ranks; r++) {
        if (ranks[r].rc < 0 && rc == 0) {
            rc = skrull_error_set(err, ranks[r].rc, "rank %u: %s", r, ranks[r].err.message);
        }
    }
    /* Every rank has the same, to the bit. */
    for (uint32_t r = 1; r < n_ranks && rc == 0; r++) {
        if (memcmp(ranks[r].result.losses, ranks[0].result.losses, run->n_steps * sizeof(double)) !=
                0 ||
            memcmp(ranks[r].result.weights, ranks[0].result.weights,
                   ranks[0].result.n_weights * sizeof(float)) != 0) {
            rc = skrull_error_set(err, SKRULL_ERR_DATA_LOSS, "rank %u differs from rank 0", r);
        }
    }
    *ret = ranks[0].result;
    for (uint32_t r = 1; r < n_ranks; r++) {
        ranks_result_free(&ranks[r].result);
    }
    free_plans(run, plans);
    free(ranks);
    return rc;
}

void ranks_train(const struct ranks_run *run, struct ranks_result *ret)
{
    struct skrull_error err = {0};

    if (ranks_try(run, ret, &err) < 0) {
        fail_msg("%s", err.message);
    }
}

void ranks_train_alone(const struct ranks_run *run, struct ranks_result *ret)
{
    const struct training_options options = options_of(run);
    struct skrull_sequence batch[MAX_SEQUENCES];
    struct training_sequence sequences[MAX_SEQUENCES];
    struct token_source *tokens;
    struct training training;

    *ret = (struct ranks_result){0};
    assert_int_equal(tokens_generated(options.model.vocabulary, &tokens, NULL), 0);
    assert_int_equal(training_init(&training, &options, NULL, tokens, NULL), 0);
    for (uint32_t s = 0; s < run->n_steps; s++) {
        batch_of(run, s, batch);
        for (uint32_t i = 0; i < run->n_sequences; i++) {
            sequences[i] =
                (struct training_sequence){.index = batch[i].index, .length = batch[i].length};
        }
        assert_int_equal(training_step_unscheduled(&training, sequences, run->n_sequences,
                                                   run->loss, &ret->losses[s], NULL),
                         0);
    }
    assert_int_equal(keep_weights(&training, ret, NULL), 0);
    training_deinit(&training);
    tokens_free(tokens);
}

void ranks_result_free(struct ranks_result *result)
{
    free(result->weights);
    result->weights = NULL;
}

double ranks_difference(const struct ranks_result *a, const struct ranks_result *b,
                        const struct ranks_run *run)
{
    double most = 0;

    for (uint32_t s = 0; s < run->n_steps; s++) {
        most = fmax(most, fabs(a->losses[s] - b->losses[s]) / fabs(b->losses[s]));
    }
    assert_int_equal(a->n_weights, b->n_weights);
    for (size_t i = 0; i < a->n_weights; i++) {
        double difference = fabs((double)a->weights[i] - (double)b->weights[i]);

        most = difference <= most ? most : difference; /* not a number counts */
    }
    return most;
}
