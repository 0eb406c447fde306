/* UpdateJob on calls without gRPC: what is held back meanwhile, where streams end, what failures
 * leave. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "job/progress.h"
#include "unit/rpc/rpc_fixture.h"

/* 10 steps an epoch. */
#define EPOCHS 20
#define STEPS 200

static struct registry_entry *make_long_job(struct rpc_fixture *fixture)
{
    fixture->folder->spec.epochs = EPOCHS;
    return make_job(fixture, "a");
}

static void start_update(struct rpc_fixture *fixture, struct call *call,
                         const struct skrull_job *fields, uint64_t from_step,
                         uint32_t expected_revision)
{
    struct skrull_job job = *fields;
    const struct rpc_update_job request = {
        .job = &job, .from_step = from_step, .expected_revision = expected_revision};
    struct rpc_bytes bytes;

    job.name = "a";
    assert_int_equal(codec_update_job_request_pack(fixture->arena, &request, &bytes, NULL), 0);
    fake_call_init(call, bytes);
    rpc_update_job(&fixture->ctx, call);
}

static void update(struct rpc_fixture *fixture, const struct skrull_job *fields, uint64_t from_step)
{
    struct call call;

    start_update(fixture, &call, fields, from_step, 0);
    run_until_ended(fixture, &call);
    if (call.status) {
        fail_msg("%s", call.message);
    }
    fake_call_deinit(&call);
}

static void refuse(struct rpc_fixture *fixture, const struct skrull_job *fields, uint64_t from_step,
                   uint32_t expected_revision, int code, const char *says)
{
    struct call call;

    start_update(fixture, &call, fields, from_step, expected_revision);
    run_until_ended(fixture, &call);
    if (call.status != code || !strstr(call.message, says)) {
        fail_msg("expected '%s', got %d: %s", says, call.status, call.message);
    }
    fake_call_deinit(&call);
}

static void start_stream(struct rpc_fixture *fixture, struct call *call,
                         struct rpc_stream_plans request)
{
    struct rpc_bytes bytes;

    request.job = "a";
    request.uid = request.resume_digest = "";
    assert_int_equal(codec_stream_plans_request_pack(fixture->arena, &request, &bytes, NULL), 0);
    fake_call_init(call, bytes);
    rpc_stream_plans(&fixture->ctx, call);
}

static void expect_end(struct rpc_fixture *fixture, struct call *call, enum rpc_end_reason reason,
                       uint64_t next_step)
{
    struct rpc_stream_event event;

    run_until_ended(fixture, call);
    assert_int_equal(call->status, 0);
    assert_int_equal(codec_stream_event_unpack(fixture->arena,
                                               (struct rpc_bytes){call->reply, call->reply_len},
                                               &event, NULL),
                     0);
    assert_int_equal(event.kind, RPC_STREAM_END);
    assert_int_equal(event.reason, reason);
    assert_int_equal(event.next_step, next_step);
    fake_call_deinit(call);
}

/* Takes the plan that is being sent; it is of this step and revision. */
static void take_plan(struct rpc_fixture *fixture, struct call *call, uint64_t step,
                      uint32_t revision)
{
    struct rpc_stream_event event;
    const struct shared_bytes *message;

    run_until_sending(fixture, call);
    assert_false(call->is_ended);
    message = call->sent[call->n_sent - 1];
    assert_int_equal(codec_stream_event_unpack(fixture->arena,
                                               (struct rpc_bytes){message->data, message->len},
                                               &event, NULL),
                     0);
    assert_int_equal(event.kind, RPC_STREAM_PLAN);
    assert_int_equal(event.plan->step, step);
    assert_int_equal(event.plan->revision, revision);
    skrull_plan_free(event.plan);
    shared_bytes_unref(call->sent[--call->n_sent]);
    fake_call_sent(call);
}

