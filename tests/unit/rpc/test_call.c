/* What a client sees of a call that comes while the daemon stops, through gRPC and a socket. (Once
 * gRPC's own shutdown has begun it refuses calls by itself: those that it had taken before come
 * here.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/time.h>
#include <uv.h>

#include "loop/loop.h"
#include "rpc/call_host.h"
#include "rpc/cq.h"
#include "rpc/rpc_ctx.h"
#include "rpc/server.h"
#include "tag_order.h"

#define ANSWER_MS 20000

struct fixture {
    struct loop *loop;
    struct cq *cq;
    struct rpc_ctx ctx;
    struct server *server;
    char folder[32], target[64];
    bool is_drained;
    /* The client's call. */
    struct cq_tag on_answer;
    grpc_channel *channel;
    grpc_call *call;
    grpc_metadata_array initial, trailing;
    grpc_byte_buffer *reply;
    grpc_status_code status;
    grpc_slice details;
    bool is_answered;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    int port;

    assert_non_null(fixture);
    (void)snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/skrull-call-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    (void)snprintf(fixture->target, sizeof(fixture->target), "unix:%s/s", fixture->folder);
    server_library_init();
    assert_int_equal(loop_new(1, &fixture->loop, NULL), 0);
    assert_int_equal(cq_new(fixture->loop, &fixture->cq, NULL), 0);
    fixture->ctx.loop = fixture->loop;
    assert_int_equal(server_new(fixture->cq, &fixture->ctx, &fixture->server, NULL), 0);
    assert_int_equal(server_listen(fixture->server, fixture->target, &port, NULL), 0);
    assert_int_equal(server_start(fixture->server, NULL), 0);
    *state = fixture;
    return 0;
}

static void on_drained(void *arg)
{
    ((struct fixture *)arg)->is_drained = true;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    server_drain(fixture->server, on_drained, fixture);
    while (!fixture->is_drained) {
        (void)uv_run(loop_uv(fixture->loop), UV_RUN_ONCE);
    }
    server_free(fixture->server);
    cq_free(fixture->cq);
    loop_free(fixture->loop);
    server_library_shutdown();
    (void)unlink(fixture->target + strlen("unix:"));
    (void)rmdir(fixture->folder);
    free(fixture);
    return 0;
}

static void on_answer(struct cq_tag *tag, bool ok)
{
    struct fixture *fixture = CQ_OWNER(tag, struct fixture, on_answer);

    (void)ok;
    fixture->is_answered = true;
}

/* Calls `path` with an empty message and waits for the status. */
static void ask(struct fixture *fixture, const char *path)
{
    grpc_channel_credentials *credentials = grpc_insecure_credentials_create();
    grpc_slice empty = grpc_empty_slice();
    grpc_byte_buffer *request = grpc_raw_byte_buffer_create(&empty, 1);
    grpc_op ops[6] = {{.op = GRPC_OP_SEND_INITIAL_METADATA}};

    fixture->channel = grpc_channel_create(fixture->target, credentials, NULL);
    grpc_channel_credentials_release(credentials);
    fixture->call = grpc_channel_create_call(
        fixture->channel, NULL, GRPC_PROPAGATE_DEFAULTS, cq_queue(fixture->cq),
        grpc_slice_from_static_string(path), NULL,
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(ANSWER_MS, GPR_TIMESPAN)),
        NULL);
    grpc_metadata_array_init(&fixture->initial);
    grpc_metadata_array_init(&fixture->trailing);
    fixture->on_answer.fn = on_answer;
    ops[1].op = GRPC_OP_SEND_MESSAGE;
    ops[1].data.send_message.send_message = request;
    ops[2].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
    ops[3].op = GRPC_OP_RECV_INITIAL_METADATA;
    ops[3].data.recv_initial_metadata.recv_initial_metadata = &fixture->initial;
    ops[4].op = GRPC_OP_RECV_MESSAGE;
    ops[4].data.recv_message.recv_message = &fixture->reply;
    ops[5].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
    ops[5].data.recv_status_on_client.trailing_metadata = &fixture->trailing;
    ops[5].data.recv_status_on_client.status = &fixture->status;
    ops[5].data.recv_status_on_client.status_details = &fixture->details;
    tag_hand_over(&fixture->on_answer);
    assert_int_equal(grpc_call_start_batch(fixture->call, ops, 6, &fixture->on_answer, NULL),
                     GRPC_CALL_OK);
    grpc_byte_buffer_destroy(request);
    while (!fixture->is_answered) {
        (void)uv_run(loop_uv(fixture->loop), UV_RUN_ONCE);
    }
}

static void forget(struct fixture *fixture)
{
    grpc_metadata_array_destroy(&fixture->initial);
    grpc_metadata_array_destroy(&fixture->trailing);
    grpc_byte_buffer_destroy(fixture->reply);
    grpc_slice_unref(fixture->details);
    grpc_call_unref(fixture->call);
    grpc_channel_destroy(fixture->channel);
}

/* Has the google.rpc.Status of the trailer these words? */
static bool has_detail(const struct fixture *fixture, const char *words)
{
    for (size_t i = 0; i < fixture->trailing.count; i++) {
        const grpc_metadata *pair = &fixture->trailing.metadata[i];

        if (grpc_slice_str_cmp(pair->key, "grpc-status-details-bin") == 0 &&
            memmem(GRPC_SLICE_START_PTR(pair->value), GRPC_SLICE_LENGTH(pair->value), words,
                   strlen(words))) {
            return true;
        }
    }
    return false;
}

static void test_call__is_refused_while_the_daemon_stops(void **state)
{
    struct fixture *fixture = *state;
    struct call_host *host = (struct call_host *)(void *)fixture->server; /* its first member */

    host->is_draining = true;
    ask(fixture, "/skrull.v1.PlannerService/GetJob");
    host->is_draining = false; /* until the teardown */
    assert_int_equal(fixture->status, GRPC_STATUS_UNAVAILABLE);
    assert_int_equal(grpc_slice_str_cmp(fixture->details, "the daemon is stopping"), 0);
    assert_true(has_detail(fixture, "DRAINING"));
    assert_true(has_detail(fixture, "google.rpc.RetryInfo"));
    forget(fixture);
}

static void test_call__names_a_method_that_it_does_not_know(void **state)
{
    struct fixture *fixture = *state;

    ask(fixture, "/skrull.v1.PlannerService/GetLunch");
    assert_int_equal(fixture->status, GRPC_STATUS_UNIMPLEMENTED);
    assert_true(has_detail(fixture, "/skrull.v1.PlannerService/GetLunch: no such method"));
    assert_false(has_detail(fixture, "google.rpc.RetryInfo"));
    forget(fixture);
}

#define FIXTURE_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_call__is_refused_while_the_daemon_stops),
        FIXTURE_TEST(test_call__names_a_method_that_it_does_not_know),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
