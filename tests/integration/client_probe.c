/*
 * What a worker's program may do to libskrull, one behaviour a run: client_probe MODE JOB
 * [ROOT]. The
 * daemon is the default one ($SKRULL_SERVER). Prints what happened, for test_client.py to judge;
 * exits 0 unless it could not begin.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <skrull/client.h>

#define MAX_THREADS 64

static const char *root; /* where indexes lie, for "fallback" */

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void say_event(void *arg, const char *message)
{
    (void)arg;
    (void)printf("event: %s\n", message);
}

static struct skrull_stream *open_stream(struct skrull_client *client,
                                         const struct skrull_stream_options *options)
{
    struct skrull_stream *stream;
    struct skrull_error err;

    if (skrull_stream_open(client, options, &stream, &err) < 0) {
        (void)printf("open: %s: %s\n", skrull_error_text(err.code), err.message);
        exit(1);
    }
    return stream;
}

static void say(const char *what, int code, const struct skrull_error *err)
{
    (void)printf("%s: %s%s%s\n", what, code > 0 ? "end" : skrull_error_text(code),
                 code < 0 ? ": " : "", code < 0 ? err->message : "");
}

/* Closes a stream whose window is used up, and says how long that took. */
static void probe_close(struct skrull_client *client, const char *job)
{
    const struct skrull_stream_options options = {.job = job, .window = 2};
    struct skrull_stream *stream = open_stream(client, &options);
    struct skrull_error err;
    int64_t started;

    for (int i = 0; i < 2; i++) {
        struct skrull_plan *plan;
        int r = skrull_stream_next(stream, &plan, &err);

        say("next", r, &err);
        if (r == 0) {
            skrull_plan_free(plan);
        }
    }
    started = now_ms();
    skrull_stream_close(stream);
    (void)printf("closed_ms=%" PRId64 "\n", now_ms() - started);
}

/* Closes at once, whatever state the stream is in. */
static void probe_close_early(struct skrull_client *client, const char *job)
{
    const struct skrull_stream_options options = {.job = job};
    int64_t started = now_ms();

    for (int i = 0; i < 50; i++) {
        skrull_stream_close(open_stream(client, &options));
    }
    (void)printf("closed_ms=%" PRId64 "\n", now_ms() - started);
}

static void probe_give_up(struct skrull_client *client, const char *job)
{
    const struct skrull_stream_options options = {.job = job, .give_up_ms = 700};
    struct skrull_stream *stream = open_stream(client, &options);
    int64_t started = now_ms();
    struct skrull_plan *plan;
    struct skrull_error err;
    int r;

    for (int i = 0; i < 2; i++) { /* an error is final */
        r = skrull_stream_next(stream, &plan, &err);
        say("next", r, &err);
    }
    (void)printf("gave_up_ms=%" PRId64 "\n", now_ms() - started);
    skrull_stream_close(stream);
}

/* Waits behind its window, perhaps for a daemon that hangs; reports and goes on once told to. */
static void probe_silence(struct skrull_client *client, const char *job)
{
    const struct skrull_stream_options options = {
        .job = job, .window = 1, .count = 2, .silence_ms = 2500, .on_event = say_event};
    struct skrull_stream *stream = open_stream(client, &options);
    struct skrull_plan *plan;
    struct skrull_error err;

    if (skrull_stream_next(stream, &plan, &err) != 0) {
        exit(1);
    }
    (void)printf("first\n");
    (void)fflush(stdout);
    (void)getchar();
    say("report", skrull_stream_report_plan(stream, plan, &err), &err);
    skrull_plan_free(plan);
    if (skrull_stream_next(stream, &plan, &err) == 0) {
        (void)printf("step=%d\n", (int)plan->step);
        skrull_plan_free(plan);
    }
    skrull_stream_close(stream);
}

/* Reports a digest that is not the step's, then another report, a next and a flush. */
static void probe_wrong_report(struct skrull_client *client, const char *job)
{
    const struct skrull_stream_options options = {.job = job, .window = 4};
    const struct skrull_step_report report = {.step = 0,
                                              .digest = "00000000000000000000000000000000"};
    struct skrull_stream *stream = open_stream(client, &options);
    struct skrull_plan *plan;
    struct skrull_error err;
    int r = skrull_stream_next(stream, &plan, &err);

    say("next", r, &err);
    if (r == 0) {
        skrull_plan_free(plan);
    }
    say("report", skrull_stream_report(stream, &report, &err), &err);
    say("flush", skrull_stream_flush(stream, 10000, &err), &err);
    say("report", skrull_stream_report(stream, &report, &err), &err);
    say("next", skrull_stream_next(stream, &plan, &err), &err);
    skrull_stream_close(stream);
}

/* Reads a plan, waits for a line on standard input (the daemon stops meanwhile), reports, flushes
 * in vain; waits for another line (the daemon is back), flushes. */
