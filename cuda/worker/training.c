/*
 * One optimizer step: gradients of the rank's micro-batches, summed over all data ranks, AdamW.
 * Loss weights are for a sum over ranks, so nothing is averaged. The sum is a reduce-scatter, and a
 * gather either of gradients (states replicated) or of new weights (states sharded): the same bits.
 * On a device all of a step is enqueued, and waited for once, for its loss.
 */
#include "training.h"

#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "ops.h"

static uint32_t n_ranks(const struct training *training)
{
    return training->comm ? skrull_comm_size(training->comm) : 1;
}

static int allocate(struct training *training, size_t bytes, void *ret, struct skrull_error *err)
{
    void *memory;
    int rc = training->device->ops->alloc(training->device, bytes, &memory, NULL);

    if (rc < 0) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "out of memory for a model of %zu weights",
                                training->shape.n_weights);
    }
    memcpy(ret, &memory, sizeof(memory));
    return 0;
}

static int take_arrays(struct training *training, struct skrull_error *err)
{
    size_t ranks = n_ranks(training), n = (training->shape.n_weights + ranks - 1) / ranks * ranks;
    size_t n_states = training->options.is_sharded ? n / ranks : n;
    const struct {
        size_t bytes;
        void *ret;
    } arrays[] = {
        {n * sizeof(float), &training->weights},
        {n * sizeof(float), &training->gradients},
        {n_states * sizeof(float), &training->m},
        {n_states * sizeof(float), &training->v},
        {sizeof(double), &training->loss},
        {training->shape.config.head_dim * sizeof(float), &training->frequencies},
        {training->decoder.dtype == SKRULL_DTYPE_F32 ? 0 : n * sizeof(uint16_t), &training->copies},
    };
    void *host_loss;
    int rc = 0;

    training->part = n / ranks;
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]) && rc == 0; i++) {
        rc = arrays[i].bytes ? allocate(training, arrays[i].bytes, arrays[i].ret, err) : 0;
    }
    if (rc == 0) {
        rc =
            training->device->ops->alloc_staging(training->device, sizeof(double), &host_loss, err);
    }
    if (rc == 0) {
        training->host_loss = host_loss;
        training->copies = training->copies ? training->copies : training->weights;
    }
    return rc;
}

static int zero(struct training *training, void *to, size_t bytes, struct skrull_error *err)
{
    return training->device->ops->zero(training->device, skrull_exec_stream(training->exec), to,
                                       bytes, err);
}

static int copy(struct training *training, void *to, const void *from, size_t bytes,
                struct skrull_error *err)
{
    return training->device->ops->copy(training->device, skrull_exec_stream(training->exec), to,
                                       from, bytes, err);
}

/* First weights and frequencies, and zeros, from staging; waits for it. */
static int fill(struct training *training, float *staging, struct skrull_error *err)
{
    size_t n = training->part * n_ranks(training);
    size_t n_states = training->options.is_sharded ? training->part : n;
    size_t half = training->shape.config.head_dim / 2;
    const struct skrull_cast cast = {.n = n,
                                     .in_dtype = SKRULL_DTYPE_F32,
                                     .out_dtype = training->decoder.dtype,
                                     .in = training->weights,
                                     .out = training->copies};
    int rc;

    memset(staging, 0, n * sizeof(float));
    decoder_first_weights(&training->shape, training->options.seed, staging);
    decoder_frequencies(&training->shape.config, staging + n);
    rc = copy(training, training->weights, staging, n * sizeof(float), err);
    if (rc == 0) {
        rc = copy(training, training->frequencies, staging + n, half * sizeof(float), err);
    }
    if (rc == 0) {
        rc = zero(training, training->m, n_states * sizeof(float), err);
    }
    if (rc == 0) {
        rc = zero(training, training->v, n_states * sizeof(float), err);
    }
    if (rc == 0 && training->copies != training->weights) {
        rc = training->decoder.ops->cast(&cast, skrull_exec_stream(training->exec), err);
    }
    return rc < 0 ? rc : skrull_exec_finish(training->exec, err);
}

