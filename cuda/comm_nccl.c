/*
 * Exchange between GPUs by NCCL, in the order of a stream. One communicator for all ranks and one
 * for each size of aligned groups, split off once, so that no plan has to wait for a new one. They
 * are non-blocking: a call that is still in progress is polled against a deadline, with an eye on
 * what the others say. Messages between two ranks go by the communicator of all.
 *
 * Sums. NCCL promises that every rank of a communicator gets its part of a sum once, added on one
 * path, but not in which order: with one topology, size and algorithm it repeats itself, with
 * another it need not. NCCL_ALGO=Ring fixes the algorithm. So a run repeats on the same machines,
 * and differs from the sum by ascending rank of comm.c within rounding.
 *
 * Failure. Whoever fails aborts its communicators, which ends its own kernels, and tells the others
 * by the exchange that started this one; those who hear nothing end by their time-out. Only the
 * thread that opened it may call.
 */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm.h"

#define MAX_GROUPS 64u

struct nccl_group {
    uint32_t size;
    ncclComm_t comm; /* NULL: no aligned group of that size holds this rank */
    bool is_used;    /* since begin */
};

struct nccl_comm {
    struct skrull_comm comm;
    struct skrull_comm *host;             /* owned: how this one was started */
    struct nccl_group groups[MAX_GROUPS]; /* [0]: all ranks */
    uint32_t n_groups;
    bool is_open, is_failed; /* between begin and end; aborted */
};

static struct nccl_comm *nccl_of(struct skrull_comm *comm)
{
    return (struct nccl_comm *)(void *)comm;
}

static int translate(ncclResult_t code, ncclComm_t comm, const char *call, struct skrull_error *err)
{
    const char *last = ncclGetLastError(comm);

    return skrull_error_set(
        err, code == ncclRemoteError ? SKRULL_ERR_UNAVAILABLE : SKRULL_ERR_INTERNAL, "%s: %s%s%s",
        call, ncclGetErrorString(code), last && *last ? ": " : "", last && *last ? last : "");
}

static int check_host(struct nccl_comm *nccl, struct skrull_error *err)
{
    return nccl->host->ops->check ? nccl->host->ops->check(nccl->host, err) : 0;
}

/* Waits for a call in progress; `code` is what it returned. */
static int settle(struct nccl_comm *nccl, ncclComm_t comm, ncclResult_t code, const char *call,
                  struct skrull_error *err)
{
    const struct timespec nap = {.tv_nsec = 20000};
    int64_t deadline_ns = comm_now_ns() + nccl->comm.timeout_ms * 1000000;
    int rc = 0;

    while (code == ncclInProgress && rc == 0) {
        ncclResult_t asked = ncclCommGetAsyncError(comm, &code);

        if (asked != ncclSuccess) {
            return translate(asked, comm, "ncclCommGetAsyncError", err);
        }
        if (code == ncclInProgress) {
            rc = check_host(nccl, err);
            if (rc == 0 && comm_now_ns() > deadline_ns) {
                rc = skrull_error_set(err, SKRULL_ERR_DEADLINE_EXCEEDED,
                                      "%s: data rank %u waited %lld ms for the others", call,
                                      nccl->comm.rank, (long long)nccl->comm.timeout_ms);
            }
            (void)nanosleep(&nap, NULL);
        }
    }
    return rc < 0 || code == ncclSuccess ? rc : translate(code, comm, call, err);
}

/* In a group, calls only note what to do. */
static int check(const struct nccl_comm *nccl, ncclResult_t code, const char *call,
                 struct skrull_error *err)
{
    return code == ncclSuccess || code == ncclInProgress
               ? 0
               : translate(code, nccl->groups[0].comm, call, err);
}

static int nccl_begin(struct skrull_comm *comm, struct skrull_error *err)
{
    struct nccl_comm *nccl = nccl_of(comm);
    int rc = nccl->is_failed
                 ? skrull_error_set(err, SKRULL_ERR_ABORTED, "the exchange by NCCL was given up")
                 : check(nccl, ncclGroupStart(), "ncclGroupStart", err);

    nccl->is_open = rc == 0;
    return rc;
}

