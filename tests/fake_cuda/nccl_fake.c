/*
 * NCCL's functions that skrull calls. A group of operations is one item of its stream. At the head
 * of it, it starts; a message happens at any time after both its ends have started, a gather or sum
 * after all members have; the item leaves its stream when all of it has happened. Sums add by
 * ascending rank, as the CPU's do. Messages pair up by their number between two ranks of a
 * communicator, gathers and sums by their number in it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

#define MAX_OPS 256u
#define MAX_RANKS 64

enum op_kind { OP_SEND, OP_RECEIVE, OP_GATHER, OP_SUM };

static const char *const kind_names[] = {"ncclSend", "ncclRecv", "ncclAllGather",
                                         "ncclReduceScatter"};

struct op {
    enum op_kind kind;
    struct ncclComm *comm;
    struct CUstream_st *stream;
    int peer;
    const char *from;
    char *to;
    size_t bytes; /* of one part */
    uint64_t number;
    struct op *next; /* started ones of the comm */
    bool is_done;
};

struct nccl_item {
    struct op ops[MAX_OPS];
    uint32_t n_ops, n_unsettled; /* communicators that were not asked yet */
    struct CUstream_st *stream;
    bool is_started;
};

/* The ranks of a communicator. */
struct clique {
    int n, n_here;
    struct ncclComm *comms[MAX_RANKS];
    char id[NCCL_UNIQUE_ID_BYTES];
    struct clique *next;
};

/* A split in the making. */
struct split {
    uint64_t number;
    int n_called;
    int colors[MAX_RANKS], keys[MAX_RANKS];
    struct ncclComm *made[MAX_RANKS];
    struct clique *parent;
    struct split *next;
};

struct ncclComm {
    struct ncclComm *next;
    struct clique *clique; /* NULL: still being split off */
    int rank;
    uint32_t device;
    uint64_t n_splits, n_collectives, n_sends[MAX_RANKS], n_receives[MAX_RANKS];
    struct split *splitting; /* not complete */
    struct nccl_item *held;  /* until it is asked for */
    uint32_t n_asked;
    struct op *started;
    bool is_aborted, is_gone;
    ncclResult_t broken;
};

static struct ncclComm *comms;
static struct clique *cliques;
static struct split *splits;
static uint64_t n_ids;

static _Thread_local struct nccl_item *group; /* being made up */
static _Thread_local int depth;

static void *allocate(size_t size)
{
    void *memory = calloc(1, size);

    if (!memory) {
        abort();
    }
    return memory;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclSuccess ? "no error" : "an error of the fake NCCL";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    memset(id, 0, sizeof(*id));
    world_lock();
    (void)snprintf(id->internal, sizeof(id->internal), "clique %llu", (unsigned long long)n_ids++);
    world_unlock();
    return ncclSuccess;
}

static struct ncclComm *add_comm(void)
{
    struct ncclComm *comm = allocate(sizeof(*comm));

    comm->device = world_device();
    comm->next = comms;
    comms = comm;
    return comm;
}

static struct clique *add_clique(int n)
{
    struct clique *clique = allocate(sizeof(*clique));

    clique->n = n;
    clique->next = cliques;
    cliques = clique;
    return clique;
}

static void join(struct clique *clique, struct ncclComm *comm, int rank)
{
    if (rank < 0 || rank >= clique->n || clique->comms[rank]) {
        world_report("a communicator of %d has no place for rank %d", clique->n, rank);
        return;
    }
    clique->comms[rank] = comm;
    clique->n_here++;
    comm->clique = clique;
    comm->rank = rank;
}

static void check_config(const ncclConfig_t *config)
{
    if (!config || config->blocking != 0) {
        world_report("a communicator that blocks");
    }
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int n_ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    struct clique *clique;

    if (n_ranks > MAX_RANKS) {
        return ncclInvalidArgument;
    }
    world_lock();
    check_config(config);
    clique = cliques;
    while (clique && memcmp(clique->id, id.internal, sizeof(clique->id)) != 0) {
        clique = clique->next;
    }
    if (!clique) {
        clique = add_clique(n_ranks);
        memcpy(clique->id, id.internal, sizeof(clique->id));
    }
    *comm = add_comm();
    join(clique, *comm, rank);
    world_unlock();
    return ncclInProgress;
}

