/* stream: what a worker of a data rank would receive. Reports nothing, so it asks for no window:
 * the job's progress stays the workers'. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd.h"
#include "codec_text.h"
#include "ctl.h"

static void say_event(void *arg, const char *message)
{
    (void)arg;
    (void)fprintf(stderr, "skrullctl: %s\n", message);
}

static void print_line(const struct ctl *ctl, const struct skrull_plan *plan)
{
    const struct skrull_rank *rank = &plan->ranks[0];
    char digest[SKRULL_DIGEST_HEX_SIZE], rank_digest[SKRULL_DIGEST_HEX_SIZE];
    uint64_t tokens = 0, padded = 0;

    for (size_t i = 0; i < plan->n_micro_batches; i++) {
        tokens += plan->micro_batches[i].tokens;
        padded += plan->micro_batches[i].padded_tokens;
    }
    skrull_digest_to_hex(plan->digest, digest);
    skrull_digest_to_hex(rank->digest, rank_digest);
    if (ctl->format == CTL_CSV) {
        (void)printf("%" PRIu64 ",%" PRIu64 ",%s,%s,%" PRIu32 ",%" PRIu64 ",%" PRIu64 "\n",
                     plan->step, plan->epoch, digest, rank_digest, rank->n_micro_batches, tokens,
                     padded);
    } else {
        (void)printf(
            "step=%" PRIu64 " epoch=%" PRIu64 " digest=%s rank_digest=%s micro_batches=%" PRIu32
            " tokens=%" PRIu64 " padded_tokens=%" PRIu64 "\n",
            plan->step, plan->epoch, digest, rank_digest, rank->n_micro_batches, tokens, padded);
    }
}

/* Prints one plan at once, for whoever reads the pipe. False: it could not. */
static bool print_plan(const struct ctl *ctl, const struct skrull_plan *plan,
                       struct skrull_error *err)
{
    if (ctl->format == CTL_JSON) {
        char *text;

        if (codec_text_rank_plan(plan, 0, false, &text, err) < 0) {
            return false;
        }
        (void)puts(text);
        free(text);
    } else {
        print_line(ctl, plan);
    }
    if (fflush(stdout) != 0) {
        (void)skrull_error_set(err, SKRULL_ERR_UNKNOWN, "standard output is closed");
        return false;
    }
    return true;
}

static int print_all(const struct ctl *ctl, struct skrull_stream *stream)
{
    struct skrull_error err;
    bool is_printed = true;
    int r = 0;

    if (ctl->format == CTL_CSV) {
        (void)puts("step,epoch,digest,rank_digest,micro_batches,tokens,padded_tokens");
    }
    while (is_printed) {
        struct skrull_plan *plan;

        r = skrull_stream_next(stream, &plan, &err);
        if (r != 0) {
            break;
        }
        is_printed = print_plan(ctl, plan, &err);
        skrull_plan_free(plan);
    }
    return r == SKRULL_STREAM_END ? CTL_DONE : ctl_fail(ctl, &err);
}

int cmd_stream(struct ctl *ctl)
{
    struct skrull_stream_options options = {.job = ctl->operands[0],
                                            .window = SKRULL_WINDOW_NONE,
                                            .give_up_ms = 10000,
                                            .on_event = say_event};
    struct skrull_stream *stream;
    struct skrull_client *client;
    struct skrull_error err;
    uint64_t rank = 0;
    int status = ctl_number(ctl, "--rank", UINT32_MAX, 0, &rank);

    if (status == CTL_DONE) {
        status = ctl_number(ctl, "--from", UINT64_MAX, 0, &options.from_step);
    }
    if (status == CTL_DONE) {
        status = ctl_number(ctl, "--count", UINT64_MAX, 0, &options.count);
    }
    if (status == CTL_DONE) {
        status = ctl_connect(ctl, &client);
    }
    if (status != CTL_DONE) {
        return status;
    }
    options.data_rank = (uint32_t)rank;
    if (skrull_stream_open(client, &options, &stream, &err) < 0) {
        return ctl_fail(ctl, &err);
    }
    status = print_all(ctl, stream);
    skrull_stream_close(stream);
    return status;
}
