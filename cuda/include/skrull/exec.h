/*
 * Running plans, for those who bring their own layers: exchange between ranks, attention over local
 * and distributed sequences, and the walk through a rank's micro-batches. Tensors have one row a
 * token of the layout's packed buffer; `void` ones are of the exec's dtype. One thread a rank at a
 * time.
 *
 * A trainer is a table of callbacks (struct skrull_trainer). For each micro-batch, dummies
 * included: begin; for each layer ascending: before_attention, attention, after_attention; turn;
 * for each layer descending: after_attention_backward, attention, before_attention_backward; end.
 * Without the last two there is no way back: a validation run. Summing gradients over ranks and the
 * optimizer's step are the trainer's (skrull_exec_sum_parts).
 *
 * Where the backend is a device, tensors lie in its memory, callbacks only enqueue their work on
 * skrull_exec_stream, and exchanges run beside it on a stream of their own; nothing waits for the
 * device until skrull_exec_finish.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/cuda.h>
#include <skrull/error.h>
#include <skrull/layout.h>
#include <skrull/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One rank's end of the exchange between all data ranks. */
struct skrull_comm;

/*
 * All ranks in this process, a thread each: fills ret_comms [n_ranks], to be freed one by one with
 * skrull_comm_free. Whoever waits for longer than timeout_ms gives up, and with it all others.
 */
SKRULL_API int skrull_comm_threads(uint32_t n_ranks, int64_t timeout_ms,
                                   struct skrull_comm **ret_comms, struct skrull_error *err);

/*
 * The ranks of MPI_COMM_WORLD as data ranks; starts MPI, which the last skrull_comm_free ends. One
 * a process, from one thread. UNIMPLEMENTED: built without MPI. A rank that fails ends all others
 * by MPI_Abort (skrull_comm_fail).
 */
SKRULL_API int skrull_comm_mpi(int64_t timeout_ms, struct skrull_comm **ret_comm,
                               struct skrull_error *err);

/*
 * The ranks of processes that were started without MPI, by TCP to data rank 0, which listens:
 * RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun sets them (one port further where it
 * listens itself), or SLURM_PROCID, SLURM_NTASKS and the first of SLURM_STEP_NODELIST, with a port
 * from SLURM_JOB_ID. SKRULL_PORT decides over all. Carries skrull_comm_gather only: it is there to
 * start NCCL. INVALID_ARGUMENT names the variable that is missing or wrong.
 */
SKRULL_API int skrull_comm_tcp(int64_t timeout_ms, struct skrull_comm **ret_comm,
                               struct skrull_error *err);

/*
 * Between GPUs by NCCL, a rank a GPU: this one's is `device`. The ranks are those of `host`, which
 * carries what lies on hosts (skrull_comm_gather, and who gives up) and from then on belongs to the
 * new comm; after an error it does not. Communicators are made once for all sizes of groups that
 * plans of a job with that `cp` have; 0: for all divisors of the number of ranks.
 * UNIMPLEMENTED: built without. Memory that it sums and shares is the device's: skrull_exec_*.
 */
SKRULL_API int skrull_comm_nccl(struct skrull_comm *host, int device, uint32_t cp,
                                struct skrull_comm **ret_comm, struct skrull_error *err);
SKRULL_API void skrull_comm_free(struct skrull_comm *comm);

SKRULL_API uint32_t skrull_comm_rank(const struct skrull_comm *comm);
SKRULL_API uint32_t skrull_comm_size(const struct skrull_comm *comm);

/* This rank gives up: the others, which may wait for it, end with an error that carries `why`. Call
 * it after a failure before memory is freed that an exchange may still use. */
SKRULL_API void skrull_comm_fail(struct skrull_comm *comm, const struct skrull_error *why);

/* all [size][bytes] = every rank's `mine`, by data rank. */
SKRULL_API int skrull_comm_gather(struct skrull_comm *comm, const void *mine, size_t bytes,
                                  void *all, struct skrull_error *err);