/* All members of the parent have called: members of a color by ascending key. */
static void finish_split(struct split *split)
{
    for (int r = 0; r < split->parent->n; r++) {
        struct clique *clique = NULL;
        int n = 0, rank = 0;

        for (int o = 0; o < split->parent->n; o++) {
            bool is_like = split->colors[o] == split->colors[r];

            n += is_like;
            rank += is_like && (split->keys[o] < split->keys[r] ||
                                (split->keys[o] == split->keys[r] && o < r));
            clique = is_like && split->made[o] && split->made[o]->clique ? split->made[o]->clique
                                                                         : clique;
        }
        if (split->made[r]) {
            join(clique ? clique : add_clique(n), split->made[r], rank);
        }
        split->parent->comms[r]->splitting = NULL;
    }
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *new_comm,
                           ncclConfig_t *config)
{
    struct split *split;

    world_lock();
    check_config(config);
    split = splits;
    while (split && (split->parent != comm->clique || split->number != comm->n_splits)) {
        split = split->next;
    }
    if (!split) {
        split = allocate(sizeof(*split));
        split->parent = comm->clique;
        split->number = comm->n_splits;
        split->next = splits;
        splits = split;
    }
    comm->n_splits++;
    comm->splitting = split;
    split->colors[comm->rank] = color;
    split->keys[comm->rank] = key;
    *new_comm = color == NCCL_SPLIT_NOCOLOR ? NULL : add_comm();
    split->made[comm->rank] = *new_comm;
    if (++split->n_called == split->parent->n) {
        finish_split(split);
    }
    world_unlock();
    return ncclInProgress;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    (void)comm;
    return ncclSuccess;
}

static void leave(struct ncclComm *comm, bool is_aborted)
{
    if (comm->is_gone) {
        world_report("a communicator that is gone is used");
    }
    comm->is_gone = true;
    comm->is_aborted = is_aborted;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    world_lock();
    leave(comm, false);
    world_unlock();
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    world_lock();
    leave(comm, true);
    world_unlock();
    return ncclSuccess;
}

static bool is_in_progress(const struct ncclComm *comm)
{
    return !comm->clique || comm->clique->n_here < comm->clique->n || comm->splitting;
}

/* The second question of a communicator lets its part of a group go. */
static bool settle(struct ncclComm *comm)
{
    struct nccl_item *item = comm->held;

    if (!item || comm->n_asked++ == 0) {
        return !item;
    }
    comm->held = NULL;
    comm->n_asked = 0;
    if (--item->n_unsettled == 0) {
        struct work *work = world_work(WORK_NCCL, "NCCL");

        work->item = item;
        world_put(item->stream, work);
    }
    return true;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    world_lock();
    if (comm->is_gone) {
        world_report("a communicator that is gone is asked");
    }
    *error = comm->broken                            ? comm->broken
             : is_in_progress(comm) || !settle(comm) ? ncclInProgress
                                                     : ncclSuccess;
    world_unlock();
    return ncclSuccess;
}

void fake_nccl_break(uint32_t device, int result)
{
    world_lock();
    for (struct ncclComm *comm = comms; comm; comm = comm->next) {
        if (comm->device == device) {
            comm->broken = (ncclResult_t)result;
        }
    }
    world_unlock();
}

static size_t size_of(ncclDataType_t type)
{
    return type == ncclFloat32 ? 4 : 1;
}

static void check_op(const struct op *op)
{
    size_t all = op->bytes * (size_t)op->comm->clique->n;
    const char *name = kind_names[op->kind];

    if (op->stream->device != op->comm->device) {
        world_report("%s: its stream is of device %u, its communicator of %u", name,
                     op->stream->device, op->comm->device);
    }
    if (op->from) {
        (void)fake_check_device(name, op->from, op->kind == OP_SUM ? all : op->bytes);
    }
    if (op->to) {
        (void)fake_check_device(name, op->to, op->kind == OP_GATHER ? all : op->bytes);
    }
}

static void add_op(struct nccl_item *item, const struct op *op)
{
    struct ncclComm *comm = op->comm;
    struct op *added = &item->ops[item->n_ops];

    if (item->n_ops == MAX_OPS || comm->is_gone || is_in_progress(comm)) {
        world_report("%s: too many in a group, or its communicator is not ready",
                     kind_names[op->kind]);
        return;
    }
    if ((op->kind == OP_SEND || op->kind == OP_RECEIVE) &&
        (op->peer < 0 || op->peer >= comm->clique->n)) {
        world_report("%s: no rank %d", kind_names[op->kind], op->peer);
        return;
    }
    item->n_ops++;
    *added = *op;
    added->number = op->kind == OP_SEND      ? comm->n_sends[op->peer]++
                    : op->kind == OP_RECEIVE ? comm->n_receives[op->peer]++
                                             : comm->n_collectives++;
    check_op(added);
}

