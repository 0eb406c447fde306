/*
 * Exchange between threads of one process. A message is copied by whoever comes second; what came
 * first waits in a queue of its pair of ranks. One lock and one condition for the whole world: this
 * backend is for tests and for trying things out. The first failure is everybody's: from then on no
 * queue is touched, so memory that it refers to may go.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm.h"

/* Transfers that were begun and have no counterpart yet, oldest first. */
struct queue {
    struct comm_transfer *first, *last;
};

struct world {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t n_ranks, n_ends;    /* ends: comms that were not freed yet */
    struct queue *sends, *takes; /* [from x n_ranks + to] */
    int failure;                 /* 0, or the code of the first */
    struct skrull_error why;
};

struct threads_comm {
    struct skrull_comm comm;
    struct world *world; /* shared, freed with the last */
};

static struct world *world_of(struct skrull_comm *comm)
{
    return ((struct threads_comm *)(void *)comm)->world;
}

static void queue_push(struct queue *queue, struct comm_transfer *transfer)
{
    transfer->next = NULL;
    if (queue->last) {
        queue->last->next = transfer;
    } else {
        queue->first = transfer;
    }
    queue->last = transfer;
}

static struct comm_transfer *queue_pop(struct queue *queue)
{
    struct comm_transfer *transfer = queue->first;

    if (transfer) {
        queue->first = transfer->next;
        queue->last = queue->first ? queue->last : NULL;
    }
    return transfer;
}

/* Under the lock. */
static void world_fail(struct world *world, int code, const char *message)
{
    if (!world->failure) {
        world->failure = code;
        (void)skrull_error_set(&world->why, code, "%s", message);
    }
    (void)pthread_cond_broadcast(&world->changed);
}

/* Under the lock. */
static int world_check(const struct world *world, struct skrull_error *err)
{
    return world->failure ? skrull_error_set(err, SKRULL_ERR_ABORTED, "another rank gave up: %s",
                                             world->why.message)
                          : 0;
}

/* Under the lock: both ends of a message are here. */
static int deliver(struct world *world, struct comm_transfer *send, struct comm_transfer *take,
                   struct skrull_error *err)
{
    if (send->tag != take->tag || send->bytes != take->bytes) {
        (void)skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                               "ranks exchange different things (kind %d of %zu bytes, kind %d of "
                               "%zu): they run different plans",
                               (int)send->tag, send->bytes, (int)take->tag, take->bytes);
        world_fail(world, SKRULL_ERR_DATA_LOSS, "ranks exchange different things");
        return SKRULL_ERR_DATA_LOSS;
    }
    if (send->bytes) {
        memcpy(take->to, send->from, send->bytes);
    }
    send->is_done = take->is_done = true;
    (void)pthread_cond_broadcast(&world->changed);
    return 0;
}

static int threads_begin(struct skrull_comm *comm, struct comm_transfer *transfer,
                         struct skrull_error *err)
{
    struct world *world = world_of(comm);
    size_t from = transfer->is_send ? comm->rank : transfer->peer;
    size_t to = transfer->is_send ? transfer->peer : comm->rank;
    size_t pair = from * world->n_ranks + to;
    struct queue *own = transfer->is_send ? &world->sends[pair] : &world->takes[pair];
    struct queue *others = transfer->is_send ? &world->takes[pair] : &world->sends[pair];
    struct comm_transfer *other;
    int rc;

    (void)pthread_mutex_lock(&world->lock);
    rc = world_check(world, err);
    if (rc == 0) {
        other = queue_pop(others);
        if (!other) {
            queue_push(own, transfer);
        } else {
            rc = transfer->is_send ? deliver(world, transfer, other, err)
                                   : deliver(world, other, transfer, err);
        }
    }
    (void)pthread_mutex_unlock(&world->lock);
    return rc;
}

static const struct comm_transfer *first_open(const struct comm_transfer *transfers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!transfers[i].is_done) {
            return &transfers[i];
        }
    }
    return NULL;
}

static struct timespec deadline_after(int64_t ms)
{
    int64_t ns = comm_now_ns() + ms * 1000000;

    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
                             .tv_nsec = (long)(ns % 1000000000)};
}

