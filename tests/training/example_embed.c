/* Layers of your own; plans, exchange and attention by Skrull: a validation run, a process a data
 * rank, mpirun -n RANKS example_embed JOB. Training adds two callbacks, for the way back. */
#include <skrull/client.h>
#include <skrull/exec.h>
#include <stdio.h>

static const struct skrull_layout *layout; /* of the micro-batch that runs */
static float loss;
static int begin(void *arg, struct skrull_exec *exec, const struct skrull_layout *next,
                 struct skrull_error *err)
{
    layout = next; /* which row holds which token: load those of layout->ranges */
    return 0;
}
static int before(void *arg, uint32_t layer, void *q, void *k, void *v, struct skrull_error *err)
{
    for (uint32_t i = 0; i < layout->rows.n_rows; i++) {
        ((float *)q)[i] = ((float *)k)[i] = 0; /* equal scores: the mean of values up to its own */
        ((float *)v)[i] = (float)layout->rows.position[i];
    }
    return 0;
}
static int after(void *arg, uint32_t layer, const void *out, struct skrull_error *err)
{
    for (uint32_t i = 0; i < layout->rows.n_rows; i++) {
        loss += layout->loss_weight[i] * ((const float *)out)[i]; /* weights of padding are 0 */
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct skrull_trainer layers = {
        .n_layers = 1, .begin = begin, .before_attention = before, .after_attention = after};
    struct skrull_exec_options with = {.exchange = SKRULL_EXCHANGE_RING};
    struct skrull_stream_options from = {.job = argc > 1 ? argv[1] : NULL};
    struct skrull_stream *stream = NULL;
    struct skrull_exec *exec;
    struct skrull_plan *plan;
    struct skrull_error err;
    int rc = skrull_comm_mpi(60000, &with.comm, &err);

    layers.shape = (struct skrull_attention_shape){1, 1, .head_dim = 1, .scale = 1, .causal = true};
    from.data_rank = rc < 0 ? 0 : skrull_comm_rank(with.comm);
    rc = rc < 0 ? rc : skrull_exec_new(&with, &exec, &err);
    rc = rc < 0 ? rc : skrull_stream_open(NULL, &from, &stream, &err);
    while (rc == 0 && (rc = skrull_stream_next(stream, &plan, &err)) == 0) {
        rc = skrull_comm_check_plan(with.comm, plan, &err); /* all ranks have parts of one */
        rc = rc < 0 ? rc : skrull_exec_run(exec, plan, 0, &layers, NULL, &err);
        rc = rc < 0 ? rc : skrull_stream_report_plan(stream, plan, &err);
        skrull_plan_free(plan);
    }
    rc = rc < 0 ? rc : skrull_comm_sum(with.comm, &loss, 1, &err);
    rc = rc < 0 ? rc : skrull_stream_flush(stream, 0, &err);
    printf("loss %g: %s\n", (double)loss, rc < 0 ? err.message : "the sum over all ranks");
    skrull_stream_close(stream);
    skrull_comm_free(rc < 0 ? NULL : with.comm); /* a process that fails ends the others */
    return rc < 0;
}
