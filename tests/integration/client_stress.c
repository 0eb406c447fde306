/*
 * Many threads with one client, for test_client.py and the thread sanitizer: streams that are read,
 * reported to, left in the middle, some with a fallback; unary calls of every kind between them.
 * client_stress JOB ROOT SECONDS; the daemon may come and go meanwhile. Prints what was done, and
 * every result that is neither a success nor the daemon's absence.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <skrull/client.h>

#define N_STREAMERS 6
#define N_CALLERS 4
#define N_RANKS 32

struct shared {
    struct skrull_client *client;
    const char *job, *root;
    struct skrull_job *template;
    int64_t ends_ms;
    atomic_ulong n_plans, n_local, n_calls, n_faults;
};

struct worker {
    struct shared *shared;
    unsigned number;
    uint64_t random;
    pthread_t thread;
};

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static uint64_t draw(struct worker *worker, uint64_t limit)
{
    worker->random = worker->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (worker->random >> 33) % limit;
}

static void judge(struct shared *shared, const char *what, int code, const struct skrull_error *err)
{
    if (code < 0 && code != SKRULL_ERR_UNAVAILABLE && code != SKRULL_ERR_DEADLINE_EXCEEDED &&
        code != SKRULL_ERR_CANCELLED) {
        atomic_fetch_add(&shared->n_faults, 1);
        (void)printf("%s: %s: %s\n", what, skrull_error_text(code), err->message);
    }
}

static void count_event(void *arg, const char *message)
{
    struct shared *shared = arg;

    if (strstr(message, "planning locally")) {
        atomic_fetch_add(&shared->n_local, 1);
    }
}

/* Reads up to `n_plans`, reports some, closes wherever it then is. */
static void read_some(struct worker *worker, struct skrull_stream *stream, uint64_t from,
                      uint64_t n_plans)
{
    struct shared *shared = worker->shared;
    struct skrull_error err = {0};
    struct skrull_plan *plan;
    int r = 0;

    for (uint64_t i = 0; i < n_plans && now_ms() < shared->ends_ms; i++) {
        char digest[SKRULL_DIGEST_HEX_SIZE];
        struct skrull_step_report report = {.step = from + i, .digest = digest};

        r = skrull_stream_next(stream, &plan, &err);
        if (r != 0) {
            break;
        }
        if (plan->step != from + i) {
            r = skrull_error_set(&err, SKRULL_ERR_INTERNAL, "step %" PRIu64 " came", plan->step);
        }
        skrull_digest_to_hex(plan->digest, digest);
        skrull_plan_free(plan);
        atomic_fetch_add(&shared->n_plans, 1);
        judge(shared, "next", r, &err);
        judge(shared, "report", skrull_stream_report(stream, &report, &err), &err);
    }
    judge(shared, "next", r, &err);
    if (draw(worker, 2)) {
        judge(shared, "flush", skrull_stream_flush(stream, 100, &err), &err);
    }
}

static void *run_streams(void *arg)
{
    struct worker *worker = arg;
    struct shared *shared = worker->shared;

    while (now_ms() < shared->ends_ms) {
        uint64_t from = draw(worker, 50);
        const struct skrull_stream_options options = {
            .job = shared->job,
            .data_rank = (uint32_t)draw(worker, N_RANKS),
            .from_step = from,
            .window = 1 + (uint32_t)draw(worker, 8),
            .give_up_ms = 3000,
            .on_event = count_event,
            .arg = shared,
            .fallback = worker->number % 2 ? SKRULL_FALLBACK_LOCAL : SKRULL_FALLBACK_NONE,
            .fallback_roots = &shared->root,
            .n_fallback_roots = 1,
            .fallback_after_ms = 100,
        };
        struct skrull_stream *stream;
        struct skrull_error err;
        int r = skrull_stream_open(shared->client, &options, &stream, &err);

        judge(shared, "open", r, &err);
        if (r == 0) {
            read_some(worker, stream, from, draw(worker, 50));
            skrull_stream_close(stream);
        }
    }
    return NULL;
}

