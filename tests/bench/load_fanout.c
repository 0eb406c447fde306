/*
 * One step at all ranks. Streams have window 1, so that a rank's report of a step opens its way to
 * the next one only. The clock runs from the start of the report until the last rank has its plan.
 *
 * Twice: one request reports all ranks (what the daemon does is then reading it and sending), and
 * each rank reports on its own connection (what a fleet does that ends a step at once).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <grpc/byte_buffer_reader.h>

#include "arena.h"
#include "bench/load_case.h"

#define REPORT_STEPS "/skrull.v1.PlannerService/ReportSteps"
#define STEP_MS 50.0 /* between steps; real ones take longer */
#define BUDGET ((size_t)16 << 20)

struct fanout {
    uint64_t wanted; /* messages over all streams */
    char digest[SKRULL_DIGEST_HEX_SIZE];
    size_t n_replies_wanted;
    struct call *calls; /* [number of streams] */
    struct load_tag *tags;
};

/* Rank 0's plans tell the step's digest, which reports must name. */
static void keep_digest(struct load_stream *stream, const grpc_byte_buffer *message)
{
    struct fanout *fanout = (struct fanout *)stream->load->arg;
    struct rpc_stream_event event;
    struct skrull_error err = {0};
    struct arena *arena;
    grpc_byte_buffer_reader reader;
    grpc_slice bytes;

    if (stream->data_rank != 0) {
        return;
    }
    arena = arena_new(BUDGET);
    if (!arena || !grpc_byte_buffer_reader_init(&reader, (grpc_byte_buffer *)(uintptr_t)message)) {
        load_fail("message", "out of memory");
    }
    bytes = grpc_byte_buffer_reader_readall(&reader);
    grpc_byte_buffer_reader_destroy(&reader);
    if (codec_stream_event_unpack(
            arena, (struct rpc_bytes){GRPC_SLICE_START_PTR(bytes), GRPC_SLICE_LENGTH(bytes)},
            &event, &err) < 0 ||
        event.kind != RPC_STREAM_PLAN) {
        load_fail("message", err.code < 0 ? err.message : "not a plan");
    }
    skrull_digest_to_hex(event.plan->digest, fanout->digest);
    skrull_plan_free(event.plan);
    grpc_slice_unref(bytes);
    arena_free(arena);
}

static void on_reply(struct load_tag *tag, bool ok)
{
    struct fanout *fanout = (struct fanout *)tag->owner;
    struct call *call = &fanout->calls[tag - fanout->tags];
    struct skrull_error err = {0};

    if (!ok || call_result(call, "the daemon", &err) < 0) {
        load_fail("report", err.message);
    }
    call_deinit(call);
    fanout->n_replies_wanted--;
}

static bool has_step(struct load *load)
{
    return load->n_received == ((const struct fanout *)load->arg)->wanted;
}

static bool has_replies(struct load *load)
{
    const struct fanout *fanout = (const struct fanout *)load->arg;

    return fanout->n_replies_wanted == 0;
}

/* Reports `step` of the ranks [first, first + n) in one request, on the first one's connection. */
static void report(struct load *load, struct fanout *fanout, uint64_t step, size_t i, size_t n)
{
    struct arena *arena = arena_new(BUDGET);
    struct rpc_report_steps request = {.job = load->job, .uid = "", .n_reports = n};
    struct rpc_bytes bytes;
    struct skrull_error err = {0};

    request.reports = arena ? ARENA_ARRAY(arena, struct rpc_step_report, n) : NULL;
    if (!request.reports) {
        load_fail("report", "out of memory");
    }
    for (size_t k = 0; k < n; k++) {
        request.reports[k] = (struct rpc_step_report){
            .step = step, .data_rank = (uint32_t)(i + k), .digest = fanout->digest};
    }
    if (codec_report_steps_request_pack(arena, &request, &bytes, &err) < 0) {
        load_fail("report", err.message);
    }
    fanout->tags[i] = (struct load_tag){.fn = on_reply, .owner = fanout};
    call_init(&fanout->calls[i], load->streams[i].channel, load->cq, REPORT_STEPS,
              call_deadline(-1));
    if (call_start_unary(&fanout->calls[i], bytes, &fanout->tags[i], &err) < 0) {
        load_fail("report", err.message);
    }
    arena_free(arena);
}

/* The step after `step`, at all streams; milliseconds. `n_together`: ranks that one request
 * reports. */
static double next_step(struct load *load, struct fanout *fanout, uint64_t step, size_t n_together)
{
    const double start_ms = figure_now_ms();
    double ms;

    fanout->wanted += load->n_streams;
    for (size_t i = 0; i < load->n_streams; i += n_together) {
        fanout->n_replies_wanted++;
        report(load, fanout, step, i, n_together);
    }
    load_run(load, has_step, 0);
    ms = figure_now_ms() - start_ms;
    if (fanout->n_replies_wanted > 0) {
        load_run(load, has_replies, 0);
    }
    load_run(load, NULL, figure_now_ms() + STEP_MS);
    return ms;
}

static bool fanout_case(const struct options *options, struct load *load, struct fanout *fanout,
                        uint64_t first_step, size_t n_together)
{
    double *values = load_values(options->runs);
    char what[256];
    bool is_within;

    load_open_all(load, options, first_step, 1);
    fanout->wanted = load->n_streams;
    load_run(load, has_step, 0);
    load_run(load, NULL, figure_now_ms() + STEP_MS);
    for (uint64_t run = 0; run < options->runs; run++) {
        values[run] = next_step(load, fanout, first_step + run, n_together);
    }
    (void)snprintf(what, sizeof(what),
                   "a step of %.0f bytes a rank at all of %" PRIu64 " connected ranks, %s",
                   (double)load->n_bytes / (double)load->n_received, options->streams,
                   n_together > 1 ? "reported by one request" : "each reporting itself");
    load_close(load);
    is_within = load_print(options, what, "ms", n_together > 1 ? 60 : 0, values);
    free(values);
    return is_within;
}

bool load_fanout(const struct options *options)
{
    struct fanout fanout = {.calls = calloc(options->streams, sizeof(*fanout.calls)),
                            .tags = calloc(options->streams, sizeof(*fanout.tags))};
    struct load load;
    bool is_within;

    if (!fanout.calls || !fanout.tags) {
        load_fail("fanout", "out of memory");
    }
    load_init(&load, options->target, options->job, options->streams);
    load.message = keep_digest;
    load.arg = &fanout;
    is_within = fanout_case(options, &load, &fanout, 0, options->streams);
    is_within &= fanout_case(options, &load, &fanout, options->runs, 1);
    load_deinit(&load);
    free(fanout.calls);
    free(fanout.tags);
    return is_within;
}
