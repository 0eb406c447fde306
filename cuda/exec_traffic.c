/*
 * What travels between ranks, in either of two shapes. Between hosts: messages that begin at once
 * and are waited for (comm_batch_*). Between devices: one operation of the exchange stream, which
 * begins after all that compute was given so far and for whose end compute waits; the host waits
 * for nothing. Callers see no difference but that sums are added up by the host itself.
 */
#include "exec.h"

int exec_traffic_init(struct skrull_exec *exec, struct exec_traffic *traffic, const char *ready,
                      const char *landed, size_t n, struct skrull_error *err)
{
    const struct device_ops *device = exec->device->ops;
    int rc;

    *traffic = (struct exec_traffic){.ready = {.name = ready}, .landed = {.name = landed}};
    rc = comm_batch_init(&traffic->batch, n, err);
    if (rc == 0) {
        rc = device->event_init(exec->device, &traffic->ready, false, err);
    }
    if (rc == 0) {
        rc = device->event_init(exec->device, &traffic->landed, false, err);
    }
    if (rc < 0) {
        exec_traffic_deinit(exec, traffic);
    }
    return rc;
}

void exec_traffic_deinit(struct skrull_exec *exec, struct exec_traffic *traffic)
{
    comm_batch_deinit(&traffic->batch);
    exec->device->ops->event_deinit(exec->device, &traffic->ready);
    exec->device->ops->event_deinit(exec->device, &traffic->landed);
}

int exec_traffic_begin(struct skrull_exec *exec, struct exec_traffic *traffic,
                       struct skrull_error *err)
{
    const struct device_ops *device = exec->device->ops;
    int rc;

    if (exec->device->is_host) {
        return 0;
    }
    rc = device->record(exec->device, &traffic->ready, exec->compute_stream, err);
    if (rc == 0) {
        rc = device->wait(exec->device, exec->exchange_stream, &traffic->ready, err);
    }
    if (rc == 0) {
        rc = exec_clock_start(exec, SPAN_EXCHANGE, exec->exchange_stream, &traffic->span, err);
    }
    return rc < 0 ? rc : exec->comm->streams->begin(exec->comm, err);
}

int exec_traffic_send(struct skrull_exec *exec, struct exec_traffic *traffic, uint32_t peer,
                      enum comm_tag tag, const void *from, size_t bytes, struct skrull_error *err)
{
    struct skrull_comm *comm = exec->comm;

    return exec->device->is_host
               ? comm_batch_send(&traffic->batch, comm, peer, tag, from, bytes, err)
               : comm->streams->send(comm, peer, from, bytes, exec->exchange_stream, err);
}

int exec_traffic_receive(struct skrull_exec *exec, struct exec_traffic *traffic, uint32_t peer,
                         enum comm_tag tag, void *to, size_t bytes, struct skrull_error *err)
{
    struct skrull_comm *comm = exec->comm;

    return exec->device->is_host
               ? comm_batch_receive(&traffic->batch, comm, peer, tag, to, bytes, err)
               : comm->streams->receive(comm, peer, to, bytes, exec->exchange_stream, err);
}

int exec_traffic_gather(struct skrull_exec *exec, struct exec_traffic *traffic,
                        const struct comm_group *members, enum comm_tag tag, void *blocks,
                        size_t bytes, struct skrull_error *err)
{
    struct skrull_comm *comm = exec->comm;

    return exec->device->is_host
               ? comm_begin_gather(&traffic->batch, comm, members, tag, blocks, bytes, err)
               : comm->streams->gather(comm, members, blocks, bytes, exec->exchange_stream, err);
}

int exec_traffic_sum(struct skrull_exec *exec, struct exec_traffic *traffic,
                     const struct comm_group *members, enum comm_tag tag,
                     const struct exec_sum *sum, struct skrull_error *err)
{
    struct skrull_comm *comm = exec->comm;

    return exec->device->is_host ? comm_begin_scatter(&traffic->batch, comm, members, tag,
                                                      sum->parts, sum->received, sum->n, err)
                                 : comm->streams->sum(comm, members, sum->parts, sum->sum, sum->n,
                                                      exec->exchange_stream, err);
}

int exec_traffic_launch(struct skrull_exec *exec, struct exec_traffic *traffic,
                        struct skrull_error *err)
{
    int rc;

    if (exec->device->is_host) {
        return 0;
    }
    rc = exec->comm->streams->end(exec->comm, err);
    if (rc == 0) {
        rc = exec_clock_stop(exec, traffic->span, exec->exchange_stream, err);
    }
    return rc < 0 ? rc
                  : exec->device->ops->record(exec->device, &traffic->landed, exec->exchange_stream,
                                              err);
}

int exec_traffic_land(struct skrull_exec *exec, struct exec_traffic *traffic,
                      struct skrull_error *err)
{
    size_t span = 0;
    int rc;

    if (exec->device->is_host) {
        return comm_batch_wait(&traffic->batch, exec->comm, &exec->times, err);
    }
    rc = exec_clock_start(exec, SPAN_WAIT, exec->compute_stream, &span, err);
    if (rc == 0) {
        rc = exec->device->ops->wait(exec->device, exec->compute_stream, &traffic->landed, err);
    }
    return rc < 0 ? rc : exec_clock_stop(exec, span, exec->compute_stream, err);
}

void exec_traffic_add(const struct skrull_exec *exec, const struct comm_group *members,
                      const struct exec_sum *sum)
{
    if (exec->device->is_host) {
        comm_add_parts(members, sum->parts + members->member * sum->n, sum->received, sum->n,
                       sum->sum);
    }
}

static struct comm_group everybody(const struct skrull_comm *comm)
{
    return (struct comm_group){.first = 0, .size = comm->size, .member = comm->rank};
}

/* Lands what was begun, or tells the others that it does not. */
static int land_sums(struct skrull_exec *exec, int rc, struct skrull_error *err)
{
    if (rc == 0) {
        rc = exec_traffic_launch(exec, &exec->sums, err);
    }
    if (rc == 0) {
        rc = exec_traffic_land(exec, &exec->sums, err);
    }
    if (rc < 0) {
        skrull_comm_fail(exec->comm, err);
    }
    return rc;
}

int skrull_exec_sum_parts(struct skrull_exec *exec, float *values, size_t part,
                          struct skrull_error *err)
{
    struct exec_sum sum = {.parts = values, .n = part};
    struct comm_group all;
    int rc;

    if (!exec->comm || exec->comm->size == 1 || part == 0) {
        return 0;
    }
    if (exec->device->is_host) {
        return skrull_comm_sum_part(exec->comm, values, part, err);
    }
    all = everybody(exec->comm);
    sum.sum = values + all.member * part;
    rc = exec_traffic_begin(exec, &exec->sums, err);
    if (rc == 0) {
        rc = exec_traffic_sum(exec, &exec->sums, &all, COMM_SUM, &sum, err);
    }
    return land_sums(exec, rc, err);
}

int skrull_exec_share_parts(struct skrull_exec *exec, void *values, size_t bytes,
                            struct skrull_error *err)
{
    struct comm_group all;
    int rc;

    if (!exec->comm || exec->comm->size == 1 || bytes == 0) {
        return 0;
    }
    all = everybody(exec->comm);
    rc = exec_traffic_begin(exec, &exec->sums, err);
    if (rc == 0) {
        rc = exec_traffic_gather(exec, &exec->sums, &all, COMM_GATHER, values, bytes, err);
    }
    return land_sums(exec, rc, err);
}
