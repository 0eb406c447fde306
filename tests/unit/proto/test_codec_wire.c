/* What the scan before unpacking refuses, byte by byte, and that memory stays within its budget. */
#include "codec_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "skrull/v1/planner.pb-c.h"

#include "arena.h"

#define BUDGET ((size_t)1 << 20)

/* Decodes and drops the arena; the error is in *err. */
static int decode(const ProtobufCMessageDescriptor *descriptor, const void *bytes, size_t len,
                  struct skrull_error *err)
{
    struct arena *arena = arena_new(BUDGET);
    uint8_t *exact = malloc(len ? len : 1); /* so that sanitizers see a read past the end */
    ProtobufCMessage *message;
    int r;

    assert_non_null(arena);
    assert_non_null(exact);
    memcpy(exact, bytes, len);
    *err = (struct skrull_error){0};
    r = codec_wire_decode(arena, descriptor, exact, len, &message, err);
    free(exact);
    arena_free(arena);
    return r;
}

struct wire_case {
    const char *name;
    const char *bytes;
    size_t len;
    const char *message; /* part of the error, NULL: it is taken */
};

#define WIRE(name, bytes, message)                                                                 \
    {                                                                                              \
        name, bytes, sizeof(bytes) - 1, message                                                    \
    }

/* GetPlanRequest: 1 job string, 2 step uint64, 3 data_ranks repeated uint32. */
static const struct wire_case plan_requests[] = {
    WIRE("empty", "", NULL),
    WIRE("all fields", "\x0a\x01q\x10\x05\x1a\x02\x01\x02", NULL),
    WIRE("list not packed", "\x18\x01\x18\x02", NULL),
    WIRE("unknown varint", "\x78\x01", NULL),
    WIRE("unknown 64 bits",
         "\x79"
         "12345678",
         NULL),
    WIRE("unknown 32 bits",
         "\x7d"
         "1234",
         NULL),
    WIRE("unknown bytes with NUL", "\x7a\x02\0\xff", NULL),
    WIRE("largest uint64", "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", NULL),
    WIRE("largest uint32", "\x18\xff\xff\xff\xff\x0f", NULL),
    WIRE("varint with idle bytes", "\x10\x85\x80\x00", NULL),
    WIRE("past uint64", "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "GetPlanRequest.step: "),
    WIRE("eleven bytes", "\x10\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", "step: "),
    WIRE("past uint32", "\x18\x80\x80\x80\x80\x10", "GetPlanRequest.data_ranks: is out of range"),
    WIRE("past uint32, packed", "\x1a\x05\x80\x80\x80\x80\x10", "data_ranks: is out of range"),
    WIRE("packed, cut off", "\x1a\x01\x80", "data_ranks: is cut off"),
    WIRE("no value", "\x10", "step: is cut off"),
    WIRE("tag cut off", "\x80", "no valid number"),
    WIRE("field 0", "\x00\x01", "no valid number"),
    WIRE("tag past 32 bits", "\x80\x80\x80\x80\x10\x01", "no valid number"),
    WIRE("string past the end", "\x0a\x02q", "job: is cut off"),
    WIRE("string far past the end", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01q", "job: is cut"),
    WIRE("string without length", "\x0a", "job: is cut off"),
    WIRE("group", "\x7b\x7c", "unknown wire type"),
    WIRE("wire type 7", "\x7f", "unknown wire type"),
    WIRE("string as varint", "\x08\x01", "job: is of another type"),
    WIRE("number as string", "\x12\x01q", "step: is of another type"),
    WIRE("list as 32 bits",
         "\x1d"
         "1234",
         "data_ranks: is of another type"),
    WIRE("unknown 64 bits, cut off",
         "\x79"
         "1234567",
         "is cut off"),
    WIRE("NUL",
         "\x0a\x03"
         "a\0b",
         "GetPlanRequest.job: holds a NUL byte"),
    WIRE("NUL at the end",
         "\x0a\x02"
         "a\0",
         "job: holds a NUL byte"),
};

static void test_decode__bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(plan_requests) / sizeof(plan_requests[0]); i++) {
        const struct wire_case *row = &plan_requests[i];
        struct skrull_error err;
        int r = decode(&skrull__v1__get_plan_request__descriptor, row->bytes, row->len, &err);

        if (r != (row->message ? SKRULL_ERR_INVALID_ARGUMENT : 0) || err.code != r ||
            (row->message && !strstr(err.message, row->message))) {
            fail_msg("%s: %d, \"%s\"", row->name, r, err.message);
        }
    }
}

