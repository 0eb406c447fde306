/* Streams on one completion queue, polled by the caller's thread alone. */
#include "bench/load_stream.h"

#include <stdio.h>
#include <stdlib.h>

#include <grpc/byte_buffer.h>

#include "arena.h"
#include "bench/figure.h"
#include "channel.h"

#define STREAM_PLANS "/skrull.v1.PlannerService/StreamPlans"
#define REQUEST_BUDGET ((size_t)64 << 10)
#define PATIENCE_MS 60000.0

void load_fail(const char *what, const char *why)
{
    fprintf(stderr, "load_client: %s: %s\n", what, why);
    exit(1);
}

static void tag_back(struct load_stream *stream)
{
    stream->n_pending--;
    if (stream->n_pending == 0) {
        call_deinit(&stream->call);
        stream->load->n_open--;
    }
}

static void on_plain(struct load_tag *tag, bool ok)
{
    (void)ok;
    tag_back((struct load_stream *)tag->owner);
}

static void on_closed(struct load_tag *tag, bool ok)
{
    struct load_stream *stream = (struct load_stream *)tag->owner;
    struct skrull_error err = {0};

    (void)ok;
    if (!stream->load->is_closing) {
        (void)call_result(&stream->call, stream->load->target, &err);
        load_fail("a stream ended", err.code < 0 ? err.message : "OK");
    }
    tag_back(stream);
}

static void receive(struct load_stream *stream)
{
    struct skrull_error err = {0};

    if (call_start_receive(&stream->call, &stream->received, &err) < 0) {
        load_fail("receive", err.message);
    }
    stream->n_pending++;
}

static void on_received(struct load_tag *tag, bool ok)
{
    struct load_stream *stream = (struct load_stream *)tag->owner;
    struct load *load = stream->load;
    grpc_byte_buffer *message = stream->call.message;

    if (ok && message) {
        stream->n_received++;
        load->n_received++;
        load->n_bytes += grpc_byte_buffer_length(message);
        if (load->message) {
            load->message(stream, message);
        }
        grpc_byte_buffer_destroy(message);
        stream->call.message = NULL;
        receive(stream);
    }
    tag_back(stream);
}

void load_init(struct load *load, const char *target, const char *job, size_t n_streams)
{
    *load = (struct load){.target = target, .job = job, .n_streams = n_streams};
    load->cq = grpc_completion_queue_create_for_next(NULL);
    load->streams = calloc(n_streams, sizeof(*load->streams));
    if (!load->streams) {
        load_fail("streams", "out of memory");
    }
    for (size_t i = 0; i < n_streams; i++) {
        struct load_stream *stream = &load->streams[i];

        stream->load = load;
        stream->channel = channel_new(target);
        stream->sent = (struct load_tag){.fn = on_plain, .owner = stream};
        stream->opened = (struct load_tag){.fn = on_plain, .owner = stream};
        stream->closed = (struct load_tag){.fn = on_closed, .owner = stream};
        stream->received = (struct load_tag){.fn = on_received, .owner = stream};
    }
}

void load_renew_channel(struct load_stream *stream)
{
    grpc_channel_destroy(stream->channel);
    stream->channel = channel_new(stream->load->target);
}

void load_open(struct load *load, size_t i, uint32_t data_rank, uint64_t from_step, uint32_t window)
{
    struct load_stream *stream = &load->streams[i];
    const struct rpc_stream_plans request = {.job = load->job,
                                             .uid = "",
                                             .data_rank = data_rank,
                                             .from_step = from_step,
                                             .window = window,
                                             .resume_digest = ""};
    const struct call_tags tags = {
        .sent = &stream->sent, .opened = &stream->opened, .closed = &stream->closed};
    struct arena *arena = arena_new(REQUEST_BUDGET);
    struct rpc_bytes bytes;
    struct skrull_error err = {0};
    int n_started;

    if (!arena || codec_stream_plans_request_pack(arena, &request, &bytes, &err) < 0) {
        load_fail("request", err.message);
    }
    stream->data_rank = data_rank;
    stream->n_received = 0;
    call_init(&stream->call, stream->channel, load->cq, STREAM_PLANS, call_deadline(-1));
    if (call_start_stream(&stream->call, bytes, &tags, &n_started, &err) < 0) {
        load_fail("stream", err.message);
    }
    stream->n_pending = (unsigned int)n_started;
    load->n_open++;
    receive(stream);
    arena_free(arena);
}

static bool is_closed(struct load *load)
{
    return load->n_open == 0;
}

void load_close(struct load *load)
{
    load->is_closing = true;
    for (size_t i = 0; i < load->n_streams; i++) {
        if (load->streams[i].n_pending > 0) {
            (void)grpc_call_cancel(load->streams[i].call.handle, NULL);
        }
    }
    if (load->n_open > 0) {
        load_run(load, is_closed, 0);
    }
    load->is_closing = false;
}

void load_deinit(struct load *load)
{
    for (size_t i = 0; i < load->n_streams; i++) {
        grpc_channel_destroy(load->streams[i].channel);
    }
    grpc_completion_queue_shutdown(load->cq);
    while (grpc_completion_queue_next(load->cq, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL).type !=
           GRPC_QUEUE_SHUTDOWN) {
    }
    grpc_completion_queue_destroy(load->cq);
    free(load->streams);
}

static gpr_timespec after_ms(double ms)
{
    return call_deadline(ms > 0 ? (int64_t)(ms * 1e6) : 0);
}

void load_run(struct load *load, bool (*is_over)(struct load *load), double until_ms)
{
    const double end_ms = is_over ? figure_now_ms() + PATIENCE_MS : until_ms;
    const gpr_timespec deadline = after_ms(end_ms - figure_now_ms());

    for (;;) {
        grpc_event event = grpc_completion_queue_next(load->cq, deadline, NULL);
        struct load_tag *tag = (struct load_tag *)event.tag;

        if (event.type == GRPC_QUEUE_TIMEOUT) {
            if (is_over) {
                load_fail("events", "what was waited for did not come within a minute");
            }
            return;
        }
        tag->fn(tag, event.success != 0);
        if (is_over ? is_over(load) : figure_now_ms() >= end_ms) {
            return;
        }
    }
}