/*
 * Before a step: were all ranks given parts of the same plan? They gather step, job and digests.
 * `plan` (of one rank; NULL: this rank has no more plans). FAILED_PRECONDITION, the same on all
 * ranks, names the first rank that differs: another job, another step, another plan, or digests of
 * ranks that do not make up the plan's.
 */
SKRULL_API int skrull_comm_check_plan(struct skrull_comm *comm, const struct skrull_plan *plan,
                                      struct skrull_error *err);

/* values [n] = the sum over all ranks, the same bits on each. */
SKRULL_API int skrull_comm_sum(struct skrull_comm *comm, float *values, size_t n,
                               struct skrull_error *err);

/* The same in two halves. values is [size][part]: after the first, part `rank` holds the sum over
 * all ranks; the second gives every rank all parts. */
SKRULL_API int skrull_comm_sum_part(struct skrull_comm *comm, float *values, size_t part,
                                    struct skrull_error *err);
SKRULL_API int skrull_comm_share_parts(struct skrull_comm *comm, float *values, size_t part,
                                       struct skrull_error *err);

/* How keys and values of distributed sequences travel. */
enum skrull_exchange {
    SKRULL_EXCHANGE_GATHER, /* all at once; gradients return by a reduce-scatter */
    SKRULL_EXCHANGE_RING,   /* block by block around the group, which holds two at a time */
};

struct skrull_attention_shape {
    uint32_t heads, kv_heads, head_dim;
    float scale;
    bool causal;
    uint32_t window; /* 0: none */
};

struct skrull_exec;

/* Callbacks return 0 or a negative enum skrull_err, which ends the run. */
struct skrull_trainer {
    void *arg;
    uint32_t n_layers;
    struct skrull_attention_shape shape;

    /* Selective recomputation: queries, keys and values are not kept; before_attention is called
     * once more for each layer on the way back, before after_attention_backward. */
    bool recompute;

    /* Bytes that the trainer takes (skrull_exec_take) in one micro-batch; NULL: none. */
    size_t (*bytes)(void *arg, const struct skrull_layout_limits *limits);

    /* `layout` and what is taken from `exec` live until after `end`. */
    int (*begin)(void *arg, struct skrull_exec *exec, const struct skrull_layout *layout,
                 struct skrull_error *err);

    /* Writes q [rows][heads][head_dim], k and v [rows][kv_heads][head_dim]. */
    int (*before_attention)(void *arg, uint32_t layer, void *q, void *k, void *v,
                            struct skrull_error *err);
    /* Takes out [rows][heads][head_dim]; 0 in rows of padding. */
    int (*after_attention)(void *arg, uint32_t layer, const void *out, struct skrull_error *err);

    /* The loss and the beginning of the way back; NULL: nothing to do. */
    int (*turn)(void *arg, struct skrull_error *err);

    /* Writes the gradient of out; NULL: there is no way back. */
    int (*after_attention_backward)(void *arg, uint32_t layer, const void *out, void *dout,
                                    struct skrull_error *err);
    /* Takes the gradients of q, k, v, float whatever the dtype, and may change them. */
    int (*before_attention_backward)(void *arg, uint32_t layer, float *dq, float *dk, float *dv,
                                     struct skrull_error *err);
    int (*end)(void *arg, struct skrull_error *err); /* NULL: nothing to do */

    /* The trainer's own attention; NULL: that of the backend. */
    int (*attention)(void *arg, const struct skrull_attention *attention, struct skrull_error *err);
    int (*attention_backward)(void *arg, const struct skrull_attention_backward *attention,
                              struct skrull_error *err);
};

struct skrull_exec_options {
    const char *backend;      /* NULL: cpu */
    struct skrull_comm *comm; /* borrowed; NULL: one rank alone */
    enum skrull_exchange exchange;
    enum skrull_dtype dtype; /* 0: the backend's usual, F32 on cpu, BF16 on cuda */
    int device;              /* of the backend; skrull_device_of_launcher */
    bool has_stream;         /* compute on the caller's `stream`, else on one of its own */
    void *stream;            /* cudaStream_t, borrowed */
};

