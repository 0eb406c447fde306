/*
 * Taking over from the daemon and giving back; stream_fallback.h says when.
 *
 * What may fail: the job was never read, its indexes cannot be, or they are not those it was
 * created with; an index changes later on; the step before has another digest here (a daemon of
 * another version). The stream then waits for its daemon as one without a fallback does, and tries
 * again after 30 s.
 */
#include "stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "base/map.h"
#include "codec_rpc.h"
#include "local_planner.h"
#include "owned_job.h"
#include "unary.h"

#define DEFAULT_AFTER_MS 5000
#define AGAIN_NS ((int64_t)30 * 1000000000)
#define FULL_NS                                                                                    \
    ((int64_t)10 * 1000000) /* how often a full queue is looked at: its reader wakes nobody */
#define REQUEST_BUDGET ((size_t)1 << 16)
/* Plans are given out in blocks of 64 steps, and no revision begins before the end of one: what is
 * read at a block's first step holds for the block, and tells of all revisions made until then. */
#define READ_AGAIN_STEPS 64

static int check_options(const struct skrull_stream_options *options, struct skrull_error *err)
{
    if (options->fallback != SKRULL_FALLBACK_NONE && options->fallback != SKRULL_FALLBACK_LOCAL) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "fallback: %d is none",
                                (int)options->fallback);
    }
    if (options->fallback == SKRULL_FALLBACK_LOCAL && options->n_fallback_roots == 0) {
        return skrull_error_set(
            err, SKRULL_ERR_INVALID_ARGUMENT,
            "fallback_roots: none are given: in which folders may indexes lie?");
    }
    if (options->fallback_after_ms < 0 || options->fallback_after_ms > INT64_MAX / 4000000) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "fallback_after_ms: %" PRId64 " is out of range",
                                options->fallback_after_ms);
    }
    for (size_t i = 0; i < options->n_fallback_roots; i++) {
        if (!options->fallback_roots[i] || options->fallback_roots[i][0] != '/') {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "fallback_roots: %.200s is not an absolute path",
                                    options->fallback_roots[i] ? options->fallback_roots[i] : "");
        }
    }
    return 0;
}

int fallback_init(struct fallback *fallback, const struct skrull_stream_options *options,
                  uint64_t seed, struct skrull_error *err)
{
    int r = check_options(options, err);

    if (r < 0 || options->fallback == SKRULL_FALLBACK_NONE) {
        return r;
    }
    fallback->after_ns =
        (options->fallback_after_ms ? options->fallback_after_ms : DEFAULT_AFTER_MS) * 1000000;
    if (options->give_up_ms && options->give_up_ms * 1000000 <= fallback->after_ns) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "give_up_ms: %" PRId64 " ms are over before fallback_after_ms, "
                                "%" PRId64,
                                options->give_up_ms, fallback->after_ns / 1000000);
    }
    backoff_init(&fallback->backoff, seed);
    return local_planner_new(options->fallback_roots, options->n_fallback_roots, &fallback->planner,
                             err);
}

void fallback_deinit(struct fallback *fallback)
{
    local_planner_free(fallback->planner);
    fallback->planner = NULL;
}

static int start_fetch(struct skrull_stream *stream, struct skrull_error *err)
{
    const struct rpc_name get = {.name = stream->job};
    struct call *call = &stream->fallback.call;
    struct arena *arena = arena_new(REQUEST_BUDGET);
    struct rpc_bytes request;
    int r;

    if (!arena) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a call");
    }
    r = codec_get_job_request_pack(arena, &get, &request, err);
    if (r == 0) {
        call_init(call, stream->client->channel, stream->cq, UNARY_METHOD("GetJob"),
                  call_deadline(stream->client->timeout_ns));
        r = call_start_unary(call, request, &stream->tags[TAG_JOB], err);
        if (r < 0) {
            call_deinit(call);
        }
    }
    arena_free(arena);
    return r;
}

