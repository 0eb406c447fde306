/* CreateJob and DeleteJob against a store that fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/rpc/rpc_fixture.h"

static void test_rpc_create_job__replies_the_job(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct skrull_job *made;
    struct call call;

    start_create(fixture, &call, "a", "");
    assert_int_equal(registry_count(fixture->ctx.registry), 0); /* not before it is stored */
    run_until_ended(fixture, &call);
    assert_int_equal(call.status, 0);
    assert_int_equal(codec_job_unpack(fixture->arena, call.reply, call.reply_len, &made, NULL), 0);
    assert_string_equal(made->name, "a");
    assert_int_equal(strlen(made->uid), 32);
    assert_string_not_equal(made->uid, fixture->folder->spec.uid); /* the daemon's own */
    assert_int_equal(made->revision, 1);
    assert_int_equal(made->info.steps, 10);
    assert_int_equal(fixture->store.n_puts, 1);
    fake_call_deinit(&call);
}

static void test_rpc_create_job__failed_store_leaves_the_name_free(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct call call;

    fixture->store.put_error = SKRULL_ERR_UNAVAILABLE;
    start_create(fixture, &call, "a", "");
    run_until_ended(fixture, &call);
    assert_int_equal(call.status, SKRULL_ERR_UNAVAILABLE);
    assert_string_equal(call.message, "disk full");
    assert_int_equal(registry_count(fixture->ctx.registry), 0);
    fake_call_deinit(&call);
    fixture->store.put_error = 0;
    (void)make_job(fixture, "a");
}

static void test_rpc_create_job__of_two_at_once_the_first_wins(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct call first, second, same;

    start_create(fixture, &first, "a", "id-1");
    start_create(fixture, &second, "a", "id-2");
    start_create(fixture, &same, "a", "id-1");
    run_until_ended(fixture, &first);
    run_until_ended(fixture, &second);
    run_until_ended(fixture, &same);
    assert_int_equal(first.status, 0);
    assert_int_equal(second.status, SKRULL_ERR_ALREADY_EXISTS);
    assert_int_equal(same.status, 0);
    assert_int_equal(same.reply_len, first.reply_len);
    assert_memory_equal(same.reply, first.reply, first.reply_len);
    assert_int_equal(fixture->store.n_puts, 1);
    fake_call_deinit(&first);
    fake_call_deinit(&second);
    fake_call_deinit(&same);
}

static void test_rpc_create_job__where_the_first_fails_the_second_tries(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct call first, second;

    fixture->folder->data[0].index = "missing.txt";
    start_create(fixture, &first, "a", "");
    fixture->folder->data[0].index = "a.txt";
    start_create(fixture, &second, "a", "");
    run_until_ended(fixture, &first);
    run_until_ended(fixture, &second);
    assert_int_equal(first.status, SKRULL_ERR_NOT_FOUND);
    assert_int_equal(second.status, 0);
    fake_call_deinit(&first);
    fake_call_deinit(&second);
}

static void test_rpc_create_job__without_a_job(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct call call;

    fake_call_init(&call, (struct rpc_bytes){NULL, 0});
    rpc_create_job(&fixture->ctx, &call);
    assert_int_equal(call.status, SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(call.message, "job"));
    fake_call_deinit(&call);
}

static void start_delete(struct rpc_fixture *fixture, struct call *call, const char *name)
{
    struct rpc_name request = {.name = name};
    struct rpc_bytes bytes;

    assert_int_equal(codec_delete_job_request_pack(fixture->arena, &request, &bytes, NULL), 0);
    fake_call_init(call, bytes);
    rpc_delete_job(&fixture->ctx, call);
}

static void test_rpc_delete_job__failed_store_keeps_the_job(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct call call;

    (void)make_job(fixture, "a");
    fixture->store.delete_error = SKRULL_ERR_UNAVAILABLE;
    start_delete(fixture, &call, "a");
    run_until_ended(fixture, &call);
    assert_int_equal(call.status, SKRULL_ERR_UNAVAILABLE);
    assert_int_equal(registry_count(fixture->ctx.registry), 1);
    fake_call_deinit(&call);
}

static void test_rpc_delete_job__twice_at_once(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct call first, second;

    (void)make_job(fixture, "a");
    start_delete(fixture, &first, "a");
    start_delete(fixture, &second, "a"); /* the real store would answer NOT_FOUND */
    run_until_ended(fixture, &first);
    run_until_ended(fixture, &second);
    assert_int_equal(first.status, 0);
    assert_int_equal(registry_count(fixture->ctx.registry), 0);
    fake_call_deinit(&first);
    fake_call_deinit(&second);
    (void)make_job(fixture, "a");
}

#define FIXTURE_TEST(test)                                                                         \
    cmocka_unit_test_setup_teardown(test, rpc_fixture_setup, rpc_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_rpc_create_job__replies_the_job),
        FIXTURE_TEST(test_rpc_create_job__failed_store_leaves_the_name_free),
        FIXTURE_TEST(test_rpc_create_job__of_two_at_once_the_first_wins),
        FIXTURE_TEST(test_rpc_create_job__where_the_first_fails_the_second_tries),
        FIXTURE_TEST(test_rpc_create_job__without_a_job),
        FIXTURE_TEST(test_rpc_delete_job__failed_store_keeps_the_job),
        FIXTURE_TEST(test_rpc_delete_job__twice_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
