/*
 * Exchange by MPI: nonblocking messages in MPI_COMM_WORLD, polled against a deadline, since MPI's
 * own waits know none. Between polls the processor is given up, or ranks that share a core would
 * starve each other. A rank that fails ends all by MPI_Abort: what has an unmatched message cannot
 * go on. Only the thread that opened it may call.
 */
#include <inttypes.h>
#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm.h"

/* Tag of the last words of a rank that fails, and how long the others have to say them. Those who
 * were told leave the abort to who told them: at each process that ends, mpirun, which ends all
 * ranks then, goes from SIGTERM on to SIGKILL, and one that computes may not have spoken yet. */
#define TAG_FAILURE 1000
#define GRACE_MS 1000
#define GRACE_TOLD_MS 4000

struct mpi_comm {
    struct skrull_comm comm;
    bool is_failed;
    bool is_told; /* by another rank that fails */
    char last_words[SKRULL_ERROR_MESSAGE_SIZE];
};

static struct mpi_comm *mpi_comm_of(struct skrull_comm *comm)
{
    return (struct mpi_comm *)(void *)comm;
}

/* Polls before it sleeps between them. */
#define EAGER_POLLS 200

static int translate(int code, const char *call, struct skrull_error *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int len = 0;

    (void)MPI_Error_string(code, text, &len);
    return skrull_error_set(err, SKRULL_ERR_UNAVAILABLE, "%s: %s", call, text);
}

/* A request is a pointer or a number, by implementation. */
_Static_assert(sizeof(MPI_Request) <= sizeof(void *), "requests fit a pointer");

static int mpi_begin(struct skrull_comm *comm, struct comm_transfer *transfer,
                     struct skrull_error *err)
{
    MPI_Request request;
    int code, peer = (int)transfer->peer, tag = (int)transfer->tag;

    (void)comm;
    if (transfer->bytes > INT_MAX) {
        return skrull_error_set(err, SKRULL_ERR_UNIMPLEMENTED,
                                "a message of %zu bytes: the MPI exchange sends at most %d",
                                transfer->bytes, INT_MAX);
    }
    if (transfer->is_send) {
        code = MPI_Isend(transfer->from, (int)transfer->bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD,
                         &request);
    } else {
        code = MPI_Irecv(transfer->to, (int)transfer->bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD,
                         &request);
    }
    if (code != MPI_SUCCESS) {
        return translate(code, transfer->is_send ? "MPI_Isend" : "MPI_Irecv", err);
    }
    memcpy(&transfer->handle, &request, sizeof(request));
    return 0;
}

/* 1: done, 0: not yet. */
static int poll_one(struct comm_transfer *transfer, struct skrull_error *err)
{
    MPI_Request request;
    MPI_Status status;
    int is_done = 0, n_bytes = 0, code;

    memcpy(&request, &transfer->handle, sizeof(request));
    code = MPI_Test(&request, &is_done, &status);
    memcpy(&transfer->handle, &request, sizeof(request));
    if (code != MPI_SUCCESS) {
        return translate(code, "MPI_Test", err);
    }
    if (is_done && !transfer->is_send) {
        (void)MPI_Get_count(&status, MPI_BYTE, &n_bytes);
        if ((size_t)n_bytes != transfer->bytes) {
            return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                                    "%d bytes came from data rank %" PRIu32
                                    " instead of %zu: it runs another plan",
                                    n_bytes, transfer->peer, transfer->bytes);
        }
    }
    transfer->is_done = is_done != 0;
    return is_done != 0;
}

static void give_way(uint32_t n_polls)
{
    const struct timespec nap = {.tv_nsec = 50000};

    if (n_polls < EAGER_POLLS) {
        (void)sched_yield();
    } else {
        (void)nanosleep(&nap, NULL);
    }
}