static int fill_arrays(struct training *training, struct skrull_error *err)
{
    size_t n = training->part * n_ranks(training) + training->shape.config.head_dim;
    void *staging;
    int rc =
        training->device->ops->alloc_staging(training->device, n * sizeof(float), &staging, err);

    if (rc == 0) {
        rc = fill(training, staging, err);
        training->device->ops->release_staging(training->device, staging);
    }
    return rc;
}

/* Execution, and with it the device and dtype. */
static int open_exec(struct training *training, struct skrull_error *err)
{
    const struct training_options *options = &training->options;
    const struct skrull_exec_options exec_options = {.backend = options->backend,
                                                     .comm = training->comm,
                                                     .exchange = options->exchange,
                                                     .dtype = options->dtype,
                                                     .device = options->device};
    const char *backend = options->backend ? options->backend : "cpu";
    int rc = skrull_exec_new(&exec_options, &training->exec, err);

    if (rc == 0) {
        rc = device_open(backend, options->device, &training->device, err);
    }
    if (rc == 0) {
        training->decoder.ops = ops_find(backend);
        training->decoder.dtype = skrull_exec_dtype(training->exec);
    }
    return rc;
}

static int open_training(struct training *training, struct skrull_error *err)
{
    int rc = decoder_shape_init(&training->shape, &training->options.model, err);

    if (rc == 0) {
        rc = open_exec(training, err);
    }
    if (rc == 0) {
        rc = take_arrays(training, err);
    }
    if (rc == 0) {
        rc = fill_arrays(training, err);
    }
    if (rc == 0) {
        training->decoder.shape = &training->shape;
        training->decoder.tokens = training->tokens;
        training->decoder.weights = training->copies;
        training->decoder.gradients = training->gradients;
        training->decoder.loss = training->loss;
        training->decoder.frequencies = training->frequencies;
        training->decoder.recompute = training->options.recompute;
        rc = decoder_init(&training->decoder, err);
        training->trainer = decoder_trainer(&training->decoder);
    }
    return rc;
}

int training_init(struct training *training, const struct training_options *options,
                  struct skrull_comm *comm, const struct token_source *tokens,
                  struct skrull_error *err)
{
    int rc;

    *training = (struct training){.options = *options, .comm = comm, .tokens = tokens};
    rc = open_training(training, err);
    if (rc < 0) {
        training_deinit(training);
    }
    return rc;
}

void training_deinit(struct training *training)
{
    struct device *device = training->device;

    decoder_deinit(&training->decoder);
    skrull_exec_free(training->exec);
    decoder_shape_deinit(&training->shape);
    if (device) {
        void *const arrays[] = {training->weights,
                                training->gradients,
                                training->copies == training->weights ? NULL : training->copies,
                                training->m,
                                training->v,
                                training->loss,
                                training->frequencies};

        for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
            device->ops->release(device, arrays[i]);
        }
        device->ops->release_staging(device, training->host_loss);
        device_close(device);
    }
    *training = (struct training){0};
}

/* AdamW on `n` weights from `first` on; states from their own beginning. */
static int optimize(struct training *training, size_t first, size_t n, struct skrull_error *err)
{
    bool has_copies = training->copies != training->weights;
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
                                       .copy_dtype = training->decoder.dtype,
                                       .copy = has_copies ? (uint16_t *)training->copies + first
                                                          : NULL};

    return training->decoder.ops->adamw(&adamw, skrull_exec_stream(training->exec), err);
}

