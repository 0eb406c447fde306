/*
 * What ranks do together, from messages between two: gather (everybody sends its block to
 * everybody), reduce-scatter (everybody sends each its part, which adds them up by ascending rank),
 * and from both the sum over all ranks. Direct messages suit groups of one node or few; larger
 * rings of them would only trade latency for the same bytes. No state, one thread a rank.
 */
#include "comm.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ckd.h"

int64_t comm_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int out_of_memory(struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for an exchange");
}

int comm_batch_init(struct comm_batch *batch, size_t capacity, struct skrull_error *err)
{
    *batch = (struct comm_batch){.capacity = capacity};
    batch->transfers = calloc(capacity ? capacity : 1, sizeof(batch->transfers[0]));
    return batch->transfers ? 0 : out_of_memory(err);
}

void comm_batch_deinit(struct comm_batch *batch)
{
    free(batch->transfers);
    *batch = (struct comm_batch){0};
}

static int begin(struct comm_batch *batch, struct skrull_comm *comm,
                 const struct comm_transfer *transfer, struct skrull_error *err)
{
    int rc;

    if (!comm->ops->begin) {
        return skrull_error_set(err, SKRULL_ERR_UNIMPLEMENTED,
                                "the %s exchange carries no messages between two ranks",
                                comm->ops->name);
    }
    if (batch->n == batch->capacity) {
        return skrull_error_set(err, SKRULL_ERR_INTERNAL,
                                "an exchange of more than %zu messages was not planned for",
                                batch->capacity);
    }
    if (batch->n == 0) {
        batch->begun_ns = comm_now_ns();
    }
    batch->transfers[batch->n] = *transfer;
    rc = comm->ops->begin(comm, &batch->transfers[batch->n], err);
    batch->n += rc == 0;
    return rc;
}

int comm_batch_send(struct comm_batch *batch, struct skrull_comm *comm, uint32_t peer,
                    enum comm_tag tag, const void *from, size_t bytes, struct skrull_error *err)
{
    const struct comm_transfer transfer = {
        .is_send = true, .peer = peer, .tag = tag, .from = from, .bytes = bytes};

    return begin(batch, comm, &transfer, err);
}

int comm_batch_receive(struct comm_batch *batch, struct skrull_comm *comm, uint32_t peer,
                       enum comm_tag tag, void *to, size_t bytes, struct skrull_error *err)
{
    const struct comm_transfer transfer = {.peer = peer, .tag = tag, .to = to, .bytes = bytes};

    return begin(batch, comm, &transfer, err);
}

int comm_batch_wait(struct comm_batch *batch, struct skrull_comm *comm, struct comm_times *times,
                    struct skrull_error *err)
{
    int64_t started = comm_now_ns(), ended;
    int rc;

    if (batch->n == 0) {
        return 0;
    }
    rc = comm->ops->wait(comm, batch->transfers, batch->n, err);
    ended = comm_now_ns();
    if (times) {
        times->wait_ns += ended - started;
        times->busy_ns += ended - batch->begun_ns;
    }
    if (rc == 0) {
        batch->n = 0;
    }
    return rc;
}

int comm_begin_gather(struct comm_batch *batch, struct skrull_comm *comm,
                      const struct comm_group *group, enum comm_tag tag, void *blocks, size_t bytes,
                      struct skrull_error *err)
{
    char *at = blocks;
    int rc = 0;

    for (uint32_t m = 0; m < group->size && rc == 0; m++) {
        if (m != group->member) {
            rc = comm_batch_receive(batch, comm, group->first + m, tag, at + m * bytes, bytes, err);
        }
    }
    for (uint32_t m = 0; m < group->size && rc == 0; m++) {
        if (m != group->member) {
            rc = comm_batch_send(batch, comm, group->first + m, tag, at + group->member * bytes,
                                 bytes, err);
        }
    }
    return rc;
}

int comm_begin_scatter(struct comm_batch *batch, struct skrull_comm *comm,
                       const struct comm_group *group, enum comm_tag tag, const float *parts,
                       float *received, size_t n, struct skrull_error *err)
{
    size_t bytes = n * sizeof(float);
    int rc = 0;

    for (uint32_t m = 0; m < group->size && rc == 0; m++) {
        if (m != group->member) {
            rc = comm_batch_receive(batch, comm, group->first + m, tag, received + m * n, bytes,
                                    err);
        }
    }
    for (uint32_t m = 0; m < group->size && rc == 0; m++) {
        if (m != group->member) {
            rc = comm_batch_send(batch, comm, group->first + m, tag, parts + m * n, bytes, err);
        }
    }
    return rc;
}

