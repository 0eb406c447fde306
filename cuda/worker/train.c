/*
 * Which ranks train here and how they exchange: one of several processes under MPI or, with GPUs,
 * another launcher; all of them as threads of this process; or a single one. Before that the job is
 * held against what this worker can honour. Each rank says itself why it fails.
 */
#include "train.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "signals.h"
#include "train_rank.h"

#define SEED 1 /* of the first weights */

static int refuse(struct skrull_error *err, const char *what)
{
    return skrull_error_set(err, SKRULL_ERR_UNIMPLEMENTED, "this worker cannot train so: %s", what);
}

/* Can this worker train as the job says? */
static int check_job(const struct skrull_job *job, const struct training_words *words,
                     struct skrull_error *err)
{
    if (job->parallel.tp > 1 || job->parallel.pp > 1) {
        return refuse(err, "parallel.tp and parallel.pp above 1 are not built");
    }
    if (job->training.lora_rank > 0) {
        return refuse(err, "training.lora_rank is not built");
    }
    if (job->loss == SKRULL_LOSS_NONE) {
        return refuse(err, "loss: none leaves the weights to the trainer, and this one has none");
    }
    if (job->training.recompute == SKRULL_RECOMPUTE_FULL && words->recompute == WORKER_BY_JOB) {
        return refuse(err, "training.recompute: full is not built; --recompute selective is");
    }
    if (words->n_tokens && words->n_tokens != job->n_data) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "--tokens: %zu given; the job has %" PRIu32 " data sets",
                                words->n_tokens, job->n_data);
    }
    return 0;
}

static int read_training(const struct skrull_job *job, const struct worker_options *options,
                         struct training_options *ret, struct skrull_error *err)
{
    const struct training_words *words = &options->training;

    *ret = (struct training_options){
        .exchange = words->is_ring ? SKRULL_EXCHANGE_RING : SKRULL_EXCHANGE_GATHER,
        .is_sharded = words->is_sharded == WORKER_BY_JOB
                          ? job->training.zero_stage != SKRULL_ZERO_STAGE_0
                          : words->is_sharded == WORKER_YES,
        .recompute = words->recompute == WORKER_BY_JOB
                         ? job->training.recompute == SKRULL_RECOMPUTE_SELECTIVE
                         : words->recompute == WORKER_YES,
        .learning_rate = TRAINING_LEARNING_RATE,
        .eps = TRAINING_EPS,
        .weight_decay = 0.01F,
        .seed = SEED,
        .backend = options->backend == WORKER_BACKEND_CUDA ? "cuda" : "cpu",
        .device = skrull_device_of_launcher()};
    return model_config_read(words->model, &ret->model, err);
}

static void *run_in_thread(void *arg)
{
    train_rank_run(arg);
    return NULL;
}

/* Is this a rank of several processes, whose launcher ends it where another one fails? */
static bool is_launched(const struct training_words *words)
{
    return words->comm == WORKER_COMM_MPI ||
           (words->comm == WORKER_COMM_DEFAULT && getenv("OMPI_COMM_WORLD_SIZE"));
}

/* All data ranks as threads. */
static enum worker_exit run_threads(const struct train_rank *like, uint32_t n_ranks)
{
    struct train_rank *ranks = calloc(n_ranks, sizeof(*ranks));
    struct skrull_comm **comms = calloc(n_ranks, sizeof(struct skrull_comm *));
    pthread_t *threads = calloc(n_ranks, sizeof(*threads));
    struct skrull_error err = {0};
    enum worker_exit status = WORKER_DONE;
    uint32_t n_started = 0;

    if (!ranks || !comms || !threads) {
        (void)skrull_error_set(&err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for ranks");
    } else if (skrull_comm_threads(n_ranks, (int64_t)like->options->training.timeout_ms, comms,
                                   &err) == 0) {
        for (; n_started < n_ranks; n_started++) {
            ranks[n_started] = *like;
            ranks[n_started].comm = comms[n_started];
            ranks[n_started].data_rank = n_started;
            if (pthread_create(&threads[n_started], NULL, run_in_thread, &ranks[n_started]) != 0) {
                (void)skrull_error_set(&err, SKRULL_ERR_RESOURCE_EXHAUSTED, "no more threads");
                skrull_comm_fail(comms[n_started], &err);
                break;
            }
        }
        for (uint32_t r = 0; r < n_started; r++) {
            (void)pthread_join(threads[r], NULL);
            status = status == WORKER_DONE ? ranks[r].status : status;
        }
        for (uint32_t r = 0; r < n_ranks; r++) {
            skrull_comm_free(comms[r]);
        }
    }
    free(ranks);
    free(comms);
    free(threads);
    return err.code < 0 ? worker_exit_of(&err) : status;
}

/* Is this process the rank that it is to be, of as many as the job has? */
static int check_ranks(const struct train_rank *rank, uint32_t n_ranks, struct skrull_error *err)
{
    if (skrull_comm_size(rank->comm) == n_ranks &&
        skrull_comm_rank(rank->comm) == rank->data_rank) {
        return 0;
    }
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "the job has %" PRIu32 " data ranks and this is to be %" PRIu32
                            "; %s says %" PRIu32 " of %" PRIu32 ": run %s %" PRIu32,
                            n_ranks, rank->data_rank, rank->is_mpi ? "MPI" : "its environment",
                            skrull_comm_rank(rank->comm), skrull_comm_size(rank->comm),
                            rank->is_mpi ? "mpirun -n" : "as many processes:", n_ranks);
}

