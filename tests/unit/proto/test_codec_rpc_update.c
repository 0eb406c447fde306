/* UpdateJob's request against its JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "skrull/v1/planner.pb-c.h"

#include "arena.h"
#include "codec_json.h"
#include "codec_rpc.h"
#include "codec_wire.h"

#define ARENA() arena_new((size_t)1 << 20)

static struct rpc_bytes from_json(struct arena *arena, const char *json)
{
    struct skrull_error err = {0};
    struct rpc_bytes bytes;
    ProtobufCMessage *message;
    uint8_t *data;

    if (codec_json_decode(arena, &skrull__v1__update_job_request__descriptor, json, strlen(json),
                          &message, &err)) {
        fail_msg("%s: %s", json, err.message);
    }
    assert_int_equal(codec_wire_encode(arena, message, &data, &bytes.len, NULL), 0);
    bytes.data = data;
    return bytes;
}

static void test_update_job_request__round_trip(void **state)
{
    static const char *const requests[] = {
        "{\"job\":{\"name\":\"a\",\"parallel\":{\"dp\":3}},\"updateMask\":{\"paths\":[\"parallel."
        "dp\",\"batch\"]},"
        "\"expectedRevision\":7,\"fromStep\":\"128\"}",
        "{\"job\":{}}",
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct arena *arena = ARENA();
        struct rpc_update_job value;
        struct rpc_bytes bytes = from_json(arena, requests[i]);
        ProtobufCMessage *message;
        char *json;

        assert_int_equal(codec_update_job_request_unpack(arena, bytes, &value, NULL), 0);
        if (i == 0) {
            assert_string_equal(value.job->name, "a");
            assert_int_equal(value.job->parallel.dp, 3);
            assert_int_equal(value.n_mask, 2);
            assert_string_equal(value.mask[0], "parallel.dp");
            assert_string_equal(value.mask[1], "batch");
            assert_int_equal(value.expected_revision, 7);
            assert_int_equal(value.from_step, 128);
        } else {
            assert_int_equal(value.n_mask, 0);
        }
        assert_int_equal(codec_update_job_request_pack(arena, &value, &bytes, NULL), 0);
        assert_int_equal(codec_wire_decode(arena, &skrull__v1__update_job_request__descriptor,
                                           bytes.data, bytes.len, &message, NULL),
                         0);
        json = codec_json_encode(message, false);
        assert_string_equal(json, requests[i]);
        free(json);
        arena_free(arena);
    }
}

/* A request whose mask has n paths, the last one of `len` bytes. */
static int unpack_mask(size_t n, size_t len, struct skrull_error *err)
{
    struct arena *arena = ARENA();
    struct skrull_job job = {.name = "a"};
    const char *paths[RPC_MAX_MASK + 1];
    char last[RPC_MAX_MASK_PATH + 2];
    struct rpc_update_job value = {.job = &job, .mask = paths, .n_mask = n};
    struct rpc_bytes bytes;
    int r;

    memset(last, 'x', len);
    last[len] = '\0';
    for (size_t i = 0; i < n; i++) {
        paths[i] = i + 1 < n ? "seed" : last;
    }
    assert_int_equal(codec_update_job_request_pack(arena, &value, &bytes, NULL), 0);
    r = codec_update_job_request_unpack(arena, bytes, &value, err);
    arena_free(arena);
    return r;
}

static void test_update_job_request__limits(void **state)
{
    struct skrull_error err;

    (void)state;
    assert_int_equal(unpack_mask(RPC_MAX_MASK, RPC_MAX_MASK_PATH, &err), 0);
    assert_int_equal(unpack_mask(RPC_MAX_MASK + 1, 1, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "update_mask.paths: 65 entries, at most 64 are allowed");
    assert_int_equal(unpack_mask(3, RPC_MAX_MASK_PATH + 1, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "update_mask.paths[2]: 129 bytes, at most 128 are allowed");
}

static void test_update_job_request__refuses(void **state)
{
    struct arena *arena = ARENA();
    struct rpc_update_job value;
    struct skrull_error err;

    (void)state;
    assert_int_equal(codec_update_job_request_unpack(arena, (struct rpc_bytes){0}, &value, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "job: is required");
    assert_int_equal(codec_update_job_request_unpack(
                         arena, (struct rpc_bytes){(const uint8_t *)"\xff\xff", 2}, &value, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(codec_update_job_request_unpack(
                         arena,
                         from_json(arena, "{\"job\":{\"batch\":{\"align\":\"9999999999\"}}}"),
                         &value, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(strncmp(err.message, "batch.align: ", 13), 0);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_update_job_request__round_trip),
        cmocka_unit_test(test_update_job_request__limits),
        cmocka_unit_test(test_update_job_request__refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
