/*
 * StreamPlans: the state table of job/stream.h on a gRPC call.
 *
 * What happens (a plan is there, a message left, the rank reported, the store knows, the daemon
 * stops, the client went) becomes an event; the actions that the table answers with are carried out
 * here, at most one beside the cancelling of what was asked for. A stream frees itself with its
 * last action; nothing of it is touched after an event was passed in.
 *
 * Fan-out: gRPC writes to the socket inside the call that starts a send, 20 to 70 us each, and one
 * finished plan may make a thousand streams ready. Ready streams therefore wait in a ring that is
 * served SLICE sends a turn, so that other calls have their share of the loop. Where the next plan
 * is there already, a message waits for it, so that a stream that catches up costs the kernel one
 * write for several steps; never more than HELD of them, so that little is buffered for a client
 * that does not read.
 *
 * Heartbeats: all streams stand in a second ring by when something was sent to them last, so that a
 * timer finds those that are due at its head.
 */
#include "rpc/plan_stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "base/log.h"
#include "job/job.h"
#include "job/pipeline.h"
#include "job/registry.h"
#include "job/shared_bytes.h"
#include "job/stream.h"
#include "loop/loop.h"
#include "rpc/call.h"
#include "rpc/handlers.h"
#include "rpc/hub.h"
#include "rpc/rpc_ctx.h"

#define SLICE 64
#define BEATS_A_LOOK 8 /* how often the timer looks while a heartbeat becomes due */
#define SOON_MS 1
#define HELD 7
#define END_BYTES ((size_t)4096)
#define N_RANK_CHAINS 4096

struct plan_stream {
    struct stream stream;
    struct hub *hub;                             /* borrowed: closing it ends its streams */
    struct plan_stream *prev, *next;             /* in the hub's list */
    struct plan_stream *ready_prev, *ready_next; /* in the ready ring; NULL: not ready */
    struct plan_stream *quiet_prev, *quiet_next; /* in the ring by quiet_since_ms */
    uint64_t quiet_since_ms;
    struct plan_stream *chain_prev, *chain_next; /* in the chain of its data rank */
    struct call *call;
    uint32_t data_rank;
    uint32_t n_held; /* messages that wait for the next one */
    uint8_t resume_digest[SKRULL_DIGEST_SIZE];
    struct pipeline_wait wait;
    struct planned *planned; /* owned reference: what is to be sent */
    struct skrull_error err; /* of STREAM_FAIL */
};

struct plan_streams {
    struct loop *loop;
    struct loop_task *task;
    struct loop_timer *timer;
    struct shared_bytes *heartbeat;
    uint64_t heartbeat_ms;
    struct plan_stream ready, quiet;           /* heads of the rings */
    struct plan_stream *chains[N_RANK_CHAINS]; /* of all jobs, by data rank modulo their number */
};

static void on_event(struct plan_stream *ps, enum stream_event event);

/* --- the ready ring --- */

static void ready_append(struct plan_streams *streams, struct plan_stream *ps)
{
    ps->ready_next = &streams->ready;
    ps->ready_prev = streams->ready.ready_prev;
    ps->ready_prev->ready_next = ps;
    streams->ready.ready_prev = ps;
    loop_task_schedule(streams->task);
}

static void ready_remove(struct plan_stream *ps)
{
    if (ps->ready_next) {
        ps->ready_prev->ready_next = ps->ready_next;
        ps->ready_next->ready_prev = ps->ready_prev;
        ps->ready_prev = ps->ready_next = NULL;
    }
}

/* --- the quiet ring --- */

static void quiet_append(struct plan_streams *streams, struct plan_stream *ps)
{
    ps->quiet_since_ms = loop_now_ms(streams->loop);
    ps->quiet_next = &streams->quiet;
    ps->quiet_prev = streams->quiet.quiet_prev;
    ps->quiet_prev->quiet_next = ps;
    streams->quiet.quiet_prev = ps;
}

static void quiet_remove(struct plan_stream *ps)
{
    ps->quiet_prev->quiet_next = ps->quiet_next;
    ps->quiet_next->quiet_prev = ps->quiet_prev;
}

/* Something is sent. */
static void quiet_renew(struct plan_stream *ps)
{
    quiet_remove(ps);
    quiet_append(ps->hub->ctx->streams, ps);
}