/* Has another rank failed? ABORTED, with what it said. */
static int check_failure(struct mpi_comm *mpi, struct skrull_error *err)
{
    char words[SKRULL_ERROR_MESSAGE_SIZE] = "";
    MPI_Status status;
    int is_there = 0;

    if (MPI_Iprobe(MPI_ANY_SOURCE, TAG_FAILURE, MPI_COMM_WORLD, &is_there, &status) !=
            MPI_SUCCESS ||
        !is_there ||
        MPI_Recv(words, (int)sizeof(words), MPI_CHAR, status.MPI_SOURCE, TAG_FAILURE,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
        return 0;
    }
    words[sizeof(words) - 1] = '\0';
    mpi->is_told = true;
    return skrull_error_set(err, SKRULL_ERR_ABORTED, "another rank gave up: %s", words);
}

static int mpi_wait(struct skrull_comm *comm, struct comm_transfer *transfers, size_t n,
                    struct skrull_error *err)
{
    int64_t deadline = comm_now_ns() + comm->timeout_ms * 1000000;
    uint32_t n_polls = 0;
    size_t i = 0;

    while (i < n) {
        int rc = poll_one(&transfers[i], err);

        if (rc < 0) {
            return rc;
        }
        if (rc > 0) {
            i++;
            continue;
        }
        rc = n_polls % 16 == 15 ? check_failure(mpi_comm_of(comm), err) : 0;
        if (rc < 0) {
            return rc;
        }
        if (comm_now_ns() > deadline) {
            return skrull_error_set(err, SKRULL_ERR_DEADLINE_EXCEEDED,
                                    "data rank %" PRIu32 " waited %" PRId64
                                    " ms for data rank %" PRIu32 ", which did not come",
                                    comm->rank, comm->timeout_ms, transfers[i].peer);
        }
        give_way(n_polls++);
    }
    return 0;
}

/* Short messages leave at once, whether they are received or not. The abort comes when the exchange
 * is freed: until then this rank can say why, since MPI_Abort does not return. */
static void mpi_fail(struct skrull_comm *comm, const struct skrull_error *why)
{
    struct mpi_comm *mpi = mpi_comm_of(comm);

    if (mpi->is_failed) {
        return;
    }
    mpi->is_failed = true;
    (void)snprintf(mpi->last_words, sizeof(mpi->last_words), "%s",
                   why ? why->message : "it did not say why");
    for (uint32_t r = 0; r < comm->size; r++) {
        MPI_Request request;

        if (r != comm->rank &&
            MPI_Isend(mpi->last_words, (int)sizeof(mpi->last_words), MPI_CHAR, (int)r, TAG_FAILURE,
                      MPI_COMM_WORLD, &request) == MPI_SUCCESS) {
            (void)MPI_Request_free(&request);
        }
    }
}

/* MPI moves messages only while it is called. */
static void linger(int64_t ms)
{
    int64_t until = comm_now_ns() + INT64_C(1000000) * ms;
    int is_there;

    while (comm_now_ns() < until) {
        (void)MPI_Iprobe(MPI_ANY_SOURCE, TAG_FAILURE, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
        give_way(EAGER_POLLS);
    }
}

static void mpi_free(struct skrull_comm *comm)
{
    if (mpi_comm_of(comm)->is_failed) {
        linger(mpi_comm_of(comm)->is_told ? GRACE_TOLD_MS : GRACE_MS);
        (void)MPI_Abort(MPI_COMM_WORLD, 1);
    }
    (void)MPI_Finalize();
    free(comm);
}

static int mpi_check(struct skrull_comm *comm, struct skrull_error *err)
{
    return check_failure(mpi_comm_of(comm), err);
}

static const struct comm_ops mpi_ops = {
    .name = "mpi",
    .begin = mpi_begin,
    .wait = mpi_wait,
    .check = mpi_check,
    .fail = mpi_fail,
    .free = mpi_free,
};

int skrull_comm_mpi(int64_t timeout_ms, struct skrull_comm **ret_comm, struct skrull_error *err)
{
    struct mpi_comm *comm = calloc(1, sizeof(*comm));
    int provided = 0, rank = 0, size = 0;
    int code;

    if (!comm) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "out of memory for the MPI exchange");
    }
    code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    if (code == MPI_SUCCESS) {
        (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        (void)MPI_Comm_size(MPI_COMM_WORLD, &size);
    }
    if (code != MPI_SUCCESS || provided < MPI_THREAD_FUNNELED) {
        free(comm);
        return skrull_error_set(err, SKRULL_ERR_UNAVAILABLE,
                                "MPI did not start (code %d, thread level %d)", code, provided);
    }
    comm->comm = (struct skrull_comm){
        .ops = &mpi_ops, .rank = (uint32_t)rank, .size = (uint32_t)size, .timeout_ms = timeout_ms};
    *ret_comm = &comm->comm;
    return 0;
}
