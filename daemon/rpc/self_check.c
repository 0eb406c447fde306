/*
 * One probe a listener: a channel with a connection of its own, one call of grpc.health.v1 with a
 * deadline, both dropped when it is over. Any status but "no answer" means that the listener works.
 *
 * A probe needs descriptors itself. Where there are hardly any left it is put off: its own failure
 * would say nothing, and taking the last ones might be what deafens the listener. A listener counts
 * as deaf once MAX_MISSED probes in a row failed that had all they needed, and only where one
 * succeeded before: where nothing ever got through, a new process would not help either.
 */
#include "rpc/self_check.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/time.h>

#include "base/log.h"
#include "loop/loop.h"
#include "rpc/cq.h"
#include "tag_order.h"

#define MAX_MISSED 2
#define SPARE_DESCRIPTORS 8

struct probe {
    struct self_check *check;
    char *target;
    struct cq_tag on_answer;
    grpc_channel *channel; /* NULL: no call is under way */
    grpc_call *call;
    grpc_metadata_array initial, trailing;
    grpc_byte_buffer *reply;
    grpc_status_code status;
    grpc_slice details;
    uint64_t started_ms;
    unsigned n_missed;
    bool has_answered;
};

struct self_check {
    struct self_check_options options;
    struct probe *probes; /* [options.n_targets] */
    struct loop_timer *timer;
    bool is_stopped, is_starved, is_deaf;
};

/* Are there descriptors for both ends of a connection, and some for others meanwhile? */
static bool has_descriptors(void)
{
    int spare[SPARE_DESCRIPTORS];
    int n = 0;

    while (n < SPARE_DESCRIPTORS) {
        spare[n] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (spare[n] < 0) {
            break;
        }
        n++;
    }
    for (int i = 0; i < n; i++) {
        (void)close(spare[i]);
    }
    return n == SPARE_DESCRIPTORS;
}

static void note_descriptors(struct self_check *check, bool is_starved)
{
    if (is_starved && !check->is_starved) {
        log_event(LOG_LEVEL_WARN, "descriptors_used_up",
                  LOG_TEXT("why", "new connections fail: raise LimitNOFILE, or use less of them"));
    }
    if (!is_starved && check->is_starved) {
        log_event(LOG_LEVEL_INFO, "descriptors_free", LOG_U64("at_least", SPARE_DESCRIPTORS));
    }
    check->is_starved = is_starved;
}

static grpc_channel *channel_to(const char *target)
{
    static const struct {
        const char *key;
        int value;
    } settings[] = {
        {GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1}, /* a connection of its own */
        {GRPC_ARG_ENABLE_HTTP_PROXY, 0},
        {GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1},
        {GRPC_ARG_ENABLE_RETRIES, 0},
    };
    enum { N_ARGS = sizeof(settings) / sizeof(settings[0]) };
    grpc_arg args[N_ARGS];
    const grpc_channel_args list = {N_ARGS, args};
    grpc_channel_credentials *credentials = grpc_insecure_credentials_create();
    grpc_channel *channel;

    for (int i = 0; i < N_ARGS; i++) {
        args[i].type = GRPC_ARG_INTEGER;
        args[i].key = (char *)(uintptr_t)settings[i].key; /* gRPC copies it */
        args[i].value.integer = settings[i].value;
    }
    channel = grpc_channel_create(target, credentials, &list);
    grpc_channel_credentials_release(credentials);
    return channel;
}

static void probe_finish(struct probe *probe)
{
    grpc_metadata_array_destroy(&probe->initial);
    grpc_metadata_array_destroy(&probe->trailing);
    grpc_slice_unref(probe->details);
    if (probe->reply) {
        grpc_byte_buffer_destroy(probe->reply);
        probe->reply = NULL;
    }
    grpc_call_unref(probe->call);
    grpc_channel_destroy(probe->channel);
    probe->channel = NULL;
}

static void judge(struct probe *probe)
{
    struct self_check *check = probe->check;
    bool is_answer = probe->status != GRPC_STATUS_UNAVAILABLE &&
                     probe->status != GRPC_STATUS_DEADLINE_EXCEEDED &&
                     probe->status != GRPC_STATUS_CANCELLED;

    if (is_answer) {
        probe->has_answered = true;
        probe->n_missed = 0;
        return;
    }
    if (!has_descriptors()) {
        note_descriptors(check, true);
        return;
    }
    probe->n_missed++;
    log_event(LOG_LEVEL_WARN, "self_check_failed", LOG_TEXT("address", probe->target),
              LOG_U64("times", probe->n_missed));
    if (probe->n_missed >= MAX_MISSED && probe->has_answered && !check->is_deaf) {
        check->is_deaf = true;
        check->options.deaf(check->options.arg);
    }
}