static void on_timer(void *arg)
{
    struct plan_streams *streams = (struct plan_streams *)arg;
    uint64_t now = loop_now_ms(streams->loop), again_ms = streams->heartbeat_ms / BEATS_A_LOOK;
    int n = 0;

    while (streams->quiet.quiet_next != &streams->quiet) {
        struct plan_stream *ps = streams->quiet.quiet_next;

        if (now - ps->quiet_since_ms < streams->heartbeat_ms) {
            break;
        }
        if (n++ == SLICE) {
            again_ms = SOON_MS;
            break;
        }
        quiet_renew(ps);
        on_event(ps, STREAM_BEAT);
    }
    loop_timer_start(streams->timer, again_ms > SOON_MS ? again_ms : SOON_MS, 0);
}

/* --- streams by data rank --- */

static struct plan_stream **chain_of(struct plan_streams *streams, uint32_t data_rank)
{
    return &streams->chains[data_rank % N_RANK_CHAINS];
}

static void chain_add(struct plan_streams *streams, struct plan_stream *ps)
{
    struct plan_stream **head = chain_of(streams, ps->data_rank);

    ps->chain_next = *head;
    if (*head) {
        (*head)->chain_prev = ps;
    }
    *head = ps;
}

static void chain_remove(struct plan_streams *streams, struct plan_stream *ps)
{
    if (ps->chain_prev) {
        ps->chain_prev->chain_next = ps->chain_next;
    } else {
        *chain_of(streams, ps->data_rank) = ps->chain_next;
    }
    if (ps->chain_next) {
        ps->chain_next->chain_prev = ps->chain_prev;
    }
}

/* --- sending --- */

static void drop_planned(struct plan_stream *ps)
{
    planned_unref(ps->planned);
    ps->planned = NULL;
}

/* The plan that is ready, and the news whether another follows at once. */
static void send(struct plan_stream *ps)
{
    bool more = ps->n_held < HELD && stream_may_follow(&ps->stream) &&
                pipeline_has(ps->hub->pipeline, ps->stream.step + 1);

    ps->n_held = more ? ps->n_held + 1 : 0;
    quiet_renew(ps);
    call_send(ps->call, ps->planned->messages[ps->data_rank], more);
    drop_planned(ps); /* the message has a reference of its own */
}

static void on_slice(void *arg)
{
    struct plan_streams *streams = (struct plan_streams *)arg;

    for (int i = 0; i < SLICE && streams->ready.ready_next != &streams->ready; i++) {
        struct plan_stream *ps = streams->ready.ready_next;

        ready_remove(ps);
        send(ps);
    }
    if (streams->ready.ready_next != &streams->ready) {
        loop_task_schedule(streams->task);
    }
}

static struct shared_bytes *make_heartbeat(void)
{
    struct arena *arena = arena_new(END_BYTES);
    struct shared_bytes *message = NULL;
    struct rpc_bytes bytes;

    if (arena && codec_stream_heartbeat_pack(arena, &bytes, NULL) == 0) {
        message = shared_bytes_copy(bytes.data, bytes.len);
    }
    arena_free(arena);
    return message;
}

int plan_streams_new(struct loop *loop, uint64_t heartbeat_ms, struct plan_streams **ret_streams,
                     struct skrull_error *err)
{
    struct plan_streams *streams = calloc(1, sizeof(*streams));
    int code = SKRULL_ERR_RESOURCE_EXHAUSTED;

    if (!streams || !(streams->heartbeat = make_heartbeat())) {
        free(streams);
        return skrull_error_set(err, code, "streams: out of memory");
    }
    streams->loop = loop;
    streams->heartbeat_ms = heartbeat_ms;
    streams->ready.ready_prev = streams->ready.ready_next = &streams->ready;
    streams->quiet.quiet_prev = streams->quiet.quiet_next = &streams->quiet;
    code = loop_task_new(loop, on_slice, streams, &streams->task, err);
    if (code == 0) {
        code = loop_timer_new(loop, on_timer, streams, &streams->timer, err);
    }
    if (code < 0) {
        plan_streams_free(streams);
        return code;
    }
    on_timer(streams);
    *ret_streams = streams;
    return 0;
}

