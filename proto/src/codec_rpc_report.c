/*
 * Reports, index statistics and health, to and from wire bytes. Unpacking hands out strings where
 * protobuf-c put them, in the caller's arena, after their lengths were checked. Any thread, one
 * arena each.
 */
#include "codec_rpc.h"

#include "grpc/health/v1/health.pb-c.h"
#include "skrull/v1/planner.pb-c.h"

#include "arena.h"
#include "codec_rpc_message.h"
#include "codec_wire.h"

/* Times of `report` to a message that has room for them in `arena`. */
static int encode_report(struct arena *arena, const struct rpc_step_report *report,
                         Skrull__V1__StepReport *ret)
{
    Skrull__V1__MicroBatchTimes *times =
        ARENA_ARRAY(arena, Skrull__V1__MicroBatchTimes, report->n_micro_batches);

    skrull__v1__step_report__init(ret);
    ret->micro_batches = ARENA_ARRAY(arena, Skrull__V1__MicroBatchTimes *, report->n_micro_batches);
    if (!times || !ret->micro_batches) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    ret->step = report->step;
    ret->data_rank = report->data_rank;
    ret->digest = codec_wire_borrow(report->digest);
    ret->elapsed_ns = report->elapsed_ns;
    ret->peak_bytes = report->peak_bytes;
    ret->n_micro_batches = report->n_micro_batches;
    for (size_t i = 0; i < report->n_micro_batches; i++) {
        skrull__v1__micro_batch_times__init(&times[i]);
        times[i].compute_busy_ns = report->micro_batches[i].compute_busy_ns;
        times[i].compute_wait_ns = report->micro_batches[i].compute_wait_ns;
        times[i].exchange_busy_ns = report->micro_batches[i].exchange_busy_ns;
        times[i].exchange_wait_ns = report->micro_batches[i].exchange_wait_ns;
        ret->micro_batches[i] = &times[i];
    }
    return 0;
}

int codec_report_steps_request_pack(struct arena *arena, const struct rpc_report_steps *value,
                                    struct rpc_bytes *ret, struct skrull_error *err)
{
    Skrull__V1__ReportStepsRequest message;
    Skrull__V1__StepReport *reports = ARENA_ARRAY(arena, Skrull__V1__StepReport, value->n_reports);

    skrull__v1__report_steps_request__init(&message);
    message.reports = ARENA_ARRAY(arena, Skrull__V1__StepReport *, value->n_reports);
    if (!reports || !message.reports) {
        return codec_rpc_no_memory(err);
    }
    for (size_t i = 0; i < value->n_reports; i++) {
        if (encode_report(arena, &value->reports[i], &reports[i])) {
            return codec_rpc_no_memory(err);
        }
        message.reports[i] = &reports[i];
    }
    message.n_reports = value->n_reports;
    message.job = codec_wire_borrow(value->job);
    message.uid = codec_wire_borrow(value->uid);
    return codec_rpc_encode(arena, &message.base, ret, err);
}

static int decode_report(struct arena *arena, const Skrull__V1__StepReport *message,
                         struct rpc_step_report *ret, struct skrull_error *err)
{
    struct rpc_micro_batch_times *times;
    int r = codec_rpc_check(&message->base, err);

    if (r) {
        return r;
    }
    times = ARENA_ARRAY(arena, struct rpc_micro_batch_times, message->n_micro_batches);
    if (!times) {
        return codec_rpc_no_memory(err);
    }
    for (size_t i = 0; i < message->n_micro_batches; i++) {
        const Skrull__V1__MicroBatchTimes *from = message->micro_batches[i];

        times[i] = (struct rpc_micro_batch_times){.compute_busy_ns = from->compute_busy_ns,
                                                  .compute_wait_ns = from->compute_wait_ns,
                                                  .exchange_busy_ns = from->exchange_busy_ns,
                                                  .exchange_wait_ns = from->exchange_wait_ns};
    }
    *ret = (struct rpc_step_report){.step = message->step,
                                    .data_rank = message->data_rank,
                                    .digest = message->digest,
                                    .elapsed_ns = message->elapsed_ns,
                                    .peak_bytes = message->peak_bytes,
                                    .micro_batches = times,
                                    .n_micro_batches = message->n_micro_batches};
    return 0;
}

int codec_report_steps_request_unpack(struct arena *arena, struct rpc_bytes bytes,
                                      struct rpc_report_steps *ret, struct skrull_error *err)
{
    Skrull__V1__ReportStepsRequest *message;
    struct rpc_step_report *reports;
    int r;

    r = CODEC_RPC_DECODE(arena, skrull__v1__report_steps_request, bytes, message, err);
    if (r) {
        return r;
    }
    reports = ARENA_ARRAY(arena, struct rpc_step_report, message->n_reports);
    if (!reports) {
        return codec_rpc_no_memory(err);
    }
    for (size_t i = 0; i < message->n_reports; i++) {
        r = decode_report(arena, message->reports[i], &reports[i], err);
        if (r) {
            return skrull_error_prefix(err, r, "reports[%zu]", i);
        }
    }
    *ret = (struct rpc_report_steps){.job = message->job,
                                     .uid = message->uid,
                                     .reports = reports,
                                     .n_reports = message->n_reports};
    return 0;
}

int codec_report_steps_response_pack(struct arena *arena, const uint64_t *value,
                                     struct rpc_bytes *ret, struct skrull_error *err)
{
    Skrull__V1__ReportStepsResponse message;

    skrull__v1__report_steps_response__init(&message);
    message.next_step = *value;
    return codec_rpc_encode(arena, &message.base, ret, err);
}