static int nccl_send(struct skrull_comm *comm, uint32_t peer, const void *from, size_t bytes,
                     void *stream, struct skrull_error *err)
{
    struct nccl_comm *nccl = nccl_of(comm);

    nccl->groups[0].is_used = true;
    return check(nccl, ncclSend(from, bytes, ncclUint8, (int)peer, nccl->groups[0].comm, stream),
                 "ncclSend", err);
}

static int nccl_receive(struct skrull_comm *comm, uint32_t peer, void *to, size_t bytes,
                        void *stream, struct skrull_error *err)
{
    struct nccl_comm *nccl = nccl_of(comm);

    nccl->groups[0].is_used = true;
    return check(nccl, ncclRecv(to, bytes, ncclUint8, (int)peer, nccl->groups[0].comm, stream),
                 "ncclRecv", err);
}

/* The communicator of an aligned group. */
static int find_group(struct nccl_comm *nccl, const struct comm_group *group, ncclComm_t *ret,
                      struct skrull_error *err)
{
    for (uint32_t i = 0; i < nccl->n_groups; i++) {
        if (nccl->groups[i].size == group->size && nccl->groups[i].comm &&
            group->first % group->size == 0) {
            nccl->groups[i].is_used = true;
            *ret = nccl->groups[i].comm;
            return 0;
        }
    }
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "no communicator for data ranks %u to %u: sizes of groups divide the "
                            "number of data ranks",
                            group->first, group->first + group->size - 1);
}

static int nccl_gather(struct skrull_comm *comm, const struct comm_group *group, void *blocks,
                       size_t bytes, void *stream, struct skrull_error *err)
{
    struct nccl_comm *nccl = nccl_of(comm);
    const char *mine = (const char *)blocks + group->member * bytes;
    ncclComm_t of_group;
    int rc = find_group(nccl, group, &of_group, err);

    return rc < 0 ? rc
                  : check(nccl, ncclAllGather(mine, blocks, bytes, ncclUint8, of_group, stream),
                          "ncclAllGather", err);
}

static int nccl_sum(struct skrull_comm *comm, const struct comm_group *group, const float *parts,
                    float *sum, size_t n, void *stream, struct skrull_error *err)
{
    struct nccl_comm *nccl = nccl_of(comm);
    ncclComm_t of_group;
    int rc = find_group(nccl, group, &of_group, err);

    return rc < 0 ? rc
                  : check(nccl,
                          ncclReduceScatter(parts, sum, n, ncclFloat32, ncclSum, of_group, stream),
                          "ncclReduceScatter", err);
}

/* What stands in the group is on the stream only once all its communicators have settled. */
static int nccl_end(struct skrull_comm *comm, struct skrull_error *err)
{
    struct nccl_comm *nccl = nccl_of(comm);
    ncclResult_t code = ncclGroupEnd();
    int rc = check(nccl, code, "ncclGroupEnd", err);

    nccl->is_open = false;
    for (uint32_t i = 0; i < nccl->n_groups; i++) {
        if (nccl->groups[i].is_used && rc == 0 && code == ncclInProgress) {
            rc = settle(nccl, nccl->groups[i].comm, code, "ncclGroupEnd", err);
        }
        nccl->groups[i].is_used = false;
    }
    return rc;
}

static int nccl_check(struct skrull_comm *comm, struct skrull_error *err)
{
    struct nccl_comm *nccl = nccl_of(comm);
    int rc = check_host(nccl, err);

    for (uint32_t i = 0; i < nccl->n_groups && rc == 0; i++) {
        ncclComm_t of_group = nccl->groups[i].comm;
        ncclResult_t state = ncclSuccess, code = ncclSuccess;

        if (of_group && !nccl->is_failed) {
            code = ncclCommGetAsyncError(of_group, &state);
        }
        state = code == ncclSuccess ? state : code;
        rc = check(nccl, state, "an exchange by NCCL", err);
    }
    return rc;
}

/* What lies on hosts. */
static int nccl_host_gather(struct skrull_comm *comm, const void *mine, size_t bytes, void *all,
                            struct skrull_error *err)
{
    return skrull_comm_gather(nccl_of(comm)->host, mine, bytes, all, err);
}

