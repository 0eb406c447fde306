/*
 * The client of skrulld, for GPU workers. A client may be used by several threads; a stream by one
 * thread at a time, beside its own reader thread, which prefetches, reconnects and resumes.
 * fork() after skrull_client_new is not supported (gRPC is not).
 */
#pragma once

#include <skrull/error.h>
#include <skrull/job.h>
#include <skrull/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

struct skrull_client;
struct skrull_stream;

struct skrull_client_options {
    const char *server; /* HOST:PORT, [V6]:PORT or unix:PATH; NULL: $SKRULL_SERVER, else the default socket */
    int64_t timeout_ms; /* of a unary call, connecting included; 0: 10,000 */
};

/* A new client; connects lazily. INVALID_ARGUMENT: not an address. `options` may be NULL. */
SKRULL_API int skrull_client_new(const struct skrull_client_options *options,
                                 struct skrull_client **ret_client, struct skrull_error *err);
SKRULL_API void skrull_client_free(struct skrull_client *client);

/* The address in use; lives as long as the client. */
SKRULL_API const char *skrull_client_server(const struct skrull_client *client);

/* Jobs that calls return are owned by the caller. NULL is fine. */
SKRULL_API void skrull_job_free(struct skrull_job *job);

/* Creates a job. `request_id` (nullable) makes a repeated call harmless. */
SKRULL_API int skrull_client_create_job(struct skrull_client *client, const struct skrull_job *job,
                                        const char *request_id, struct skrull_job **ret_job,
                                        struct skrull_error *err);
struct skrull_update_options {
    /* Which fields of the job count: paths of the job file ("parallel.dp", "batch"), [n_mask]; none: all
     * that are set, which is all but zeros, empty texts and empty lists. */
    const char *const *mask;
    size_t n_mask;
    uint32_t expected_revision; /* another one is ABORTED; 0: any */
    uint64_t from_step;         /* first step of the new revision; 0: the first that was not given out */
};

/*
 * Changes a job, named by job->name, from a step on: the reply has the new revision. Where nothing
 * changes it is the job as it is. FAILED_PRECONDITION: plans of from_step may have been given out (the
 * message says from where it can be). The order of samples stays: seed, data, order and last_batch
 * cannot change. `options` may be NULL.
 */
SKRULL_API int skrull_client_update_job(struct skrull_client *client, const struct skrull_job *job,
                                        const struct skrull_update_options *options,
                                        struct skrull_job **ret_job, struct skrull_error *err);
SKRULL_API int skrull_client_get_job(struct skrull_client *client, const char *name,
                                     struct skrull_job **ret_job, struct skrull_error *err);
SKRULL_API int skrull_client_delete_job(struct skrull_client *client, const char *name,
                                        struct skrull_error *err);

/* All jobs by name: calls `fn` for each (the job is borrowed); a non-zero return ends the walk. */
SKRULL_API int skrull_client_list_jobs(struct skrull_client *client,
                                       int (*fn)(void *arg, const struct skrull_job *job), void *arg,
                                       struct skrull_error *err);

/* The plan of a step: of `ranks` ([n_ranks]), or whole where n_ranks is 0 (asked for in parts where it is
 * too large for one message). For looking: an update of the job may still change the step, unlike one that a
 * stream has sent. Free it with skrull_plan_free. */
SKRULL_API int skrull_client_get_plan(struct skrull_client *client, const char *job, uint64_t step,
                                      const uint32_t *ranks, size_t n_ranks,
                                      struct skrull_plan **ret_plan, struct skrull_error *err);

/* A batch of lengths that are known only now: RL rollouts, streaming data. Borrowed. */
struct skrull_batch {
    const uint32_t *lengths;     /* [n] tokens of each sequence, at most 2^20 sequences */
    const uint32_t *loss_tokens; /* [n], or NULL: every token counts */
    size_t n;
};

/*
 * The plan of one batch by the settings of `job` (model, parallel, batch and so on; of its data only
 * data[0].over_length counts), which need not be a job of the daemon: no state is kept there. In the
 * plan, sample is the place in `lengths`, and step is 0. The same batch has the same plan. Asked for
 * in parts where it is too large for one message. Free it with skrull_plan_free.
 */
SKRULL_API int skrull_client_plan_batch(struct skrull_client *client, const struct skrull_job *job,
                                        const struct skrull_batch *batch,
                                        struct skrull_plan **ret_plan, struct skrull_error *err);

/* Health of the server as grpc.health.v1 has it: 0 serving, SKRULL_NOT_SERVING not. */
#define SKRULL_NOT_SERVING 1
SKRULL_API int skrull_client_health(struct skrull_client *client, struct skrull_error *err);

/* Steps that may come before they are reported: no limit, for those who watch and never report. At most 16
 * plans are held; the connection's flow control stops the daemon. */
#define SKRULL_WINDOW_NONE UINT32_MAX

/* What a stream does while no daemon answers. */
enum skrull_fallback {
    SKRULL_FALLBACK_NONE,  /* it waits */
    SKRULL_FALLBACK_LOCAL, /* it plans in this process */
};