/* The item waits for its communicators to be asked. */
static void hold(struct nccl_item *item)
{
    item->stream = item->ops[0].stream;
    for (uint32_t i = 0; i < item->n_ops; i++) {
        struct ncclComm *comm = item->ops[i].comm;

        if (item->ops[i].stream != item->stream) {
            world_report("a group of NCCL operations on several streams");
        }
        if (comm->held == item) {
            continue;
        }
        if (comm->held) {
            world_report("a communicator is used before what it does was settled");
        }
        comm->held = item;
        comm->n_asked = 0;
        item->n_unsettled++;
    }
}

ncclResult_t ncclGroupStart(void)
{
    if (depth++ == 0) {
        group = allocate(sizeof(*group));
    }
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    struct nccl_item *item = group;

    if (depth == 0) {
        return ncclInvalidUsage;
    }
    if (--depth > 0) {
        return ncclSuccess;
    }
    group = NULL;
    if (item->n_ops == 0) {
        free(item);
        return ncclSuccess;
    }
    world_lock();
    hold(item);
    world_unlock();
    return ncclInProgress;
}

static ncclResult_t put(const struct op *op, size_t count, ncclDataType_t type, cudaStream_t stream)
{
    struct op whole = *op;

    (void)ncclGroupStart();
    world_lock();
    whole.bytes = count * size_of(type);
    whole.stream = world_stream_of(stream);
    add_op(group, &whole);
    world_unlock();
    return ncclGroupEnd();
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    const struct op op = {.kind = OP_SEND, .comm = comm, .peer = peer, .from = from};

    return put(&op, count, type, stream);
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    const struct op op = {.kind = OP_RECEIVE, .comm = comm, .peer = peer, .to = to};

    return put(&op, count, type, stream);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    const struct op op = {.kind = OP_GATHER, .comm = comm, .from = from, .to = to};

    return put(&op, count, type, stream);
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type,
                               ncclRedOp_t reduction, ncclComm_t comm, cudaStream_t stream)
{
    const struct op op = {.kind = OP_SUM, .comm = comm, .from = from, .to = to};

    if (reduction != ncclSum || type != ncclFloat32) {
        return ncclInvalidArgument;
    }
    return put(&op, count, type, stream);
}

static bool is_over(const struct op *op)
{
    return op->is_done || op->comm->is_aborted;
}

bool nccl_is_started(const struct nccl_item *item)
{
    return item->is_started;
}

bool nccl_is_done(const struct nccl_item *item)
{
    for (uint32_t i = 0; i < item->n_ops; i++) {
        if (!is_over(&item->ops[i])) {
            return false;
        }
    }
    return true;
}

/* What is received is nothing yet; what is in place is left. */
static void poison(const struct op *op)
{
    size_t n = (size_t)op->comm->clique->n;

    if (op->kind == OP_RECEIVE) {
        memset(op->to, 0xff, op->bytes);
    }
    if (op->kind == OP_SUM && (op->to < op->from || op->to >= op->from + n * op->bytes)) {
        memset(op->to, 0xff, op->bytes);
    }
    for (size_t r = 0; op->kind == OP_GATHER && r < n; r++) {
        if (op->to + r * op->bytes != op->from) {
            memset(op->to + r * op->bytes, 0xff, op->bytes);
        }
    }
}

void nccl_start(struct nccl_item *item)
{
    item->is_started = true;
    for (uint32_t i = 0; i < item->n_ops; i++) {
        struct op *op = &item->ops[i];

        if (!is_over(op)) {
            poison(op);
            op->next = op->comm->started;
            op->comm->started = op;
        }
    }
}

static void finish(struct op *op)
{
    struct op **link = &op->comm->started;

    while (*link && *link != op) {
        link = &(*link)->next;
    }
    if (*link) {
        *link = op->next;
    }
    op->is_done = true;
}

/* The started operation of that kind and number with `peer`; NULL: none. */
static struct op *find(const struct ncclComm *comm, enum op_kind kind, int peer, uint64_t number)
{
    bool is_message = kind == OP_SEND || kind == OP_RECEIVE;

    for (struct op *op = comm->started; op; op = op->next) {
        bool is_other = op->kind == OP_SEND || op->kind == OP_RECEIVE;

        if (op->number == number && !is_over(op) &&
            (is_message ? op->kind == kind && op->peer == peer : !is_other)) {
            return op;
        }
    }
    return NULL;
}

static struct op *sender_of(const struct op *op)
{
    return find(op->comm->clique->comms[op->peer], OP_SEND, op->comm->rank, op->number);
}

/* Receivers bring messages about, first ranks the rest. */
static bool is_ready(const struct op *op)
{
    const struct clique *clique = op->comm->clique;

    if (is_over(op) || op->kind == OP_SEND) {
        return false;
    }
    if (op->kind == OP_RECEIVE) {
        return sender_of(op) != NULL;
    }
    for (int r = 0; r < clique->n; r++) {
        if (!find(clique->comms[r], op->kind, 0, op->number)) {
            return false;
        }
    }
    return op->comm->rank == 0;
}

