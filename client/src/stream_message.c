/*
 * What a message of a stream must be before its plan is handed to the user: the next step's plan,
 * of this rank and this job, matching its digests. Plans made in this process pass here too. The
 * reader's.
 */
#include "stream.h"

#include <inttypes.h>
#include <string.h>

#include "arena.h"
#include "codec_rpc.h"
#include "plan_parts.h"

#define MESSAGE_BUDGET ((size_t)1 << 30) /* bytes that a decoded message may take */

bool stream_is_complete(const struct skrull_stream *stream)
{
    return stream->count && stream->n_received == stream->count;
}

/* Whether `plan` is exactly what this stream waits for. Only the reader moves what is read here. */
static int verify(const struct skrull_stream *stream, const struct skrull_plan *plan,
                  struct skrull_error *err)
{
    if (plan->n_ranks != 1 || plan->ranks[0].data_rank != stream->data_rank) {
        return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                                "step %" PRIu64 ": a plan of another rank came for rank %" PRIu32,
                                stream->next_step, stream->data_rank);
    }
    if (plan->step != stream->next_step || stream_is_complete(stream)) {
        return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                                "rank %" PRIu32 ": step %" PRIu64 " came where %" PRIu64
                                " was due; no step may be lost or repeated",
                                stream->data_rank, plan->step, stream->next_step);
    }
    if (stream->uid[0] && strcmp(stream->uid, plan->uid) != 0) {
        return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                                "step %" PRIu64 ": job %s has become another one (uid %s, not %s)",
                                plan->step, stream->job, plan->uid, stream->uid);
    }
    if (strlen(plan->uid) >= sizeof(stream->uid)) {
        return skrull_error_set(err, SKRULL_ERR_DATA_LOSS, "step %" PRIu64 ": not a uid",
                                plan->step);
    }
    return plan_verify_digests(plan, err);
}

/* A verified plan: the next one is due. Takes it over. */
static void accept_plan(struct skrull_stream *stream, struct skrull_plan *plan, bool is_local)
{
    if (!is_local) {
        stream_fallback_saw(stream, plan);
    }
    memcpy(stream->uid, plan->uid, strlen(plan->uid) + 1);
    skrull_digest_to_hex(plan->digest, stream->last_digest);
    stream->next_step++;
    stream->n_received++;
    stream_step(stream, STREAM_PLAN, plan, NULL);
    if (!is_local) {
        backoff_reset(&stream->backoff);
        stream_note_connected(stream);
    }
}

/* The daemon's last message. */
static void accept_end(struct skrull_stream *stream, const struct rpc_stream_event *event)
{
    struct skrull_error error;

    stream->plan_call.is_end = event->reason == RPC_END_DONE;
    stream->plan_call.is_reopen = !stream->plan_call.is_end;
    stream->plan_call.is_revision = event->reason == RPC_END_REVISION;
    if (stream->plan_call.is_revision) {
        stream_fallback_revised(stream);
    }
    if (stream->plan_call.is_end && event->next_step != stream->next_step) {
        (void)skrull_error_set(&error, SKRULL_ERR_DATA_LOSS,
                               "rank %" PRIu32 ": the stream ends at step %" PRIu64 ", %" PRIu64
                               " was due",
                               stream->data_rank, event->next_step, stream->next_step);
        stream_step(stream, STREAM_CORRUPT, NULL, &error);
    }
}

/* Whether what came is for nobody: the stream was closed, or took over, or gave back meanwhile. */
static bool is_too_late(const struct skrull_stream *stream, bool is_local)
{
    if (is_local) {
        return stream->state != STREAM_LOCAL;
    }
    return stream->state == STREAM_FAILED || stream->plan_call.is_stale;
}

void stream_take_message(struct skrull_stream *stream, struct rpc_bytes bytes, bool is_local)
{
    struct arena *arena = arena_new(MESSAGE_BUDGET);
    struct rpc_stream_event event = {0};
    struct skrull_error error;
    int r;

    if (arena) {
        r = codec_stream_event_unpack(arena, bytes, &event, &error);
    } else {
        r = skrull_error_set(&error, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a plan");
    }
    if (r == 0 && event.kind == RPC_STREAM_PLAN) {
        r = verify(stream, event.plan, &error);
    }
    (void)pthread_mutex_lock(&stream->lock);
    if (is_too_late(stream, is_local)) {
        skrull_plan_free(event.plan);
    } else if (r < 0) {
        stream_step(stream, STREAM_CORRUPT, event.plan, &error);
    } else if (event.kind == RPC_STREAM_PLAN) {
        accept_plan(stream, event.plan, is_local);
    } else if (event.kind == RPC_STREAM_HEARTBEAT) {
        stream_step(stream, STREAM_CONNECTED, NULL, NULL);
        stream_note_connected(stream);
    } else {
        accept_end(stream, &event);
    }
    (void)pthread_mutex_unlock(&stream->lock);
    arena_free(arena);
}
