/*
 * One optimizer step: gradients of the rank's micro-batches, summed over all data ranks, AdamW.
 * Loss weights are for a sum over ranks, so nothing is averaged. The sum is a reduce-scatter, and a
 * gather either of gradients (states replicated) or of new weights (states sharded): the same bits.
 */
#include "training.h"

#include <stdlib.h>
#include <string.h>

#include "ops.h"

static uint32_t n_ranks(const struct training *training)
{
    return training->comm ? skrull_comm_size(training->comm) : 1;
}

static int take_arrays(struct training *training, struct skrull_error *err)
{
    size_t ranks = n_ranks(training), n = (training->shape.n_weights + ranks - 1) / ranks * ranks;
    size_t n_states = training->options.is_sharded ? n / ranks : n;

    training->part = n / ranks;
    training->weights = calloc(n, sizeof(float));
    training->gradients = calloc(n, sizeof(float));
    training->m = calloc(n_states, sizeof(float));
    training->v = calloc(n_states, sizeof(float));
    if (!training->weights || !training->gradients || !training->m || !training->v) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "out of memory for a model of %zu weights",
                                training->shape.n_weights);
    }
    return 0;
}

int training_init(struct training *training, const struct training_options *options,
                  struct skrull_comm *comm, const struct token_source *tokens,
                  struct skrull_error *err)
{
    const struct skrull_exec_options exec_options = {.comm = comm, .exchange = options->exchange};
    int rc;

    *training = (struct training){.options = *options, .comm = comm, .tokens = tokens};
    rc = decoder_shape_init(&training->shape, &options->model, err);
    if (rc == 0) {
        rc = take_arrays(training, err);
    }
    if (rc == 0) {
        rc = skrull_exec_new(&exec_options, &training->exec, err);
    }
    if (rc == 0) {
        training->decoder = (struct decoder){.shape = &training->shape,
                                             .ops = ops_find("cpu"),
                                             .tokens = tokens,
                                             .weights = training->weights,
                                             .gradients = training->gradients,
                                             .recompute = options->recompute};
        decoder_first_weights(&training->shape, options->seed, training->weights);
        rc = decoder_init(&training->decoder, err);
        training->trainer = decoder_trainer(&training->decoder);
    }
    if (rc < 0) {
        training_deinit(training);
    }
    return rc;
}

void training_deinit(struct training *training)
{
    decoder_deinit(&training->decoder);
    skrull_exec_free(training->exec);
    decoder_shape_deinit(&training->shape);
    free(training->weights);
    free(training->gradients);
    free(training->m);
    free(training->v);
    *training = (struct training){0};
}

/* AdamW on `n` weights from `first` on; states from their own beginning. */
static int optimize(struct training *training, size_t first, size_t n, struct skrull_error *err)
{
    const struct skrull_adamw adamw = {.n = n,
                                       .weight = training->weights + first,
                                       .m = training->m,
                                       .v = training->v,
                                       .gradient = training->gradients + first,
                                       .gradient_scale = 1.0F,
                                       .learning_rate = training->options.learning_rate,
                                       .beta1 = 0.9F,
                                       .beta2 = 0.95F,
                                       .eps = training->options.eps,
                                       .weight_decay = training->options.weight_decay,
                                       .step = training->n_steps,
                                       .copy_dtype = SKRULL_DTYPE_F32};

    return training->decoder.ops->adamw(&adamw, NULL, err);
}

/* Sums gradients over ranks and moves the weights. */
static int update(struct training *training, struct skrull_error *err)
{
    struct skrull_comm *comm = training->comm;
    size_t part = training->part;
    int rc = comm ? skrull_comm_sum_part(comm, training->gradients, part, err) : 0;

    training->n_steps++;
    if (rc < 0) {
        return rc;
    }
    if (comm && training->options.is_sharded) {
        rc = optimize(training, skrull_comm_rank(comm) * part, part, err);
        return rc < 0 ? rc : skrull_comm_share_parts(comm, training->weights, part, err);
    }
    if (comm) {
        rc = skrull_comm_share_parts(comm, training->gradients, part, err);
    }
    return rc < 0 ? rc : optimize(training, 0, part * n_ranks(training), err);
}

/* The loss of all ranks, added by ascending rank. */
static int sum_loss(struct training *training, double *ret_loss, struct skrull_error *err)
{
    double mine = training->decoder.loss, sum = 0, *all;
    int rc;

    if (!training->comm) {
        *ret_loss = mine;
        return 0;
    }
    all = calloc(n_ranks(training), sizeof(double));
    if (!all) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for losses");
    }
    rc = skrull_comm_gather(training->comm, &mine, sizeof(mine), all, err);
    for (uint32_t r = 0; r < n_ranks(training) && rc == 0; r++) {
        sum += all[r];
    }
    free(all);
    *ret_loss = sum;
    return rc;
}