void comm_add_parts(const struct comm_group *group, const float *mine, const float *received,
                    size_t n, float *sum)
{
    for (uint32_t m = 0; m < group->size; m++) {
        const float *part = m == group->member ? mine : received + m * n;

        for (size_t i = 0; i < n; i++) {
            sum[i] += part[i];
        }
    }
}

/* All ranks as one group. */
static struct comm_group everybody(const struct skrull_comm *comm)
{
    return (struct comm_group){.first = 0, .size = comm->size, .member = comm->rank};
}

int skrull_comm_gather(struct skrull_comm *comm, const void *mine, size_t bytes, void *all,
                       struct skrull_error *err)
{
    const struct comm_group group = everybody(comm);
    struct comm_batch batch;
    int rc;

    if (comm->ops->gather) {
        return comm->ops->gather(comm, mine, bytes, all, err);
    }
    rc = comm_batch_init(&batch, 2 * (size_t)comm->size, err);
    if (rc < 0) {
        return rc;
    }
    memcpy((char *)all + comm->rank * bytes, mine, bytes);
    rc = comm_begin_gather(&batch, comm, &group, COMM_GATHER, all, bytes, err);
    if (rc == 0) {
        rc = comm_batch_wait(&batch, comm, NULL, err);
    }
    if (rc < 0) {
        skrull_comm_fail(comm, err);
    }
    comm_batch_deinit(&batch);
    return rc;
}

int skrull_comm_share_parts(struct skrull_comm *comm, float *values, size_t part,
                            struct skrull_error *err)
{
    return comm->size == 1 ? 0
                           : skrull_comm_gather(comm, values + comm->rank * part,
                                                part * sizeof(float), values, err);
}

static int sum_part(struct skrull_comm *comm, struct comm_batch *batch, float *values,
                    float *received, size_t part, struct skrull_error *err)
{
    const struct comm_group group = everybody(comm);
    float *mine = values + comm->rank * part, *kept = received + comm->rank * part;
    int rc = comm_begin_scatter(batch, comm, &group, COMM_SUM, values, received, part, err);

    if (rc == 0) {
        rc = comm_batch_wait(batch, comm, NULL, err);
    }
    if (rc < 0) {
        skrull_comm_fail(comm, err);
        return rc;
    }
    memcpy(kept, mine, part * sizeof(float));
    memset(mine, 0, part * sizeof(float));
    comm_add_parts(&group, kept, received, part, mine);
    return 0;
}

int skrull_comm_sum_part(struct skrull_comm *comm, float *values, size_t part,
                         struct skrull_error *err)
{
    struct comm_batch batch;
    float *received;
    size_t n;
    int rc;

    if (comm->size == 1 || part == 0) {
        return 0;
    }
    if (ckd_mul(&n, part, (size_t)comm->size)) {
        return out_of_memory(err);
    }
    received = calloc(n, sizeof(float));
    rc = received ? comm_batch_init(&batch, 2 * (size_t)comm->size, err) : out_of_memory(err);
    if (rc == 0) {
        rc = sum_part(comm, &batch, values, received, part, err);
        comm_batch_deinit(&batch);
    }
    free(received);
    return rc;
}

int skrull_comm_sum(struct skrull_comm *comm, float *values, size_t n, struct skrull_error *err)
{
    size_t part = (n + comm->size - 1) / comm->size;
    float *padded;
    int rc;

    if (comm->size == 1 || n == 0) {
        return 0;
    }
    padded = calloc(part * comm->size, sizeof(float));
    if (!padded) {
        return out_of_memory(err);
    }
    memcpy(padded, values, n * sizeof(float));
    rc = skrull_comm_sum_part(comm, padded, part, err);
    if (rc == 0) {
        rc = skrull_comm_share_parts(comm, padded, part, err);
    }
    if (rc == 0) {
        memcpy(values, padded, n * sizeof(float));
    }
    free(padded);
    return rc;
}

uint32_t skrull_comm_rank(const struct skrull_comm *comm)
{
    return comm->rank;
}

uint32_t skrull_comm_size(const struct skrull_comm *comm)
{
    return comm->size;
}

void skrull_comm_fail(struct skrull_comm *comm, const struct skrull_error *why)
{
    comm->ops->fail(comm, why);
}

void skrull_comm_free(struct skrull_comm *comm)
{
    if (comm) {
        comm->ops->free(comm);
    }
}