uint32_t nccl_n_ready(const struct nccl_item *item)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < item->n_ops; i++) {
        n += is_ready(&item->ops[i]);
    }
    return n;
}

static void carry(struct op *receive)
{
    struct op *sent = sender_of(receive);

    if (sent->bytes != receive->bytes) {
        world_report("rank %d sends %zu bytes, rank %d receives %zu", sent->comm->rank, sent->bytes,
                     receive->comm->rank, receive->bytes);
    } else {
        memmove(receive->to, sent->from, sent->bytes);
    }
    finish(sent);
    finish(receive);
}

static void gather(struct op *const *ops, int n)
{
    for (int r = 0; r < n; r++) {
        for (int o = 0; o < n; o++) {
            char *to = ops[r]->to + (size_t)o * ops[o]->bytes;

            if (to != ops[o]->from) {
                memcpy(to, ops[o]->from, ops[o]->bytes);
            }
        }
    }
}

/* Sums may be in place of a part, so all are made before any is written. */
static void sum(struct op *const *ops, int n)
{
    size_t count = ops[0]->bytes / sizeof(float);
    float *sums = allocate((size_t)n * count * sizeof(float) + 1);

    for (int r = 0; r < n; r++) {
        for (int o = 0; o < n; o++) {
            const float *part = (const float *)(const void *)ops[o]->from + (size_t)r * count;

            for (size_t i = 0; i < count; i++) {
                sums[(size_t)r * count + i] += part[i];
            }
        }
    }
    for (int r = 0; r < n; r++) {
        memcpy(ops[r]->to, sums + (size_t)r * count, count * sizeof(float));
    }
    free(sums);
}

static void collect(struct op *first)
{
    const struct clique *clique = first->comm->clique;
    struct op *ops[MAX_RANKS] = {NULL};
    bool is_sound = true;

    for (int r = 0; r < clique->n; r++) {
        ops[r] = find(clique->comms[r], first->kind, 0, first->number);
        if (ops[r]->kind != first->kind || ops[r]->bytes != first->bytes) {
            world_report("rank 0 calls %s of %zu bytes, rank %d %s of %zu", kind_names[first->kind],
                         first->bytes, r, kind_names[ops[r]->kind], ops[r]->bytes);
            is_sound = false;
        }
    }
    if (is_sound && first->kind == OP_GATHER) {
        gather(ops, clique->n);
    } else if (is_sound) {
        sum(ops, clique->n);
    }
    for (int r = 0; r < clique->n; r++) {
        finish(ops[r]);
    }
}

void nccl_transfer(struct nccl_item *item, uint32_t i_ready)
{
    for (uint32_t i = 0; i < item->n_ops; i++) {
        struct op *op = &item->ops[i];

        if (!is_ready(op) || i_ready-- > 0) {
            continue;
        }
        if (op->kind == OP_RECEIVE) {
            carry(op);
        } else {
            collect(op);
        }
        return;
    }
}

void nccl_item_free(struct nccl_item *item)
{
    for (uint32_t i = 0; i < item->n_ops; i++) {
        finish(&item->ops[i]);
    }
    free(item);
}

/* Whom the first unfinished operation waits for. */
void nccl_describe(const struct nccl_item *item, char *text, size_t size)
{
    for (uint32_t i = 0; i < item->n_ops; i++) {
        const struct op *op = &item->ops[i];
        const struct clique *clique = op->comm->clique;
        int missing = op->peer;

        if (is_over(op)) {
            continue;
        }
        for (int r = 0; r < clique->n && (op->kind == OP_GATHER || op->kind == OP_SUM); r++) {
            missing = find(clique->comms[r], op->kind, 0, op->number) ? missing : r;
        }
        (void)snprintf(text, size, "waits in %s of rank %d for rank %d of %d", kind_names[op->kind],
                       op->comm->rank, missing, clique->n);
        return;
    }
}

uint32_t nccl_free_all(void)
{
    uint32_t n = 0;

    while (comms) {
        struct ncclComm *comm = comms;

        n += !comm->is_gone;
        if (comm->held && --comm->held->n_unsettled == 0) {
            free(comm->held);
        }
        comms = comm->next;
        free(comm);
    }
    while (cliques) {
        struct clique *clique = cliques;

        cliques = clique->next;
        free(clique);
    }
    while (splits) {
        struct split *split = splits;

        splits = split->next;
        free(split);
    }
    return n;
}