static void probe_flush(struct skrull_client *client, const char *job)
{
    const struct skrull_stream_options options = {.job = job, .window = 4};
    struct skrull_stream *stream = open_stream(client, &options);
    char digest[SKRULL_DIGEST_HEX_SIZE];
    struct skrull_step_report report = {.digest = digest};
    struct skrull_plan *plan;
    struct skrull_error err;
    int r = skrull_stream_next(stream, &plan, &err);

    say("next", r, &err);
    if (r < 0) {
        exit(1);
    }
    skrull_digest_to_hex(plan->digest, digest);
    report.step = plan->step;
    skrull_plan_free(plan);
    (void)fflush(stdout);
    (void)getchar();
    say("report", skrull_stream_report(stream, &report, &err), &err);
    say("flush", skrull_stream_flush(stream, 300, &err), &err);
    (void)fflush(stdout);
    (void)getchar();
    say("flush", skrull_stream_flush(stream, 20000, &err), &err);
    skrull_stream_close(stream);
}

struct reader {
    struct skrull_client *client;
    const char *job;
    uint32_t data_rank;
    uint64_t n_plans;
    pthread_t thread;
};

static void *read_all(void *arg)
{
    struct reader *reader = arg;
    const struct skrull_stream_options options = {.job = reader->job,
                                                  .data_rank = reader->data_rank};
    struct skrull_stream *stream = open_stream(reader->client, &options);
    struct skrull_plan *plan;
    struct skrull_error err;
    int r;

    while ((r = skrull_stream_next(stream, &plan, &err)) == 0) {
        char digest[SKRULL_DIGEST_HEX_SIZE];
        struct skrull_step_report report = {.step = plan->step, .digest = digest};

        skrull_digest_to_hex(plan->digest, digest);
        reader->n_plans += plan->step == reader->n_plans;
        skrull_plan_free(plan);
        (void)skrull_stream_report(stream, &report, &err);
    }
    (void)skrull_stream_flush(stream, 20000, &err);
    skrull_stream_close(stream);
    return NULL;
}

/* One client, many threads: a stream each, and unary calls between them. */
static void probe_threads(struct skrull_client *client, const char *job)
{
    static struct reader readers[MAX_THREADS];
    const uint32_t n_threads = 8;
    struct skrull_error err;

    for (uint32_t i = 0; i < n_threads; i++) {
        readers[i] = (struct reader){.client = client, .job = job, .data_rank = i};
        if (pthread_create(&readers[i].thread, NULL, read_all, &readers[i]) != 0) {
            exit(1);
        }
    }
    for (uint64_t step = 0; step < 10; step++) {
        struct skrull_plan *plan;
        int r = skrull_client_get_plan(client, job, step, NULL, 0, &plan, &err);

        if (r < 0) {
            say("get_plan", r, &err);
        } else {
            skrull_plan_free(plan);
        }
    }
    for (uint32_t i = 0; i < n_threads; i++) {
        (void)pthread_join(readers[i].thread, NULL);
        (void)printf("rank=%" PRIu32 " plans=%" PRIu64 "\n", i, readers[i].n_plans);
    }
}

/* A stream that must not begin at another history. */
static void probe_resume(struct skrull_client *client, const char *job)
{
    const struct skrull_stream_options wrong_digest = {
        .job = job, .from_step = 3, .resume_digest = "00000000000000000000000000000000"};
    const struct skrull_stream_options wrong_uid = {.job = job,
                                                    .uid = "00000000000000000000000000000000"};
    const struct skrull_stream_options *const both[] = {&wrong_digest, &wrong_uid};

    for (size_t i = 0; i < 2; i++) {
        struct skrull_stream *stream = open_stream(client, both[i]);
        struct skrull_plan *plan;
        struct skrull_error err;

        say("next", skrull_stream_next(stream, &plan, &err), &err);
        skrull_stream_close(stream);
    }
}