void plan_streams_free(struct plan_streams *streams)
{
    if (streams) {
        assert(streams->ready.ready_next == &streams->ready);
        assert(streams->quiet.quiet_next == &streams->quiet);
        loop_task_free(streams->task);
        loop_timer_free(streams->timer);
        shared_bytes_unref(streams->heartbeat);
        free(streams);
    }
}

/* --- actions --- */

/* Lets go of all it holds and returns its call, which must be ended. */
static struct call *plan_stream_free(struct plan_stream *ps)
{
    struct call *call = ps->call;

    pipeline_cancel(&ps->wait);
    ready_remove(ps);
    quiet_remove(ps);
    drop_planned(ps);
    chain_remove(ps->hub->ctx->streams, ps);
    if (ps->prev) {
        ps->prev->next = ps->next;
    } else {
        ps->hub->streams = ps->next;
    }
    if (ps->next) {
        ps->next->prev = ps->prev;
    }
    free(ps);
    return call;
}

static void log_ended(const struct plan_stream *ps, const char *why)
{
    log_event(LOG_LEVEL_DEBUG, "stream_ended", LOG_TEXT("job", ps->hub->entry->spec->name),
              LOG_U64("data_rank", ps->data_rank), LOG_U64("step", ps->stream.step),
              LOG_TEXT("why", why));
}