static void test_decode__values(void **state)
{
    static const uint8_t bytes[] = "\x0a\x02\xc3\xa9\x10\x85\x80\x00\x1a\x02\x01\x02\x18\x07";
    struct arena *arena = arena_new(BUDGET);
    ProtobufCMessage *message;
    const Skrull__V1__GetPlanRequest *request;

    (void)state;
    assert_int_equal(codec_wire_decode(arena, &skrull__v1__get_plan_request__descriptor, bytes,
                                       sizeof(bytes) - 1, &message, NULL),
                     0);
    request = (const Skrull__V1__GetPlanRequest *)message;
    assert_string_equal(request->job, "\xc3\xa9");
    assert_int_equal(request->step, 5);
    assert_int_equal(request->n_data_ranks, 3);
    assert_int_equal(request->data_ranks[2], 7);
    arena_free(arena);
}

static void test_decode__no_bytes(void **state)
{
    struct arena *arena = arena_new(BUDGET);
    ProtobufCMessage *message;

    (void)state;
    assert_int_equal(codec_wire_decode(arena, &skrull__v1__get_plan_request__descriptor, NULL, 0,
                                       &message, NULL),
                     0);
    arena_free(arena);
}

/* Enum values past 31 bits would turn negative. */
static void test_decode__enum(void **state)
{
    static const uint8_t largest[] = "\x08\xff\xff\xff\xff\x07",
                         past[] = "\x08\x80\x80\x80\x80\x08";
    struct skrull_error err;

    (void)state;
    assert_int_equal(decode(&skrull__v1__stream_end__descriptor, largest, 6, &err), 0);
    assert_int_equal(decode(&skrull__v1__stream_end__descriptor, past, 6, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "StreamEnd.reason: is out of range");
}

static void test_decode__inner_message(void **state)
{
    static const uint8_t bytes[] = "\x1a\x04\x1a\x02\xc0\xaf";
    struct skrull_error err;

    (void)state;
    assert_int_equal(decode(&skrull__v1__report_steps_request__descriptor, bytes, 6, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "ReportStepsRequest.reports.digest: is not UTF-8");
}

static void test_decode__utf8(void **state)
{
    static const struct {
        const char *text;
        bool is_valid;
    } rows[] = {
        {"plain", true},
        {"\x7f", true},
        {"\xc2\x80", true},
        {"\xdf\xbf", true},
        {"\xe0\xa0\x80", true},
        {"\xed\x9f\xbf", true},
        {"\xee\x80\x80", true},
        {"\xef\xbf\xbf", true},
        {"\xf0\x90\x80\x80", true},
        {"\xf4\x8f\xbf\xbf", true},
        {"a\xe2\x82\xac\xf0\x9f\x98\x80z", true},
        {"\x80", false},
        {"\xbf", false},
        {"\xc0\x80", false},
        {"\xc1\xbf", false},
        {"\xc2", false},
        {"\xc2z", false},
        {"\xe0\x9f\xbf", false},
        {"\xe1\x80", false},
        {"\xe1\x80z", false},
        {"\xed\xa0\x80", false},
        {"\xed\xbf\xbf", false},
        {"\xf0\x8f\xbf\xbf", false},
        {"\xf1\x80\x80", false},
        {"\xf1\x80\x80z", false},
        {"\xf4\x90\x80\x80", false},
        {"\xf5\x80\x80\x80", false},
        {"\xff", false},
        {"a\xffz", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t bytes[32] = {0x0a, (uint8_t)strlen(rows[i].text)};
        struct skrull_error err;
        int r;

        memcpy(bytes + 2, rows[i].text, bytes[1]);
        r = decode(&skrull__v1__get_plan_request__descriptor, bytes, 2 + (size_t)bytes[1], &err);
        if (r != (rows[i].is_valid ? 0 : SKRULL_ERR_INVALID_ARGUMENT)) {
            fail_msg("row %zu: %d, \"%s\"", i, r, err.message);
        }
        if (!rows[i].is_valid) {
            assert_string_equal(err.message, "GetPlanRequest.job: is not UTF-8");
        }
    }
}

/* A message that holds itself, which the schema has not. */
struct nested {
    ProtobufCMessage base;
    struct nested *child;
};

static const ProtobufCMessageDescriptor nested_descriptor;
static const ProtobufCFieldDescriptor nested_fields[] = {{.name = "child",
                                                          .id = 1,
                                                          .label = PROTOBUF_C_LABEL_NONE,
                                                          .type = PROTOBUF_C_TYPE_MESSAGE,
                                                          .offset = offsetof(struct nested, child),
                                                          .descriptor = &nested_descriptor}};
static const ProtobufCIntRange nested_ranges[] = {{1, 0}, {0, 1}};
static const ProtobufCMessageDescriptor nested_descriptor = {
    .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
    .name = "Nested",
    .short_name = "Nested",
    .sizeof_message = sizeof(struct nested),
    .n_fields = 1,
    .fields = nested_fields,
    .n_field_ranges = 1,
    .field_ranges = nested_ranges};

static void test_decode__depth(void **state)
{
    uint8_t bytes[32] = {0};
    struct skrull_error err;

    (void)state;
    /* `depth` messages, one in the other, lie at the end of the bytes. */
    for (size_t depth = 1; depth <= 17; depth++) {
        size_t len = 2 * (depth - 1);

        for (size_t i = 0; i < len; i += 2) {
            bytes[i] = 0x0a;
            bytes[i + 1] = (uint8_t)(len - i - 2);
        }
        assert_int_equal(decode(&nested_descriptor, bytes, len, &err),
                         depth <= 16 ? 0 : SKRULL_ERR_INVALID_ARGUMENT);
    }
    assert_non_null(strstr(err.message, "nested too deep"));
}

/* Two bytes of the wire become a hundred in memory: the budget, not the sender, says how many. */
static void test_decode__budget(void **state)
{
    enum { N_REPORTS = 10000 };
    uint8_t *bytes = malloc(2 * N_REPORTS);
    struct arena *arena = arena_new((size_t)1 << 16);
    struct skrull_error err;
    ProtobufCMessage *message;

    (void)state;
    assert_non_null(bytes);
    for (size_t i = 0; i < N_REPORTS; i++) {
        memcpy(bytes + 2 * i, "\x1a", 2);
    }
    assert_int_equal(codec_wire_decode(arena, &skrull__v1__report_steps_request__descriptor, bytes,
                                       (size_t)2 * N_REPORTS, &message, &err),
                     SKRULL_ERR_RESOURCE_EXHAUSTED);
    assert_true(arena_used(arena) <= (size_t)1 << 16);
    arena_free(arena);
    free(bytes);
}

/* Two reports. */
static size_t pack_reports(uint8_t **ret_bytes)
{
    Skrull__V1__MicroBatchTimes times;
    Skrull__V1__StepReport report;
    Skrull__V1__ReportStepsRequest request;
    Skrull__V1__MicroBatchTimes *times_list[] = {&times, &times, &times};
    Skrull__V1__StepReport *reports[] = {&report, &report};
    size_t len;

    skrull__v1__micro_batch_times__init(&times);
    skrull__v1__step_report__init(&report);
    skrull__v1__report_steps_request__init(&request);
    times.compute_busy_ns = 1 << 20;
    times.exchange_wait_ns = -1;
    report.step = 7;
    report.digest = codec_wire_borrow("00112233445566778899aabbccddeeff");
    report.micro_batches = times_list;
    report.n_micro_batches = 3;
    request.job = codec_wire_borrow("job");
    request.reports = reports;
    request.n_reports = 2;
    len = skrull__v1__report_steps_request__get_packed_size(&request);
    *ret_bytes = malloc(len);
    assert_non_null(*ret_bytes);
    return skrull__v1__report_steps_request__pack(&request, *ret_bytes);
}

/* Memory runs out at each allocation in turn. */
static void test_decode__every_budget(void **state)
{
    uint8_t *bytes;
    size_t len = pack_reports(&bytes), budget = 0;
    int r;

    (void)state;
    do {
        struct arena *arena = arena_new(budget);
        ProtobufCMessage *message;

        r = codec_wire_decode(arena, &skrull__v1__report_steps_request__descriptor, bytes, len,
                              &message, NULL);
        assert_true(r == 0 || r == SKRULL_ERR_RESOURCE_EXHAUSTED);
        arena_free(arena);
        budget += 16;
    } while (r);
    assert_true(budget > 500);
    free(bytes);
}

static void test_decode__every_prefix(void **state)
{
    uint8_t *bytes;
    size_t len = pack_reports(&bytes), n_refused = 0;
    struct skrull_error err;

    (void)state;
    for (size_t i = 0; i <= len; i++) {
        int r = decode(&skrull__v1__report_steps_request__descriptor, bytes, i, &err);

        assert_true(r == 0 || r == SKRULL_ERR_INVALID_ARGUMENT);
        n_refused += r != 0;
    }
    /* The empty message, the one with a name only, with one report and with two. */
    assert_int_equal(n_refused, len + 1 - 4);
    free(bytes);
}

static void test_decode__every_byte_changed(void **state)
{
    uint8_t *bytes;
    size_t len = pack_reports(&bytes);
    struct skrull_error err;

    (void)state;
    for (size_t i = 0; i < len; i++) {
        for (unsigned value = 0; value < 256; value++) {
            uint8_t before = bytes[i];
            int r;

            bytes[i] = (uint8_t)value;
            r = decode(&skrull__v1__report_steps_request__descriptor, bytes, len, &err);
            assert_true(r == 0 || r == SKRULL_ERR_INVALID_ARGUMENT);
            bytes[i] = before;
        }
    }
    free(bytes);
}

static void test_encode__round_trip(void **state)
{
    struct arena *arena = arena_new(BUDGET);
    Skrull__V1__GetJobRequest request;
    uint8_t *bytes;
    size_t len;

    (void)state;
    skrull__v1__get_job_request__init(&request);
    assert_int_equal(codec_wire_encode(arena, &request.base, &bytes, &len, NULL), 0);
    assert_int_equal(len, 0);
    assert_non_null(bytes);
    request.name = codec_wire_borrow("ab");
    assert_int_equal(codec_wire_encode(arena, &request.base, &bytes, &len, NULL), 0);
    assert_int_equal(len, 4);
    assert_memory_equal(bytes,
                        "\x0a\x02"
                        "ab",
                        4);
    arena_free(arena);
}

static void test_encode__out_of_memory(void **state)
{
    struct arena *arena = arena_new(0);
    Skrull__V1__GetJobRequest request;
    struct skrull_error err;
    uint8_t *bytes;
    size_t len;

    (void)state;
    skrull__v1__get_job_request__init(&request);
    request.name = codec_wire_borrow("ab");
    assert_int_equal(codec_wire_encode(arena, &request.base, &bytes, &len, &err),
                     SKRULL_ERR_RESOURCE_EXHAUSTED);
    assert_string_equal(err.message, "GetJobRequest: no memory for 4 bytes of message");
    arena_free(arena);
}

static void test_check_text__limits(void **state)
{
    struct skrull_error err;

    (void)state;
    assert_int_equal(codec_wire_check_text("name", "abc", 3, &err), 0);
    assert_int_equal(codec_wire_check_text("name", "abcd", 3, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "name: 4 bytes, at most 3 are allowed");
    assert_int_equal(codec_wire_check_count("list", 3, 3, &err), 0);
    assert_int_equal(codec_wire_check_count("list", 4, 3, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "list: 4 entries, at most 3 are allowed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode__bytes),
        cmocka_unit_test(test_decode__values),
        cmocka_unit_test(test_decode__no_bytes),
        cmocka_unit_test(test_decode__enum),
        cmocka_unit_test(test_decode__inner_message),
        cmocka_unit_test(test_decode__utf8),
        cmocka_unit_test(test_decode__depth),
        cmocka_unit_test(test_decode__budget),
        cmocka_unit_test(test_decode__every_budget),
        cmocka_unit_test(test_decode__every_prefix),
        cmocka_unit_test(test_decode__every_byte_changed),
        cmocka_unit_test(test_encode__round_trip),
        cmocka_unit_test(test_encode__out_of_memory),
        cmocka_unit_test(test_check_text__limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
