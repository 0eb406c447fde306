/*
 * Delivery of reports. The oldest go out in one ReportSteps call; they leave the queue when it is
 * answered. A call that the connection lost is made again after a backoff, or as soon as the stream
 * has a connection: the daemon takes repeated reports for one. An error that is the daemon's own is
 * final.
 */
#include "stream.h"

#include <string.h>

#include "arena.h"
#include "codec_rpc.h"
#include "unary.h"

#define MAX_REPORTS_IN_CALL 256
#define MAX_TIMES_IN_CALL ((size_t)SKRULL_REPORT_MICRO_BATCHES)
#define CALL_BUDGET ((size_t)4 << 20)

/* How many of the oldest reports go into one call. */
static size_t count_reports(const struct report_queue *queue)
{
    size_t n_reports = 0, n_times = 0;

    while (n_reports < queue->n_reports && n_reports < MAX_REPORTS_IN_CALL) {
        n_times += report_queue_at(queue, n_reports)->n_micro_batches;
        if (n_reports > 0 && n_times > MAX_TIMES_IN_CALL) {
            break;
        }
        n_reports++;
    }
    return n_reports;
}

/* A report's times in the codec's words. */
static int copy_times(struct arena *arena, const struct queued_report *report,
                      struct rpc_step_report *ret)
{
    ret->micro_batches = ARENA_ARRAY(arena, struct rpc_micro_batch_times, report->n_micro_batches);
    if (!ret->micro_batches) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    ret->n_micro_batches = report->n_micro_batches;
    for (size_t i = 0; i < report->n_micro_batches; i++) {
        const struct skrull_micro_batch_times *times = &report->micro_batches[i];

        ret->micro_batches[i] =
            (struct rpc_micro_batch_times){.compute_busy_ns = times->compute_busy_ns,
                                           .compute_wait_ns = times->compute_wait_ns,
                                           .exchange_busy_ns = times->exchange_busy_ns,
                                           .exchange_wait_ns = times->exchange_wait_ns};
    }
    return 0;
}

/* The oldest reports as a request, in `arena`. */
static int pack(struct skrull_stream *stream, struct arena *arena, struct rpc_bytes *ret_request,
                size_t *ret_n_reports, struct skrull_error *err)
{
    const struct report_queue *queue = &stream->reporter.queue;
    size_t n_reports = count_reports(queue);
    struct rpc_report_steps request = {
        .job = stream->job, .uid = stream->uid, .n_reports = n_reports};

    request.reports = ARENA_ARRAY(arena, struct rpc_step_report, n_reports);
    if (!request.reports) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for reports");
    }
    for (size_t i = 0; i < n_reports; i++) {
        const struct queued_report *report = report_queue_at(queue, i);

        request.reports[i] = (struct rpc_step_report){.step = report->step,
                                                      .data_rank = stream->data_rank,
                                                      .digest = report->digest,
                                                      .elapsed_ns = report->elapsed_ns,
                                                      .peak_bytes = report->peak_bytes};
        if (copy_times(arena, report, &request.reports[i]) < 0) {
            return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                    "out of memory for reports");
        }
    }
    *ret_n_reports = n_reports;
    return codec_report_steps_request_pack(arena, &request, ret_request, err);
}

static int start_call(struct skrull_stream *stream, struct skrull_error *err)
{
    struct reporter *reporter = &stream->reporter;
    struct arena *arena = arena_new(CALL_BUDGET);
    struct rpc_bytes request;
    size_t n_reports = 0;
    int r;

    if (!arena) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for reports");
    }
    r = pack(stream, arena, &request, &n_reports, err);
    if (r == 0) {
        call_init(&reporter->call, stream->client->channel, stream->cq, UNARY_METHOD("ReportSteps"),
                  call_deadline(stream->client->timeout_ns));
        r = call_start_unary(&reporter->call, request, &stream->tags[TAG_REPORT], err);
        if (r < 0) {
            call_deinit(&reporter->call);
        }
    }
    arena_free(arena);
    if (r < 0) {
        return r;
    }
    reporter->n_in_flight = n_reports;
    reporter->is_calling = true;
    return 0;
}

void stream_report_send(struct skrull_stream *stream)
{
    struct reporter *reporter = &stream->reporter;
    struct skrull_error error;

    if (stream->is_closing || reporter->is_calling || reporter->error.code ||
        reporter->queue.n_reports == 0 || reporter->retry_at_ns > stream_now_ns()) {
        return;
    }
    reporter->retry_at_ns = 0;
    if (start_call(stream, &error) < 0) {
        reporter->error = error;
        pthread_cond_broadcast(&stream->changed);
    }
}

int64_t stream_report_timer_ns(const struct skrull_stream *stream)
{
    const struct reporter *reporter = &stream->reporter;

    if (reporter->is_calling || reporter->error.code || reporter->queue.n_reports == 0) {
        return INT64_MAX;
    }
    return reporter->retry_at_ns;
}

/* The call was lost: again later, unless the user's patience has ended. */
static void wait_or_give_up(struct skrull_stream *stream, const struct skrull_error *error)
{
    struct reporter *reporter = &stream->reporter;
    int64_t now = stream_now_ns();

    if (!reporter->lost_since_ns || stream->state == STREAM_LOCAL) {
        reporter->lost_since_ns = now; /* who does without a daemon has all patience left */
    }
    if (stream->give_up_ns && now - reporter->lost_since_ns >= stream->give_up_ns) {
        reporter->error = *error;
        reporter->error.code = SKRULL_ERR_UNAVAILABLE;
        return;
    }
    reporter->retry_at_ns = now + backoff_next_ns(&reporter->backoff);
}

void stream_report_answered(struct skrull_stream *stream)
{
    struct reporter *reporter = &stream->reporter;
    struct skrull_error error;
    int code = stream_call_result(stream, &reporter->call, &error);

    call_deinit(&reporter->call);
    reporter->is_calling = false;
    if (code == 0) {
        report_queue_drop(&reporter->queue, reporter->n_in_flight);
        backoff_reset(&reporter->backoff);
        reporter->lost_since_ns = 0;
    } else if (stream_is_transient(code) || code == SKRULL_ERR_DEADLINE_EXCEEDED) {
        wait_or_give_up(stream, &error);
    } else {
        reporter->error = error;
    }
    reporter->n_in_flight = 0;
    pthread_cond_broadcast(&stream->changed);
    stream_report_send(stream);
}