static void test_rpc_update_job__replies_with_the_new_revision(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct registry_entry *entry = make_long_job(fixture);
    struct skrull_job *job;
    struct call call;

    start_update(fixture, &call, &(struct skrull_job){.parallel.dp = 3}, 0, 1);
    run_until_ended(fixture, &call);
    assert_int_equal(call.status, 0);
    assert_int_equal(codec_job_unpack(fixture->arena, call.reply, call.reply_len, &job, NULL), 0);
    assert_int_equal(job->revision, 2);
    assert_int_equal(job->parallel.dp, 3);
    assert_int_equal(job->info.steps, STEPS);
    assert_int_equal(job->info.n_revisions, 2);
    assert_int_equal(job->info.revisions[1].first_step, 0); /* nothing was given out */
    assert_string_equal(job->uid, entry->uid);
    assert_int_equal(fixture->store.n_revisions, 1);
    assert_int_equal(fixture->store.revision.revision, 2);
    assert_int_equal(fixture->store.revision.first_step, 0);
    assert_int_equal(fixture->store.revision.spec_len, call.reply_len); /* what the store has */
    assert_int_equal(entry->spec->revision, 2);
    fake_call_deinit(&call);
    /* Nothing changes: no revision, no write. */
    update(fixture, &(struct skrull_job){.parallel.dp = 3}, 0);
    assert_int_equal(entry->spec->revision, 2);
    assert_int_equal(fixture->store.n_revisions, 1);
}

static void test_rpc_update_job__refuses(void **state)
{
    struct rpc_fixture *fixture = *state;
    const struct skrull_job dp_3 = {.parallel.dp = 3};
    struct call call;

    refuse(fixture, &dp_3, 0, 0, SKRULL_ERR_NOT_FOUND, "a");
    (void)make_long_job(fixture);
    refuse(fixture, &dp_3, 0, 2, SKRULL_ERR_ABORTED, "has revision 1, not 2");
    refuse(fixture, &(struct skrull_job){.seed = 3}, 0, 0, SKRULL_ERR_INVALID_ARGUMENT, "seed: ");
    refuse(fixture, &(struct skrull_job){.batch.bucket_tokens = 500}, 0, 0,
           SKRULL_ERR_INVALID_ARGUMENT, "the longest sequence kept has 3000");
    refuse(fixture, &dp_3, STEPS + 1, 0, SKRULL_ERR_OUT_OF_RANGE, "from_step: 201");
    start_stream(fixture, &call, (struct rpc_stream_plans){.from_step = 70, .count = 1});
    take_plan(fixture, &call, 70, 1);
    fake_call_deinit(&call);
    refuse(fixture, &dp_3, 127, 0, SKRULL_ERR_FAILED_PRECONDITION, "step 128 or later");
    fixture->store.revision_error = SKRULL_ERR_UNAVAILABLE;
    refuse(fixture, &dp_3, 128, 0, SKRULL_ERR_UNAVAILABLE, "disk full");
    fixture->store.revision_error = 0;
    update(fixture, &dp_3, 128);
    refuse(fixture, &(struct skrull_job){.parallel.dp = 4}, 0, 1, SKRULL_ERR_ABORTED,
           "has revision 2, not 1");
}

/* A revision begins behind those before it, also where these are still to come. */
static void test_rpc_update_job__begins_at_the_newest_revision_at_the_earliest(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct registry_entry *entry = make_long_job(fixture);

    update(fixture, &(struct skrull_job){.parallel.dp = 3}, 100);
    refuse(fixture, &(struct skrull_job){.parallel.dp = 4}, 99, 0, SKRULL_ERR_FAILED_PRECONDITION,
           "step 100 or later");
    update(fixture, &(struct skrull_job){.parallel.dp = 4}, 0);
    assert_int_equal(job_spec_at(entry->job, 100)->parallel.dp, 4);
    assert_int_equal(job_spec_at(entry->job, 99)->parallel.dp, 2);
}

