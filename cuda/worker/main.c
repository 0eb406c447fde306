/*
 * skrull-worker: an example of a worker. It streams the plans of its data rank, holds each against
 * what one rank can know, "runs" it (backend none only waits), reports the step, prints a line. Two
 * threads: this one and the library's reader.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <skrull/client.h>

#include "options.h"

enum worker_exit { WORKER_DONE, WORKER_FAILED, WORKER_USAGE, WORKER_MISSING, WORKER_UNREACHABLE };

/* For them to be delivered, after the stream failed or without a daemon. */
#define LAST_REPORTS_MS 5000

static enum worker_exit exit_of(const struct skrull_error *err)
{
    (void)fprintf(stderr, "skrull-worker: %s\n", err->message);
    if (err->code == SKRULL_ERR_UNAVAILABLE) {
        return WORKER_UNREACHABLE;
    }
    if (err->code == SKRULL_ERR_NOT_FOUND || err->code == SKRULL_ERR_OUT_OF_RANGE) {
        return WORKER_MISSING;
    }
    return WORKER_FAILED;
}

static void say_event(void *arg, const char *message)
{
    (void)arg;
    (void)fprintf(stderr, "skrull-worker: %s\n", message);
}

static int64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void pause_ms(uint64_t ms)
{
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};

    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

/* What one rank can know of a segment; NULL: sound. */
static const char *fault_of_segment(const struct skrull_plan *plan,
                                    const struct skrull_segment *segment, uint32_t rank)
{
    uint64_t end = (uint64_t)segment->group_first + segment->group_size;

    if (segment->group_size == 0 || segment->group_first > rank || end <= rank ||
        end > (uint64_t)plan->dp * plan->cp) {
        return "a segment's group does not hold this rank";
    }
    if (segment->token_begin > segment->token_end ||
        segment->token_end > segment->sequence_length ||
        segment->token_end - segment->token_begin > segment->padded_tokens) {
        return "a segment is not within its sequence and its slot";
    }
    return NULL;
}

/* The same of a micro-batch. */
static const char *fault_of_micro_batch(const struct skrull_plan *plan,
                                        const struct skrull_micro_batch *micro_batch, uint32_t rank)
{
    uint64_t tokens = 0, padded = 0;
    uint32_t last_group = UINT32_MAX;

    for (uint32_t i = 0; i < micro_batch->n_segments; i++) {
        const struct skrull_segment *segment = &plan->segments[micro_batch->first_segment + i];
        const char *fault = fault_of_segment(plan, segment, rank);

        if (fault) {
            return fault;
        }
        if (segment->group_size > last_group) {
            return "larger groups do not come first";
        }
        last_group = segment->group_size;
        tokens += segment->token_end - segment->token_begin;
        padded += segment->padded_tokens;
    }
    if (micro_batch->dummy != (micro_batch->n_segments == 0)) {
        return "dummy is not what holds nothing";
    }
    if (tokens != micro_batch->tokens || padded != micro_batch->padded_tokens) {
        return "its sums are not those of its segments";
    }
    return NULL;
}

/* -1, said: a micro-batch is not one that can be run. The digest has been recomputed by libskrull.
 */
static int check_plan(const struct skrull_plan *plan, uint32_t rank)
{
    for (size_t i = 0; i < plan->n_micro_batches; i++) {
        const char *fault = fault_of_micro_batch(plan, &plan->micro_batches[i], rank);

        if (fault) {
            (void)fprintf(stderr, "skrull-worker: step %" PRIu64 ", micro-batch %zu: %s\n",
                          plan->step, i, fault);
            return -1;
        }
    }
    return 0;
}

/* One line a step, at once: tests and people read it while the worker runs. */
static int print_plan(const struct skrull_plan *plan, const char *digest)
{
    char rank_digest[SKRULL_DIGEST_HEX_SIZE];
    uint64_t tokens = 0, padded = 0;

    for (size_t i = 0; i < plan->n_micro_batches; i++) {
        tokens += plan->micro_batches[i].tokens;
        padded += plan->micro_batches[i].padded_tokens;
    }
    skrull_digest_to_hex(plan->ranks[0].digest, rank_digest);
    (void)printf("step=%" PRIu64 " epoch=%" PRIu64 " data_rank=%" PRIu32
                 " digest=%s rank_digest=%s micro_batches=%zu tokens=%" PRIu64
                 " padded_tokens=%" PRIu64 "\n",
                 plan->step, plan->epoch, plan->ranks[0].data_rank, digest, rank_digest,
                 plan->n_micro_batches, tokens, padded);
    if (fflush(stdout) != 0) {
        (void)fprintf(stderr, "skrull-worker: standard output: %s\n", strerror(errno));
        return -1;
    }
    return 0;
}