int codec_report_steps_response_unpack(struct arena *arena, struct rpc_bytes bytes, uint64_t *ret,
                                       struct skrull_error *err)
{
    Skrull__V1__ReportStepsResponse *message;
    int r;

    r = CODEC_RPC_DECODE(arena, skrull__v1__report_steps_response, bytes, message, err);
    if (!r) {
        *ret = message->next_step;
    }
    return r;
}

int codec_describe_index_request_pack(struct arena *arena, const struct rpc_describe_index *value,
                                      struct rpc_bytes *ret, struct skrull_error *err)
{
    Skrull__V1__DescribeIndexRequest message;

    skrull__v1__describe_index_request__init(&message);
    message.path = codec_wire_borrow(value->path);
    message.format = codec_wire_borrow(value->format);
    return codec_rpc_encode(arena, &message.base, ret, err);
}

int codec_describe_index_request_unpack(struct arena *arena, struct rpc_bytes bytes,
                                        struct rpc_describe_index *ret, struct skrull_error *err)
{
    Skrull__V1__DescribeIndexRequest *message;
    int r;

    r = CODEC_RPC_DECODE(arena, skrull__v1__describe_index_request, bytes, message, err);
    if (!r) {
        *ret = (struct rpc_describe_index){.path = message->path, .format = message->format};
    }
    return r;
}

int codec_index_stats_pack(struct arena *arena, const struct rpc_index_stats *value,
                           struct rpc_bytes *ret, struct skrull_error *err)
{
    Skrull__V1__IndexStats message;
    Skrull__V1__HistogramBin *bins = ARENA_ARRAY(arena, Skrull__V1__HistogramBin, value->n_bins);

    skrull__v1__index_stats__init(&message);
    message.histogram = ARENA_ARRAY(arena, Skrull__V1__HistogramBin *, value->n_bins);
    if (!bins || !message.histogram) {
        return codec_rpc_no_memory(err);
    }
    for (size_t i = 0; i < value->n_bins; i++) {
        skrull__v1__histogram_bin__init(&bins[i]);
        bins[i].upper = value->bins[i].upper;
        bins[i].count = value->bins[i].count;
        message.histogram[i] = &bins[i];
    }
    message.n_histogram = value->n_bins;
    message.format = codec_wire_borrow(value->format);
    message.count = value->count;
    message.tokens = value->tokens;
    message.loss_tokens = value->loss_tokens;
    message.min = value->min;
    message.max = value->max;
    message.mean = value->mean;
    message.p50 = value->p50;
    message.p90 = value->p90;
    message.p99 = value->p99;
    message.p999 = value->p999;
    return codec_rpc_encode(arena, &message.base, ret, err);
}

int codec_index_stats_unpack(struct arena *arena, struct rpc_bytes bytes,
                             struct rpc_index_stats *ret, struct skrull_error *err)
{
    Skrull__V1__IndexStats *message;
    struct rpc_index_stats stats;
    int r;

    r = CODEC_RPC_DECODE(arena, skrull__v1__index_stats, bytes, message, err);
    if (r) {
        return r;
    }
    stats = (struct rpc_index_stats){.format = message->format,
                                     .count = message->count,
                                     .tokens = message->tokens,
                                     .loss_tokens = message->loss_tokens,
                                     .min = message->min,
                                     .max = message->max,
                                     .p50 = message->p50,
                                     .p90 = message->p90,
                                     .p99 = message->p99,
                                     .p999 = message->p999,
                                     .mean = message->mean,
                                     .n_bins = message->n_histogram};
    stats.bins = arena_alloc(arena, stats.n_bins, sizeof(*stats.bins));
    if (!stats.bins) {
        return codec_rpc_no_memory(err);
    }
    for (size_t i = 0; i < stats.n_bins; i++) {
        stats.bins[i].upper = message->histogram[i]->upper;
        stats.bins[i].count = message->histogram[i]->count;
    }
    *ret = stats;
    return 0;
}

int codec_health_check_request_pack(struct arena *arena, const char *const *value,
                                    struct rpc_bytes *ret, struct skrull_error *err)
{
    Grpc__Health__V1__HealthCheckRequest message;

    grpc__health__v1__health_check_request__init(&message);
    message.service = codec_wire_borrow(*value);
    return codec_rpc_encode(arena, &message.base, ret, err);
}

int codec_health_check_request_unpack(struct arena *arena, struct rpc_bytes bytes, const char **ret,
                                      struct skrull_error *err)
{
    Grpc__Health__V1__HealthCheckRequest *message;
    int r;

    r = CODEC_RPC_DECODE(arena, grpc__health__v1__health_check_request, bytes, message, err);
    if (!r) {
        *ret = message->service;
    }
    return r;
}

int codec_health_check_response_pack(struct arena *arena, const enum rpc_health *value,
                                     struct rpc_bytes *ret, struct skrull_error *err)
{
    Grpc__Health__V1__HealthCheckResponse message;

    grpc__health__v1__health_check_response__init(&message);
    message.status = (Grpc__Health__V1__HealthCheckResponse__ServingStatus)*value;
    return codec_rpc_encode(arena, &message.base, ret, err);
}

int codec_health_check_response_unpack(struct arena *arena, struct rpc_bytes bytes,
                                       enum rpc_health *ret, struct skrull_error *err)
{
    Grpc__Health__V1__HealthCheckResponse *message;
    int r;

    r = CODEC_RPC_DECODE(arena, grpc__health__v1__health_check_response, bytes, message, err);
    if (!r) {
        /* A status of a later version of the service says no more than "not known". */
        *ret = (unsigned)message->status <= RPC_HEALTH_SERVICE_UNKNOWN
                   ? (enum rpc_health)message->status
                   : RPC_HEALTH_UNKNOWN;
    }
    return r;
}
