/*
 * Exchange between data ranks, behind one table. A backend moves bytes between two ranks without
 * blocking and waits with a deadline; everything that several ranks do together is built on that in
 * comm.c, so that any aligned group can work together without being set up first, and sums are
 * added by ascending rank, whatever arrives first.
 *
 * No deadlock. Between two ranks messages pair up in the order in which both began them. All ranks
 * begin exchanges in the order of one total order: step, micro-batch, then layer ascending on the
 * way forth and descending on the way back; inside one, the first exchange of each group by
 * ascending size, then group by group what else it has (ring steps, gradients). Look at the first
 * unfinished exchange in that order: all of its members have finished what comes before it, have
 * therefore begun it (beginning never blocks), and so it finishes. Ranks outside its group do not
 * matter, hence groups of different size and ranks with different numbers of micro-batches may mix.
 *
 * Time-outs. A wait ends with DEADLINE_EXCEEDED after timeout_ms. Whoever fails tells the others by
 * `fail`, so that all end with a message and none waits for those who have gone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skrull/exec.h>

/* What a message is; both ends must mean the same. */
enum comm_tag {
    COMM_GATHER = 1,
    COMM_SUM,
    COMM_KEYS,
    COMM_VALUES,
    COMM_KEY_GRADIENTS,
    COMM_VALUE_GRADIENTS,
};

/* One message, from when it begins to when it was waited for. */
struct comm_transfer {
    bool is_send, is_done;
    uint32_t peer;
    enum comm_tag tag;
    const void *from; /* what is sent */
    void *to;         /* or where it is received */
    size_t bytes;
    struct comm_transfer *next; /* the backend's */
    void *handle;               /* the backend's */
};

/* Exchange between memories of hosts. */
struct comm_ops {
    const char *name;
    /* Begins a transfer; never blocks. NULL: only gather. */
    int (*begin)(struct skrull_comm *comm, struct comm_transfer *transfer,
                 struct skrull_error *err);
    /* Waits for all of [n]. */
    int (*wait)(struct skrull_comm *comm, struct comm_transfer *transfers, size_t n,
                struct skrull_error *err);
    /* As skrull_comm_gather; NULL: from messages. */
    int (*gather)(struct skrull_comm *comm, const void *mine, size_t bytes, void *all,
                  struct skrull_error *err);
    /* Has another rank given up? 0, or ABORTED with why. Never blocks; NULL: cannot tell. */
    int (*check)(struct skrull_comm *comm, struct skrull_error *err);
    void (*fail)(struct skrull_comm *comm, const struct skrull_error *why);
    void (*free)(struct skrull_comm *comm);
};

/* Ranks [first, first + size), of which this one is member `member`. */
struct comm_group {
    uint32_t first, size, member;
};

/*
 * Exchange between memories of devices, in the order of a stream: the second shape. Calls only
 * enqueue; what stands between begin and end is one operation of the stream, in which no message
 * waits for another, and which begins and ends with the slowest of them. Between two ranks,
 * messages pair up in the order in which both enqueued them; members of a group enqueue its sums
 * and gathers in one order. All of it on one stream a rank: then the order above makes it free of
 * deadlock, since the first unfinished operation in it comes to the head of all its members'
 * streams.
 */
struct comm_stream_ops {
    int (*begin)(struct skrull_comm *comm, struct skrull_error *err);
    int (*send)(struct skrull_comm *comm, uint32_t peer, const void *from, size_t bytes,
                void *stream, struct skrull_error *err);
    int (*receive)(struct skrull_comm *comm, uint32_t peer, void *to, size_t bytes, void *stream,
                   struct skrull_error *err);
    /* blocks [size][bytes]: every member's, this one's is there. */
    int (*gather)(struct skrull_comm *comm, const struct comm_group *group, void *blocks,
                  size_t bytes, void *stream, struct skrull_error *err);
    /* sum [n] = the sum of all members' parts [size][n] at this one's place, which `sum` may be. */
    int (*sum)(struct skrull_comm *comm, const struct comm_group *group, const float *parts,
               float *sum, size_t n, void *stream, struct skrull_error *err);
    int (*end)(struct skrull_comm *comm, struct skrull_error *err);
    /* Has one failed, or another rank given up? 0, or why. Never blocks. */
    int (*check)(struct skrull_comm *comm, struct skrull_error *err);
};

/* The first member of each backend's struct. */
struct skrull_comm {
    const struct comm_ops *ops;
    const struct comm_stream_ops *streams; /* NULL: between memories of hosts only */
    uint32_t rank, size;
    int64_t timeout_ms;
};

/* Transfers that are waited for together. They stay where they are until then. */
struct comm_batch {
    struct comm_transfer *transfers; /* [capacity], owned */
    size_t n, capacity;
    int64_t begun_ns; /* the first of them */
};

/* What waiting took, summed up. */
struct comm_times {
    int64_t busy_ns, wait_ns;
};

int comm_batch_init(struct comm_batch *batch, size_t capacity, struct skrull_error *err);
void comm_batch_deinit(struct comm_batch *batch);
int comm_batch_send(struct comm_batch *batch, struct skrull_comm *comm, uint32_t peer,
                    enum comm_tag tag, const void *from, size_t bytes, struct skrull_error *err);
int comm_batch_receive(struct comm_batch *batch, struct skrull_comm *comm, uint32_t peer,
                       enum comm_tag tag, void *to, size_t bytes, struct skrull_error *err);
/* Waits for all and empties the batch; `times` (nullable) grow. */
int comm_batch_wait(struct comm_batch *batch, struct skrull_comm *comm, struct comm_times *times,
                    struct skrull_error *err);

/* Begins to fill blocks [size][bytes] with every member's; this member's is there already. */
int comm_begin_gather(struct comm_batch *batch, struct skrull_comm *comm,
                      const struct comm_group *group, enum comm_tag tag, void *blocks, size_t bytes,
                      struct skrull_error *err);

/* Begins to send part m of parts [size][n] to member m and to receive this member's part of all
 * others into received [size][n]. */
int comm_begin_scatter(struct comm_batch *batch, struct skrull_comm *comm,
                       const struct comm_group *group, enum comm_tag tag, const float *parts,
                       float *received, size_t n, struct skrull_error *err);

/* sum [n] += received [size][n] of the others and `mine` [n], by ascending member. */
void comm_add_parts(const struct comm_group *group, const float *mine, const float *received,
                    size_t n, float *sum);

int64_t comm_now_ns(void);
