/*
 * How a trainer keeps its own layers and uses layout and exchange only: two ranks as threads, one
 * sequence of 300 tokens split over both, one "layer" whose queries, keys and values are the
 * position. Its attention sees every key up to its own, wherever that lies. (Real ones:
 * skrull/exec.h; MPI: skrull_comm_mpi instead of threads, one rank a process, plans from
 * skrull_stream_next.)
 */
#include <math.h>
#include <pthread.h>
#include <skrull/exec.h>
#include <skrull/planner.h>
#include <stdio.h>

struct rank {
    struct skrull_comm *comm;
    const struct skrull_plan *plan;
    const struct skrull_layout *layout;
    double worst;
    int rc;
};

static int begin(void *arg, struct skrull_exec *exec, const struct skrull_layout *layout,
                 struct skrull_error *err)
{
    (void)exec, (void)err;
    ((struct rank *)arg)->layout =
        layout; /* fill your buffer: layout->ranges say which tokens of which sample */
    return 0;
}
static int before(void *arg, uint32_t layer, void *queries, void *keys, void *values,
                  struct skrull_error *err)
{
    const struct skrull_row_set *rows = &((struct rank *)arg)->layout->rows;
    float *q = queries, *k = keys, *v = values;
    (void)layer, (void)err;
    for (uint32_t i = 0; i < rows->n_rows; i++) {
        q[2 * i] = q[2 * i + 1] = k[2 * i] = k[2 * i + 1] =
            0; /* equal scores: the mean of what is seen */
        v[2 * i] = v[2 * i + 1] = (float)rows->position[i];
    }
    return 0;
}
static int after(void *arg, uint32_t layer, const void *out, struct skrull_error *err)
{
    struct rank *rank = arg;
    const float *mean = out;
    (void)layer, (void)err;
    for (uint32_t i = 0; i < rank->layout->rows.n_rows; i++) {
        int32_t position = rank->layout->rows.position[i];
        if (position != SKRULL_NO_POSITION) { /* the mean of 0 .. position */
            rank->worst = fmax(rank->worst, fabs((double)mean[2 * i] - position / 2.0));
        }
    }
    return 0;
}
static int turn(void *arg, struct skrull_error *err)
{
    (void)arg, (void)err;
    return 0;
}
static int after_back(void *arg, uint32_t layer, const void *out, void *dout,
                      struct skrull_error *err)
{
    (void)layer, (void)out, (void)err;
    for (uint32_t i = 0; i < 2 * ((struct rank *)arg)->layout->rows.n_rows; i++) {
        ((float *)dout)[i] = 0;
    }
    return 0;
}
static int before_back(void *arg, uint32_t layer, float *dq, float *dk, float *dv,
                       struct skrull_error *err)
{
    (void)arg, (void)layer, (void)dq, (void)dk, (void)dv, (void)err; /* on into your layers */
    return 0;
}
static void *run_rank(void *arg)
{
    struct rank *rank = arg;
    const struct skrull_trainer trainer = {
        .arg = rank,
        .n_layers = 1,
        .shape = {.heads = 1, .kv_heads = 1, .head_dim = 2, .scale = 1, .causal = true},
        .begin = begin,
        .before_attention = before,
        .after_attention = after,
        .turn = turn,
        .after_attention_backward = after_back,
        .before_attention_backward = before_back,
        .end = turn};
    const struct skrull_exec_options options = {.comm = rank->comm,
                                                .exchange = SKRULL_EXCHANGE_RING};
    struct skrull_exec *exec;
    rank->rc = skrull_exec_new(&options, &exec, NULL);
    if (rank->rc == 0) {
        rank->rc =
            skrull_exec_run(exec, rank->plan, skrull_comm_rank(rank->comm), &trainer, NULL, NULL);
        skrull_exec_free(exec);
    }
    return NULL;
}
int main(void)
{
    const struct skrull_sequence sequence = {.sample = 0, .length = 300, .loss_tokens = 300};
    struct skrull_planner_input input = {
        .options = {.dp = 1, .cp = 2, .bucket_tokens = 200, .policy = "skrull"},
        .sequences = &sequence,
        .n_sequences = 1};
    struct skrull_cost_model *cost;
    struct skrull_plan *plan;
    struct skrull_comm *comms[2];
    struct rank ranks[2];
    pthread_t threads[2];
    if (skrull_cost_model_new(&(struct skrull_cost_options){.preset = "qwen2.5-0.5b"}, &cost,
                              NULL) < 0) {
        return 1;
    }
    input.cost = cost;
    if (skrull_planner_run(&input, &plan, NULL) < 0 ||
        skrull_comm_threads(2, 10000, comms, NULL) < 0) {
        return 1;
    }
    for (int r = 0; r < 2; r++) {
        ranks[r] = (struct rank){.comm = comms[r], .plan = plan};
        if (pthread_create(&threads[r], NULL, run_rank, &ranks[r]) != 0) {
            return 1;
        }
    }
    for (int r = 0; r < 2; r++) {
        pthread_join(threads[r], NULL);
        skrull_comm_free(comms[r]);
    }
    skrull_plan_free(plan);
    skrull_cost_model_free(cost);
    printf("worst difference %g\n", fmax(ranks[0].worst, ranks[1].worst));
    return ranks[0].rc == 0 && ranks[1].rc == 0 && ranks[0].worst < 1e-4 && ranks[1].worst < 1e-4
               ? 0
               : 1;
}