static void begin_step(struct training *training)
{
    size_t n = training->part * n_ranks(training);

    memset(training->gradients, 0, n * sizeof(float));
    training->decoder.loss = 0;
}

int training_step(struct training *training, const struct skrull_plan *plan, size_t i_rank,
                  struct skrull_exec_times *times, double *ret_loss, struct skrull_error *err)
{
    int rc;

    begin_step(training);
    rc = skrull_exec_run(training->exec, plan, i_rank, &training->trainer, times, err);
    if (rc == 0) {
        rc = update(training, err);
    }
    return rc < 0 ? rc : sum_loss(training, ret_loss, err);
}

/* A layout of one whole sequence without padding, made by hand. */
struct whole {
    struct skrull_layout layout;
    struct skrull_layout_sequence sequence;
    struct skrull_range range;
    int32_t cu[2];
    int32_t *position; /* [length] */
    float *weight;     /* [length] */
};

static int whole_init(struct whole *whole, const struct training_sequence *sequence, double weight,
                      struct skrull_error *err)
{
    uint32_t n = sequence->length;

    whole->position = calloc(n, sizeof(whole->position[0]));
    whole->weight = calloc(n, sizeof(whole->weight[0]));
    if (!whole->position || !whole->weight || n > INT32_MAX) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a sequence");
    }
    for (uint32_t t = 0; t < n; t++) {
        whole->position[t] = (int32_t)t;
        whole->weight[t] = t + 1 < n ? (float)weight : 0.0F;
    }
    whole->cu[1] = (int32_t)n;
    whole->sequence = (struct skrull_layout_sequence){.index = sequence->index,
                                                      .dataset = sequence->dataset,
                                                      .length = n,
                                                      .n_ranges = 1,
                                                      .loss_weight = weight};
    whole->range = (struct skrull_range){.n_tokens = n, .n_rows = n};
    whole->layout.rows = whole->layout.local = (struct skrull_row_set){.n_sequences = 1,
                                                                       .n_rows = n,
                                                                       .n_tokens = n,
                                                                       .max_rows = n,
                                                                       .max_tokens = n,
                                                                       .cu_rows = whole->cu,
                                                                       .cu_tokens = whole->cu,
                                                                       .position = whole->position};
    whole->layout.n_sequences = whole->layout.n_ranges = 1;
    whole->layout.sequences = &whole->sequence;
    whole->layout.ranges = &whole->range;
    whole->layout.loss_weight = whole->weight;
    return 0;
}

static int run_whole(struct training *training, const struct training_sequence *sequence,
                     double weight, struct skrull_error *err)
{
    const struct skrull_layout_limits limits = {.rows = sequence->length,
                                                .tokens = sequence->length,
                                                .local_rows = sequence->length,
                                                .sequences = 1};
    struct whole whole = {0};
    int rc = whole_init(&whole, sequence, weight, err);

    if (rc == 0) {
        rc = skrull_exec_run_layout(training->exec, &whole.layout, &limits, &training->trainer,
                                    NULL, err);
    }
    free(whole.position);
    free(whole.weight);
    return rc;
}

int training_step_unscheduled(struct training *training, const struct training_sequence *sequences,
                              size_t n_sequences, enum skrull_loss loss, double *ret_loss,
                              struct skrull_error *err)
{
    uint64_t n_tokens = 0;
    int rc = 0;

    for (size_t i = 0; i < n_sequences; i++) {
        n_tokens += sequences[i].length;
    }
    begin_step(training);
    for (size_t i = 0; i < n_sequences && rc == 0; i++) {
        double share = loss == SKRULL_LOSS_SEQUENCE_MEAN
                           ? (double)n_sequences * (double)sequences[i].length
                           : (double)n_tokens;

        rc = run_whole(training, &sequences[i], 1.0 / share, err);
    }
    if (rc == 0) {
        rc = update(training, err);
    }
    *ret_loss = training->decoder.loss;
    return rc;
}

uint64_t training_peak_bytes(const struct training *training)
{
    size_t n = training->part * n_ranks(training);
    size_t n_states = training->options.is_sharded ? training->part : n;

    return (2 * n + 2 * n_states) * sizeof(float) + skrull_exec_peak_bytes(training->exec);
}
