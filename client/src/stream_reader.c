/*
 * The reader of one stream: a thread that turns events of the stream's completion queue into events
 * of stream_state.h and carries out what the table says.
 *
 * The happy path: open a call at the next step; ask for a message while the queue has room; decode
 * and verify each outside the lock; queue it. The daemon's end message and status OK finish the
 * stream. What may fail: the call is lost (wait, open another at the first step not received,
 * naming uid and the last digest); the daemon refuses (final); a message is not the next step's
 * plan (final); nothing comes, not even a heartbeat, since the daemon hangs (as a lost call); no
 * connection for give_up_ms (final); close() cancels the calls and shuts the queue down, which ends
 * the loop once every batch has come back.
 */
#include "stream.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arena.h"
#include "codec_rpc.h"
#include "tag_order.h"
#include "unary.h"

#define REQUEST_BUDGET ((size_t)1 << 16)

int64_t stream_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int stream_call_result(const struct skrull_stream *stream, const struct call *call,
                       struct skrull_error *err)
{
    int code = call_result(call, stream->client->server, err);

    return code < 0 && err->reason == SKRULL_REASON_BUSY ? SKRULL_ERR_UNAVAILABLE : code;
}

void stream_receive(struct skrull_stream *stream)
{
    struct plan_call *plan_call = &stream->plan_call;
    bool is_live = stream->state == STREAM_OPENING || stream->state == STREAM_ACTIVE;

    if (stream->is_closing || !is_live || !plan_call->call.handle || plan_call->is_receiving ||
        plan_call->is_receive_over || plan_queue_is_full(&stream->plans)) {
        return;
    }
    if (call_start_receive(&plan_call->call, &stream->tags[TAG_MESSAGE], NULL) < 0) {
        /* The call is broken: its status says why, and it will be opened again. */
        (void)grpc_call_cancel(plan_call->call.handle, NULL);
        plan_call->is_receive_over = true;
        return;
    }
    plan_call->is_receiving = true;
    plan_call->n_tags++;
    stream->waiting_ns = stream_now_ns();
}

/* Starts the call for all steps not yet received. */
static int start_call(struct skrull_stream *stream, struct skrull_error *err)
{
    const struct rpc_stream_plans open = {
        .job = stream->job,
        .uid = stream->uid,
        .data_rank = stream->data_rank,
        .from_step = stream->next_step,
        .count = stream->count ? stream->count - stream->n_received : 0,
        .window = stream->window,
        .resume_digest = stream->last_digest,
    };
    const struct call_tags tags = {&stream->tags[TAG_SENT], &stream->tags[TAG_OPENED],
                                   &stream->tags[TAG_CLOSED]};
    struct plan_call *plan_call = &stream->plan_call;
    struct arena *arena = arena_new(REQUEST_BUDGET);
    struct rpc_bytes request;
    int r;

    if (!arena) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a call");
    }
    r = codec_stream_plans_request_pack(arena, &open, &request, err);
    if (r == 0) {
        *plan_call = (struct plan_call){0};
        call_init(&plan_call->call, stream->client->channel, stream->cq,
                  UNARY_METHOD("StreamPlans"), call_deadline(-1));
        r = call_start_stream(&plan_call->call, request, &tags, &plan_call->n_tags, err);
        if (r < 0 && plan_call->n_tags == 0) {
            call_deinit(&plan_call->call);
        }
    }
    arena_free(arena);
    return r;
}

static void open_call(struct skrull_stream *stream)
{
    struct skrull_error error;

    if (!stream->lost_since_ns) {
        stream->lost_since_ns = stream_now_ns();
    }
    grpc_channel_reset_connect_backoff(stream->client->channel); /* the wait was ours */
    if (start_call(stream, &error) < 0) {
        stream_step(stream, STREAM_CALL_REFUSED, NULL, &error);
        return;
    }
    stream_receive(stream);
}

/* A revision is no loss: the daemon waits for the next call. Should it end that one too without a
 * plan, the wait is the usual one. */
static int64_t delay_to_reopen(struct skrull_stream *stream)
{
    bool is_first = stream->backoff.delay_ns == 0;
    int64_t delay = backoff_next_ns(&stream->backoff);

    return stream->plan_call.is_revision && !stream->plan_call.is_stale && is_first ? 0 : delay;
}

static void wait_to_reopen(struct skrull_stream *stream, const struct skrull_error *why)
{
    int64_t now = stream_now_ns(), delay = delay_to_reopen(stream);

    if (!stream->lost_since_ns) {
        stream->lost_since_ns = now;
    }
    stream->retry_at_ns = now + delay;
    if (delay == 0) {
        (void)snprintf(stream->notice, sizeof(stream->notice),
                       "stream of job %s, rank %" PRIu32 ": revision begins at step %" PRIu64,
                       stream->job, stream->data_rank, stream->next_step);
    } else {
        (void)snprintf(stream->notice, sizeof(stream->notice),
                       "stream of job %s, rank %" PRIu32 ": lost before step %" PRIu64
                       ", again in %" PRId64 " ms: %s",
                       stream->job, stream->data_rank, stream->next_step, delay / 1000000,
                       why && why->message[0] ? why->message : "the stream ended early");
    }
    stream->plan_call.is_revision = false; /* said */
}