struct skrull_stream_options {
    const char *job;
    const char *uid; /* NULL: any; the first plan's uid is held to from then on */
    uint32_t data_rank;
    uint64_t from_step;
    uint64_t count;              /* 0: all */
    uint32_t window;             /* 0: 16; at most 4,096; or SKRULL_WINDOW_NONE */
    const char *resume_digest;   /* digest of step from_step - 1, NULL: not checked */
    int64_t give_up_ms;          /* without a connection for so long: UNAVAILABLE; 0: never */
    void (*on_event)(void *arg, const char *message); /* reconnects and the like, from the reader thread; NULL: silent */
    void *arg;
    enum skrull_fallback fallback;
    const char *const *fallback_roots; /* [n_fallback_roots] absolute folders under which indexes lie; copied */
    size_t n_fallback_roots;
    int64_t fallback_after_ms;   /* without a connection, before plans are made here; 0: 5,000 */
    /* Waited for longer than this without a message, not even a heartbeat (a daemon sends them at least every
     * 20 s), the call is taken for lost: a daemon that hangs may answer its connection. 0: 60,000; below: never. */
    int64_t silence_ms;
};

/*
 * Opens a stream; returns at once. Close it before the client is freed; `client` NULL: one of its own, with
 * the default options.
 *
 * Fallback. A plan is a pure function of the job and the step, so a stream can do without its daemon: where
 * none answers for fallback_after_ms, it makes the next plans itself, with the same digests and bytes, from
 * the job as it read it when it last connected. It does so where all of the job's indexes lie under a root
 * (a path of the job is absolute, or relative to a root) and are those that the job was created with: each
 * is read in full and held against its hash; and where the step before has the digest here that the daemon
 * gave. Else it waits for the daemon, as without a fallback, and tries again every 30 s. Once the daemon is
 * back, the stream returns to it at the next step, and what was reported meanwhile is delivered. on_event
 * is told of each change. While plans are made here, give_up_ms ends nothing.
 *
 * The job is read when a connection stands, every 64 steps, and when a revision begins. A revision made
 * after that, which had not begun when the daemon went, is not known here: workers that compare their plan's
 * digests notice, and the daemon, back again, refuses the reports or the stream (FAILED_PRECONDITION).
 *
 * An index (.skx) is mapped, and one that is truncated meanwhile would raise SIGBUS. The first stream of a
 * process that plans by itself therefore installs a handler of SIGBUS, by which such a plan fails and the
 * process lives; every other fault goes to the handler that was there before. Without a fallback, and until
 * it is used, there is no such handler. Closing a stream waits while an index is being read.
 */
SKRULL_API int skrull_stream_open(struct skrull_client *client,
                                  const struct skrull_stream_options *options,
                                  struct skrull_stream **ret_stream, struct skrull_error *err);

/*
 * The next step's plan (one rank), in order, none lost or repeated, whatever happened to the
 * connection; waits for it. Its rank digest has been recomputed (else DATA_LOSS). SKRULL_STREAM_END: there
 * are no more. Errors are final: NOT_FOUND, FAILED_PRECONDITION, ... as the daemon said.
 */
#define SKRULL_STREAM_END 1
SKRULL_API int skrull_stream_next(struct skrull_stream *stream, struct skrull_plan **ret_plan,
                                  struct skrull_error *err);

/* What a worker measured of a micro-batch. */
struct skrull_micro_batch_times {
    int64_t compute_busy_ns, compute_wait_ns;   /* computing; waiting for an exchange meanwhile */
    int64_t exchange_busy_ns, exchange_wait_ns; /* under way; of this, not hidden behind computing */
};

/* Micro-batches of a report; more are left out of it. */
#define SKRULL_REPORT_MICRO_BATCHES 4096

struct skrull_step_report {
    uint64_t step;
    const char *digest; /* of the plan that was run, 32 hex digits */
    int64_t elapsed_ns;
    uint64_t peak_bytes;
    const struct skrull_micro_batch_times *micro_batches; /* [n_micro_batches], copied */
    size_t n_micro_batches;                               /* 0: not measured */
};

/* Queues a report of this stream's rank; the reader thread delivers it, at least once, also across a
 * reconnect. An error that the daemon gave to an earlier one is returned here or by _next. */
SKRULL_API int skrull_stream_report(struct skrull_stream *stream,
                                    const struct skrull_step_report *report, struct skrull_error *err);

/* The same of `plan`, which this stream gave, without anything measured but that it was run. */
SKRULL_API int skrull_stream_report_plan(struct skrull_stream *stream, const struct skrull_plan *plan,
                                         struct skrull_error *err);

/* Waits until all reports are delivered, at most timeout_ms (0: for ever): DEADLINE_EXCEEDED. */
SKRULL_API int skrull_stream_flush(struct skrull_stream *stream, int64_t timeout_ms,
                                   struct skrull_error *err);

/* Cancels what is open and joins the reader thread; NULL is fine. Undelivered reports are lost. */
SKRULL_API void skrull_stream_close(struct skrull_stream *stream);

#ifdef __cplusplus
}
#endif
