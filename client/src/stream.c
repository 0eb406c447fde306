/*
 * The user's side of a stream: opening, the next plan, reports, closing. It waits on the condition
 * that the reader (stream_reader.c) signals. See stream.h for the lock.
 */
#include "stream.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "unary.h"

static int check_hex(const char *name, const char *value, struct skrull_error *err)
{
    uint8_t ignored[SKRULL_DIGEST_SIZE];

    if (value && skrull_digest_from_hex(value, ignored) < 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: %.40s is not 32 lower-case hex digits", name, value);
    }
    return 0;
}

#define DEFAULT_SILENCE_MS 60000 /* three heartbeats of the slowest daemon */

/* Milliseconds that can be made nanoseconds, twice. */
static int check_ms(const char *name, int64_t ms, struct skrull_error *err)
{
    return ms >= 0 && ms <= INT64_MAX / 4000000
               ? 0
               : skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                  "%s: %" PRId64 " is out of range", name, ms);
}

static int check_options(const struct skrull_stream_options *options, struct skrull_error *err)
{
    int r;

    if (!options->job || !options->job[0]) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "job: no name is given");
    }
    if (options->window > STREAM_MAX_WINDOW && options->window != SKRULL_WINDOW_NONE) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "window: %" PRIu32 " is out of range, 0 to %d are allowed",
                                options->window, STREAM_MAX_WINDOW);
    }
    r = check_ms("give_up_ms", options->give_up_ms, err);
    if (r == 0 && options->silence_ms > 0) {
        r = check_ms("silence_ms", options->silence_ms, err);
    }
    if (r == 0) {
        r = check_hex("uid", options->uid, err);
    }
    if (r < 0) {
        return r;
    }
    return check_hex("resume_digest", options->resume_digest, err);
}

static void set_options(struct skrull_stream *stream, const struct skrull_stream_options *options)
{
    uint32_t window = options->window ? options->window : STREAM_DEFAULT_WINDOW;

    stream->data_rank = options->data_rank;
    stream->from_step = stream->next_step = options->from_step;
    stream->count = options->count;
    stream->window = window == SKRULL_WINDOW_NONE ? 0 : window;
    stream->give_up_ns = options->give_up_ms * 1000000;
    if (options->silence_ms >= 0) {
        stream->silence_ns =
            (options->silence_ms ? options->silence_ms : DEFAULT_SILENCE_MS) * 1000000;
    }
    stream->on_event = options->on_event;
    stream->arg = options->arg;
    if (options->uid) {
        memcpy(stream->uid, options->uid, sizeof(stream->uid));
    }
    if (options->resume_digest) {
        memcpy(stream->last_digest, options->resume_digest, sizeof(stream->last_digest));
    }
}

/*
 * The reader gets no signals: they are the program's. But for its own faults, which the kernel does
 * not hold back: one that is blocked ends the process, past the handler of map_guard_install.
 */
static int start_reader(struct skrull_stream *stream, struct skrull_error *err)
{
    static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL};
    sigset_t others, before;
    int r;

    (void)sigfillset(&others);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        (void)sigdelset(&others, faults[i]);
    }
    (void)pthread_sigmask(SIG_SETMASK, &others, &before);
    r = pthread_create(&stream->reader, NULL, stream_reader_run, stream);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "a stream's thread cannot be started: %s", strerror(r));
    }
    return 0;
}