static void test_rpc_update_job__streams_end_where_it_begins(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct registry_entry *entry = make_long_job(fixture);
    struct call sending, blocked, beyond, counted, again;

    start_stream(fixture, &sending, (struct rpc_stream_plans){.data_rank = 0, .from_step = 62});
    start_stream(fixture, &blocked,
                 (struct rpc_stream_plans){.data_rank = 7, .from_step = 63, .window = 1});
    start_stream(fixture, &counted,
                 (struct rpc_stream_plans){.data_rank = 1, .from_step = 63, .count = 1});
    run_until_sending(fixture, &sending);
    take_plan(fixture, &blocked, 63, 1); /* and waits for a report */
    assert_false(blocked.is_ended);
    update(fixture, &(struct skrull_job){.parallel.dp = 1}, 0);
    assert_int_equal(entry->spec->info.revisions[1].first_step, 64);
    expect_end(fixture, &blocked, RPC_END_REVISION, 64);
    take_plan(fixture, &sending, 62, 1);
    take_plan(fixture, &sending, 63, 1);
    expect_end(fixture, &sending, RPC_END_REVISION, 64);
    take_plan(fixture, &counted, 63, 1);
    expect_end(fixture, &counted, RPC_END_DONE, 64); /* it has what it asked for */
    /* Who comes again: a rank that is no more, one that is. */
    start_stream(fixture, &beyond, (struct rpc_stream_plans){.data_rank = 7, .from_step = 64});
    assert_int_equal(beyond.status, SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(beyond.message, "data_rank: 7 is out of range, 0 to 3"));
    fake_call_deinit(&beyond);
    start_stream(fixture, &again,
                 (struct rpc_stream_plans){.data_rank = 3, .from_step = 64, .count = 1});
    take_plan(fixture, &again, 64, 2);
    expect_end(fixture, &again, RPC_END_DONE, 65);
    /* From an old checkpoint: the plans of then, by the ranks of then. */
    start_stream(fixture, &again, (struct rpc_stream_plans){.data_rank = 7, .from_step = 63});
    take_plan(fixture, &again, 63, 1);
    expect_end(fixture, &again, RPC_END_REVISION, 64);
}

/* A stream that asks for the first held-back step while the revision is under way. */
static void test_rpc_update_job__holds_back_what_is_not_given_out(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct registry_entry *entry = make_long_job(fixture);
    struct call stream, change;

    for (int fails = 1; fails >= 0; fails--) {
        fixture->store.revision_error = fails ? SKRULL_ERR_UNAVAILABLE : 0;
        start_update(fixture, &change, &(struct skrull_job){.parallel.dp = 3}, 0, 0);
        start_stream(fixture, &stream,
                     (struct rpc_stream_plans){.data_rank = 0, .from_step = fails ? 0 : 64});
        run_until_ended(fixture, &change);
        fake_call_deinit(&change);
        if (fails) { /* the job is what it was, and the stream goes on */
            take_plan(fixture, &stream, 0, 1);
            fake_call_closed(&stream);
            fake_call_deinit(&stream);
            continue;
        }
        assert_int_equal(fixture->store.given_out_below, 64); /* by the first stream */
        expect_end(fixture, &stream, RPC_END_REVISION, 64);
    }
    assert_int_equal(entry->spec->revision, 2);
}

/* A far revision leaves the steps before it alone. */
static void test_rpc_update_job__steps_before_it_are_still_given_out(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct call stream, change;

    (void)make_long_job(fixture);
    start_update(fixture, &change, &(struct skrull_job){.parallel.dp = 3}, 101, 0);
    start_stream(fixture, &stream, (struct rpc_stream_plans){.data_rank = 0, .from_step = 99});
    take_plan(fixture, &stream, 99, 1);
    assert_true(fixture->store.given_out_below >= 100 && fixture->store.given_out_below <= 128);
    run_until_ended(fixture, &change);
    assert_int_equal(change.status, 0);
    fake_call_deinit(&change);
    take_plan(fixture, &stream, 100, 1);
    expect_end(fixture, &stream, RPC_END_REVISION, 101);
}

static void test_rpc_update_job__one_at_a_time(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct registry_entry *entry = make_long_job(fixture);
    struct call first, second;

    start_update(fixture, &first, &(struct skrull_job){.parallel.dp = 3}, 0, 0);
    start_update(fixture, &second, &(struct skrull_job){.parallel.dp = 4}, 0, 0);
    assert_int_equal(second.status, SKRULL_ERR_ABORTED);
    fake_call_deinit(&second);
    run_until_ended(fixture, &first);
    assert_int_equal(first.status, 0);
    fake_call_deinit(&first);
    assert_int_equal(entry->spec->parallel.dp, 3);
    update(fixture, &(struct skrull_job){.parallel.dp = 4}, 0);
    assert_int_equal(entry->spec->revision, 3);
}

