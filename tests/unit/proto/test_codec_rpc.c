/*
 * Requests and replies against their JSON, which goes by the descriptors and knows nothing of this
 * codec: what is packed must read so, and what is written so must be unpacked.
 */
#include "codec_rpc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "grpc/health/v1/health.pb-c.h"
#include "skrull/v1/planner.pb-c.h"

#include "codec_json.h"
#include "codec_wire.h"
#include "unit/proto/plan_fixture.h"

static struct rpc_bytes from_json(struct arena *arena, const ProtobufCMessageDescriptor *descriptor,
                                  const char *json)
{
    struct skrull_error err = {0};
    struct rpc_bytes bytes;
    ProtobufCMessage *message;
    uint8_t *data;

    if (codec_json_decode(arena, descriptor, json, strlen(json), &message, &err)) {
        fail_msg("%s: %s", json, err.message);
    }
    assert_int_equal(codec_wire_encode(arena, message, &data, &bytes.len, NULL), 0);
    bytes.data = data;
    return bytes;
}

static void assert_json(struct arena *arena, const ProtobufCMessageDescriptor *descriptor,
                        struct rpc_bytes bytes, const char *expected)
{
    ProtobufCMessage *message;
    char *json;

    assert_int_equal(codec_wire_decode(arena, descriptor, bytes.data, bytes.len, &message, NULL),
                     0);
    json = codec_json_encode(message, false);
    assert_non_null(json);
    assert_string_equal(json, expected);
    free(json);
}

#define ARENA() arena_new((size_t)1 << 20)

