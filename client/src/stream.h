/*
 * What a stream is. One lock guards all of it but the options and the queue's tags; gRPC batches
 * are started under the lock too, by the reader (stream_reader.c) and by the user's thread: a pop
 * makes room for the next message, a report starts its delivery. Only the reader takes events from
 * the completion queue.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <grpc/grpc.h>

#include <skrull/client.h>

#include "backoff.h"
#include "call.h"
#include "plan_queue.h"
#include "report_queue.h"
#include "stream_fallback.h"
#include "stream_state.h"

#define STREAM_DEFAULT_WINDOW 16
#define STREAM_MAX_WINDOW 4096 /* plans that are held here at most */

/* What a completed batch was; the address of stream->tags[i] is its tag. */
enum stream_tag {
    TAG_SENT,    /* the request went out */
    TAG_OPENED,  /* initial metadata */
    TAG_MESSAGE, /* a message, or none: the daemon has said all */
    TAG_CLOSED,  /* status */
    TAG_REPORT,  /* ReportSteps answered */
    TAG_JOB,     /* GetJob answered */
    N_TAGS,
};

/* The call that brings plans; a new one after each loss. */
struct plan_call {
    struct call call;
    int n_tags;           /* batches that have not come back */
    bool is_receiving;    /* one of them is TAG_MESSAGE */
    bool is_receive_over; /* no message is to come */
    bool has_status;
    bool is_end;      /* the daemon said done */
    bool is_reopen;   /* the daemon said come again */
    bool is_revision; /* because a revision begins, else because it stops */
    bool is_stale;    /* cancelled for the fallback: nothing that comes counts */
    bool is_silent;   /* cancelled because nothing came */
};

/* Delivery of reports: at most one call at a time. */
struct reporter {
    struct report_queue queue;
    struct call call;
    size_t n_in_flight; /* oldest reports that the call carries */
    bool is_calling;
    struct backoff backoff;
    int64_t retry_at_ns;       /* 0: at once */
    int64_t lost_since_ns;     /* first failure in a row, 0: none */
    struct skrull_error error; /* code 0: none; else final */
};

struct skrull_stream {
    struct skrull_client *client; /* borrowed, or its own */
    bool owns_client;
    /* Immutable. */
    char *job;
    uint32_t data_rank;
    uint64_t from_step, count;
    uint32_t window;                /* as the daemon is told it */
    int64_t give_up_ns, silence_ns; /* 0: never */
    void (*on_event)(void *arg, const char *message);
    void *arg;
    grpc_completion_queue *cq;
    char tags[N_TAGS];

    pthread_mutex_t lock;
    pthread_cond_t changed; /* something for next() or flush() */
    pthread_t reader;
    bool is_closing; /* no batch may start any more */
    enum stream_state state;
    struct skrull_error error;                /* of STREAM_FAILED */
    char uid[SKRULL_UID_HEX_SIZE];            /* "": not known yet */
    char last_digest[SKRULL_DIGEST_HEX_SIZE]; /* of step next_step - 1, "": not known */
    uint64_t next_step;                       /* the first that was not received */
    uint64_t n_received;
    struct plan_queue plans;
    struct plan_call plan_call;
    struct backoff backoff;
    int64_t retry_at_ns;   /* in STREAM_BACKOFF */
    int64_t waiting_ns;    /* since then for the message that is asked for */
    int64_t lost_since_ns; /* no connection since then; 0: there is one */
    /* For on_event, said by the reader once the lock is free; "": none. A cause is never cut. */
    char notice[SKRULL_ERROR_MESSAGE_SIZE + 256];
    struct reporter reporter;
    struct fallback fallback;
};

/* What a call of this stream came to, as call_result; a daemon that is too busy for it is one that is
 * not available for a while. */
int stream_call_result(const struct skrull_stream *stream, const struct call *call,
                       struct skrull_error *err);

/* Monotonic nanoseconds. */
int64_t stream_now_ns(void);

/* The reader thread: runs until the completion queue is shut down and empty. */
void *stream_reader_run(void *stream);

/* Moves the state and does what the table says. Takes `plan` (nullable) over; `why` is of failures.
 * Under the lock, by the reader. */
void stream_step(struct skrull_stream *stream, enum stream_event event, struct skrull_plan *plan,
                 const struct skrull_error *why);

/* There is a connection to the daemon. Under the lock. */
void stream_note_connected(struct skrull_stream *stream);

/* All plans that were asked for have been received. */
bool stream_is_complete(const struct skrull_stream *stream);

/* Decodes and verifies a StreamPlansResponse outside the lock, then acts under it: the daemon's, or
 * one made here. Called by the reader without the lock. */
void stream_take_message(struct skrull_stream *stream, struct rpc_bytes bytes, bool is_local);

/* Asks for the next message where there is room for it. Under the lock. */
void stream_receive(struct skrull_stream *stream);

/* Starts the delivery of what is queued, unless one is on its way or has to wait. Under the lock.
 */
void stream_report_send(struct skrull_stream *stream);

/* A delivery came back. Under the lock. */
void stream_report_answered(struct skrull_stream *stream);

/* When a waiting delivery is to be tried again: INT64_MAX: none waits. Under the lock. */
int64_t stream_report_timer_ns(const struct skrull_stream *stream);
