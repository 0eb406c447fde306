/* StreamPlans on calls without gRPC: order of durable marks and messages, failures, the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/rpc/rpc_fixture.h"

static void start_stream_of(struct rpc_fixture *fixture, struct call *call, const char *job,
                            struct rpc_stream_plans request)
{
    struct rpc_bytes bytes;

    request.job = job;
    request.uid = request.uid ? request.uid : "";
    request.resume_digest = request.resume_digest ? request.resume_digest : "";
    assert_int_equal(codec_stream_plans_request_pack(fixture->arena, &request, &bytes, NULL), 0);
    fake_call_init(call, bytes);
    rpc_stream_plans(&fixture->ctx, call);
}

static void start_stream(struct rpc_fixture *fixture, struct call *call,
                         struct rpc_stream_plans request)
{
    start_stream_of(fixture, call, "a", request);
}

static uint64_t step_in(struct rpc_fixture *fixture, const struct shared_bytes *message)
{
    struct rpc_stream_event event;
    uint64_t step;

    assert_int_equal(codec_stream_event_unpack(fixture->arena,
                                               (struct rpc_bytes){message->data, message->len},
                                               &event, NULL),
                     0);
    assert_int_equal(event.kind, RPC_STREAM_PLAN);
    step = event.plan->step;
    skrull_plan_free(event.plan);
    return step;
}

static void expect_end(struct rpc_fixture *fixture, const struct call *call,
                       enum rpc_end_reason reason, uint64_t next_step)
{
    struct rpc_stream_event event;

    assert_true(call->is_ended);
    assert_int_equal(call->status, 0);
    assert_int_equal(codec_stream_event_unpack(fixture->arena,
                                               (struct rpc_bytes){call->reply, call->reply_len},
                                               &event, NULL),
                     0);
    assert_int_equal(event.kind, RPC_STREAM_END);
    assert_int_equal(event.reason, reason);
    assert_int_equal(event.next_step, next_step);
}

static void test_rpc_stream_plans__marks_then_sends_then_ends(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct call call;

    (void)make_job(fixture, "a");
    start_stream(fixture, &call, (struct rpc_stream_plans){.data_rank = 3, .from_step = 7});
    assert_int_equal(call.n_sent, 0);
    for (uint64_t step = 7; step < 10; step++) {
        run_until_sending(fixture, &call);
        assert_int_equal(fixture->store.given_out_below,
                         10); /* the job's steps: less than a block */
        assert_int_equal(step_in(fixture, call.sent[call.n_sent - 1]), step);
        fake_call_sent(&call);
    }
    expect_end(fixture, &call, RPC_END_DONE, 10);
    assert_int_equal(fixture->store.n_give_outs, 1);
    fake_call_deinit(&call);
}

static void test_rpc_stream_plans__nothing_is_sent_where_the_mark_fails(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct call call;

    (void)make_job(fixture, "a");
    fixture->store.give_out_error = SKRULL_ERR_UNAVAILABLE;
    start_stream(fixture, &call, (struct rpc_stream_plans){.data_rank = 0});
    run_until_ended(fixture, &call);
    assert_int_equal(call.status, SKRULL_ERR_UNAVAILABLE);
    assert_int_equal(call.n_sent, 0);
    fake_call_deinit(&call);
    fixture->store.give_out_error = 0; /* and the next stream tries again */
    start_stream(fixture, &call, (struct rpc_stream_plans){.data_rank = 0, .count = 1});
    run_until_sending(fixture, &call);
    fake_call_sent(&call);
    expect_end(fixture, &call, RPC_END_DONE, 1);
    fake_call_deinit(&call);
}

static void test_rpc_stream_plans__peers_of_a_rank_share_the_bytes(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct call a, b;

    (void)make_job(fixture, "a");
    start_stream(fixture, &a, (struct rpc_stream_plans){.data_rank = 2, .count = 1});
    start_stream(fixture, &b, (struct rpc_stream_plans){.data_rank = 2, .count = 1});
    run_until_sending(fixture, &a);
    run_until_sending(fixture, &b);
    assert_ptr_equal(a.sent[0], b.sent[0]);
    fake_call_sent(&a);
    fake_call_sent(&b);
    fake_call_deinit(&a);
    fake_call_deinit(&b);
}

/* Sends the next `n` messages; how many of them may wait for the one that follows. */
static int send_held(struct rpc_fixture *fixture, struct call *call, size_t n)
{
    int n_held = 0;

    for (size_t i = 0; i < n; i++) {
        run_until_sending(fixture, call);
        n_held += call->more;
        fake_call_sent(call);
    }
    return n_held;
}

