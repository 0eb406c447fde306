/*
 * Inside the execution of a plan.
 *
 *   exec.c            a rank's micro-batches
 *   exec_arena.c      the one arena: how large, who takes of it
 *   exec_maps.c       the layout's maps in the device's memory
 *   exec_walk.c       the walk through a micro-batch's layers
 *   exec_attention.c  attention of one layer, both ways: begin exchanges, local, distributed
 *   exec_gather.c     distributed attention by all-gather and reduce-scatter
 *   exec_ring.c       distributed attention by a ring
 *   exec_traffic.c    what travels between ranks, and who waits for it
 *   exec_clock.c      what it took on a device
 *   exec_tensors.c    attention called from the outside, on tensors of somebody else
 *
 * One arena, sized before a rank's first micro-batch from its layouts' limits: what lives through
 * the micro-batch lies at its bottom, what lives through one layer's attention above the mark.
 *
 * Two streams, compute and exchange. Whatever an exchange reads or overwrites was used by compute
 * before, so it begins after an event of compute (`ready`); compute waits for its end (`landed`)
 * before it uses what came, or uses the memory again. Every exchange is waited for within its
 * layer, hence the arena may be reused in the order of compute.
 */
#pragma once

#include <skrull/exec.h>

#include "comm.h"
#include "device.h"
#include "ops.h"

/* Messages that travel together, from begin to land; one at a time. */
struct exec_traffic {
    struct comm_batch batch;           /* between memories of the host */
    struct device_event ready, landed; /* between those of devices */
    size_t span;                       /* of the clock */
};

/* Something that is timed on a device. */
enum exec_span_kind { SPAN_WHOLE, SPAN_WAIT, SPAN_EXCHANGE };
struct exec_span {
    struct device_event from, to;
    enum exec_span_kind kind;
    uint32_t i_micro_batch;
};

struct exec_clock {
    bool is_on;
    uint32_t i_micro_batch;  /* that runs */
    struct exec_span *spans; /* [room], n_ready with events, n_spans in use */
    size_t n_spans, n_ready, room;
};

/* What a group's exchange holds while it runs. */
struct exec_group {
    struct comm_group members;
    struct exec_traffic keys, gradients; /* keys and values; their gradients */
    void *k[2], *v[2];                   /* gathered, in [0]; ring: here and incoming */
    float *dk[2], *dv[2];                /* ring: here and incoming */
};

/* Host memory on its way to the device: of this micro-batch and of the one before. */
struct exec_staging {
    char *memory;               /* [capacity], the device's kind of host memory */
    size_t capacity, used;      /* bytes */
    struct device_event copied; /* behind the last copy from it */
    bool is_waited_for;         /* copied was recorded */
};

struct exec_maps {
    struct exec_staging staging[2];
    uint32_t n_micro_batches; /* so far; the low bit picks the staging */
    struct skrull_layout layout;
    struct skrull_layout_group *groups; /* [n_groups], and in each [group_size] blocks */
    struct skrull_row_set *blocks;
    uint32_t n_groups, group_size;
};

struct skrull_exec {
    const struct ops *ops;
    struct device *device;    /* owned */
    struct skrull_comm *comm; /* borrowed or NULL */
    enum skrull_exchange exchange;
    enum skrull_dtype dtype;
    size_t element; /* bytes of one */
    void *compute_stream, *exchange_stream;
    bool owns_compute_stream;
    bool has_shares_apart;        /* of gradients in a ring: exec_ring.c */
    struct exec_traffic sums;     /* over all ranks, at the end of a step */
    struct device_event finished; /* of all work */

    char *memory; /* [capacity] */
    size_t capacity, used;
    uint64_t peak;

    struct exec_group *groups; /* [n_groups] */
    size_t n_groups;           /* room, each for group_size ranks */
    uint32_t group_size;
    struct exec_maps maps;

    /* Of the running micro-batch. */
    const struct skrull_layout *layout; /* maps in the device's memory */
    const struct skrull_layout *host_layout;
    struct skrull_attention_shape shape;
    const struct skrull_trainer *trainer; /* NULL: the caller walks */
    struct comm_times times;
    struct exec_clock clock;
};

/* Attention of one layer over the packed buffer; all [rows][heads or kv_heads][head_dim]. */
struct exec_attention {
    const void *q, *k, *v;
    void *out;
    float *lse;
    /* On the way back; out and lse are inputs. dq, dk, dv are added to; dk and dv of distributed
     * rows are written. */
    const void *dout;
    float *dq, *dk, *dv;
};

int exec_walk(struct skrull_exec *exec, struct skrull_error *err);
int exec_attention_forward(struct skrull_exec *exec, const struct exec_attention *attention,
                           struct skrull_error *err);
int exec_attention_backward(struct skrull_exec *exec, const struct exec_attention *attention,
                            struct skrull_error *err);

/* Room in the arena for layouts within `limits` and the trainer's own `bytes`. */
int exec_arena_prepare(struct skrull_exec *exec, const struct skrull_layout_limits *limits,
                       size_t bytes, struct skrull_error *err);
/* n floats, or elements, of the arena; NULL: it was sized too small. */
float *exec_floats(struct skrull_exec *exec, size_t n);
void *exec_elements(struct skrull_exec *exec, size_t n);
int exec_no_room(struct skrull_error *err);

/* The maps of layouts within `limits`: bytes of the arena, room, and those of the running one. */
size_t exec_maps_bytes(const struct skrull_layout_limits *limits);
int exec_maps_prepare(struct skrull_exec *exec, const struct skrull_layout_limits *limits,
                      struct skrull_error *err);