/* Unpacks `json` into *value by the codec of `name`, packs that again and compares. */
#define ASSERT_ROUND_TRIP(arena, name, value, json)                                                \
    do {                                                                                           \
        struct rpc_bytes bytes_;                                                                   \
                                                                                                   \
        bytes_ = from_json((arena), &skrull__v1__##name##__descriptor, (json));                    \
        assert_int_equal(codec_##name##_unpack((arena), bytes_, (value), NULL), 0);                \
        assert_int_equal(codec_##name##_pack((arena), (value), &bytes_, NULL), 0);                 \
        assert_json((arena), &skrull__v1__##name##__descriptor, bytes_, (json));                   \
    } while (0)

static void test_create_job_request__round_trip(void **state)
{
    struct arena *arena = ARENA();
    struct rpc_create_job value;

    (void)state;
    ASSERT_ROUND_TRIP(arena, create_job_request, &value,
                      "{\"job\":{\"name\":\"a\",\"seed\":\"9\"},\"requestId\":\"r\"}");
    assert_string_equal(value.job->name, "a");
    assert_int_equal(value.job->seed, 9);
    assert_string_equal(value.request_id, "r");
    arena_free(arena);
}

static void test_create_job_request__without_job(void **state)
{
    struct arena *arena = ARENA();
    struct rpc_create_job value;
    struct skrull_error err;

    (void)state;
    assert_int_equal(codec_create_job_request_unpack(arena, (struct rpc_bytes){0}, &value, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "job: is required");
    arena_free(arena);
}

static void test_job_requests__round_trip(void **state)
{
    struct arena *arena = ARENA();
    struct rpc_name value;
    struct rpc_list_jobs list;

    (void)state;
    ASSERT_ROUND_TRIP(arena, get_job_request, &value, "{\"name\":\"a\"}");
    assert_string_equal(value.name, "a");
    ASSERT_ROUND_TRIP(arena, delete_job_request, &value, "{\"name\":\"b\"}");
    assert_string_equal(value.name, "b");
    ASSERT_ROUND_TRIP(arena, list_jobs_request, &list, "{\"pageSize\":\"5\",\"pageToken\":\"t\"}");
    assert_int_equal(list.page_size, 5);
    assert_string_equal(list.page_token, "t");
    arena_free(arena);
}

static void test_list_jobs_response__round_trip(void **state)
{
    struct arena *arena = ARENA();
    struct rpc_job_page value;

    (void)state;
    ASSERT_ROUND_TRIP(arena, list_jobs_response, &value,
                      "{\"jobs\":[{\"name\":\"a\"},{\"name\":\"b\"}],\"nextPageToken\":\"t\"}");
    assert_int_equal(value.n_jobs, 2);
    assert_string_equal(value.jobs[1]->name, "b");
    assert_string_equal(value.next_page_token, "t");
    arena_free(arena);
}

static void test_get_plan_request__round_trip(void **state)
{
    struct arena *arena = ARENA();
    struct rpc_get_plan value;

    (void)state;
    ASSERT_ROUND_TRIP(arena, get_plan_request, &value,
                      "{\"job\":\"a\",\"step\":\"18446744073709551615\",\"dataRanks\":[3,0]}");
    assert_string_equal(value.job, "a");
    assert_true(value.step == UINT64_MAX);
    assert_int_equal(value.n_data_ranks, 2);
    assert_int_equal(value.data_ranks[0], 3);
    ASSERT_ROUND_TRIP(arena, get_plan_request, &value, "{}");
    assert_string_equal(value.job, "");
    assert_int_equal(value.n_data_ranks, 0);
    arena_free(arena);
}

static void test_stream_plans_request__round_trip(void **state)
{
    struct arena *arena = ARENA();
    struct rpc_stream_plans value;

    (void)state;
    ASSERT_ROUND_TRIP(arena, stream_plans_request, &value,
                      "{\"job\":\"a\",\"uid\":\"u\",\"dataRank\":1,\"fromStep\":\"2\","
                      "\"count\":\"3\",\"window\":4,\"resumeDigest\":\"d\"}");
    assert_string_equal(value.job, "a");
    assert_string_equal(value.uid, "u");
    assert_int_equal(value.data_rank, 1);
    assert_int_equal(value.from_step, 2);
    assert_int_equal(value.count, 3);
    assert_int_equal(value.window, 4);
    assert_string_equal(value.resume_digest, "d");
    arena_free(arena);
}

static void test_report_steps__round_trip(void **state)
{
    struct arena *arena = ARENA();
    struct rpc_report_steps value;
    uint64_t next_step;

    (void)state;
    ASSERT_ROUND_TRIP(arena, report_steps_request, &value,
                      "{\"job\":\"a\",\"uid\":\"u\",\"reports\":[{\"step\":\"1\",\"dataRank\":2,"
                      "\"digest\":\"d\",\"elapsedNs\":\"3\",\"peakBytes\":\"4\",\"microBatches\":["
                      "{\"computeBusyNs\":\"5\",\"computeWaitNs\":\"6\",\"exchangeBusyNs\":\"7\","
                      "\"exchangeWaitNs\":\"-8\"},{}]},{\"step\":\"9\"}]}");
    assert_int_equal(value.n_reports, 2);
    assert_int_equal(value.reports[0].data_rank, 2);
    assert_int_equal(value.reports[0].elapsed_ns, 3);
    assert_int_equal(value.reports[0].n_micro_batches, 2);
    assert_int_equal(value.reports[0].micro_batches[0].exchange_wait_ns, -8);
    assert_int_equal(value.reports[1].step, 9);
    assert_string_equal(value.reports[1].digest, "");
    ASSERT_ROUND_TRIP(arena, report_steps_response, &next_step, "{\"nextStep\":\"77\"}");
    assert_int_equal(next_step, 77);
    arena_free(arena);
}

static void test_index__round_trip(void **state)
{
    struct arena *arena = ARENA();
    struct rpc_describe_index request;
    struct rpc_index_stats stats;

    (void)state;
    ASSERT_ROUND_TRIP(arena, describe_index_request, &request,
                      "{\"path\":\"/p\",\"format\":\"f\"}");
    assert_string_equal(request.path, "/p");
    assert_string_equal(request.format, "f");
    ASSERT_ROUND_TRIP(arena, index_stats, &stats,
                      "{\"format\":\"f\",\"count\":\"1\",\"tokens\":\"2\",\"lossTokens\":\"3\","
                      "\"min\":\"4\",\"max\":\"5\",\"mean\":6.5,\"p50\":\"7\",\"p90\":\"8\","
                      "\"p99\":\"9\",\"p999\":\"10\",\"histogram\":[{\"upper\":\"16\","
                      "\"count\":\"11\"},{\"upper\":\"32\",\"count\":\"12\"}]}");
    assert_int_equal(stats.max, 5);
    assert_int_equal(stats.n_bins, 2);
    assert_int_equal(stats.bins[1].upper, 32);
    assert_int_equal(stats.bins[1].count, 12);
    arena_free(arena);
}

static void test_health__round_trip(void **state)
{
    struct arena *arena = ARENA();
    const char *service = "skrull.v1.PlannerService", *again;
    enum rpc_health health = RPC_HEALTH_NOT_SERVING, health_again;
    struct rpc_bytes bytes;

    (void)state;
    assert_int_equal(codec_health_check_request_pack(arena, &service, &bytes, NULL), 0);
    assert_json(arena, &grpc__health__v1__health_check_request__descriptor, bytes,
                "{\"service\":\"skrull.v1.PlannerService\"}");
    assert_int_equal(codec_health_check_request_unpack(arena, bytes, &again, NULL), 0);
    assert_string_equal(again, service);
    assert_int_equal(codec_health_check_response_pack(arena, &health, &bytes, NULL), 0);
    assert_json(arena, &grpc__health__v1__health_check_response__descriptor, bytes,
                "{\"status\":\"NOT_SERVING\"}");
    assert_int_equal(codec_health_check_response_unpack(arena, bytes, &health_again, NULL), 0);
    assert_int_equal(health_again, RPC_HEALTH_NOT_SERVING);
    bytes = (struct rpc_bytes){.data = (const uint8_t *)"\x08\x09", .len = 2};
    assert_int_equal(codec_health_check_response_unpack(arena, bytes, &health_again, NULL), 0);
    assert_int_equal(health_again, RPC_HEALTH_UNKNOWN);
    arena_free(arena);
}

/* An unpacking that must fail: by descriptor, JSON with one long string, and what the error says.
 */
typedef int (*unpack)(struct arena *arena, struct rpc_bytes bytes, struct skrull_error *err);

#define DEFINE_UNPACK(name, type)                                                                  \
    static int unpack_##name(struct arena *arena, struct rpc_bytes bytes,                          \
                             struct skrull_error *err)                                             \
    {                                                                                              \
        type value;                                                                                \
                                                                                                   \
        return codec_##name##_unpack(arena, bytes, &value, err);                                   \
    }

DEFINE_UNPACK(create_job_request, struct rpc_create_job)
DEFINE_UNPACK(get_job_request, struct rpc_name)
DEFINE_UNPACK(delete_job_request, struct rpc_name)
DEFINE_UNPACK(list_jobs_request, struct rpc_list_jobs)
DEFINE_UNPACK(list_jobs_response, struct rpc_job_page)
DEFINE_UNPACK(get_plan_request, struct rpc_get_plan)
DEFINE_UNPACK(stream_plans_request, struct rpc_stream_plans)
DEFINE_UNPACK(report_steps_request, struct rpc_report_steps)
DEFINE_UNPACK(report_steps_response, uint64_t)
DEFINE_UNPACK(describe_index_request, struct rpc_describe_index)
DEFINE_UNPACK(index_stats, struct rpc_index_stats)
DEFINE_UNPACK(health_check_request, const char *)

static const struct long_text {
    unpack unpack;
    const ProtobufCMessageDescriptor *descriptor;
    const char *json; /* %s is the string */
    size_t max_len;
    const char *message; /* starts with, then ": N bytes, at most N are allowed" */
} long_texts[] = {
    {unpack_create_job_request, &skrull__v1__create_job_request__descriptor,
     "{\"job\":{},\"requestId\":\"%s\"}", 128, "request_id"},
    {unpack_get_job_request, &skrull__v1__get_job_request__descriptor, "{\"name\":\"%s\"}", 63,
     "name"},
    {unpack_delete_job_request, &skrull__v1__delete_job_request__descriptor, "{\"name\":\"%s\"}",
     63, "name"},
    {unpack_list_jobs_request, &skrull__v1__list_jobs_request__descriptor, "{\"pageToken\":\"%s\"}",
     128, "page_token"},
    {unpack_list_jobs_response, &skrull__v1__list_jobs_response__descriptor,
     "{\"nextPageToken\":\"%s\"}", 128, "next_page_token"},
    {unpack_get_plan_request, &skrull__v1__get_plan_request__descriptor, "{\"job\":\"%s\"}", 63,
     "job"},
    {unpack_stream_plans_request, &skrull__v1__stream_plans_request__descriptor, "{\"job\":\"%s\"}",
     63, "job"},
    {unpack_stream_plans_request, &skrull__v1__stream_plans_request__descriptor, "{\"uid\":\"%s\"}",
     32, "uid"},
    {unpack_stream_plans_request, &skrull__v1__stream_plans_request__descriptor,
     "{\"resumeDigest\":\"%s\"}", 32, "resume_digest"},
    {unpack_report_steps_request, &skrull__v1__report_steps_request__descriptor, "{\"job\":\"%s\"}",
     63, "job"},
    {unpack_report_steps_request, &skrull__v1__report_steps_request__descriptor, "{\"uid\":\"%s\"}",
     32, "uid"},
    {unpack_report_steps_request, &skrull__v1__report_steps_request__descriptor,
     "{\"reports\":[{},{\"digest\":\"%s\"}]}", 32, "reports[1]: digest"},
    {unpack_describe_index_request, &skrull__v1__describe_index_request__descriptor,
     "{\"path\":\"%s\"}", 4096, "path"},
    {unpack_describe_index_request, &skrull__v1__describe_index_request__descriptor,
     "{\"format\":\"%s\"}", 63, "format"},
    {unpack_index_stats, &skrull__v1__index_stats__descriptor, "{\"format\":\"%s\"}", 63, "format"},
    {unpack_health_check_request, &grpc__health__v1__health_check_request__descriptor,
     "{\"service\":\"%s\"}", 128, "service"},
};

static int unpack_long_text(const struct long_text *row, size_t len, struct skrull_error *err)
{
    struct arena *arena = ARENA();
    char *text = ARENA_ARRAY(arena, char, len + 1), *json = ARENA_ARRAY(arena, char, len + 128);
    char expected[64];
    int r;

    memset(text, 'x', len);
    text[len] = '\0';
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)snprintf(json, len + 128, row->json, text);
#pragma GCC diagnostic pop
    r = row->unpack(arena, from_json(arena, row->descriptor, json), err);
    if (r) {
        (void)snprintf(expected, sizeof(expected), "%s: %zu bytes, at most %zu are allowed",
                       row->message, len, row->max_len);
        assert_string_equal(err->message, expected);
    }
    arena_free(arena);
    return r;
}

static void test_unpack__long_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(long_texts) / sizeof(long_texts[0]); i++) {
        const struct long_text *row = &long_texts[i];
        struct skrull_error err;

        assert_int_equal(unpack_long_text(row, row->max_len, &err), 0);
        assert_int_equal(unpack_long_text(row, row->max_len + 1, &err),
                         SKRULL_ERR_INVALID_ARGUMENT);
    }
}

/* Garbage is refused by every codec, not only by the one below them. */
static void test_unpack__garbage(void **state)
{
    static const unpack unpacks[] = {
        unpack_create_job_request,     unpack_get_job_request,      unpack_delete_job_request,
        unpack_list_jobs_request,      unpack_list_jobs_response,   unpack_get_plan_request,
        unpack_stream_plans_request,   unpack_report_steps_request, unpack_report_steps_response,
        unpack_describe_index_request, unpack_index_stats,          unpack_health_check_request};

    (void)state;
    for (size_t i = 0; i < sizeof(unpacks) / sizeof(unpacks[0]); i++) {
        struct arena *arena = ARENA();
        struct rpc_bytes bytes = {.data = (const uint8_t *)"\xff\xff", .len = 2};

        assert_int_equal(unpacks[i](arena, bytes, NULL), SKRULL_ERR_INVALID_ARGUMENT);
        arena_free(arena);
    }
}

static void test_get_plan_request__long_list(void **state)
{
    uint8_t *data = calloc(1, 4 + RPC_MAX_ENTRIES + 1);
    struct arena *arena = ARENA();
    struct rpc_get_plan value;
    struct skrull_error err;

    (void)state;
    assert_non_null(data);
    memcpy(data, "\x1a\x80\x80\x04", 4); /* 65,536 zeros follow */
    assert_int_equal(codec_get_plan_request_unpack(
                         arena, (struct rpc_bytes){data, 4 + RPC_MAX_ENTRIES}, &value, &err),
                     0);
    assert_int_equal(value.n_data_ranks, RPC_MAX_ENTRIES);
    data[1]++;
    assert_int_equal(codec_get_plan_request_unpack(
                         arena, (struct rpc_bytes){data, 5 + RPC_MAX_ENTRIES}, &value, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "data_ranks: 65537 entries, at most 65536 are allowed");
    arena_free(arena);
    free(data);
}

/* One report of so many empty times of micro-batches. */
static void test_report_steps_request__long_list(void **state)
{
    const size_t n = RPC_MAX_ENTRIES + 1, len = 2 * n;
    uint8_t *data = calloc(1, 4 + len);
    struct arena *arena = arena_new((size_t)1 << 30);
    struct rpc_report_steps value;
    struct skrull_error err;

    (void)state;
    assert_non_null(data);
    data[0] = 3 << 3 | 2; /* reports */
    for (size_t i = 0; i < 3; i++) {
        data[1 + i] = (uint8_t)((len >> 7 * i & 0x7f) | (i < 2 ? 0x80 : 0));
    }
    for (size_t i = 0; i < n; i++) {
        data[4 + 2 * i] = 6 << 3 | 2; /* micro_batches */
    }
    assert_int_equal(codec_report_steps_request_unpack(arena, (struct rpc_bytes){data, 4 + len},
                                                       &value, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.message,
                        "reports[0]: micro_batches: 65537 entries, at most 65536 are allowed");
    arena_free(arena);
    free(data);
}

/* A million jobs in one reply, each of two bytes: no such page is taken, whatever the memory. */
static void test_list_jobs_response__a_million_jobs(void **state)
{
    const size_t n = 1000000;
    uint8_t *data = malloc(2 * n);

    (void)state;
    assert_non_null(data);
    for (size_t i = 0; i < n; i++) {
        data[2 * i] = 0x0a;
        data[2 * i + 1] = 0;
    }
    for (size_t budget = (size_t)1 << 20; budget <= (size_t)1 << 30; budget <<= 10) {
        struct arena *arena = arena_new(budget);
        struct skrull_error err = {0};
        struct rpc_job_page page;
        int code =
            codec_list_jobs_response_unpack(arena, (struct rpc_bytes){data, 2 * n}, &page, &err);

        assert_int_equal(code, budget == (size_t)1 << 20 ? SKRULL_ERR_RESOURCE_EXHAUSTED
                                                         : SKRULL_ERR_INVALID_ARGUMENT);
        assert_true(arena_used(arena) <= budget);
        arena_free(arena);
    }
    free(data);
}

static void test_stream_event__plan(void **state)
{
    struct skrull_plan *plan = fixture_new();
    struct arena *arena = ARENA();
    struct rpc_stream_event event;
    struct rpc_bytes bytes;
    uint8_t *data;

    (void)state;
    assert_int_equal(codec_stream_plan_pack(plan, 2, &data, &bytes.len, NULL), 0);
    bytes.data = data;
    assert_int_equal(codec_stream_event_unpack(arena, bytes, &event, NULL), 0);
    arena_free(arena); /* the plan outlives it */
    free(data);
    assert_int_equal(event.kind, RPC_STREAM_PLAN);
    assert_int_equal(event.plan->n_ranks, 1);
    assert_int_equal(event.plan->ranks[0].data_rank, 2);
    assert_int_equal(event.plan->n_micro_batches, 3);
    assert_int_equal(event.plan->step, plan->step);
    skrull_plan_free(event.plan);
    skrull_plan_free(plan);
}

static void test_stream_event__others(void **state)
{
    struct arena *arena = ARENA();
    struct rpc_stream_event event;
    struct rpc_bytes bytes;

    (void)state;
    assert_int_equal(codec_stream_heartbeat_pack(arena, &bytes, NULL), 0);
    assert_json(arena, &skrull__v1__stream_plans_response__descriptor, bytes, "{\"heartbeat\":{}}");
    assert_int_equal(codec_stream_event_unpack(arena, bytes, &event, NULL), 0);
    assert_int_equal(event.kind, RPC_STREAM_HEARTBEAT);
    assert_int_equal(codec_stream_end_pack(arena, RPC_END_REVISION, 12, &bytes, NULL), 0);
    assert_json(arena, &skrull__v1__stream_plans_response__descriptor, bytes,
                "{\"end\":{\"reason\":\"END_REASON_REVISION\",\"nextStep\":\"12\"}}");
    assert_int_equal(codec_stream_event_unpack(arena, bytes, &event, NULL), 0);
    assert_int_equal(event.kind, RPC_STREAM_END);
    assert_int_equal(event.reason, RPC_END_REVISION);
    assert_int_equal(event.next_step, 12);
    arena_free(arena);
}

static void test_stream_event__refuses(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        int code;
        const char *message;
    } rows[] = {
        {"", 0, SKRULL_ERR_INVALID_ARGUMENT, "event: neither"},
        {"\x1a\x00", 2, SKRULL_ERR_INVALID_ARGUMENT, "end.reason: 0 is unknown"},
        {"\x1a\x02\x08\x04", 4, SKRULL_ERR_INVALID_ARGUMENT, "end.reason: 4 is unknown"},
        {"\x0a\x00", 2, SKRULL_ERR_DATA_LOSS, "digest: not 32"},
        {"\x0a\x02\x0a", 3, SKRULL_ERR_INVALID_ARGUMENT, "plan: is cut off"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct arena *arena = ARENA();
        struct rpc_bytes bytes = {(const uint8_t *)rows[i].bytes, rows[i].len};
        struct rpc_stream_event event;
        struct skrull_error err;

        assert_int_equal(codec_stream_event_unpack(arena, bytes, &event, &err), rows[i].code);
        assert_non_null(strstr(err.message, rows[i].message));
        arena_free(arena);
    }
}

static void test_plan__round_trip(void **state)
{
    static const uint32_t wanted[] = {1};
    struct skrull_plan *plan = fixture_new(), *again;
    struct arena *arena = ARENA();
    struct rpc_bytes whole, part;

    (void)state;
    assert_int_equal(codec_plan_pack(arena, plan, NULL, 0, &whole, NULL), 0);
    assert_int_equal(codec_plan_unpack(whole, &again, NULL), 0);
    assert_int_equal(again->n_ranks, 4);
    assert_memory_equal(again->digest, plan->digest, SKRULL_DIGEST_SIZE);
    skrull_plan_free(again);
    assert_int_equal(codec_plan_pack(arena, plan, wanted, 1, &part, NULL), 0);
    assert_true(part.len < whole.len);
    assert_int_equal(codec_plan_unpack(part, &again, NULL), 0);
    assert_int_equal(again->n_ranks, 1);
    assert_int_equal(again->ranks[0].data_rank, 1);
    skrull_plan_free(again);
    skrull_plan_free(plan);
    arena_free(arena);
}

static void test_plan_unpack__damaged(void **state)
{
    struct skrull_plan *plan = fixture_new();
    struct arena *arena = ARENA();
    struct rpc_bytes whole;
    uint8_t *data;

    (void)state;
    assert_int_equal(codec_plan_pack(arena, plan, NULL, 0, &whole, NULL), 0);
    data = malloc(whole.len);
    assert_non_null(data);
    for (size_t i = 0; i < whole.len; i++) {
        struct skrull_plan *again;
        int r;

        memcpy(data, whole.data, whole.len);
        data[i] ^= (uint8_t)(1 << i % 8);
        r = codec_plan_unpack((struct rpc_bytes){data, whole.len}, &again, NULL);
        if (!r) {
            skrull_plan_free(again);
        }
        r = codec_plan_unpack((struct rpc_bytes){whole.data, i}, &again, NULL);
        if (!r) {
            skrull_plan_free(again);
        }
    }
    free(data);
    skrull_plan_free(plan);
    arena_free(arena);
}

/* The densest plan there is, nothing but empty segments, must pass: its memory is foreseen. */
static void test_plan_unpack__dense(void **state)
{
    enum { N = 100000 };
    struct skrull_plan *plan = fixture_new(), *again;
    struct arena *arena = arena_new(SIZE_MAX);
    struct rpc_bytes bytes;

    (void)state;
    plan->segments = ARENA_ARRAY(arena, struct skrull_segment, N);
    plan->n_segments = N;
    plan->n_micro_batches = 1;
    plan->n_ranks = 1;
    plan->ranks[0].n_micro_batches = 1;
    plan->micro_batches[0].n_segments = N;
    assert_int_equal(codec_plan_pack(arena, plan, NULL, 0, &bytes, NULL), 0);
    assert_int_equal(codec_plan_unpack(bytes, &again, NULL), 0);
    assert_int_equal(again->n_segments, N);
    skrull_plan_free(again);
    skrull_plan_free(plan);
    arena_free(arena);
}

/* Memory runs out at each allocation in turn, packing and unpacking. */
static void test_report_steps__every_budget(void **state)
{
    struct arena *arena = ARENA();
    struct rpc_bytes bytes =
        from_json(arena, &skrull__v1__report_steps_request__descriptor,
                  "{\"reports\":[{\"microBatches\":[{},{}]},{\"microBatches\":[{}]}]}");
    size_t budget = 0;
    int r;

    (void)state;
    do {
        struct arena *small = arena_new(budget);
        struct rpc_report_steps value;
        struct rpc_bytes again;

        r = codec_report_steps_request_unpack(small, bytes, &value, NULL);
        if (!r) {
            r = codec_report_steps_request_pack(small, &value, &again, NULL);
        }
        assert_true(r == 0 || r == SKRULL_ERR_RESOURCE_EXHAUSTED);
        arena_free(small);
        budget += 16;
    } while (r);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_job_request__round_trip),
        cmocka_unit_test(test_create_job_request__without_job),
        cmocka_unit_test(test_job_requests__round_trip),
        cmocka_unit_test(test_list_jobs_response__round_trip),
        cmocka_unit_test(test_get_plan_request__round_trip),
        cmocka_unit_test(test_get_plan_request__long_list),
        cmocka_unit_test(test_report_steps_request__long_list),
        cmocka_unit_test(test_list_jobs_response__a_million_jobs),
        cmocka_unit_test(test_stream_plans_request__round_trip),
        cmocka_unit_test(test_report_steps__round_trip),
        cmocka_unit_test(test_report_steps__every_budget),
        cmocka_unit_test(test_index__round_trip),
        cmocka_unit_test(test_health__round_trip),
        cmocka_unit_test(test_unpack__long_text),
        cmocka_unit_test(test_unpack__garbage),
        cmocka_unit_test(test_stream_event__plan),
        cmocka_unit_test(test_stream_event__others),
        cmocka_unit_test(test_stream_event__refuses),
        cmocka_unit_test(test_plan__round_trip),
        cmocka_unit_test(test_plan_unpack__damaged),
        cmocka_unit_test(test_plan_unpack__dense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