static void test_rpc_stream_plans__messages_wait_for_one_that_is_there(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct call first, late, windowed, few;

    fixture->ctx.pipeline.max_steps = 16;
    (void)make_job(fixture, "a");
    start_stream(fixture, &first, (struct rpc_stream_plans){.from_step = 2});
    (void)send_held(fixture, &first, 8);
    expect_end(fixture, &first, RPC_END_DONE, 10);
    assert_false(first.more); /* nothing follows the last */
    fake_call_deinit(&first);

    start_stream(fixture, &windowed, (struct rpc_stream_plans){.from_step = 2, .window = 2});
    assert_int_equal(send_held(fixture, &windowed, 2), 1);
    assert_false(windowed.more);
    fake_call_closed(&windowed);
    fake_call_deinit(&windowed);

    start_stream(fixture, &few, (struct rpc_stream_plans){.from_step = 4, .count = 3});
    assert_int_equal(send_held(fixture, &few, 3), 2);
    fake_call_deinit(&few);

    start_stream(fixture, &late, (struct rpc_stream_plans){.from_step = 0, .count = 2});
    (void)send_held(fixture, &late, 2); /* has what is missing made */
    fake_call_deinit(&late);
    start_stream(fixture, &late, (struct rpc_stream_plans){.from_step = 0});
    assert_int_equal(send_held(fixture, &late, 8), 7); /* never more, though step 8 is there */
    assert_false(late.more);
    fake_call_closed(&late);
    fake_call_deinit(&late);
}

static void test_plan_streams_reported__reaches_the_peers_of_the_rank_alone(void **state)
{
    static const struct {
        const char *job;
        uint32_t data_rank;
        bool moves;
    } cases[] = {{"a", 1, true}, {"a", 2, false}, {"a", 1, true}, {"b", 1, false}};
    enum { N = sizeof(cases) / sizeof(cases[0]) };
    struct rpc_fixture *fixture = *state;
    struct registry_entry *entry = make_job(fixture, "a");
    struct call calls[N];

    (void)make_job(fixture, "b");
    for (size_t i = 0; i < N; i++) {
        start_stream_of(fixture, &calls[i], cases[i].job,
                        (struct rpc_stream_plans){.data_rank = cases[i].data_rank, .window = 1});
        (void)send_held(fixture, &calls[i], 1);
    }
    plan_streams_reported(entry->hub, 1, 0);
    for (size_t i = 0; i < N; i++) {
        if (cases[i].moves) {
            run_until_sending(fixture, &calls[i]);
        }
        assert_int_equal(calls[i].n_sent, cases[i].moves ? 2 : 1);
    }
    for (size_t i = 0; i < N; i++) { /* the chain of a rank loses its middle, its end, its head */
        fake_call_closed(&calls[i]);
        fake_call_deinit(&calls[i]);
    }
    plan_streams_reported(entry->hub, 1, 1);
}

static bool is_heartbeat(struct rpc_fixture *fixture, const struct shared_bytes *message)
{
    struct rpc_stream_event event;

    assert_int_equal(codec_stream_event_unpack(fixture->arena,
                                               (struct rpc_bytes){message->data, message->len},
                                               &event, NULL),
                     0);
    if (event.kind == RPC_STREAM_PLAN) {
        skrull_plan_free(event.plan);
    }
    return event.kind == RPC_STREAM_HEARTBEAT;
}

static void test_rpc_stream_plans__heartbeats_while_blocked_and_plans_after_them(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct registry_entry *entry = make_job(fixture, "a");
    struct call call;
    size_t n_sent;

    plan_streams_free(fixture->ctx.streams);
    assert_int_equal(plan_streams_new(fixture->ctx.loop, 50, &fixture->ctx.streams, NULL), 0);
    start_stream(fixture, &call, (struct rpc_stream_plans){.data_rank = 0, .window = 1});
    run_until_sending(fixture, &call);
    while (is_heartbeat(fixture, call.sent[call.n_sent - 1])) { /* before its plan was there */
        fake_call_sent(&call);
        run_until_sending(fixture, &call);
    }
    assert_int_equal(step_in(fixture, call.sent[call.n_sent - 1]), 0);
    fake_call_sent(&call);
    run_until_sending(fixture, &call); /* blocked: nothing else can come */
    assert_true(is_heartbeat(fixture, call.sent[call.n_sent - 1]));
    plan_streams_reported(entry->hub, 0, 0);
    n_sent = call.n_sent;
    while (!pipeline_has(entry->hub->pipeline, 1)) {
        (void)uv_run(loop_uv(fixture->ctx.loop), UV_RUN_ONCE);
    }
    (void)uv_run(loop_uv(fixture->ctx.loop), UV_RUN_NOWAIT);
    assert_int_equal(call.n_sent, n_sent); /* the heartbeat is still in flight */
    fake_call_sent(&call);
    run_until_sending(fixture, &call);
    assert_int_equal(step_in(fixture, call.sent[call.n_sent - 1]), 1);
    plan_streams_drain(entry->hub);
    fake_call_sent(&call);
    expect_end(fixture, &call, RPC_END_DRAINING, 2);
    fake_call_deinit(&call);
}

