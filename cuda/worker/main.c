/*
 * skrull-worker: an example of a worker. It streams the plans of its data rank, holds each against
 * what one rank can know, runs it, reports the step, prints a line. Backend none only waits, here;
 * cpu and cuda train (train.c). Two threads: this one and the library's reader.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <skrull/client.h>

#include "options.h"
#include "train.h"
#include "worker.h"

static void pause_ms(uint64_t ms)
{
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};

    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

/* Runs one step. */
static enum worker_exit run_step(struct skrull_stream *stream, const struct worker_options *options,
                                 const struct skrull_plan *plan)
{
    char digest[SKRULL_DIGEST_HEX_SIZE];
    struct skrull_step_report report = {.step = plan->step, .digest = digest};
    struct skrull_error err;
    int64_t started = worker_now_ns();

    skrull_digest_to_hex(plan->digest, digest);
    if (worker_check_plan(plan, options->data_rank, &err) < 0) {
        return worker_exit_of(&err);
    }
    if (options->pause_ms) {
        pause_ms(options->pause_ms);
    }
    report.elapsed_ns = worker_now_ns() - started;
    if (worker_print_plan(plan, digest, NULL, &err) < 0 ||
        skrull_stream_report(stream, &report, &err) < 0) {
        return worker_exit_of(&err);
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
        r = worker_flush_reports(stream, options, &err);
    } else {
        /* What was run counts, also where a revision has no such rank any more. */
        (void)skrull_stream_flush(stream, LAST_REPORTS_MS, NULL);
    }
    return r < 0 ? worker_exit_of(&err) : WORKER_DONE;
}

static enum worker_exit stream_job(struct skrull_client *client,
                                   const struct worker_options *options)
{
    struct skrull_stream *stream;
    struct skrull_error err;
    enum worker_exit status;

    if (worker_open_stream(client, options, options->data_rank, &stream, &err) < 0) {
        return worker_exit_of(&err);
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
    /* Before anybody is asked for work that could not be done. */
    if (options.backend == WORKER_BACKEND_CUDA && train_find_device(&err) < 0) {
        (void)worker_exit_of(&err);
        return WORKER_FAILED;
    }
    client_options.server = options.server;
    if (skrull_client_new(&client_options, &client, &err) < 0) {
        (void)worker_exit_of(&err);
        return err.code == SKRULL_ERR_INVALID_ARGUMENT ? WORKER_USAGE : WORKER_FAILED;
    }
    status = options.backend != WORKER_BACKEND_NONE ? train_job(client, &options)
                                                    : stream_job(client, &options);
    skrull_client_free(client);
    return (int)status;
}
