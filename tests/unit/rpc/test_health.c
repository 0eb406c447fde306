/* The health service on calls without gRPC. */
#include "rpc/health.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "rpc/rpc_ctx.h"
#include "unit/rpc/fake_call.h"

struct fixture {
    struct rpc_ctx ctx;
    struct arena *arena;
};

static int setup(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture){.ctx = {.health = health_new()}, .arena = arena_new(1 << 20)};
    *state = &fixture;
    return fixture.ctx.health && fixture.arena ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    health_free(fixture->ctx.health);
    arena_free(fixture->arena);
    return 0;
}

static void call_of(struct fixture *fixture, struct call *call, const char *service)
{
    struct rpc_bytes request;

    assert_int_equal(codec_health_check_request_pack(fixture->arena, &service, &request, NULL), 0);
    fake_call_init(call, request);
}

static enum rpc_health state_in(struct fixture *fixture, const uint8_t *data, size_t len)
{
    enum rpc_health health;

    assert_int_equal(codec_health_check_response_unpack(
                         fixture->arena, (struct rpc_bytes){data, len}, &health, NULL),
                     0);
    return health;
}

static enum rpc_health sent_state(struct fixture *fixture, const struct call *call, size_t i)
{
    assert_true(i < call->n_sent);
    return state_in(fixture, call->sent[i]->data, call->sent[i]->len);
}

static void test_rpc_health_check__known_and_unknown(void **state)
{
    static const char *const services[] = {"", "skrull.v1.PlannerService"};
    struct fixture *fixture = *state;
    struct call call;

    health_set_serving(fixture->ctx.health);
    for (size_t i = 0; i < 2; i++) {
        call_of(fixture, &call, services[i]);
        rpc_health_check(&fixture->ctx, &call);
        assert_int_equal(call.status, 0);
        assert_int_equal(state_in(fixture, call.reply, call.reply_len), RPC_HEALTH_SERVING);
        fake_call_deinit(&call);
    }
    call_of(fixture, &call, "other");
    rpc_health_check(&fixture->ctx, &call);
    assert_int_equal(call.status, SKRULL_ERR_NOT_FOUND);
    fake_call_deinit(&call);
}

static void test_rpc_health_check__garbage(void **state)
{
    struct fixture *fixture = *state;
    struct call call;

    fake_call_init(&call, (struct rpc_bytes){(const uint8_t *)"\xff", 1});
    rpc_health_check(&fixture->ctx, &call);
    assert_int_equal(call.status, SKRULL_ERR_INVALID_ARGUMENT);
    fake_call_deinit(&call);
}

static void test_rpc_health_watch__tells_now_and_on_change_and_ends(void **state)
{
    struct fixture *fixture = *state;
    struct call call;

    call_of(fixture, &call, "");
    rpc_health_watch(&fixture->ctx, &call);
    assert_int_equal(sent_state(fixture, &call, 0), RPC_HEALTH_NOT_SERVING);
    fake_call_sent(&call);
    assert_int_equal(call.n_sent, 1);
    health_set_serving(fixture->ctx.health);
    assert_int_equal(sent_state(fixture, &call, 1), RPC_HEALTH_SERVING);
    fake_call_sent(&call);
    health_drain(fixture->ctx.health);
    assert_int_equal(sent_state(fixture, &call, 2), RPC_HEALTH_NOT_SERVING);
    assert_false(call.is_ended);
    fake_call_sent(&call);
    assert_true(call.is_ended);
    fake_call_deinit(&call);
}

static void test_rpc_health_watch__a_slow_reader_gets_the_last_state(void **state)
{
    struct fixture *fixture = *state;
    struct call call;

    call_of(fixture, &call, "");
    rpc_health_watch(&fixture->ctx, &call);
    health_set_serving(fixture->ctx.health);
    health_drain(fixture->ctx.health);
    assert_int_equal(call.n_sent, 1); /* one message in flight at a time */
    fake_call_sent(&call);            /* what it said is true again */
    assert_int_equal(call.n_sent, 1);
    assert_true(call.is_ended);
    fake_call_deinit(&call);
}

static void test_rpc_health_watch__unknown_service_stays_open_until_closed(void **state)
{
    struct fixture *fixture = *state;
    struct call call;

    call_of(fixture, &call, "other");
    rpc_health_watch(&fixture->ctx, &call);
    assert_int_equal(sent_state(fixture, &call, 0), RPC_HEALTH_SERVICE_UNKNOWN);
    fake_call_sent(&call);
    health_set_serving(fixture->ctx.health);
    assert_int_equal(call.n_sent, 1);
    assert_false(call.is_ended);
    fake_call_closed(&call);
    fake_call_deinit(&call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rpc_health_check__known_and_unknown, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rpc_health_check__garbage, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rpc_health_watch__tells_now_and_on_change_and_ends,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_rpc_health_watch__a_slow_reader_gets_the_last_state,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_rpc_health_watch__unknown_service_stays_open_until_closed, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