static void cancel_call(struct skrull_stream *stream)
{
    if (stream->plan_call.call.handle) {
        (void)grpc_call_cancel(stream->plan_call.call.handle, NULL);
    }
}

void stream_step(struct skrull_stream *stream, enum stream_event event, struct skrull_plan *plan,
                 const struct skrull_error *why)
{
    enum stream_action action = stream_state_move(&stream->state, event);

    assert(action != STREAM_ILLEGAL);
    switch (action) {
    case STREAM_NOTHING:
    case STREAM_ILLEGAL:
        break;
    case STREAM_OPEN:
        open_call(stream);
        break;
    case STREAM_DELIVER:
        plan_queue_push(&stream->plans, plan);
        plan = NULL;
        break;
    case STREAM_WAIT:
        wait_to_reopen(stream, why);
        break;
    case STREAM_FAIL:
        stream->error = *why;
        cancel_call(stream);
        break;
    case STREAM_CANCEL:
        cancel_call(stream);
        stream->plan_call.is_stale = true;
        break;
    case STREAM_FINISH:
        break;
    }
    skrull_plan_free(plan);
    pthread_cond_broadcast(&stream->changed);
}

void stream_note_connected(struct skrull_stream *stream)
{
    if (stream->lost_since_ns) {
        stream->lost_since_ns = 0;
        stream->reporter.retry_at_ns = 0; /* reports that waited need not */
        stream->reporter.lost_since_ns = 0;
        stream_report_send(stream);
        stream_fallback_connected(stream);
    }
}

/* TAG_MESSAGE came back. Called without the lock. */
static void on_message(struct skrull_stream *stream)
{
    struct plan_call *plan_call = &stream->plan_call;
    struct rpc_bytes message = {0};
    struct skrull_error error;
    uint8_t *bytes = NULL;
    int r;

    /* No batch writes call.message until the next receive, which waits for is_receiving below. */
    r = call_take_message(&plan_call->call, &bytes, &message.len, &error);
    message.data = bytes;
    if (r == 0 && bytes) {
        stream_take_message(stream, message, false);
    }
    (void)pthread_mutex_lock(&stream->lock);
    if (r < 0) {
        stream_step(stream, STREAM_CORRUPT, NULL, &error);
    }
    plan_call->is_receiving = false;
    plan_call->n_tags--;
    plan_call->is_receive_over = !bytes;
    stream_receive(stream);
    (void)pthread_mutex_unlock(&stream->lock);
    free(bytes);
}

/* gRPC hands out metadata of its own making where a call failed: the channel knows whether it is
 * real. */
static void on_opened(struct skrull_stream *stream, bool is_ok)
{
    if (is_ok && !stream->plan_call.is_stale &&
        grpc_channel_check_connectivity_state(stream->client->channel, 0) == GRPC_CHANNEL_READY) {
        stream_step(stream, STREAM_CONNECTED, NULL, NULL);
        stream_note_connected(stream);
    }
}

/* All batches of the plan call have come back. */
static void finish_call(struct skrull_stream *stream)
{
    struct plan_call *plan_call = &stream->plan_call;
    struct skrull_error error = {0};
    int code = stream_call_result(stream, &plan_call->call, &error);
    enum stream_event event = STREAM_CALL_LOST;

    if (!plan_call->is_stale) {
        event = stream_call_outcome(code, plan_call->is_end, plan_call->is_reopen,
                                    stream_is_complete(stream));
    }
    if (plan_call->is_reopen && !plan_call->is_revision) {
        (void)skrull_error_set(&error, SKRULL_ERR_UNAVAILABLE, "the daemon is stopping");
    }
    call_deinit(&plan_call->call);
    stream_step(stream, event, NULL, &error);
}

static void on_tag(struct skrull_stream *stream, enum stream_tag tag, bool is_ok)
{
    struct plan_call *plan_call = &stream->plan_call;

    if (tag == TAG_MESSAGE) {
        on_message(stream);
    }
    (void)pthread_mutex_lock(&stream->lock);
    switch (tag) {
    case TAG_MESSAGE:
        break;
    case TAG_SENT:
        plan_call->n_tags--;
        break;
    case TAG_OPENED:
        plan_call->n_tags--;
        on_opened(stream, is_ok);
        break;
    case TAG_CLOSED:
        plan_call->n_tags--;
        plan_call->has_status = true;
        break;
    case TAG_REPORT:
        stream_report_answered(stream);
        break;
    case TAG_JOB:
        stream_fallback_answered(stream);
        break;
    case N_TAGS:
        break;
    }
    if (plan_call->call.handle && plan_call->n_tags == 0 &&
        (plan_call->has_status || stream->state == STREAM_FAILED)) {
        finish_call(stream);
    }
    (void)pthread_mutex_unlock(&stream->lock);
}