static int nccl_host_check(struct skrull_comm *comm, struct skrull_error *err)
{
    return check_host(nccl_of(comm), err);
}

static void abort_groups(struct nccl_comm *nccl)
{
    if (nccl->is_open) {
        (void)ncclGroupEnd();
        nccl->is_open = false;
    }
    for (uint32_t i = nccl->n_groups; i-- > 0;) {
        if (nccl->groups[i].comm) {
            (void)ncclCommAbort(nccl->groups[i].comm);
            nccl->groups[i].comm = NULL;
        }
    }
}

static void nccl_fail(struct skrull_comm *comm, const struct skrull_error *why)
{
    struct nccl_comm *nccl = nccl_of(comm);

    if (!nccl->is_failed) {
        nccl->is_failed = true;
        skrull_comm_fail(nccl->host, why);
        abort_groups(nccl);
    }
}

static void nccl_free(struct skrull_comm *comm)
{
    struct nccl_comm *nccl = nccl_of(comm);
    int rc = 0;

    for (uint32_t i = nccl->n_groups; i-- > 0 && rc == 0;) {
        ncclComm_t of_group = nccl->groups[i].comm;

        if (of_group) {
            rc = settle(nccl, of_group, ncclCommFinalize(of_group), "ncclCommFinalize", NULL);
        }
        if (of_group && rc == 0) {
            (void)ncclCommDestroy(of_group);
            nccl->groups[i].comm = NULL;
        }
    }
    abort_groups(nccl);
    skrull_comm_free(nccl->host);
    free(nccl);
}

static const struct comm_ops nccl_ops = {
    .name = "nccl",
    .gather = nccl_host_gather,
    .check = nccl_host_check,
    .fail = nccl_fail,
    .free = nccl_free,
};

static const struct comm_stream_ops nccl_stream_ops = {
    .begin = nccl_begin,
    .send = nccl_send,
    .receive = nccl_receive,
    .gather = nccl_gather,
    .sum = nccl_sum,
    .end = nccl_end,
    .check = nccl_check,
};

/* What a rank tells the others before they start: whether it can. */
struct start_words {
    ncclUniqueId id; /* of rank 0 */
    int32_t code;
    char why[SKRULL_ERROR_MESSAGE_SIZE];
};

static int prepare(struct nccl_comm *nccl, int device, ncclUniqueId *ret_id,
                   struct skrull_error *err)
{
    cudaError_t code = cudaSetDevice(device);
    ncclResult_t result = ncclSuccess;

    if (code != cudaSuccess) {
        (void)cudaGetLastError();
        return skrull_error_set(err, SKRULL_ERR_UNAVAILABLE, "no GPU %d here: %s", device,
                                cudaGetErrorString(code));
    }
    if (nccl->comm.rank == 0) {
        result = ncclGetUniqueId(ret_id);
    }
    return result == ncclSuccess ? 0 : translate(result, NULL, "ncclGetUniqueId", err);
}

/* All ranks agree to start, or each knows who cannot. */
static int agree(struct nccl_comm *nccl, int device, ncclUniqueId *ret_id, struct skrull_error *err)
{
    uint32_t size = nccl->comm.size;
    struct start_words mine, *all = calloc(size, sizeof(*all));
    struct skrull_error why = {0};
    int rc;

    if (!all) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for NCCL");
    }
    memset(&mine, 0, sizeof(mine));
    mine.code = prepare(nccl, device, &mine.id, &why);
    memcpy(mine.why, why.message, sizeof(mine.why));
    rc = skrull_comm_gather(nccl->host, &mine, sizeof(mine), all, err);
    for (uint32_t r = 0; r < size && rc == 0; r++) {
        all[r].why[sizeof(all[r].why) - 1] = '\0';
        if (all[r].code < 0 && (r == nccl->comm.rank || mine.code == 0)) {
            rc = skrull_error_set(err, all[r].code, "data rank %u: %s", r, all[r].why);
        }
    }
    *ret_id = all[0].id;
    free(all);
    return rc;
}