/* Sums gradients over ranks and moves the weights. */
static int update(struct training *training, struct skrull_error *err)
{
    size_t part = training->part, part_bytes = part * sizeof(float);
    size_t copy_bytes = part * decoder_element(&training->decoder);
    int rc = skrull_exec_sum_parts(training->exec, training->gradients, part, err);

    training->n_steps++;
    if (rc < 0) {
        return rc;
    }
    if (training->comm && training->options.is_sharded) {
        rc = optimize(training, skrull_comm_rank(training->comm) * part, part, err);
        return rc < 0 ? rc
                      : skrull_exec_share_parts(training->exec, training->copies, copy_bytes, err);
    }
    rc = skrull_exec_share_parts(training->exec, training->gradients, part_bytes, err);
    return rc < 0 ? rc : optimize(training, 0, part * n_ranks(training), err);
}

/* The loss of this rank: when it is here, all of the step is done. */
static int read_loss(struct training *training, double *ret_loss, struct skrull_error *err)
{
    int rc = copy(training, training->host_loss, training->loss, sizeof(double), err);

    if (rc == 0) {
        rc = skrull_exec_finish(training->exec, err);
    }
    if (rc == 0) {
        *ret_loss = *training->host_loss;
    }
    return rc;
}

/* The loss of all ranks, added by ascending rank. */
static int sum_loss(struct training *training, double *ret_loss, struct skrull_error *err)
{
    double mine = 0, sum = 0, *all;
    int rc = read_loss(training, &mine, err);

    if (rc < 0 || !training->comm) {
        *ret_loss = mine;
        return rc;
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

static int begin_step(struct training *training, struct skrull_error *err)
{
    size_t n = training->part * n_ranks(training);
    int rc = zero(training, training->gradients, n * sizeof(float), err);

    return rc < 0 ? rc : zero(training, training->loss, sizeof(double), err);
}

int training_step(struct training *training, const struct skrull_plan *plan, size_t i_rank,
                  struct skrull_exec_times *times, double *ret_loss, struct skrull_error *err)
{
    int rc = begin_step(training, err);

    if (rc == 0) {
        rc = skrull_exec_run(training->exec, plan, i_rank, &training->trainer, times, err);
    }
    if (rc == 0) {
        rc = update(training, err);
    }
    return rc < 0 ? rc : sum_loss(training, ret_loss, err);
}

int training_read_weights(struct training *training, float *weights, struct skrull_error *err)
{
    const struct device_ops *device = training->device->ops;
    size_t bytes = training->shape.n_weights * sizeof(float);
    void *staging;
    int rc = 0;

    if (training->comm && training->options.is_sharded && training->copies != training->weights) {
        rc = skrull_exec_share_parts(training->exec, training->weights,
                                     training->part * sizeof(float), err);
    }
    if (rc == 0) {
        rc = device->alloc_staging(training->device, bytes, &staging, err);
    }
    if (rc < 0) {
        return rc;
    }
    rc = copy(training, staging, training->weights, bytes, err);
    if (rc == 0) {
        rc = skrull_exec_finish(training->exec, err);
    }
    if (rc == 0) {
        memcpy(weights, staging, bytes);
    }
    device->release_staging(training->device, staging);
    return rc;
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
    rc = begin_step(training, err);
    for (size_t i = 0; i < n_sequences && rc == 0; i++) {
        double share = loss == SKRULL_LOSS_SEQUENCE_MEAN
                           ? (double)n_sequences * (double)sequences[i].length
                           : (double)n_tokens;

        rc = run_whole(training, &sequences[i], 1.0 / share, err);
    }
    if (rc == 0) {
        rc = update(training, err);
    }
    return rc < 0 ? rc : read_loss(training, ret_loss, err);
}

uint64_t training_peak_bytes(const struct training *training)
{
    size_t n = training->part * n_ranks(training);
    size_t n_states = training->options.is_sharded ? training->part : n;

    size_t n_copies = training->copies == training->weights ? 0 : n;

    return (2 * n + 2 * n_states) * sizeof(float) + n_copies * sizeof(uint16_t) +
           skrull_exec_peak_bytes(training->exec);
}
