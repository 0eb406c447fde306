/* ReportSteps: durable before the reply, in few transactions, and what a failing store leaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "job/progress.h"
#include "unit/rpc/rpc_fixture.h"

#define RANKS 8

static void digest_of(const struct registry_entry *entry, uint64_t step,
                      char ret_hex[SKRULL_DIGEST_HEX_SIZE])
{
    struct skrull_plan *plan;

    assert_int_equal(job_plan(entry->job, step, &plan, NULL, NULL), 0);
    skrull_digest_to_hex(plan->digest, ret_hex);
    skrull_plan_free(plan);
}

static void start_report(struct rpc_fixture *fixture, struct call *call, uint64_t step,
                         uint32_t rank, const char *digest)
{
    struct rpc_step_report report = {.step = step, .data_rank = rank, .digest = digest};
    struct rpc_report_steps request = {.job = "a", .uid = "", .reports = &report, .n_reports = 1};
    struct rpc_bytes bytes;

    assert_int_equal(codec_report_steps_request_pack(fixture->arena, &request, &bytes, NULL), 0);
    fake_call_init(call, bytes);
    rpc_report_steps(&fixture->ctx, call);
}

static uint64_t next_step_of(struct rpc_fixture *fixture, const struct call *call)
{
    uint64_t next_step;

    assert_int_equal(call->status, 0);
    assert_int_equal(
        codec_report_steps_response_unpack(
            fixture->arena, (struct rpc_bytes){call->reply, call->reply_len}, &next_step, NULL),
        0);
    return next_step;
}

static void test_rpc_report_steps__all_ranks_in_few_transactions(void **state)
{
    struct rpc_fixture *fixture = *state;
    const struct registry_entry *entry = make_job(fixture, "a");
    char digest[SKRULL_DIGEST_HEX_SIZE];
    struct call calls[RANKS];
    uint64_t last = 0;

    digest_of(entry, 0, digest);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        start_report(fixture, &calls[rank], 0, rank, digest);
    }
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        run_until_ended(fixture, &calls[rank]);
        last = next_step_of(fixture, &calls[rank]) > last ? 1 : last;
        fake_call_deinit(&calls[rank]);
    }
    assert_int_equal(last, 1);
    assert_true(fixture->store.n_progresses <= 3);
}

static void test_rpc_report_steps__a_repeated_one_is_answered_without_the_store(void **state)
{
    struct rpc_fixture *fixture = *state;
    const struct registry_entry *entry = make_job(fixture, "a");
    char digest[SKRULL_DIGEST_HEX_SIZE];
    struct call call;

    digest_of(entry, 2, digest);
    for (int i = 0; i < 2; i++) {
        start_report(fixture, &call, 2, 5, digest);
        run_until_ended(fixture, &call);
        assert_int_equal(next_step_of(fixture, &call), 0);
        fake_call_deinit(&call);
    }
    assert_int_equal(fixture->store.n_progresses, 1);
}

static void test_rpc_report_steps__what_a_failed_store_lost_goes_with_the_next(void **state)
{
    struct rpc_fixture *fixture = *state;
    const struct registry_entry *entry = make_job(fixture, "a");
    char digest[SKRULL_DIGEST_HEX_SIZE];
    struct call call;

    digest_of(entry, 0, digest);
    fixture->store.progress_error = SKRULL_ERR_UNAVAILABLE;
    start_report(fixture, &call, 0, 1, digest);
    run_until_ended(fixture, &call);
    assert_int_equal(call.status, SKRULL_ERR_UNAVAILABLE);
    fake_call_deinit(&call);
    fixture->store.progress_error = 0;
    start_report(fixture, &call, 0, 2, digest);
    run_until_ended(fixture, &call);
    assert_int_equal(next_step_of(fixture, &call), 0);
    assert_int_equal(fixture->store.n_ranks, 2);
    fake_call_deinit(&call);
}

static void test_rpc_report_steps__another_plan_is_refused_and_not_counted(void **state)
{
    struct rpc_fixture *fixture = *state;
    const struct registry_entry *entry = make_job(fixture, "a");
    char digest[SKRULL_DIGEST_HEX_SIZE];
    struct call call;

    digest_of(entry, 1, digest);
    start_report(fixture, &call, 0, 3, digest);
    run_until_ended(fixture, &call);
    assert_int_equal(call.status, SKRULL_ERR_FAILED_PRECONDITION);
    assert_non_null(strstr(call.message, "step 0 of data rank 3"));
    assert_false(progress_is_reported(entry->progress, 3, 0));
    fake_call_deinit(&call);
}

#define FIXTURE_TEST(test)                                                                         \
    cmocka_unit_test_setup_teardown(test, rpc_fixture_setup, rpc_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_rpc_report_steps__all_ranks_in_few_transactions),
        FIXTURE_TEST(test_rpc_report_steps__a_repeated_one_is_answered_without_the_store),
        FIXTURE_TEST(test_rpc_report_steps__what_a_failed_store_lost_goes_with_the_next),
        FIXTURE_TEST(test_rpc_report_steps__another_plan_is_refused_and_not_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