/* Options that are none. */
static void probe_options(struct skrull_client *client, const char *job)
{
    const char *slash = "/";
    const struct skrull_stream_options rows[] = {
        {.job = ""},
        {.job = job, .window = 4097},
        {.job = job, .give_up_ms = -1},
        {.job = job, .fallback = SKRULL_FALLBACK_LOCAL},
        {.job = job, .fallback = 7},
        {.job = job,
         .fallback = SKRULL_FALLBACK_LOCAL,
         .fallback_roots = &job,
         .n_fallback_roots = 1},
        {.job = job,
         .fallback = SKRULL_FALLBACK_LOCAL,
         .fallback_roots = &slash,
         .n_fallback_roots = 1,
         .give_up_ms = 5000},
        {.job = job, .silence_ms = INT64_MAX},
        {.job = job, .uid = "xyz"},
        {.job = job, .resume_digest = "ABCDEF0123456789ABCDEF0123456789"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct skrull_stream *stream;
        struct skrull_error err;

        say("open", skrull_stream_open(client, &rows[i], &stream, &err), &err);
    }
}

/* All that two plans of a rank say; their segments by the digest. */
static bool is_same_plan(const struct skrull_plan *a, const struct skrull_plan *b)
{
    for (size_t i = 0; i < a->n_micro_batches && i < b->n_micro_batches; i++) {
        if (memcmp(&a->micro_batches[i].estimate, &b->micro_batches[i].estimate,
                   sizeof(a->estimate)) != 0) {
            return false;
        }
    }
    return strcmp(a->job, b->job) == 0 && strcmp(a->uid, b->uid) == 0 &&
           strcmp(a->policy, b->policy) == 0 && a->revision == b->revision &&
           a->planner_version == b->planner_version && a->step == b->step && a->epoch == b->epoch &&
           a->dp == b->dp && a->cp == b->cp &&
           memcmp(a->digest, b->digest, sizeof(a->digest)) == 0 &&
           memcmp(&a->totals, &b->totals, sizeof(a->totals)) == 0 &&
           memcmp(&a->ranks[0].estimate, &b->ranks[0].estimate, sizeof(a->estimate)) == 0 &&
           memcmp(a->ranks[0].digest, b->ranks[0].digest, sizeof(a->digest)) == 0 &&
           a->n_micro_batches == b->n_micro_batches && a->n_segments == b->n_segments;
}

/* Plans 0 to 19 by GetPlan, then from a stream whose daemon goes after the first. */
static void probe_fallback(struct skrull_client *client, const char *job)
{
    enum { N = 20 };
    const struct skrull_stream_options options = {.job = job,
                                                  .data_rank = 3,
                                                  .window = 1,
                                                  .count = N,
                                                  .on_event = say_event,
                                                  .fallback = SKRULL_FALLBACK_LOCAL,
                                                  .fallback_roots = &root,
                                                  .n_fallback_roots = 1,
                                                  .fallback_after_ms = 200};
    struct skrull_stream *stream = open_stream(client, &options);
    struct skrull_plan *plans[N], *plan;
    struct skrull_error err;
    int n_same = 0;

    for (uint64_t step = 0; step < N; step++) {
        if (skrull_client_get_plan(client, job, step, &options.data_rank, 1, &plans[step], &err) <
            0) {
            exit(1);
        }
    }
    for (uint64_t step = 0; skrull_stream_next(stream, &plan, &err) == 0; step++) {
        n_same += step > 0 && is_same_plan(plan, plans[step]);
        skrull_plan_free(plan);
        if (step == 0) {
            say("next", 0, &err);
            (void)fflush(stdout);
            (void)getchar();
        }
    }
    skrull_stream_close(stream);
    for (uint64_t step = 0; step < N; step++) {
        skrull_plan_free(plans[step]);
    }
    (void)printf("same=%d\n", n_same);
}

/* A small batch in one message, one that takes many, and one that is none; by the settings of a
 * job of the daemon. */
static void probe_plan_batch(struct skrull_client *client, const char *job)
{
    static const size_t sizes[] = {5, 30000, 0};
    static uint32_t lengths[30000], loss_tokens[30000];
    struct skrull_job *spec;
    struct skrull_error err;

    if (skrull_client_get_job(client, job, &spec, &err) < 0) {
        exit(1);
    }
    for (uint32_t i = 0; i < 30000; i++) {
        lengths[i] = i % 3000 + 1;
        loss_tokens[i] = i % 3000;
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const struct skrull_batch batch = {lengths, loss_tokens, sizes[i]};
        char digest[SKRULL_DIGEST_HEX_SIZE];
        struct skrull_plan *plan;

        if (skrull_client_plan_batch(client, spec, &batch, &plan, &err) < 0) {
            (void)printf("%s: %s\n", skrull_reason_text(err.reason), err.message);
            continue;
        }
        skrull_digest_to_hex(plan->digest, digest);
        (void)printf("%s %zu %llu\n", digest, plan->n_ranks,
                     (unsigned long long)plan->totals.loss_tokens);
        skrull_plan_free(plan);
    }
    skrull_job_free(spec);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *mode;
        void (*run)(struct skrull_client *client, const char *job);
    } probes[] = {
        {"fallback", probe_fallback},         {"close", probe_close},
        {"close-early", probe_close_early},   {"flush", probe_flush},
        {"give-up", probe_give_up},           {"options", probe_options},
        {"plan-batch", probe_plan_batch},     {"resume", probe_resume},
        {"silence", probe_silence},           {"threads", probe_threads},
        {"wrong-report", probe_wrong_report},
    };
    struct skrull_client *client;
    struct skrull_error err;

    root = argc > 3 ? argv[3] : NULL;
    if (argc < 3 || skrull_client_new(NULL, &client, &err) < 0) {
        return 2;
    }
    for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
        if (strcmp(argv[1], probes[i].mode) == 0) {
            probes[i].run(client, argv[2]);
        }
    }
    skrull_client_free(client);
    return 0;
}