static void test_rpc_stream_plans__client_gone_at_any_time(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct registry_entry *entry = make_job(fixture, "a");
    struct call call;

    start_stream(fixture, &call, (struct rpc_stream_plans){.data_rank = 0}); /* being marked */
    fake_call_closed(&call);
    assert_true(call.is_ended);
    fake_call_deinit(&call);
    assert_null(entry->hub->streams);
    start_stream(fixture, &call, (struct rpc_stream_plans){.data_rank = 0}); /* sending */
    run_until_sending(fixture, &call);
    fake_call_closed(&call);
    assert_true(call.is_ended);
    fake_call_deinit(&call);
    start_stream(fixture, &call, (struct rpc_stream_plans){.data_rank = 0, .from_step = 5});
    fake_call_closed(&call); /* being planned */
    fake_call_deinit(&call);
    assert_null(entry->hub->streams);
}

static void test_rpc_stream_plans__drain_and_deletion(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct registry_entry *entry = make_job(fixture, "a");
    struct skrull_error gone = {.code = SKRULL_ERR_NOT_FOUND, .message = "job a was deleted"};
    struct call blocked, sending, deleted;

    start_stream(fixture, &blocked, (struct rpc_stream_plans){.data_rank = 0, .window = 1});
    run_until_sending(fixture, &blocked);
    fake_call_sent(&blocked);
    start_stream(fixture, &sending, (struct rpc_stream_plans){.data_rank = 1});
    run_until_sending(fixture, &sending);
    plan_streams_drain(entry->hub);
    expect_end(fixture, &blocked, RPC_END_DRAINING, 1);
    assert_false(sending.is_ended);
    fake_call_sent(&sending);
    expect_end(fixture, &sending, RPC_END_DRAINING, 1);
    fake_call_deinit(&blocked);
    fake_call_deinit(&sending);

    start_stream(fixture, &deleted, (struct rpc_stream_plans){.data_rank = 1});
    run_until_sending(fixture, &deleted);
    plan_streams_fail(entry->hub, &gone);
    assert_int_equal(deleted.status, SKRULL_ERR_NOT_FOUND);
    fake_call_deinit(&deleted);
}

static void test_rpc_stream_plans__refuses(void **state)
{
    static const struct {
        struct rpc_stream_plans request;
        int code;
        const char *says;
    } cases[] = {
        {{.data_rank = 8}, SKRULL_ERR_INVALID_ARGUMENT, "data_rank: 8"},
        {{.from_step = 11}, SKRULL_ERR_OUT_OF_RANGE, "10 steps"},
        {{.uid = "ffffffffffffffffffffffffffffffff"}, SKRULL_ERR_FAILED_PRECONDITION, "uid"},
        {{.resume_digest = "00"}, SKRULL_ERR_INVALID_ARGUMENT, "resume_digest"},
        {{.resume_digest = "ffffffffffffffffffffffffffffffff"},
         SKRULL_ERR_FAILED_PRECONDITION,
         "no step before"},
        {{.from_step = 4, .resume_digest = "ffffffffffffffffffffffffffffffff"},
         SKRULL_ERR_FAILED_PRECONDITION,
         "step 3"},
    };
    struct rpc_fixture *fixture = *state;

    (void)make_job(fixture, "a");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct call call;

        start_stream(fixture, &call, cases[i].request);
        run_until_ended(fixture, &call);
        print_message("# %s\n", call.message);
        assert_int_equal(call.status, cases[i].code);
        assert_non_null(strstr(call.message, cases[i].says));
        fake_call_deinit(&call);
    }
    assert_int_equal(fixture->store.n_give_outs, 0);
}

#define FIXTURE_TEST(test)                                                                         \
    cmocka_unit_test_setup_teardown(test, rpc_fixture_setup, rpc_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_rpc_stream_plans__marks_then_sends_then_ends),
        FIXTURE_TEST(test_rpc_stream_plans__nothing_is_sent_where_the_mark_fails),
        FIXTURE_TEST(test_rpc_stream_plans__peers_of_a_rank_share_the_bytes),
        FIXTURE_TEST(test_rpc_stream_plans__messages_wait_for_one_that_is_there),
        FIXTURE_TEST(test_plan_streams_reported__reaches_the_peers_of_the_rank_alone),
        FIXTURE_TEST(test_rpc_stream_plans__heartbeats_while_blocked_and_plans_after_them),
        FIXTURE_TEST(test_rpc_stream_plans__client_gone_at_any_time),
        FIXTURE_TEST(test_rpc_stream_plans__drain_and_deletion),
        FIXTURE_TEST(test_rpc_stream_plans__refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
