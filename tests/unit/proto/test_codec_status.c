/* Errors for programs: what they hold, which field they name, and that they never grow too large.
 */
#include "codec_status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arena.h"

static int setup(void **state)
{
    *state = arena_new((size_t)64 << 20);
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    arena_free(*state);
    return 0;
}

static bool holds(struct rpc_bytes bytes, const char *text)
{
    return memmem(bytes.data, bytes.len, text, strlen(text)) != NULL;
}

/* Whether the bytes have `text` as a string of the wire: its length goes before it. */
static bool holds_string(struct rpc_bytes bytes, const char *text)
{
    size_t len = strlen(text);

    for (size_t i = 1; i + len <= bytes.len; i++) {
        if (bytes.data[i - 1] == len && memcmp(bytes.data + i, text, len) == 0) {
            return true;
        }
    }
    return false;
}

static struct rpc_bytes pack(struct arena *arena, const struct skrull_error *why,
                             const char *method, size_t max_bytes)
{
    const struct rpc_status status = {.code = -why->code, .method = method, .max_bytes = max_bytes};
    struct skrull_error err = {0};
    struct rpc_bytes bytes;
    int code = codec_status_pack(arena, why, &status, &bytes, &err);

    print_message("# %s\n", err.message);
    assert_int_equal(code, 0);
    return bytes;
}