int exec_maps_upload(struct skrull_exec *exec, const struct skrull_layout_limits *limits,
                     struct skrull_error *err);
/* The micro-batch puts nothing more. */
int exec_maps_end(struct skrull_exec *exec, struct skrull_error *err);
void exec_maps_deinit(struct skrull_exec *exec);

/* A span from here to there on a stream, where the clock is on. read: all of a rank's
 * micro-batches, once all work is done; turns it off. */
int exec_clock_start(struct skrull_exec *exec, enum exec_span_kind kind, void *stream,
                     size_t *ret_span, struct skrull_error *err);
int exec_clock_stop(struct skrull_exec *exec, size_t i_span, void *stream,
                    struct skrull_error *err);
int exec_clock_read(struct skrull_exec *exec, struct skrull_exec_times *times, uint32_t n,
                    struct skrull_error *err);
void exec_clock_deinit(struct skrull_exec *exec);

/* The host waits for an event. */
int exec_wait_for(struct skrull_exec *exec, const struct device_event *event,
                  struct skrull_error *err);

/* Element `i` of a tensor. */
static inline void *exec_at(const struct skrull_exec *exec, const void *tensor, size_t i)
{
    return (char *)(uintptr_t)tensor + i * exec->element;
}

/* On the compute stream. */
int exec_zero(struct skrull_exec *exec, void *to, size_t bytes, struct skrull_error *err);
int exec_copy(struct skrull_exec *exec, void *to, const void *from, size_t bytes,
              struct skrull_error *err);

/* Traffic. `keys`, `gradients`, `sums`: names its events; `n` messages at most. */
int exec_traffic_init(struct skrull_exec *exec, struct exec_traffic *traffic, const char *ready,
                      const char *landed, size_t n, struct skrull_error *err);
void exec_traffic_deinit(struct skrull_exec *exec, struct exec_traffic *traffic);
/* Begin; any number of the middle ones; launch; and later land, before what came is used. */
int exec_traffic_begin(struct skrull_exec *exec, struct exec_traffic *traffic,
                       struct skrull_error *err);
int exec_traffic_send(struct skrull_exec *exec, struct exec_traffic *traffic, uint32_t peer,
                      enum comm_tag tag, const void *from, size_t bytes, struct skrull_error *err);
int exec_traffic_receive(struct skrull_exec *exec, struct exec_traffic *traffic, uint32_t peer,
                         enum comm_tag tag, void *to, size_t bytes, struct skrull_error *err);
/* blocks [size][bytes]: this member's is there. */
int exec_traffic_gather(struct skrull_exec *exec, struct exec_traffic *traffic,
                        const struct comm_group *members, enum comm_tag tag, void *blocks,
                        size_t bytes, struct skrull_error *err);
/* One sum of several that travel together. */
struct exec_sum {
    const float *parts; /* [size][n] */
    float *received;    /* [size][n], scratch on the host, else NULL */
    float *sum;         /* [n], defined once it has landed and was added */
    size_t n;
};
int exec_traffic_sum(struct skrull_exec *exec, struct exec_traffic *traffic,
                     const struct comm_group *members, enum comm_tag tag,
                     const struct exec_sum *sum, struct skrull_error *err);
int exec_traffic_launch(struct skrull_exec *exec, struct exec_traffic *traffic,
                        struct skrull_error *err);
int exec_traffic_land(struct skrull_exec *exec, struct exec_traffic *traffic,
                      struct skrull_error *err);
/* After it landed. */
void exec_traffic_add(const struct skrull_exec *exec, const struct comm_group *members,
                      const struct exec_sum *sum);

/* Width of a row of queries and of keys. */
static inline size_t exec_q_width(const struct skrull_exec *exec)
{
    return (size_t)exec->shape.heads * exec->shape.head_dim;
}

static inline size_t exec_k_width(const struct skrull_exec *exec)
{
    return (size_t)exec->shape.kv_heads * exec->shape.head_dim;
}

/* The parameters of attention of `queries` against `keys`; pointers to tensors are left out. */
struct skrull_attention exec_parameters(const struct skrull_exec *exec,
                                        const struct skrull_row_set *queries,
                                        const struct skrull_row_set *keys);

/* The same rows of `attention`'s tensors, as parameters of the queries of group `i_group`. */
void exec_bind_queries(const struct skrull_exec *exec, const struct exec_attention *attention,
                       uint32_t first_row, struct skrull_attention *ret);
void exec_bind_gradients(const struct skrull_exec *exec, const struct exec_attention *attention,
                         uint32_t first_row, struct skrull_attention_backward *ret);

/* By the trainer or the backend. */
int exec_attend(struct skrull_exec *exec, const struct skrull_attention *attention,
                struct skrull_error *err);
int exec_attend_backward(struct skrull_exec *exec,
                         const struct skrull_attention_backward *attention,
                         struct skrull_error *err);

/* One way of exchange: begin for each group by ascending size, then finish in the same order. */
struct exec_exchange {
    int (*begin)(struct skrull_exec *exec, uint32_t i_group, const struct exec_attention *attention,
                 struct skrull_error *err);
    int (*forward)(struct skrull_exec *exec, uint32_t i_group,
                   const struct exec_attention *attention, struct skrull_error *err);
    int (*backward)(struct skrull_exec *exec, uint32_t i_group,
                    const struct exec_attention *attention, struct skrull_error *err);
    /* Bytes of the arena that both ways take for one layer's attention. */
    size_t (*bytes)(const struct skrull_exec *exec, const struct skrull_layout_limits *limits);
};

extern const struct exec_exchange exec_gather, exec_ring;
