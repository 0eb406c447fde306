/* Whole plans: sound by the checker, the same every time, and whole or not at all when memory ends.
 */
#include "plan/planner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan_check.h"
#include "unit/plan/fixture.h"

/* Linked with --wrap: the n-th allocation from now fails, 0: none does. */
static unsigned fail_in;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_malloc(size_t size)
{
    return fail_in > 0 && --fail_in == 0 ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fail_in > 0 && --fail_in == 0 ? NULL : __real_calloc(count, size);
}

static void report(void *arg, const char *message)
{
    (void)arg;
    print_message("# fault: %s\n", message);
}

/* The rows are the fixture's own sequences. */
static void lookup(void *arg, uint32_t dataset, uint64_t row, struct plan_check_sequence *ret)
{
    const struct fixture *fixture = arg;

    *ret = (struct plan_check_sequence){0};
    if (row < fixture->input.n_sequences && fixture->sequences[row].dataset == dataset) {
        ret->length = fixture->sequences[row].length;
        ret->loss_tokens = fixture->sequences[row].loss_tokens;
    }
}

static void check_plan(struct fixture *fixture, const struct skrull_plan *plan)
{
    struct batch batch;
    struct degrees degrees;
    struct plan_check_rules rules;

    fixture_batch(fixture, &batch);
    assert_int_equal(degrees_of_job(&batch.options, &degrees, NULL), 0);
    rules = (struct plan_check_rules){.dp = batch.options.dp,
                                      .cp = batch.options.cp,
                                      .degrees = degrees.sizes,
                                      .n_degrees = degrees.n,
                                      .bucket_tokens = batch.options.bucket_tokens,
                                      .align = batch.options.align,
                                      .shard = batch.options.shard,
                                      .loss = batch.options.loss,
                                      .equal_micro_batches = batch.options.equal_micro_batches,
                                      .n_sequences = batch.n_sequences,
                                      .lookup = lookup,
                                      .arg = fixture};
    assert_int_equal(plan_check(plan, &rules, report, NULL), 0);
}

static void test_skrull_planner_run__plans_are_sound(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct fixture fixture;

        fixture_init(&fixture, 1, 1, 1);
        fixture_randomize(&fixture, seed);
        for (const char *const *policy = skrull_planner_policies(); *policy; policy++) {
            struct skrull_plan *plan = fixture_plan(&fixture, *policy);

            check_plan(&fixture, plan);
            skrull_plan_free(plan);
        }
        fixture_deinit(&fixture);
    }
}

static void test_skrull_planner_run__fills_the_head(void **state)
{
    static const uint32_t lengths[] = {10, 20, 30};
    struct skrull_plan *plan;
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 2, 2, 100);
    fixture_set(&fixture, lengths, 3);
    plan = fixture_plan(&fixture, NULL);
    assert_string_equal(plan->job, "a-job");
    assert_ptr_not_equal(plan->job, fixture.input.job);
    assert_string_equal(plan->uid, "00112233445566778899aabbccddeeff");
    assert_string_equal(plan->policy, "skrull");
    assert_int_equal(plan->revision, 3);
    assert_int_equal(plan->planner_version, SKRULL_PLANNER_VERSION);
    assert_int_equal(plan->step, 7);
    assert_int_equal(plan->epoch, 1);
    assert_int_equal(plan->dp, 2);
    assert_int_equal(plan->cp, 2);
    assert_int_equal(plan->n_ranks, 4);
    assert_int_equal(plan->totals.sequences, 3);
    assert_int_equal(plan->totals.tokens, 60);
    assert_int_equal(plan->totals.loss_tokens, 60);
    skrull_plan_free(plan);
    fixture.input.job = fixture.input.uid = NULL;
    plan = fixture_plan(&fixture, NULL);
    assert_string_equal(plan->job, "");
    assert_string_equal(plan->uid, "");
    skrull_plan_free(plan);
    fixture_deinit(&fixture);
}