/* When patience ends; INT64_MAX: never. */
static int64_t give_up_at_ns(const struct skrull_stream *stream)
{
    bool is_apart = stream->state == STREAM_OPENING || stream->state == STREAM_BACKOFF;

    if (!stream->give_up_ns || !is_apart || !stream->lost_since_ns) {
        return INT64_MAX;
    }
    return stream->lost_since_ns + stream->give_up_ns;
}

/* When a daemon that says nothing is taken for one that hangs: its connection may look sound, since
 * gRPC answers pings by itself. INT64_MAX: no message is waited for, or for ever. */
static int64_t silent_at_ns(const struct skrull_stream *stream)
{
    const struct plan_call *plan_call = &stream->plan_call;
    bool is_live = stream->state == STREAM_OPENING || stream->state == STREAM_ACTIVE;

    return stream->silence_ns && is_live && plan_call->is_receiving && !plan_call->is_silent
               ? stream->waiting_ns + stream->silence_ns
               : INT64_MAX;
}

/* The call ends as one that was lost. */
static void end_silence(struct skrull_stream *stream)
{
    char why[64];

    (void)snprintf(why, sizeof(why), "nothing came for %" PRId64 " ms",
                   stream->silence_ns / 1000000);
    stream->plan_call.is_silent = true;
    (void)grpc_call_cancel_with_status(stream->plan_call.call.handle, GRPC_STATUS_UNAVAILABLE, why,
                                       NULL);
}

/* Until when nothing happens by itself, for the completion queue. Under the lock. */
static gpr_timespec next_deadline(const struct skrull_stream *stream)
{
    int64_t at = stream->state == STREAM_BACKOFF ? stream->retry_at_ns : INT64_MAX;
    const int64_t others[] = {give_up_at_ns(stream), stream_report_timer_ns(stream),
                              stream_fallback_timer_ns(stream), silent_at_ns(stream)};
    int64_t now;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        at = others[i] < at ? others[i] : at;
    }
    if (at == INT64_MAX || stream->is_closing) {
        return call_deadline(-1);
    }
    now = stream_now_ns();
    return call_deadline(at > now ? at - now : 0);
}

static void on_timer(struct skrull_stream *stream)
{
    int64_t now = stream_now_ns();
    struct skrull_error error;

    if (stream->is_closing) {
        return;
    }
    if (now >= give_up_at_ns(stream)) {
        (void)skrull_error_set(&error, SKRULL_ERR_UNAVAILABLE,
                               "skrulld at %s is not available: no connection for %" PRId64
                               " ms, given up before step %" PRIu64,
                               stream->client->server, stream->give_up_ns / 1000000,
                               stream->next_step);
        stream_step(stream, STREAM_GIVE_UP, NULL, &error);
    } else if (now >= silent_at_ns(stream)) {
        end_silence(stream);
    } else if (stream->state == STREAM_BACKOFF && now >= stream->retry_at_ns &&
               !stream->plan_call.call.handle) {
        stream_step(stream, STREAM_RETRY, NULL, NULL);
    }
    stream_report_send(stream);
}

/* Says what happened, with no lock held: the user may call back. */
static void say_notice(struct skrull_stream *stream)
{
    char notice[sizeof(stream->notice)];

    (void)pthread_mutex_lock(&stream->lock);
    memcpy(notice, stream->notice, sizeof(notice));
    stream->notice[0] = '\0';
    (void)pthread_mutex_unlock(&stream->lock);
    if (notice[0] && stream->on_event) {
        stream->on_event(stream->arg, notice);
    }
}

void *stream_reader_run(void *arg)
{
    struct skrull_stream *stream = arg;
    grpc_event event;

    (void)pthread_mutex_lock(&stream->lock);
    if (!stream->is_closing) {
        stream_step(stream, STREAM_START, NULL, NULL);
    }
    (void)pthread_mutex_unlock(&stream->lock);
    do {
        gpr_timespec deadline;

        (void)pthread_mutex_lock(&stream->lock);
        deadline = next_deadline(stream);
        (void)pthread_mutex_unlock(&stream->lock);
        event = grpc_completion_queue_next(stream->cq, deadline, NULL);
        if (event.type == GRPC_OP_COMPLETE) {
            tag_take_back(event.tag);
            on_tag(stream, (enum stream_tag)((char *)event.tag - stream->tags), event.success != 0);
        }
        (void)pthread_mutex_lock(&stream->lock);
        on_timer(stream);
        (void)pthread_mutex_unlock(&stream->lock);
        say_notice(stream);
        stream_fallback_run(stream);
    } while (event.type != GRPC_QUEUE_SHUTDOWN);
    return NULL;
}