static void on_answer(struct cq_tag *tag, bool ok)
{
    struct probe *probe = CQ_OWNER(tag, struct probe, on_answer);

    (void)ok;
    probe_finish(probe);
    if (!probe->check->is_stopped) {
        judge(probe);
    }
}

static void probe_start(struct probe *probe)
{
    grpc_completion_queue *queue = cq_queue(probe->check->options.cq);
    grpc_slice empty = grpc_empty_slice(); /* a HealthCheckRequest of the whole server */
    grpc_byte_buffer *request = grpc_raw_byte_buffer_create(&empty, 1);
    grpc_op ops[6];
    grpc_call_error error;

    probe->started_ms = loop_now_ms(probe->check->options.loop);
    probe->channel = channel_to(probe->target);
    probe->call = grpc_channel_create_call(
        probe->channel, NULL, GRPC_PROPAGATE_DEFAULTS, queue,
        grpc_slice_from_static_string("/grpc.health.v1.Health/Check"), NULL,
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                     gpr_time_from_millis((int64_t)probe->check->options.answer_ms, GPR_TIMESPAN)),
        NULL);
    grpc_metadata_array_init(&probe->initial);
    grpc_metadata_array_init(&probe->trailing);
    probe->details = grpc_empty_slice();
    memset(ops, 0, sizeof(ops));
    ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
    ops[1].op = GRPC_OP_SEND_MESSAGE;
    ops[1].data.send_message.send_message = request;
    ops[2].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
    ops[3].op = GRPC_OP_RECV_INITIAL_METADATA;
    ops[3].data.recv_initial_metadata.recv_initial_metadata = &probe->initial;
    ops[4].op = GRPC_OP_RECV_MESSAGE;
    ops[4].data.recv_message.recv_message = &probe->reply;
    ops[5].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
    ops[5].data.recv_status_on_client.trailing_metadata = &probe->trailing;
    ops[5].data.recv_status_on_client.status = &probe->status;
    ops[5].data.recv_status_on_client.status_details = &probe->details;
    tag_hand_over(&probe->on_answer);
    error = grpc_call_start_batch(probe->call, ops, 6, &probe->on_answer, NULL);
    assert(error == GRPC_CALL_OK);
    (void)error;
    grpc_byte_buffer_destroy(request);
}

static void on_timer(void *arg)
{
    struct self_check *check = (struct self_check *)arg;
    bool is_starved = !has_descriptors();

    note_descriptors(check, is_starved);
    for (size_t i = 0; i < check->options.n_targets && !is_starved; i++) {
        if (!check->probes[i].channel) {
            probe_start(&check->probes[i]);
        }
    }
}

int self_check_new(const struct self_check_options *options, struct self_check **ret_check,
                   struct skrull_error *err)
{
    struct self_check *check = calloc(1, sizeof(*check));
    int code = SKRULL_ERR_RESOURCE_EXHAUSTED;

    if (!check) {
        goto no_memory;
    }
    check->options = *options;
    check->probes = calloc(options->n_targets, sizeof(*check->probes));
    for (size_t i = 0; check->probes && i < options->n_targets; i++) {
        check->probes[i].check = check;
        check->probes[i].on_answer.fn = on_answer;
        check->probes[i].target = strdup(options->targets[i]);
        if (!check->probes[i].target) {
            goto no_memory;
        }
    }
    if (!check->probes) {
        goto no_memory;
    }
    code = loop_timer_new(options->loop, on_timer, check, &check->timer, err);
    if (code < 0) {
        self_check_free(check);
        return code;
    }
    loop_timer_start(check->timer, 0, options->period_ms);
    *ret_check = check;
    return 0;

no_memory:
    self_check_free(check);
    return skrull_error_set(err, code, "self-check: out of memory");
}

bool self_check_is_well(const struct self_check *check)
{
    uint64_t now = loop_now_ms(check->options.loop);

    for (size_t i = 0; i < check->options.n_targets; i++) {
        const struct probe *probe = &check->probes[i];

        /* gRPC ends a call at its deadline, unless its threads hang. */
        if (probe->n_missed >= MAX_MISSED ||
            (probe->channel && now - probe->started_ms > 2 * check->options.answer_ms)) {
            return false;
        }
    }
    return true;
}

void self_check_stop(struct self_check *check)
{
    if (!check || check->is_stopped) {
        return;
    }
    check->is_stopped = true;
    loop_timer_stop(check->timer);
    for (size_t i = 0; i < check->options.n_targets; i++) {
        if (check->probes[i].channel) {
            (void)grpc_call_cancel(check->probes[i].call, NULL);
        }
    }
}

void self_check_free(struct self_check *check)
{
    if (!check) {
        return;
    }
    for (size_t i = 0; check->probes && i < check->options.n_targets; i++) {
        assert(!check->probes[i].channel);
        free(check->probes[i].target);
    }
    free(check->probes);
    loop_timer_free(check->timer);
    free(check);
}
