/* Training a decoder by plans: weights, gradients, the optimizer's states, one step. */
#pragma once

#include <skrull/exec.h>
#include <skrull/types.h>

#include "decoder.h"
#include "tokens.h"

struct training_options {
    struct model_config model;
    enum skrull_exchange exchange;
    bool is_sharded; /* optimizer states: each rank those of its part (ZeRO-1); else all of them */
    bool recompute;  /* selective */
    float learning_rate, eps, weight_decay;
    uint64_t seed;           /* of the first weights */
    const char *backend;     /* NULL: cpu */
    enum skrull_dtype dtype; /* 0: the backend's usual */
    int device;              /* of the backend */
};

/* Learning rate and eps of the examples. */
#define TRAINING_LEARNING_RATE 1e-3F
#define TRAINING_EPS 1e-6F

struct training {
    struct training_options options;
    struct skrull_comm *comm;          /* borrowed; NULL: alone */
    const struct token_source *tokens; /* borrowed */
    struct decoder_shape shape;
    struct decoder decoder;
    struct skrull_trainer trainer; /* the decoder's */
    struct skrull_exec *exec;
    struct device *device;
    size_t part; /* weights of a rank's part; all arrays are [ranks][part] */
    /* In the device's memory. If sharded and in a short dtype, only this rank's part of `weights`
     * is up to date, and all of the copies. */
    float *weights, *gradients;
    void *copies; /* of the weights in the dtype; F32: the weights */
    float *m, *v; /* [part] if sharded */
    double *loss; /* [1] */
    float *frequencies;
    double *host_loss; /* page-locked */
    uint64_t n_steps;  /* of the optimizer */
};

int training_init(struct training *training, const struct training_options *options,
                  struct skrull_comm *comm, const struct token_source *tokens,
                  struct skrull_error *err);
void training_deinit(struct training *training);

/* One step by this rank's plan. ret_loss: of the global batch, the same on all ranks. times: as in
 * skrull_exec_run. */
int training_step(struct training *training, const struct skrull_plan *plan, size_t i_rank,
                  struct skrull_exec_times *times, double *ret_loss, struct skrull_error *err);

/* The same step without a scheduler: every sequence of the batch whole, one after the other, on
 * this rank alone. It shares neither layout nor loss weights with the above. */
struct training_sequence {
    uint64_t index;
    uint32_t dataset, length;
};
int training_step_unscheduled(struct training *training, const struct training_sequence *sequences,
                              size_t n_sequences, enum skrull_loss loss, double *ret_loss,
                              struct skrull_error *err);

/* weights [shape.n_weights] of the host = the current ones. All ranks call it. */
int training_read_weights(struct training *training, float *weights, struct skrull_error *err);

/* Bytes that it holds: weights, gradients, states, and the most its arena held. */
uint64_t training_peak_bytes(const struct training *training);