static int stop_soon(void *arg, const struct skrull_job *job)
{
    unsigned *n_left = arg;

    return !job->name || --*n_left == 0;
}

static int call_once(struct worker *worker, struct skrull_error *err)
{
    struct shared *shared = worker->shared;
    const uint32_t ranks[] = {7, 3};
    unsigned n_jobs = 2;
    struct skrull_job *job;
    struct skrull_plan *plan;
    int r;

    switch (draw(worker, 4)) {
    case 0:
        return skrull_client_health(shared->client, err);
    case 1:
        r = skrull_client_get_job(shared->client, shared->job, &job, err);
        if (r == 0) {
            skrull_job_free(job);
        }
        return r;
    case 2:
        return skrull_client_list_jobs(shared->client, stop_soon, &n_jobs, err);
    default:
        r = skrull_client_get_plan(shared->client, shared->job, draw(worker, 100), ranks, 2, &plan,
                                   err);
        if (r == 0) {
            skrull_plan_free(plan);
        }
        return r;
    }
}

/* A job of the thread's own, made and deleted; that it was there already is no fault after a crash.
 */
static void make_and_delete(struct worker *worker)
{
    struct shared *shared = worker->shared;
    struct skrull_job job = *shared->template;
    struct skrull_error err;
    struct skrull_job *made;
    char name[32];
    int r;

    (void)snprintf(name, sizeof(name), "stress-%u", worker->number);
    job.name = name;
    r = skrull_client_create_job(shared->client, &job, NULL, &made, &err);
    if (r == 0) {
        skrull_job_free(made);
    } else if (r != SKRULL_ERR_ALREADY_EXISTS) {
        judge(shared, "create_job", r, &err);
    }
    r = skrull_client_delete_job(shared->client, name, &err);
    if (r != SKRULL_ERR_NOT_FOUND) {
        judge(shared, "delete_job", r, &err);
    }
}

static void *run_calls(void *arg)
{
    struct worker *worker = arg;
    struct shared *shared = worker->shared;

    while (now_ms() < shared->ends_ms) {
        struct skrull_error err;

        for (int i = 0; i < 20; i++) {
            judge(shared, "call", call_once(worker, &err), &err);
            atomic_fetch_add(&shared->n_calls, 1);
        }
        make_and_delete(worker);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static struct worker workers[N_STREAMERS + N_CALLERS];
    const struct skrull_client_options options = {.timeout_ms = 2000};
    struct shared shared = {.job = argc > 1 ? argv[1] : "", .root = argc > 2 ? argv[2] : ""};
    struct skrull_error err;

    if (argc != 4 || skrull_client_new(&options, &shared.client, &err) < 0 ||
        skrull_client_get_job(shared.client, shared.job, &shared.template, &err) < 0) {
        return 2;
    }
    (void)printf("begun\n");
    (void)fflush(stdout);
    shared.ends_ms = now_ms() + strtol(argv[3], NULL, 10) * 1000;
    for (unsigned i = 0; i < N_STREAMERS + N_CALLERS; i++) {
        workers[i] = (struct worker){.shared = &shared, .number = i, .random = i + 1};
        if (pthread_create(&workers[i].thread, NULL, i < N_STREAMERS ? run_streams : run_calls,
                           &workers[i]) != 0) {
            return 2;
        }
    }
    for (unsigned i = 0; i < N_STREAMERS + N_CALLERS; i++) {
        (void)pthread_join(workers[i].thread, NULL);
    }
    skrull_job_free(shared.template);
    skrull_client_free(shared.client);
    (void)printf("plans=%lu local=%lu calls=%lu faults=%lu\n", atomic_load(&shared.n_plans),
                 atomic_load(&shared.n_local), atomic_load(&shared.n_calls),
                 atomic_load(&shared.n_faults));
    return 0;
}