/* The device that the launcher gives this process: LOCAL_RANK, OMPI_COMM_WORLD_LOCAL_RANK or
 * SLURM_LOCALID; 0 without any. */
SKRULL_API int skrull_device_of_launcher(void);

/* What a micro-batch took. */
struct skrull_exec_times {
    int64_t compute_busy_ns, compute_wait_ns; /* wait: for an exchange, nothing to compute */
    int64_t exchange_busy_ns;                 /* from the start of each exchange to its end */
    int64_t exchange_wait_ns;                 /* of these, not hidden behind computing */
};

SKRULL_API int skrull_exec_new(const struct skrull_exec_options *options,
                               struct skrull_exec **ret_exec, struct skrull_error *err);
SKRULL_API void skrull_exec_free(struct skrull_exec *exec);

/*
 * Runs all micro-batches of rank `i_rank` of `plan` (0 for a RankPlan). times [n_micro_batches of
 * the rank], nullable; with them a device is waited for behind the last one. INVALID_ARGUMENT: a
 * plan that breaks a rule, or of another number of ranks. DEADLINE_EXCEEDED: a peer did not come.
 * ABORTED: another rank gave up. After an error neither `exec` nor its comm can be used but to free
 * them.
 */
SKRULL_API int skrull_exec_run(struct skrull_exec *exec, const struct skrull_plan *plan,
                               size_t i_rank, const struct skrull_trainer *trainer,
                               struct skrull_exec_times *times, struct skrull_error *err);

/* Runs one micro-batch by its layout; `limits` bound all layouts that this exec is to run. */
SKRULL_API int skrull_exec_run_layout(struct skrull_exec *exec, const struct skrull_layout *layout,
                                      const struct skrull_layout_limits *limits,
                                      const struct skrull_trainer *trainer,
                                      struct skrull_exec_times *times, struct skrull_error *err);

/* Memory of the running micro-batch, 64-byte aligned, undefined; NULL: more than `bytes` announced.
 */
SKRULL_API void *skrull_exec_take(struct skrull_exec *exec, size_t bytes);

/* Copies `bytes` of the host to what was taken, as the next work of the compute stream; `from` is
 * free on return. At most 16 bytes a row in one micro-batch. */
SKRULL_API int skrull_exec_put(struct skrull_exec *exec, void *to, const void *from, size_t bytes,
                               struct skrull_error *err);

/* What operators take: the stream to enqueue on (NULL on cpu), the dtype, and the running layout
 * with its maps (rows, weights, groups) in the backend's memory. */
SKRULL_API void *skrull_exec_stream(const struct skrull_exec *exec);
SKRULL_API enum skrull_dtype skrull_exec_dtype(const struct skrull_exec *exec);
SKRULL_API const struct skrull_layout *skrull_exec_layout(const struct skrull_exec *exec);

/* skrull_comm_sum_part and skrull_comm_share_parts for the backend's memory, after all that was
 * enqueued and before what will be. share: parts [size][bytes]. Nothing without a comm. */
SKRULL_API int skrull_exec_sum_parts(struct skrull_exec *exec, float *values, size_t part,
                                     struct skrull_error *err);
SKRULL_API int skrull_exec_share_parts(struct skrull_exec *exec, void *values, size_t bytes,
                                       struct skrull_error *err);

/* Waits until all that was enqueued is done. DEADLINE_EXCEEDED: the comm's time-out has passed, so
 * a peer did not come. INTERNAL: work failed on the device. */
SKRULL_API int skrull_exec_finish(struct skrull_exec *exec, struct skrull_error *err);

/* The most that its one arena has held. */
SKRULL_API uint64_t skrull_exec_peak_bytes(const struct skrull_exec *exec);

#ifdef __cplusplus
}
#endif