/* The digest says what workers do: step and placements move it, names and revision do not. */
static void test_skrull_planner_run__digest_is_of_what_workers_do(void **state)
{
    static const uint32_t lengths[] = {10, 20, 30};
    struct skrull_plan *plan, *other;
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 2, 2, 100);
    fixture_set(&fixture, lengths, 3);
    plan = fixture_plan(&fixture, "skrull");
    fixture.input.job = "another";
    fixture.input.uid = NULL;
    fixture.input.revision = 9;
    other = fixture_plan(&fixture, "skrull");
    assert_memory_equal(plan->digest, other->digest, SKRULL_DIGEST_SIZE);
    skrull_plan_free(other);
    fixture.input.step = 8;
    other = fixture_plan(&fixture, "skrull");
    assert_memory_not_equal(plan->digest, other->digest, SKRULL_DIGEST_SIZE);
    skrull_plan_free(other);
    fixture.input.step = 7;
    other = fixture_plan(&fixture, "uniform");
    assert_memory_not_equal(plan->digest, other->digest, SKRULL_DIGEST_SIZE);
    skrull_plan_free(other);
    skrull_plan_free(plan);
    fixture_deinit(&fixture);
}

/* A plan that was planned is timed as it is: evaluating again changes nothing. */
static void test_skrull_planner_evaluate__agrees_with_run(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct skrull_estimate before;
        struct skrull_plan *plan;
        struct fixture fixture;

        fixture_init(&fixture, 1, 1, 1);
        fixture_randomize(&fixture, seed);
        plan = fixture_plan(&fixture, "skrull");
        before = plan->estimate;
        plan->estimate = (struct skrull_estimate){0};
        assert_int_equal(
            skrull_planner_evaluate(&fixture.input.options, fixture.cost, false, plan, NULL), 0);
        assert_memory_equal(&plan->estimate, &before, sizeof(before));
        assert_int_equal(
            skrull_planner_evaluate(&fixture.input.options, fixture.cost, true, plan, NULL), 0);
        assert_true(plan->estimate.iteration_ns >= before.iteration_ns);
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

/* Every allocation fails once: an error, nothing written, nothing lost. */
static void test_skrull_planner_run__survives_each_failed_allocation(void **state)
{
    struct skrull_plan *plan = NULL;
    struct fixture fixture;
    unsigned n = 0;
    int rc;

    (void)state;
    fixture_init(&fixture, 1, 1, 1);
    fixture_randomize(&fixture, 5);
    do {
        struct skrull_error err = {0};

        fail_in = ++n;
        rc = skrull_planner_run(&fixture.input, &plan, &err);
        if (fail_in > 0 || rc == 0) {
            break; /* it needs fewer */
        }
        assert_int_equal(rc, SKRULL_ERR_RESOURCE_EXHAUSTED);
        assert_string_not_equal(err.message, "");
        assert_null(plan);
    } while (n < 1000);
    fail_in = 0;
    assert_int_equal(rc, 0);
    assert_true(n > 4);
    skrull_plan_free(plan);
    fixture_deinit(&fixture);
}

static void test_planner_check_load__refuses_what_could_pass_2_62(void **state)
{
    struct skrull_error err = {0};
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 1, 1, 1);
    assert_int_equal(planner_check_load(fixture.cost, 16384, 1 << 20, &err), 0);
    assert_int_equal(planner_check_load(fixture.cost, 511, UINT32_MAX, &err), 0);
    assert_int_equal(planner_check_load(fixture.cost, 512, UINT32_MAX, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "512 sequences of 4294967295 tokens could pass 2^62 ns"));
    assert_int_equal(planner_check_load(fixture.cost, UINT64_MAX, UINT32_MAX, NULL),
                     SKRULL_ERR_INVALID_ARGUMENT);
    fixture_deinit(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skrull_planner_run__plans_are_sound),
        cmocka_unit_test(test_skrull_planner_run__fills_the_head),
        cmocka_unit_test(test_skrull_planner_run__digest_is_of_what_workers_do),
        cmocka_unit_test(test_skrull_planner_evaluate__agrees_with_run),
        cmocka_unit_test(test_skrull_planner_run__survives_each_failed_allocation),
        cmocka_unit_test(test_planner_check_load__refuses_what_could_pass_2_62),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