static void end(struct plan_stream *ps)
{
    static const struct {
        enum rpc_end_reason reason;
        const char *why;
    } ends[] = {
        [STREAM_END_DONE] = {RPC_END_DONE, "done"},
        [STREAM_END_REVISION] = {RPC_END_REVISION, "revision"},
        [STREAM_END_DRAINING] = {RPC_END_DRAINING, "draining"},
    };
    enum stream_end why = stream_end_reason(&ps->stream);
    struct skrull_error err = {0};
    struct rpc_bytes message;
    struct arena *arena = arena_new(END_BYTES);

    log_ended(ps, ends[why].why);
    if (!arena) {
        (void)skrull_error_set(&err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
        call_fail(plan_stream_free(ps), &err);
    } else if (codec_stream_end_pack(arena, ends[why].reason, ps->stream.step, &message, &err) <
               0) {
        call_fail(plan_stream_free(ps), &err);
    } else {
        call_end(plan_stream_free(ps), message);
    }
    arena_free(arena);
}

static void abort_stream(struct plan_stream *ps)
{
    struct skrull_error err = ps->err;

    log_ended(ps, err.message);
    call_fail(plan_stream_free(ps), &err);
}

static void release(struct plan_stream *ps)
{
    log_ended(ps, "client gone");
    call_end(plan_stream_free(ps), (struct rpc_bytes){NULL, 0});
}

static void fail(struct plan_stream *ps, const struct skrull_error *err)
{
    ps->err = *err;
    on_event(ps, STREAM_FAIL);
}

static void on_planned(void *arg, struct planned *planned, const struct skrull_error *err)
{
    struct plan_stream *ps = (struct plan_stream *)arg;

    if (err) {
        fail(ps, err);
        return;
    }
    ps->planned = planned_ref(planned);
    on_event(ps, STREAM_PLANNED);
}

static void compare(struct plan_stream *ps, const uint8_t digest[SKRULL_DIGEST_SIZE])
{
    struct skrull_error err = {0};

    if (memcmp(digest, ps->resume_digest, SKRULL_DIGEST_SIZE) == 0) {
        on_event(ps, STREAM_CHECKED);
        return;
    }
    (void)skrull_error_because(&err, SKRULL_ERR_FAILED_PRECONDITION,
                               SKRULL_REASON_RESUME_DIGEST_MISMATCH, ps->stream.step - 1,
                               "resume_digest: not the digest of step %llu of job %s: the worker "
                               "follows another plan; restart it from a checkpoint of this job",
                               (unsigned long long)(ps->stream.step - 1),
                               ps->hub->entry->spec->name);
    fail(ps, &err);
}

static void on_check_planned(void *arg, struct planned *planned, const struct skrull_error *err)
{
    struct plan_stream *ps = (struct plan_stream *)arg;

    if (err) {
        fail(ps, err);
        return;
    }
    compare(ps, planned->plan->digest);
}

static void check(struct plan_stream *ps)
{
    uint8_t digest[SKRULL_DIGEST_SIZE];

    if (pipeline_digest(ps->hub->pipeline, ps->stream.step - 1, digest)) {
        compare(ps, digest);
        return;
    }
    ps->wait.done = on_check_planned;
    pipeline_ask(ps->hub->pipeline, ps->stream.step - 1, false, &ps->wait);
}

static void ask(struct plan_stream *ps)
{
    ps->wait.done = on_planned;
    pipeline_ask(ps->hub->pipeline, ps->stream.step, true, &ps->wait);
}

static void on_event(struct plan_stream *ps, enum stream_event event)
{
    unsigned int actions = stream_step(&ps->stream, event);

    if (actions & STREAM_CANCEL) {
        pipeline_cancel(&ps->wait);
        ready_remove(ps);
        drop_planned(ps);
    }
    switch ((enum stream_action)(actions & ~(unsigned int)STREAM_CANCEL)) {
    case STREAM_CHECK:
        check(ps);
        break;
    case STREAM_MARK:
        hub_mark(ps->hub, stream_mark(ps->stream.step, ps->hub->entry->spec->info.steps));
        break;
    case STREAM_ASK:
        ask(ps);
        break;
    case STREAM_SEND:
        ready_append(ps->hub->ctx->streams, ps);
        break;
    case STREAM_END:
        end(ps);
        break;
    case STREAM_ABORT:
        abort_stream(ps);
        break;
    case STREAM_RELEASE:
        release(ps);
        break;
    case STREAM_HEARTBEAT:
        call_send(ps->call, ps->hub->ctx->streams->heartbeat, false);
        break;
    case STREAM_CANCEL:
    default:
        break;
    }
}

/* --- events --- */

static void on_sent(void *owner)
{
    on_event((struct plan_stream *)owner, STREAM_SENT);
}

static void on_closed(void *owner)
{
    on_event((struct plan_stream *)owner, STREAM_CLOSE);
}

void plan_streams_fail(struct hub *hub, const struct skrull_error *err)
{
    while (hub->streams) {
        fail(hub->streams, err);
    }
}

void plan_streams_drain(struct hub *hub)
{
    for (struct plan_stream *ps = hub->streams, *next; ps; ps = next) {
        next = ps->next;
        on_event(ps, STREAM_DRAIN);
    }
}

void plan_streams_cut(struct hub *hub)
{
    for (struct plan_stream *ps = hub->streams; ps; ps = ps->next) {
        log_event(LOG_LEVEL_INFO, "stream_cut", LOG_TEXT("job", ps->hub->entry->name),
                  LOG_U64("data_rank", ps->data_rank), LOG_U64("step", ps->stream.step),
                  LOG_TEXT("why", "the client does not read"));
        call_cut(ps->call);
    }
}

void plan_streams_marked(struct hub *hub)
{
    for (struct plan_stream *ps = hub->streams, *next; ps; ps = next) {
        next = ps->next;
        ps->stream.given_out_below = hub->entry->given_out_below;
        on_event(ps, STREAM_NEWS);
    }
}

void plan_streams_mark_failed(struct hub *hub, const struct skrull_error *err)
{
    for (struct plan_stream *ps = hub->streams, *next; ps; ps = next) {
        next = ps->next;
        if (ps->stream.state == STREAM_MARKING) {
            fail(ps, err);
        }
    }
}

void plan_streams_revised(struct hub *hub, uint64_t first_step)
{
    for (struct plan_stream *ps = hub->streams, *next; ps; ps = next) {
        next = ps->next;
        if (stream_revise(&ps->stream, first_step)) {
            on_event(ps, STREAM_NEWS);
        }
    }
}

void plan_streams_reported(struct hub *hub, uint32_t data_rank, uint64_t step)
{
    struct plan_stream *chain = *chain_of(hub->ctx->streams, data_rank);

    for (struct plan_stream *ps = chain, *next; ps; ps = next) {
        next = ps->chain_next;
        if (ps->data_rank == data_rank && ps->hub == hub && stream_report(&ps->stream, step)) {
            on_event(ps, STREAM_NEWS);
        }
    }
}

/* --- opening --- */

/* What a request may not say; on success the entry has a job, hence a hub. */
static int check_request(const struct registry_entry *entry, const struct rpc_stream_plans *request,
                         uint8_t resume_digest[SKRULL_DIGEST_SIZE], struct skrull_error *err)
{
    const uint64_t steps = entry->spec->info.steps;
    uint64_t n_ranks;
    struct job *job;
    int code = registry_entry_check_uid(entry, request->uid, err);

    if (code == 0) {
        code = registry_entry_job(entry, &job, err);
    }
    if (code < 0) {
        return code;
    }
    n_ranks = job_n_ranks(job, request->from_step);
    if (request->data_rank >= n_ranks) {
        return skrull_error_because(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    SKRULL_REASON_DATA_RANK_OUT_OF_RANGE, n_ranks,
                                    "data_rank: %u is out of range, 0 to %llu are allowed",
                                    request->data_rank, (unsigned long long)(n_ranks - 1));
    }
    if (request->from_step > steps) {
        return skrull_error_because(err, SKRULL_ERR_OUT_OF_RANGE, SKRULL_REASON_STEP_OUT_OF_RANGE,
                                    steps, "from_step: %llu is past the end, job %s has %llu steps",
                                    (unsigned long long)request->from_step, entry->name,
                                    (unsigned long long)steps);
    }
    if (request->resume_digest[0] == '\0') {
        return 0;
    }
    if (skrull_digest_from_hex(request->resume_digest, resume_digest) < 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "resume_digest: not 32 lower-case hex digits");
    }
    if (request->from_step == 0) {
        return skrull_error_because(err, SKRULL_ERR_FAILED_PRECONDITION,
                                    SKRULL_REASON_RESUME_DIGEST_MISMATCH, 0,
                                    "resume_digest: there is no step before from_step 0");
    }
    return 0;
}

