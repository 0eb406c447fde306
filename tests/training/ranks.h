/* A run of training in one process: every rank a thread, plans straight from the planner. */
#pragma once

#include <skrull/planner.h>

#include "training.h"

#define RANKS_MAX 8
#define RANKS_STEPS_MAX 20

/* A backend other than the CPU's; its functions are called in each rank's thread. */
struct ranks_backend {
    const char *name;
    enum skrull_dtype dtype;
    /* The exchange of the backend, over `host`, which it takes. */
    int (*open)(struct skrull_comm *host, struct skrull_comm **ret_comm, struct skrull_error *err);
    void (*end)(void);
};

/* What is trained, and how. */
struct ranks_run {
    const char *policy; /* NULL: nested_plan.h */
    uint32_t dp, cp, align;
    enum skrull_cp_mode cp_mode;
    enum skrull_shard shard;
    enum skrull_exchange exchange;
    enum skrull_loss loss;
    bool is_sharded, recompute, is_timed;
    int64_t timeout_ms;            /* 0: a minute */
    uint32_t n_steps, n_sequences; /* a step */
    uint32_t longest;              /* tokens; the batch of step 1 has one of four times that */
    uint32_t window;

    const char *model;                   /* NULL: tiny */
    const struct ranks_backend *backend; /* NULL: the CPU's, on threads */

    /* Called on every rank before its first step, in its thread: plants a fault. Nullable. */
    void (*plant)(struct training *training);
};

struct ranks_result {
    double losses[RANKS_STEPS_MAX];
    float *weights; /* [n_weights], owned */
    size_t n_weights;
    uint64_t peak_bytes;            /* of rank 0 */
    struct skrull_exec_times times; /* of rank 0, of all its micro-batches, if is_timed */
};

void ranks_result_free(struct ranks_result *result);

/* Runs it on dp x cp ranks. Fails the test where a rank fails. */
void ranks_train(const struct ranks_run *run, struct ranks_result *ret);

/* The same, but returns the first rank's failure, or DATA_LOSS where ranks differ. */
int ranks_try(const struct ranks_run *run, struct ranks_result *ret, struct skrull_error *err);

/* The same batches on one rank without any scheduling. */
void ranks_train_alone(const struct ranks_run *run, struct ranks_result *ret);

/* The largest difference: of losses relative to the loss, of weights absolute. */
double ranks_difference(const struct ranks_result *a, const struct ranks_result *b,
                        const struct ranks_run *run);