static void test_rpc_update_job__of_a_job_that_is_deleted_meanwhile(void **state)
{
    struct rpc_fixture *fixture = *state;
    const struct rpc_name name = {.name = "a"};
    struct call change, gone;
    struct rpc_bytes bytes;

    (void)make_long_job(fixture);
    start_update(fixture, &change, &(struct skrull_job){.parallel.dp = 3}, 0, 0);
    assert_int_equal(codec_delete_job_request_pack(fixture->arena, &name, &bytes, NULL), 0);
    fake_call_init(&gone, bytes);
    rpc_delete_job(&fixture->ctx, &gone);
    run_until_ended(fixture, &gone);
    run_until_ended(fixture, &change);
    assert_int_equal(gone.status, 0);
    assert_true(change.status == 0 || change.status == SKRULL_ERR_NOT_FOUND);
    fake_call_deinit(&gone);
    fake_call_deinit(&change);
    refuse(fixture, &(struct skrull_job){.parallel.dp = 3}, 0, 0, SKRULL_ERR_NOT_FOUND, "a");
}

static void start_report(struct rpc_fixture *fixture, struct call *call, uint64_t step,
                         uint32_t rank, const struct job *job)
{
    char digest[SKRULL_DIGEST_HEX_SIZE];
    struct rpc_step_report report = {.step = step, .data_rank = rank, .digest = digest};
    struct rpc_report_steps request = {.job = "a", .uid = "", .reports = &report, .n_reports = 1};
    struct skrull_plan *plan;
    struct rpc_bytes bytes;

    assert_int_equal(job_plan(job, step, &plan, NULL, NULL), 0);
    skrull_digest_to_hex(plan->digest, digest);
    skrull_plan_free(plan);
    assert_int_equal(codec_report_steps_request_pack(fixture->arena, &request, &bytes, NULL), 0);
    fake_call_init(call, bytes);
    rpc_report_steps(&fixture->ctx, call);
}

static int report(struct rpc_fixture *fixture, uint64_t step, uint32_t rank, const struct job *job)
{
    struct call call;
    int status;

    start_report(fixture, &call, step, rank, job);
    run_until_ended(fixture, &call);
    status = call.status;
    fake_call_deinit(&call);
    return status;
}

static void test_rpc_update_job__reports_count_by_their_step(void **state)
{
    struct rpc_fixture *fixture = *state;
    struct registry_entry *entry = make_long_job(fixture);
    struct job *old = job_ref(entry->job);
    struct call change;

    assert_int_equal(report(fixture, 5, 7, old), 0); /* run without its plan given out: the floor */
    start_update(fixture, &change, &(struct skrull_job){.parallel.dp = 3}, 0, 0);
    assert_int_equal(report(fixture, 6, 0, old), SKRULL_ERR_UNAVAILABLE);
    assert_int_equal(report(fixture, 5, 0, old), 0);
    run_until_ended(fixture, &change);
    assert_int_equal(change.status, 0);
    fake_call_deinit(&change);
    assert_int_equal(entry->spec->info.revisions[1].first_step, 6);
    assert_int_equal(report(fixture, 6, 0, old), SKRULL_ERR_FAILED_PRECONDITION);
    assert_int_equal(report(fixture, 6, 11, entry->job), 0);
    assert_int_equal(report(fixture, 5, 11, entry->job), SKRULL_ERR_INVALID_ARGUMENT);
    for (uint64_t step = 0; step < 6; step++) {
        for (uint32_t rank = 0; rank < 8; rank++) {
            assert_int_equal(report(fixture, step, rank, old), 0);
        }
    }
    assert_int_equal(progress_next_step(entry->progress), 6);
    job_unref(old);
}

#define FIXTURE_TEST(test)                                                                         \
    cmocka_unit_test_setup_teardown(test, rpc_fixture_setup, rpc_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_rpc_update_job__replies_with_the_new_revision),
        FIXTURE_TEST(test_rpc_update_job__refuses),
        FIXTURE_TEST(test_rpc_update_job__begins_at_the_newest_revision_at_the_earliest),
        FIXTURE_TEST(test_rpc_update_job__streams_end_where_it_begins),
        FIXTURE_TEST(test_rpc_update_job__holds_back_what_is_not_given_out),
        FIXTURE_TEST(test_rpc_update_job__steps_before_it_are_still_given_out),
        FIXTURE_TEST(test_rpc_update_job__one_at_a_time),
        FIXTURE_TEST(test_rpc_update_job__of_a_job_that_is_deleted_meanwhile),
        FIXTURE_TEST(test_rpc_update_job__reports_count_by_their_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