static int threads_wait(struct skrull_comm *comm, struct comm_transfer *transfers, size_t n,
                        struct skrull_error *err)
{
    struct world *world = world_of(comm);
    struct timespec deadline = deadline_after(comm->timeout_ms);
    const struct comm_transfer *open;
    int rc = 0;

    (void)pthread_mutex_lock(&world->lock);
    while (rc == 0 && (open = first_open(transfers, n)) != NULL) {
        rc = world_check(world, err);
        if (rc == 0 &&
            pthread_cond_timedwait(&world->changed, &world->lock, &deadline) == ETIMEDOUT &&
            !open->is_done && !world->failure) {
            rc = skrull_error_set(err, SKRULL_ERR_DEADLINE_EXCEEDED,
                                  "data rank %" PRIu32 " waited %" PRId64
                                  " ms for data rank %" PRIu32 ", which did not come",
                                  comm->rank, comm->timeout_ms, open->peer);
            world_fail(world, rc, err ? err->message : "a peer did not come");
        }
    }
    (void)pthread_mutex_unlock(&world->lock);
    return rc;
}

static int threads_check(struct skrull_comm *comm, struct skrull_error *err)
{
    struct world *world = world_of(comm);
    int rc;

    (void)pthread_mutex_lock(&world->lock);
    rc = world_check(world, err);
    (void)pthread_mutex_unlock(&world->lock);
    return rc;
}

static void threads_fail(struct skrull_comm *comm, const struct skrull_error *why)
{
    struct world *world = world_of(comm);

    (void)pthread_mutex_lock(&world->lock);
    world_fail(world, SKRULL_ERR_ABORTED, why ? why->message : "it did not say why");
    (void)pthread_mutex_unlock(&world->lock);
}

static void world_free(struct world *world)
{
    (void)pthread_mutex_destroy(&world->lock);
    (void)pthread_cond_destroy(&world->changed);
    free(world->sends);
    free(world->takes);
    free(world);
}

static void threads_free(struct skrull_comm *comm)
{
    struct world *world = world_of(comm);
    bool is_last;

    (void)pthread_mutex_lock(&world->lock);
    is_last = --world->n_ends == 0;
    (void)pthread_mutex_unlock(&world->lock);
    if (is_last) {
        world_free(world);
    }
    free(comm);
}

static const struct comm_ops threads_ops = {
    .name = "threads",
    .begin = threads_begin,
    .wait = threads_wait,
    .check = threads_check,
    .fail = threads_fail,
    .free = threads_free,
};

static struct world *world_new(uint32_t n_ranks)
{
    struct world *world = calloc(1, sizeof(*world));
    pthread_condattr_t attributes;

    if (!world) {
        return NULL;
    }
    world->n_ranks = world->n_ends = n_ranks;
    world->sends = calloc((size_t)n_ranks * n_ranks, sizeof(world->sends[0]));
    world->takes = calloc((size_t)n_ranks * n_ranks, sizeof(world->takes[0]));
    (void)pthread_mutex_init(&world->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&world->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    if (!world->sends || !world->takes) {
        world_free(world);
        return NULL;
    }
    return world;
}

int skrull_comm_threads(uint32_t n_ranks, int64_t timeout_ms, struct skrull_comm **ret_comms,
                        struct skrull_error *err)
{
    struct world *world = n_ranks ? world_new(n_ranks) : NULL;
    struct threads_comm *comm = NULL;

    for (uint32_t r = 0; world && r < n_ranks; r++) {
        comm = calloc(1, sizeof(*comm));
        if (!comm) {
            world->n_ends = r ? r : 1;
            for (uint32_t i = 0; i < r; i++) {
                skrull_comm_free(ret_comms[i]);
            }
            if (r == 0) {
                world_free(world);
            }
            break;
        }
        comm->comm = (struct skrull_comm){
            .ops = &threads_ops, .rank = r, .size = n_ranks, .timeout_ms = timeout_ms};
        comm->world = world;
        ret_comms[r] = &comm->comm;
    }
    return comm ? 0
                : skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                   "out of memory for the exchange of %" PRIu32 " ranks", n_ranks);
}
