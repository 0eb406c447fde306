/*
 * One rank's training: plan by plan from its stream, after all ranks have made sure that they were
 * given the same one. Whatever ends a rank is told to the others before it leaves, since they wait
 * for it. Also the run without a scheduler that all this is compared with.
 */
#include "train_rank.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int out_of_memory(struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a step");
}

static int open_tokens(const struct train_rank *rank, struct token_source **ret,
                       struct skrull_error *err)
{
    const struct training_words *words = &rank->options->training;
    bool is_document[MAX_TOKEN_FILES] = {false};

    if (words->n_tokens == 0) {
        return tokens_generated(rank->training.model.vocabulary, ret, err);
    }
    for (size_t i = 0; i < words->n_tokens; i++) {
        is_document[i] = rank->job->data[i].unit == SKRULL_UNIT_DOCUMENT;
    }
    return tokens_megatron(words->tokens, is_document, words->n_tokens,
                           rank->training.model.vocabulary, ret, err);
}

/* What this worker cannot honour of a plan. */
static int check_totals(const struct skrull_plan *plan, struct skrull_error *err)
{
    return plan->totals.loss_tokens == plan->totals.tokens
               ? 0
               : skrull_error_set(
                     err, SKRULL_ERR_UNIMPLEMENTED,
                     "step %" PRIu64 ": the index counts %" PRIu64 " of %" PRIu64
                     " tokens in the loss; which ones, this worker's tokens do not say",
                     plan->step, plan->totals.loss_tokens, plan->totals.tokens);
}

static int report_step(const struct train_rank *rank, struct skrull_stream *stream,
                       const struct skrull_plan *plan, const struct skrull_step_report *report,
                       double loss, struct skrull_error *err)
{
    char more[160];
    int64_t wait_ns = 0;
    int rc;

    (void)rank;
    for (size_t i = 0; i < report->n_micro_batches; i++) {
        wait_ns += report->micro_batches[i].compute_wait_ns;
    }
    (void)snprintf(more, sizeof(more),
                   " loss=%.9f elapsed_ms=%" PRId64 " wait_ms=%" PRId64 " peak_bytes=%" PRIu64,
                   loss, report->elapsed_ns / 1000000, wait_ns / 1000000, report->peak_bytes);
    rc = worker_print_plan(plan, report->digest, more, err);
    return rc < 0 ? rc : skrull_stream_report(stream, report, err);
}

static int run_step(const struct train_rank *rank, struct training *training,
                    struct skrull_stream *stream, const struct skrull_plan *plan,
                    struct skrull_error *err)
{
    size_t n = plan->ranks[0].n_micro_batches;
    struct skrull_exec_times *times = calloc(n + 1, sizeof(*times));
    struct skrull_micro_batch_times *reported = calloc(n + 1, sizeof(*reported));
    char digest[SKRULL_DIGEST_HEX_SIZE];
    struct skrull_step_report report = {
        .step = plan->step, .digest = digest, .micro_batches = reported, .n_micro_batches = n};
    int64_t started = worker_now_ns();
    double loss = 0;
    int rc = times && reported ? worker_check_plan(plan, rank->data_rank, err) : out_of_memory(err);

    skrull_digest_to_hex(plan->digest, digest);
    if (rc == 0) {
        rc = check_totals(plan, err);
    }
    if (rc == 0) {
        rc = training_step(training, plan, 0, times, &loss, err);
    }
    report.elapsed_ns = worker_now_ns() - started;
    report.peak_bytes = training_peak_bytes(training);
    for (size_t i = 0; i < n && rc == 0; i++) {
        reported[i] =
            (struct skrull_micro_batch_times){.compute_busy_ns = times[i].compute_busy_ns,
                                              .compute_wait_ns = times[i].compute_wait_ns,
                                              .exchange_busy_ns = times[i].exchange_busy_ns,
                                              .exchange_wait_ns = times[i].exchange_wait_ns};
    }
    if (rc == 0) {
        rc = report_step(rank, stream, plan, &report, loss, err);
    }
    free(times);
    free(reported);
    return rc;
}

/* Until the stream ends. */
static int run_steps(const struct train_rank *rank, struct training *training,
                     struct skrull_stream *stream, struct skrull_error *err)
{
    struct skrull_plan *plan;
    int rc;

    do {
        plan = NULL;
        rc = skrull_stream_next(stream, &plan, err);
        if (rc < 0) {
            return rc;
        }
        if (rank->comm) {
            rc = skrull_comm_check_plan(rank->comm, plan, err);
        }
        if (rc >= 0 && plan) {
            rc = run_step(rank, training, stream, plan, err);
        }
        skrull_plan_free(plan);
    } while (rc == 0 && plan);
    return rc < 0 ? rc : worker_flush_reports(stream, rank->options, err);
}

static int write_weights(const char *path, const float *weights, size_t n, struct skrull_error *err)
{
    FILE *file = fopen(path, "wb");
    bool is_written = file && fwrite(weights, sizeof(float), n, file) == n;

    if (file && fclose(file) != 0) {
        is_written = false;
    }
    return is_written ? 0
                      : skrull_error_set(err, SKRULL_ERR_INTERNAL, "--save-weights: %s: %s", path,
                                         strerror(errno));
}