static void test_codec_status_pack__names_the_field(void **state)
{
    static const struct {
        const char *method, *message, *field;
    } cases[] = {
        {"CreateJob", "batch.align: 0, at least 1", "job.batch.align"},
        {"CreateJob", "job: is required", "job"},
        {"CreateJob", "name: 64 bytes", "job.name"},
        {"CreateJob", "request_id: 129 bytes", "request_id"},
        {"CreateJob", "data[12].index: x.txt: empty", "job.data[12].index"},
        {"CreateJob", "CreateJobRequest.job.name: is not UTF-8", "job.name"},
        {"GetJob", "name: 64 bytes", "name"},
        {"GetPlan", "data_ranks: 32 is out of range", "data_ranks"},
        {"ReportSteps", "reports[3]: digest: 33 bytes", "reports[3].digest"},
        {"ReportSteps", "reports[3].micro_batches: 70000 entries", "reports[3].micro_batches"},
        {"ReportSteps", "reports[3]: more", "reports[3]"},
        {"PlanBatch", "job: batch.bucket_tokens: 0", "job.batch.bucket_tokens"},
        {"GetJob", "align: 0", NULL},
        {"GetJob", "no colon behind name", NULL},
        {"GetJob", "name:none", NULL},
        {"GetJob", "", NULL},
        {"GetJob", ": x", NULL},
        {"GetJob", "name.inner: x", NULL},
        {"GetJob", "name.: x", NULL},
        {"GetJob", ".name: x", NULL},
        {"GetJob", "[]: x", NULL},
        {"DescribeIndex", "lengths.txt: line 3: not a number", NULL},
        {"Check", "service: 129 bytes", NULL},
        {NULL, "name: 64 bytes", NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct skrull_error why = {.code = SKRULL_ERR_INVALID_ARGUMENT};
        struct rpc_bytes bytes;

        (void)snprintf(why.message, sizeof(why.message), "%s", cases[i].message);
        print_message("# %s: %s\n", cases[i].method ? cases[i].method : "-", cases[i].message);
        bytes = pack(*state, &why, cases[i].method, 4096);
        assert_int_equal(holds(bytes, "google.rpc.BadRequest"), cases[i].field != NULL);
        assert_int_equal(holds(bytes, "FIELD_INVALID"), cases[i].field != NULL);
        if (cases[i].field) {
            assert_true(holds_string(bytes, cases[i].field));
        }
    }
}

static void test_codec_status_pack__reason_and_limit_come_back(void **state)
{
    for (int i = SKRULL_REASON_NONE; i < SKRULL_N_REASONS; i++) {
        struct skrull_error why, back = {0}, err = {0};
        struct rpc_bytes bytes;

        (void)skrull_error_because(&why, SKRULL_ERR_OUT_OF_RANGE, (enum skrull_reason)i,
                                   UINT64_MAX - (uint64_t)i, "x");
        bytes = pack(*state, &why, "GetPlan", 4096);
        assert_int_equal(codec_status_unpack(*state, bytes, &back, &err), 0);
        assert_int_equal(back.reason, i);
        assert_true(back.limit == why.limit);
        assert_true(i == 0 || holds_string(bytes, skrull_reason_text((enum skrull_reason)i)));
        assert_true(holds_string(bytes, "skrull"));
        assert_true(holds_string(bytes, "GetPlan"));
    }
}

static void test_codec_status_pack__without_a_reason_it_is_the_code(void **state)
{
    struct skrull_error why = {.code = SKRULL_ERR_DATA_LOSS, .message = "x"}, back = {0};

    assert_true(holds_string(pack(*state, &why, NULL, 4096), "DATA_LOSS"));
    assert_int_equal(codec_status_unpack(*state, pack(*state, &why, NULL, 4096), &back, NULL), 0);
    assert_int_equal(back.reason, SKRULL_REASON_NONE);
    assert_int_equal(back.limit, 0);
    why.code = 5; /* none */
    assert_true(holds_string(pack(*state, &why, NULL, 4096), "INTERNAL"));
}

static void test_codec_status_pack__retry(void **state)
{
    const struct skrull_error why = {.code = SKRULL_ERR_UNAVAILABLE, .message = "stopping"};
    struct rpc_status status = {.code = 14, .retry_ms = 1500, .max_bytes = 4096};
    struct rpc_bytes bytes;

    assert_int_equal(codec_status_pack(*state, &why, &status, &bytes, NULL), 0);
    /* Duration {seconds 1, nanos 500,000,000} */
    assert_true(
        holds(bytes, "google.rpc.RetryInfo\x12\x0a\x0a\x08\x08\x01\x10\x80\xca\xb5\xee\x01"));
    status.retry_ms = 0;
    assert_int_equal(codec_status_pack(*state, &why, &status, &bytes, NULL), 0);
    assert_false(holds(bytes, "google.rpc.RetryInfo"));
}

/* Less room: the field's fault goes first, then the cause, then the message. */
static void test_codec_status_pack__cut_to_fit(void **state)
{
    struct skrull_error why = {.code = SKRULL_ERR_INVALID_ARGUMENT}, err = {0};
    struct rpc_status status = {.code = 3, .method = "GetJob"};
    size_t n_parts = 4;
    struct rpc_bytes bytes;

    memset(why.message, 'x', sizeof(why.message) - 1);
    memcpy(why.message, "name: ", 6);
    for (size_t room = 2000; room >= 2; room--) {
        size_t parts = 1;

        status.max_bytes = room;
        assert_int_equal(codec_status_pack(*state, &why, &status, &bytes, &err), 0);
        assert_true(bytes.len <= room);
        parts += holds(bytes, "name: xxx") ? 1 : 0;
        parts += holds(bytes, "google.rpc.ErrorInfo") ? 1 : 0;
        parts += holds(bytes, "google.rpc.BadRequest") ? 1 : 0;
        assert_true(parts <= n_parts);
        n_parts = parts;
    }
    assert_int_equal(n_parts, 1);
    status.max_bytes = 1;
    assert_int_equal(codec_status_pack(*state, &why, &status, &bytes, &err),
                     SKRULL_ERR_RESOURCE_EXHAUSTED);
}

static void test_codec_status_pack__text_is_utf8_whatever_the_message(void **state)
{
    static const struct {
        const char *message, *clean;
    } cases[] = {
        {"a\xff\xc3(b", "a\?\?(b"},
        {"caf\xc3\xa9 \xe6\x96\x87", "caf\xc3\xa9 \xe6\x96\x87"},
        {"cut \xe6\x96", "cut \?\?"},
        {"a\nb\x7f", "a?b?"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct skrull_error why = {.code = SKRULL_ERR_NOT_FOUND};

        (void)snprintf(why.message, sizeof(why.message), "%s", cases[i].message);
        assert_true(holds_string(pack(*state, &why, NULL, 4096), cases[i].clean));
    }
}

static void test_codec_status_unpack__what_is_not_ours(void **state)
{
    static const uint8_t none[] = "\x08\x05", bad[] = "\x1a\x05";
    /* ErrorInfo {reason "JOB_EXISTS", domain "x"} */
    static const char foreign[] = "\x1a\x3d\x0a\x28type.googleapis.com/google.rpc.ErrorInfo"
                                  "\x12\x11\x0a\x0aJOB_EXISTS\x12\x03"
                                  "abc";
    struct skrull_error why = {.code = SKRULL_ERR_NOT_FOUND}, err = {0};

    assert_int_equal(codec_status_unpack(*state, (struct rpc_bytes){none, 2}, &why, &err), 0);
    assert_int_equal(
        codec_status_unpack(
            *state, (struct rpc_bytes){(const uint8_t *)foreign, sizeof(foreign) - 1}, &why, &err),
        0);
    assert_int_equal(why.reason, SKRULL_REASON_NONE);
    assert_int_equal(codec_status_unpack(*state, (struct rpc_bytes){bad, 2}, &why, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
}

#define ARENA_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(test_codec_status_pack__names_the_field),
        ARENA_TEST(test_codec_status_pack__reason_and_limit_come_back),
        ARENA_TEST(test_codec_status_pack__without_a_reason_it_is_the_code),
        ARENA_TEST(test_codec_status_pack__retry),
        ARENA_TEST(test_codec_status_pack__cut_to_fit),
        ARENA_TEST(test_codec_status_pack__text_is_utf8_whatever_the_message),
        ARENA_TEST(test_codec_status_unpack__what_is_not_ours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