/* Where the stream ends: after `count` plans, where the next revision begins, or with the job. */
static void set_end(struct stream *stream, const struct job *job,
                    const struct rpc_stream_plans *request)
{
    uint64_t end = job_spec_end(job, request->from_step);

    stream->is_counted = request->count > 0 && request->count <= end - request->from_step;
    stream->end_step = stream->is_counted ? request->from_step + request->count : end;
    stream->is_revised = !stream->is_counted && end < job_spec(job)->info.steps;
}

static void open_stream(struct call *call, struct registry_entry *entry,
                        const struct rpc_stream_plans *request, struct plan_stream *ps)
{
    static const struct call_events events = {.sent = on_sent, .closed = on_closed};
    struct hub *hub = entry->hub;

    ps->hub = hub;
    ps->call = call;
    ps->data_rank = request->data_rank;
    ps->wait.arg = ps;
    ps->next = hub->streams;
    if (ps->next) {
        ps->next->prev = ps;
    }
    hub->streams = ps;
    chain_add(hub->ctx->streams, ps);
    quiet_append(hub->ctx->streams, ps);
    stream_init(&ps->stream, request->from_step, request->from_step, request->window,
                request->resume_digest[0] != '\0', entry->given_out_below);
    set_end(&ps->stream, entry->job, request);
    log_event(LOG_LEVEL_DEBUG, "stream_opened", LOG_TEXT("job", entry->spec->name),
              LOG_U64("data_rank", request->data_rank), LOG_U64("step", request->from_step));
    call_forget_request(call);
    call_stream(call, &events, ps);
    on_event(ps, STREAM_OPEN);
}

void rpc_stream_plans(struct rpc_ctx *ctx, struct call *call)
{
    struct plan_stream *ps = calloc(1, sizeof(*ps));
    struct rpc_stream_plans request;
    struct registry_entry *entry;
    struct skrull_error err = {0};
    int code;

    if (!ps) {
        (void)skrull_error_set(&err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
        call_fail(call, &err);
        return;
    }
    code = codec_stream_plans_request_unpack(call_arena(call), call_request(call), &request, &err);
    if (code == 0) {
        code = registry_find(ctx->registry, request.job, &entry, &err);
    }
    if (code == 0) {
        code = check_request(entry, &request, ps->resume_digest, &err);
    }
    if (code < 0) {
        free(ps);
        call_fail(call, &err);
        return;
    }
    open_stream(call, entry, &request, ps);
}
