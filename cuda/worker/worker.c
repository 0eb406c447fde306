/* What both kinds of worker do: hold a plan against what one rank can know, print it, and how they
 * open, and leave, a stream. No state. */
#include "worker.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "signals.h"

enum worker_exit worker_exit_of(const struct skrull_error *err)
{
    signals_saying();
    (void)fprintf(stderr, "skrull-worker: %s\n", err->message);
    signals_said();
    if (err->code == SKRULL_ERR_UNAVAILABLE) {
        return WORKER_UNREACHABLE;
    }
    if (err->code == SKRULL_ERR_NOT_FOUND || err->code == SKRULL_ERR_OUT_OF_RANGE) {
        return WORKER_MISSING;
    }
    return WORKER_FAILED;
}

int64_t worker_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
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

int worker_check_plan(const struct skrull_plan *plan, uint32_t data_rank, struct skrull_error *err)
{
    for (size_t i = 0; i < plan->n_micro_batches; i++) {
        const char *fault = fault_of_micro_batch(plan, &plan->micro_batches[i], data_rank);

        if (fault) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "step %" PRIu64 ", micro-batch %zu: %s", plan->step, i, fault);
        }
    }
    return 0;
}

int worker_print_plan(const struct skrull_plan *plan, const char *digest, const char *more,
                      struct skrull_error *err)
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
                 " padded_tokens=%" PRIu64 "%s\n",
                 plan->step, plan->epoch, plan->ranks[0].data_rank, digest, rank_digest,
                 plan->n_micro_batches, tokens, padded, more ? more : "");
    if (fflush(stdout) != 0) {
        return skrull_error_set(err, SKRULL_ERR_INTERNAL, "standard output: %s", strerror(errno));
    }
    return 0;
}

static void say_event(void *arg, const char *message)
{
    (void)arg;
    (void)fprintf(stderr, "skrull-worker: %s\n", message);
}

int worker_open_stream(struct skrull_client *client, const struct worker_options *options,
                       uint32_t data_rank, struct skrull_stream **ret_stream,
                       struct skrull_error *err)
{
    const struct skrull_stream_options stream_options = {
        .job = options->job,
        .data_rank = data_rank,
        .from_step = options->from_step,
        .count = options->count,
        .window = options->window,
        .give_up_ms = (int64_t)options->give_up_ms,
        .silence_ms = options->silence_ms ? (int64_t)options->silence_ms : -1,
        .on_event = say_event,
        .fallback = options->is_local ? SKRULL_FALLBACK_LOCAL : SKRULL_FALLBACK_NONE,
        .fallback_roots = options->data_roots,
        .n_fallback_roots = options->n_data_roots,
        .fallback_after_ms = (int64_t)options->fallback_after_ms,
    };

    return skrull_stream_open(client, &stream_options, ret_stream, err);
}

int worker_flush_reports(struct skrull_stream *stream, const struct worker_options *options,
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