/* All ranks take part; the first one writes. */
static int save_weights(const struct train_rank *rank, struct training *training,
                        struct skrull_error *err)
{
    const char *path = rank->options->training.save_weights;
    size_t n = training->shape.n_weights;
    float *weights = path ? calloc(n, sizeof(float)) : NULL;
    int rc;

    if (!path) {
        return 0;
    }
    rc = weights ? training_read_weights(training, weights, err) : out_of_memory(err);
    if (rc == 0 && rank->data_rank == 0) {
        rc = write_weights(path, weights, n, err);
    }
    free(weights);
    return rc;
}

/* What a rank does once it has its weights. */
typedef int (*train_fn)(const struct train_rank *rank, struct training *training,
                        struct skrull_error *err);

static int train_by_plans(const struct train_rank *rank, struct training *training,
                          struct skrull_error *err)
{
    struct skrull_stream *stream;
    int rc = worker_open_stream(rank->client, rank->options, rank->data_rank, &stream, err);

    if (rc < 0) {
        return rc;
    }
    rc = run_steps(rank, training, stream, err);
    if (rc < 0) {
        /* What was run counts. */
        (void)skrull_stream_flush(stream, LAST_REPORTS_MS, NULL);
    }
    skrull_stream_close(stream);
    return rc;
}

static void run_with(struct train_rank *rank, train_fn train)
{
    struct token_source *tokens = NULL;
    struct training training;
    struct skrull_error err = {0};
    int rc = open_tokens(rank, &tokens, &err);

    if (rc == 0) {
        rc = training_init(&training, &rank->training, rank->comm, tokens, &err);
        if (rc == 0) {
            rc = train(rank, &training, &err);
            if (rc == 0) {
                rc = save_weights(rank, &training, &err);
            }
            if (rc < 0 && rank->comm) {
                skrull_comm_fail(rank->comm, &err);
            }
            training_deinit(&training);
        }
    }
    if (rc < 0 && rank->comm) {
        skrull_comm_fail(rank->comm, &err);
        (void)skrull_error_prefix(&err, rc, "on data rank %" PRIu32, rank->data_rank);
    }
    tokens_free(tokens);
    rank->status = rc < 0 ? worker_exit_of(&err) : WORKER_DONE;
}

void train_rank_run(struct train_rank *rank)
{
    run_with(rank, train_by_plans);
}

static int by_sample(const void *a, const void *b)
{
    const struct skrull_segment *one = a, *other = b;

    return (one->sample > other->sample) - (one->sample < other->sample);
}

/* The batch behind a plan: each sequence once, in the order of samples. Sorts the plan's segments.
 */
static size_t batch_of(struct skrull_plan *plan, struct training_sequence *ret_sequences)
{
    size_t n = 0;

    qsort(plan->segments, plan->n_segments, sizeof(plan->segments[0]), by_sample);
    for (size_t i = 0; i < plan->n_segments; i++) {
        const struct skrull_segment *segment = &plan->segments[i];

        if (i == 0 || segment->sample != segment[-1].sample) {
            ret_sequences[n++] = (struct training_sequence){.index = segment->index,
                                                            .dataset = segment->dataset,
                                                            .length = segment->sequence_length};
        }
    }
    return n;
}

static int run_batch(const struct train_rank *rank, struct training *training,
                     struct skrull_plan *plan, struct skrull_error *err)
{
    struct training_sequence *sequences = calloc(plan->n_segments + 1, sizeof(*sequences));
    int64_t started = worker_now_ns();
    double loss = 0;
    int rc = sequences ? check_totals(plan, err) : out_of_memory(err);

    if (rc == 0) {
        rc = training_step_unscheduled(training, sequences, batch_of(plan, sequences),
                                       rank->job->loss, &loss, err);
    }
    free(sequences);
    if (rc == 0 &&
        (printf("step=%" PRIu64 " unscheduled=1 tokens=%" PRIu64 " loss=%.9f elapsed_ms=%" PRId64
                "\n",
                plan->step, plan->totals.tokens, loss, (worker_now_ns() - started) / 1000000) < 0 ||
         fflush(stdout) != 0)) {
        rc = skrull_error_set(err, SKRULL_ERR_INTERNAL, "standard output: %s", strerror(errno));
    }
    return rc;
}

static int train_unscheduled(const struct train_rank *rank, struct training *training,
                             struct skrull_error *err)
{
    uint64_t end = rank->job->info.steps, step = rank->options->from_step;
    int rc = 0;

    if (rank->options->count && rank->options->count < end - step) {
        end = step + rank->options->count;
    }
    for (; step < end && rc == 0; step++) {
        struct skrull_plan *plan;

        rc = skrull_client_get_plan(rank->client, rank->options->job, step, NULL, 0, &plan, err);
        if (rc == 0) {
            rc = run_batch(rank, training, plan, err);
            skrull_plan_free(plan);
        }
    }
    return rc;
}

void train_rank_run_unscheduled(struct train_rank *rank)
{
    run_with(rank, train_unscheduled);
}