static void init_lock(struct skrull_stream *stream)
{
    pthread_condattr_t attributes;

    (void)pthread_mutex_init(&stream->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&stream->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

static void free_stream(struct skrull_stream *stream)
{
    if (stream->cq) {
        grpc_completion_queue_destroy(stream->cq);
    }
    plan_queue_deinit(&stream->plans);
    report_queue_deinit(&stream->reporter.queue);
    fallback_deinit(&stream->fallback);
    (void)pthread_cond_destroy(&stream->changed);
    (void)pthread_mutex_destroy(&stream->lock);
    if (stream->owns_client) {
        skrull_client_free(stream->client);
    }
    free(stream->job);
    free(stream);
}

/* A stream without its queues and its thread. */
static struct skrull_stream *stream_new(struct skrull_client *client,
                                        const struct skrull_stream_options *options,
                                        struct skrull_error *err)
{
    struct skrull_stream *stream = calloc(1, sizeof(*stream));
    uint64_t seed = (uint64_t)stream_now_ns();

    if (!stream) {
        (void)skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a stream");
        return NULL;
    }
    stream->client = client;
    set_options(stream, options);
    init_lock(stream);
    seed ^= ((uint64_t)options->data_rank << 32) ^ (uint64_t)(uintptr_t)stream;
    backoff_init(&stream->backoff, seed);
    backoff_init(&stream->reporter.backoff, ~seed);
    stream->job = strdup(options->job);
    if (!stream->job) {
        (void)skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a stream");
        free_stream(stream);
        return NULL;
    }
    return stream;
}

int skrull_stream_open(struct skrull_client *client, const struct skrull_stream_options *options,
                       struct skrull_stream **ret_stream, struct skrull_error *err)
{
    struct skrull_client *own = NULL;
    struct skrull_stream *stream;
    int r = check_options(options, err);

    if (r == 0 && !client) {
        r = skrull_client_new(NULL, &own, err);
    }
    if (r < 0) {
        return r;
    }
    stream = stream_new(client ? client : own, options, err);
    if (!stream) {
        skrull_client_free(own);
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    stream->owns_client = own != NULL;
    r = plan_queue_init(&stream->plans, stream->window ? stream->window : STREAM_DEFAULT_WINDOW,
                        err);
    if (r == 0) {
        r = fallback_init(&stream->fallback, options, (uint64_t)stream_now_ns(), err);
    }
    if (r < 0) {
        free_stream(stream);
        return r;
    }
    stream->cq = grpc_completion_queue_create_for_next(NULL);
    r = start_reader(stream, err);
    if (r < 0) {
        grpc_completion_queue_shutdown(stream->cq);
        (void)grpc_completion_queue_next(stream->cq, call_deadline(-1), NULL);
        free_stream(stream);
        return r;
    }
    *ret_stream = stream;
    return 0;
}

/* An error that will not go away; a report's counts before plans that wait. Under the lock. */
static int final_error(const struct skrull_error *error, struct skrull_error *err)
{
    if (err && error->code) {
        *err = *error;
    }
    return error->code;
}

int skrull_stream_next(struct skrull_stream *stream, struct skrull_plan **ret_plan,
                       struct skrull_error *err)
{
    struct skrull_plan *plan = NULL;
    int r;

    (void)pthread_mutex_lock(&stream->lock);
    while (!stream->reporter.error.code && stream->plans.n_plans == 0 &&
           stream->state != STREAM_DONE && stream->state != STREAM_FAILED) {
        (void)pthread_cond_wait(&stream->changed, &stream->lock);
    }
    r = final_error(&stream->reporter.error, err);
    if (r == 0) {
        plan = plan_queue_pop(&stream->plans);
        if (plan) {
            stream_receive(stream);
        } else {
            r = stream->state == STREAM_DONE ? SKRULL_STREAM_END : final_error(&stream->error, err);
        }
    }
    (void)pthread_mutex_unlock(&stream->lock);
    if (plan) {
        *ret_plan = plan;
    }
    return r;
}

int skrull_stream_report(struct skrull_stream *stream, const struct skrull_step_report *report,
                         struct skrull_error *err)
{
    struct queued_report queued = {
        .step = report->step, .elapsed_ns = report->elapsed_ns, .peak_bytes = report->peak_bytes};
    int r = check_hex("digest", report->digest ? report->digest : "", err);

    if (r < 0) {
        return r;
    }
    memcpy(queued.digest, report->digest, sizeof(queued.digest));
    if (report->n_micro_batches <= SKRULL_REPORT_MICRO_BATCHES) {
        queued.n_micro_batches = report->n_micro_batches;
        queued.micro_batches = (void *)(uintptr_t)report->micro_batches; /* copied, not kept */
    }
    (void)pthread_mutex_lock(&stream->lock);
    r = final_error(&stream->reporter.error, err);
    if (r == 0) {
        r = report_queue_push(&stream->reporter.queue, &queued, err);
    }
    if (r == 0) {
        stream_report_send(stream);
    }
    (void)pthread_mutex_unlock(&stream->lock);
    return r;
}

int skrull_stream_report_plan(struct skrull_stream *stream, const struct skrull_plan *plan,
                              struct skrull_error *err)
{
    char digest[SKRULL_DIGEST_HEX_SIZE];
    const struct skrull_step_report report = {.step = plan->step, .digest = digest};

    skrull_digest_to_hex(plan->digest, digest);
    return skrull_stream_report(stream, &report, err);
}

/* `ms` from now on the condition's clock. */
static struct timespec after_ms(int64_t ms)
{
    int64_t now = stream_now_ns();
    int64_t at = ms > (INT64_MAX - now) / 1000000 ? INT64_MAX : now + ms * 1000000;

    return (struct timespec){.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000};
}

int skrull_stream_flush(struct skrull_stream *stream, int64_t timeout_ms, struct skrull_error *err)
{
    const struct timespec deadline = after_ms(timeout_ms);
    size_t n_waiting;
    int r = 0;

    (void)pthread_mutex_lock(&stream->lock);
    while (r == 0 && !stream->reporter.error.code && stream->reporter.queue.n_reports) {
        if (timeout_ms > 0) {
            r = pthread_cond_timedwait(&stream->changed, &stream->lock, &deadline);
        } else {
            r = pthread_cond_wait(&stream->changed, &stream->lock);
        }
    }
    n_waiting = stream->reporter.queue.n_reports;
    r = final_error(&stream->reporter.error, err);
    (void)pthread_mutex_unlock(&stream->lock);
    if (r == 0 && n_waiting) {
        return skrull_error_set(err, SKRULL_ERR_DEADLINE_EXCEEDED,
                                "%zu reports were not delivered within %" PRId64 " ms", n_waiting,
                                timeout_ms);
    }
    return r;
}

void skrull_stream_close(struct skrull_stream *stream)
{
    if (!stream) {
        return;
    }
    (void)pthread_mutex_lock(&stream->lock);
    stream->is_closing = true; /* from here on nobody starts a batch */
    if (stream_state_move(&stream->state, STREAM_CLOSE) == STREAM_FAIL) {
        (void)skrull_error_set(&stream->error, SKRULL_ERR_CANCELLED, "the stream was closed");
    }
    if (stream->plan_call.call.handle) {
        (void)grpc_call_cancel(stream->plan_call.call.handle, NULL);
    }
    if (stream->reporter.call.handle) {
        (void)grpc_call_cancel(stream->reporter.call.handle, NULL);
    }
    if (stream->fallback.call.handle) {
        (void)grpc_call_cancel(stream->fallback.call.handle, NULL);
    }
    grpc_completion_queue_shutdown(stream->cq);
    (void)pthread_mutex_unlock(&stream->lock);
    (void)pthread_join(stream->reader, NULL);
    free_stream(stream);
}