/* How the ranks find each other and, with GPUs, exchange by NCCL from then on. */
static int open_comm(struct train_rank *rank, uint32_t n_ranks, struct skrull_error *err)
{
    int64_t timeout_ms = (int64_t)rank->options->training.timeout_ms;
    struct skrull_comm *host;
    int rc = rank->is_mpi ? skrull_comm_mpi(timeout_ms, &rank->comm, err)
                          : skrull_comm_tcp(timeout_ms, &rank->comm, err);

    if (rc < 0) {
        return rc;
    }
    signals_alarm(0);
    rc = check_ranks(rank, n_ranks, err);
    if (rc == 0 && rank->options->backend == WORKER_BACKEND_CUDA) {
        host = rank->comm;
        rc =
            skrull_comm_nccl(host, rank->training.device, rank->job->parallel.cp, &rank->comm, err);
    }
    if (rc < 0) {
        skrull_comm_fail(rank->comm, err);
    }
    return rc;
}

/* This process is one of the ranks. The alarm bounds what MPI itself does not. */
static enum worker_exit run_process(struct train_rank *rank, uint32_t n_ranks)
{
    uint64_t timeout_ms = rank->options->training.timeout_ms;
    struct skrull_error err;

    signals_alarm(timeout_ms);
    if (open_comm(rank, n_ranks, &err) < 0) {
        rank->status = worker_exit_of(&err);
    } else {
        train_rank_run(rank);
    }
    signals_alarm(timeout_ms);
    skrull_comm_free(rank->comm);
    signals_alarm(0);
    return rank->status;
}

/* By what this process was started, unless the command line says it. */
static enum worker_comm default_comm(const struct worker_options *options, uint32_t n_ranks)
{
    bool is_cuda = options->backend == WORKER_BACKEND_CUDA;

    if (is_launched(&options->training)) {
        return WORKER_COMM_MPI;
    }
    if (n_ranks > 1) {
        return is_cuda && (getenv("RANK") || getenv("SLURM_PROCID")) ? WORKER_COMM_TCP
                                                                     : WORKER_COMM_MPI;
    }
    return WORKER_COMM_NONE;
}

int train_find_device(struct skrull_error *err)
{
    struct device *device;
    int rc = device_open("cuda", skrull_device_of_launcher(), &device, err);

    if (rc == 0) {
        device_close(device);
    }
    return rc;
}

static enum worker_exit run_ranks(struct train_rank *rank, uint32_t n_ranks)
{
    const struct training_words *words = &rank->options->training;
    enum worker_comm comm = words->comm;
    struct skrull_error err;

    if (words->is_unscheduled) {
        train_rank_run_unscheduled(rank);
        return rank->status;
    }
    if (comm == WORKER_COMM_DEFAULT) {
        comm = default_comm(rank->options, n_ranks);
    }
    if (comm == WORKER_COMM_THREADS) {
        return run_threads(rank, n_ranks);
    }
    if (comm == WORKER_COMM_MPI || comm == WORKER_COMM_TCP) {
        rank->is_mpi = comm == WORKER_COMM_MPI;
        return run_process(rank, n_ranks);
    }
    if (n_ranks > 1) {
        (void)skrull_error_set(
            &err, SKRULL_ERR_INVALID_ARGUMENT,
            "--comm none: the job has %" PRIu32 " data ranks, which must exchange", n_ranks);
        return worker_exit_of(&err);
    }
    train_rank_run(rank);
    return rank->status;
}

enum worker_exit train_job(struct skrull_client *client, const struct worker_options *options)
{
    struct train_rank rank = {
        .options = options, .client = client, .data_rank = options->data_rank};
    struct skrull_job *job;
    struct skrull_error err;
    enum worker_exit status;

    if (is_launched(&options->training)) {
        signals_catch();
    }
    if (skrull_client_get_job(client, options->job, &job, &err) < 0) {
        return worker_exit_of(&err);
    }
    rank.job = job;
    if (check_job(job, &options->training, &err) < 0 ||
        read_training(job, options, &rank.training, &err) < 0) {
        status = worker_exit_of(&err);
    } else {
        status = run_ranks(&rank, job->parallel.dp * job->parallel.cp);
    }
    skrull_job_free(job);
    return status;
}