static int open_all(struct nccl_comm *nccl, const ncclUniqueId *id, struct skrull_error *err)
{
    struct nccl_group *all = &nccl->groups[0];
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclResult_t code;

    config.blocking = 0;
    *all = (struct nccl_group){.size = nccl->comm.size};
    nccl->n_groups = 1;
    code = ncclCommInitRankConfig(&all->comm, (int)nccl->comm.size, *id, (int)nccl->comm.rank,
                                  &config);
    return settle(nccl, all->comm, code, "ncclCommInitRankConfig", err);
}

/* One more communicator for groups of `size` ranks. */
static int split(struct nccl_comm *nccl, uint32_t size, struct skrull_error *err)
{
    struct nccl_group *group = &nccl->groups[nccl->n_groups];
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclResult_t code;
    int rc;

    if (nccl->n_groups == MAX_GROUPS) {
        return skrull_error_set(err, SKRULL_ERR_UNIMPLEMENTED,
                                "more than %u sizes of groups; name the context-parallel degree",
                                MAX_GROUPS);
    }
    config.blocking = 0;
    *group = (struct nccl_group){.size = size};
    nccl->n_groups++;
    code = ncclCommSplit(nccl->groups[0].comm, (int)(nccl->comm.rank / size),
                         (int)(nccl->comm.rank % size), &group->comm, &config);
    rc = settle(nccl, nccl->groups[0].comm, code, "ncclCommSplit", err);
    return rc < 0 ? rc
                  : settle(nccl, group->comm, group->comm ? ncclInProgress : ncclSuccess,
                           "ncclCommSplit", err);
}

/* The chain of sizes that plans have: 1, times the prime factors of `cp` ascending, then those of
 * the rest. */
static int split_chain(struct nccl_comm *nccl, uint32_t cp, struct skrull_error *err)
{
    uint32_t left[2] = {cp, nccl->comm.size / cp}, size = 1;
    int rc = 0;

    for (int i = 0; i < 2; i++) {
        for (uint32_t prime = 2; left[i] > 1 && rc == 0;) {
            if (left[i] % prime != 0) {
                prime++;
                continue;
            }
            left[i] /= prime;
            size *= prime;
            rc = size < nccl->comm.size ? split(nccl, size, err) : 0;
        }
    }
    return rc;
}

static int split_divisors(struct nccl_comm *nccl, struct skrull_error *err)
{
    int rc = 0;

    for (uint32_t size = 2; size <= nccl->comm.size / 2 && rc == 0; size++) {
        rc = nccl->comm.size % size == 0 ? split(nccl, size, err) : 0;
    }
    return rc;
}

static int open_nccl(struct nccl_comm *nccl, int device, uint32_t cp, struct skrull_error *err)
{
    ncclUniqueId id;
    int rc = agree(nccl, device, &id, err);

    if (rc == 0) {
        rc = open_all(nccl, &id, err);
    }
    if (rc == 0 && nccl->comm.size > 1) {
        rc = cp ? split_chain(nccl, cp, err) : split_divisors(nccl, err);
    }
    if (rc < 0) {
        nccl_fail(&nccl->comm, err);
    }
    return rc;
}

int skrull_comm_nccl(struct skrull_comm *host, int device, uint32_t cp,
                     struct skrull_comm **ret_comm, struct skrull_error *err)
{
    struct skrull_error why = {0};
    struct nccl_comm *nccl;
    int rc;

    if (cp && host->size % cp != 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "a context-parallel degree of %u does not divide %u data ranks", cp,
                                host->size);
    }
    nccl = calloc(1, sizeof(*nccl));
    if (!nccl) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for NCCL");
    }
    nccl->comm = (struct skrull_comm){.ops = &nccl_ops,
                                      .streams = &nccl_stream_ops,
                                      .rank = host->rank,
                                      .size = host->size,
                                      .timeout_ms = host->timeout_ms};
    nccl->host = host;
    rc = open_nccl(nccl, device, cp, &why);
    if (rc < 0) {
        free(nccl);
        return skrull_error_set(err, rc, "%s", why.message);
    }
    *ret_comm = &nccl->comm;
    return 0;
}