/* Reports are figures for people. A worker that could do without its daemon does not wait for ever
 * to deliver them. */
static int flush_reports(struct skrull_stream *stream, const struct worker_options *options,
                         struct skrull_error *err)
{
    int r = skrull_stream_flush(stream, options->is_local ? LAST_REPORTS_MS : 0, err);

    if (options->is_local && (r == SKRULL_ERR_DEADLINE_EXCEEDED || r == SKRULL_ERR_UNAVAILABLE)) {
        (void)fprintf(stderr, "skrull-worker: all steps are done; not all reports: %s\n",
                      err->message);
        return 0;
    }
    return r;
}

/* Runs one step. */
static enum worker_exit run_step(struct skrull_stream *stream, const struct worker_options *options,
                                 const struct skrull_plan *plan)
{
    char digest[SKRULL_DIGEST_HEX_SIZE];
    struct skrull_step_report report = {.step = plan->step, .digest = digest};
    struct skrull_error err;
    int64_t started = now_ns();

    skrull_digest_to_hex(plan->digest, digest);
    if (check_plan(plan, options->data_rank) < 0) {
        return WORKER_FAILED;
    }
    if (options->pause_ms) {
        pause_ms(options->pause_ms);
    }
    report.elapsed_ns = now_ns() - started;
    if (print_plan(plan, digest) < 0) {
        return WORKER_FAILED;
    }
    if (skrull_stream_report(stream, &report, &err) < 0) {
        return exit_of(&err);
    }
    return WORKER_DONE;
}

static enum worker_exit run_steps(struct skrull_stream *stream,
                                  const struct worker_options *options)
{
    struct skrull_error err;
    int r;

    for (;;) {
        enum worker_exit status;
        struct skrull_plan *plan;

        r = skrull_stream_next(stream, &plan, &err);
        if (r != 0) {
            break;
        }
        status = run_step(stream, options, plan);
        skrull_plan_free(plan);
        if (status != WORKER_DONE) {
            return status;
        }
    }
    if (r == SKRULL_STREAM_END) {
        r = flush_reports(stream, options, &err);
    } else {
        /* What was run counts, also where a revision has no such rank any more. */
        (void)skrull_stream_flush(stream, LAST_REPORTS_MS, NULL);
    }
    return r < 0 ? exit_of(&err) : WORKER_DONE;
}

static enum worker_exit stream_job(struct skrull_client *client,
                                   const struct worker_options *options)
{
    const struct skrull_stream_options stream_options = {
        .job = options->job,
        .data_rank = options->data_rank,
        .from_step = options->from_step,
        .count = options->count,
        .window = options->window,
        .give_up_ms = (int64_t)options->give_up_ms,
        .on_event = say_event,
        .fallback = options->is_local ? SKRULL_FALLBACK_LOCAL : SKRULL_FALLBACK_NONE,
        .fallback_roots = options->data_roots,
        .n_fallback_roots = options->n_data_roots,
        .fallback_after_ms = (int64_t)options->fallback_after_ms,
    };
    struct skrull_stream *stream;
    struct skrull_error err;
    enum worker_exit status;

    if (skrull_stream_open(client, &stream_options, &stream, &err) < 0) {
        return exit_of(&err);
    }
    status = run_steps(stream, options);
    skrull_stream_close(stream);
    return status;
}

int main(int argc, char **argv)
{
    struct skrull_client_options client_options = {0};
    struct worker_options options;
    struct skrull_client *client;
    struct skrull_error err;
    enum worker_exit status;
    enum options_outcome outcome = options_read(argc > 0 ? argc - 1 : 0, argv + 1, &options);

    if (outcome != OPTIONS_RUN) {
        return outcome == OPTIONS_SAID ? WORKER_DONE : WORKER_USAGE;
    }
    client_options.server = options.server;
    if (skrull_client_new(&client_options, &client, &err) < 0) {
        (void)exit_of(&err);
        return err.code == SKRULL_ERR_INVALID_ARGUMENT ? WORKER_USAGE : WORKER_FAILED;
    }
    status = stream_job(client, &options);
    skrull_client_free(client);
    return (int)status;
}