/* A failure changes nothing: the next connection or plan asks again. */
static void fetch(struct skrull_stream *stream)
{
    if (stream->fallback.planner && !stream->fallback.is_fetching && !stream->is_closing) {
        stream->fallback.is_fetching = start_fetch(stream, NULL) == 0;
    }
}

void stream_fallback_connected(struct skrull_stream *stream)
{
    struct fallback *fallback = &stream->fallback;

    if (!fallback->planner) {
        return;
    }
    fallback->again_at_ns = 0;
    if (fallback->has_taken_over) {
        fallback->has_taken_over = false;
        (void)snprintf(stream->notice, sizeof(stream->notice),
                       "stream of job %s, rank %" PRIu32
                       ": the daemon is back and plans from step %" PRIu64 " on",
                       stream->job, stream->data_rank, stream->next_step);
    }
    fetch(stream); /* also again: there may be a new revision */
}

void stream_fallback_saw(struct skrull_stream *stream, const struct skrull_plan *plan)
{
    struct fallback *fallback = &stream->fallback;

    if (!fallback->planner) {
        return;
    }
    if (!local_planner_knows(fallback->planner, plan->uid, plan->revision)) {
        local_planner_expire(fallback->planner, plan->step);
        fetch(stream);
    } else if (plan->step % READ_AGAIN_STEPS == 0) {
        fetch(stream);
    }
}

void stream_fallback_revised(struct skrull_stream *stream)
{
    if (stream->fallback.planner) {
        local_planner_expire(stream->fallback.planner, stream->next_step);
    }
}

void stream_fallback_answered(struct skrull_stream *stream)
{
    struct fallback *fallback = &stream->fallback;
    struct rpc_bytes reply = {0};
    struct skrull_job *job;
    uint8_t *bytes = NULL;
    int r = call_result(&fallback->call, stream->client->server, NULL);

    if (r == 0) {
        r = call_take_message(&fallback->call, &bytes, &reply.len, NULL);
    }
    reply.data = bytes;
    if (r == 0 && bytes && owned_job_decode(reply, &job, NULL) == 0) {
        local_planner_learn(fallback->planner, job);
    }
    free(bytes);
    call_deinit(&fallback->call);
    fallback->is_fetching = false;
}

static bool is_apart(const struct skrull_stream *stream)
{
    return stream->lost_since_ns &&
           (stream->state == STREAM_OPENING || stream->state == STREAM_BACKOFF);
}

/* When the stream takes over; INT64_MAX: not now. */
static int64_t take_over_at_ns(const struct skrull_stream *stream)
{
    const struct fallback *fallback = &stream->fallback;
    int64_t at;

    if (!fallback->planner || !is_apart(stream)) {
        return INT64_MAX;
    }
    at = stream->lost_since_ns + fallback->after_ns;
    return at > fallback->again_at_ns ? at : fallback->again_at_ns;
}

int64_t stream_fallback_timer_ns(const struct skrull_stream *stream)
{
    int64_t now;

    if (stream->state != STREAM_LOCAL) {
        return take_over_at_ns(stream);
    }
    now = stream_now_ns();
    if (!plan_queue_is_full(&stream->plans)) {
        return now;
    }
    return stream->fallback.probe_at_ns < now + FULL_NS ? stream->fallback.probe_at_ns
                                                        : now + FULL_NS;
}

/* "stream of job x, rank 0: WHAT: WHY" to the user, no lock held. */
static void tell(const struct skrull_stream *stream, const char *what, const char *why)
{
    char message[sizeof(stream->notice) + SKRULL_ERROR_MESSAGE_SIZE];

    if (!stream->on_event) {
        return;
    }
    (void)snprintf(message, sizeof(message),
                   "stream of job %s, rank %" PRIu32 ": %s at step %" PRIu64 ": %s", stream->job,
                   stream->data_rank, what, stream->next_step, why);
    stream->on_event(stream->arg, message);
}

/* Only the reader moves next_step, uid and last_digest: they are read without the lock. */
static void take_over(struct skrull_stream *stream)
{
    struct fallback *fallback = &stream->fallback;
    struct skrull_error error;
    bool has_moved = false;

    if (local_planner_steps(fallback->planner)) {
        map_guard_install(); /* before an index is mapped */
    }
    if (local_planner_prepare(fallback->planner, stream->uid, stream->next_step,
                              stream->last_digest, &error) < 0) {
        fallback->again_at_ns = stream_now_ns() + AGAIN_NS;
        tell(stream, "no daemon, and no local planning", error.message);
        return;
    }
    (void)pthread_mutex_lock(&stream->lock);
    if (!stream->is_closing && is_apart(stream)) {
        has_moved = true;
        fallback->has_taken_over = true;
        fallback->probe_at_ns = stream_now_ns();
        backoff_reset(&fallback->backoff);
        stream_step(stream, STREAM_TAKE_OVER, NULL, NULL);
    }
    (void)pthread_mutex_unlock(&stream->lock);
    if (has_moved) {
        tell(stream, "no daemon, planning locally", "until it is back");
    }
}

/* Back to the daemon as soon as a connection stands. */
static void probe(struct skrull_stream *stream)
{
    struct fallback *fallback = &stream->fallback;
    int64_t now = stream_now_ns();

    (void)pthread_mutex_lock(&stream->lock);
    fallback->probe_at_ns = now + backoff_next_ns(&fallback->backoff);
    if (!stream->is_closing && stream->state == STREAM_LOCAL && !stream->plan_call.call.handle) {
        grpc_channel_reset_connect_backoff(stream->client->channel);
        if (grpc_channel_check_connectivity_state(stream->client->channel, 1) ==
            GRPC_CHANNEL_READY) {
            stream->lost_since_ns = now; /* it has its time again before it is taken over */
            stream_step(stream, STREAM_RETURN, NULL, NULL);
        }
    }
    (void)pthread_mutex_unlock(&stream->lock);
}

/* Whether a plan is to be made now; the end of the stream is said here. */
static bool is_due(struct skrull_stream *stream)
{
    bool is_over, is_wanted;

    (void)pthread_mutex_lock(&stream->lock);
    is_wanted = !stream->is_closing && stream->state == STREAM_LOCAL;
    is_over = stream_is_complete(stream) ||
              stream->next_step >= local_planner_steps(stream->fallback.planner);
    if (is_wanted && is_over) {
        stream_step(stream, STREAM_CALL_END, NULL, NULL);
    }
    is_wanted = is_wanted && !is_over && !plan_queue_is_full(&stream->plans);
    (void)pthread_mutex_unlock(&stream->lock);
    return is_wanted;
}

static void plan_step(struct skrull_stream *stream)
{
    struct fallback *fallback = &stream->fallback;
    struct rpc_bytes bytes = {0};
    struct skrull_error error;
    uint8_t *message = NULL;

    if (local_planner_plan(fallback->planner, stream->next_step, stream->data_rank, &message,
                           &bytes.len, &error) == 0) {
        bytes.data = message;
        stream_take_message(stream, bytes, true);
        free(message);
        return;
    }
    (void)pthread_mutex_lock(&stream->lock);
    if (!stream->is_closing && stream->state == STREAM_LOCAL) {
        stream->lost_since_ns = stream_now_ns();
        fallback->again_at_ns = stream->lost_since_ns + AGAIN_NS;
        stream_step(stream, STREAM_LOCAL_LOST, NULL, &error);
    }
    (void)pthread_mutex_unlock(&stream->lock);
}

void stream_fallback_run(struct skrull_stream *stream)
{
    int64_t now = stream_now_ns(), take_over_at;
    bool is_local;

    if (!stream->fallback.planner) {
        return;
    }
    (void)pthread_mutex_lock(&stream->lock);
    is_local = stream->state == STREAM_LOCAL;
    take_over_at = stream->is_closing ? INT64_MAX : take_over_at_ns(stream);
    (void)pthread_mutex_unlock(&stream->lock);
    if (now >= take_over_at) {
        take_over(stream);
    }
    if (is_local && now >= stream->fallback.probe_at_ns) {
        probe(stream);
    }
    if (is_local && is_due(stream)) {
        plan_step(stream);
    }
}
