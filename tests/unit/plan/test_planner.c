/* Whole plans: sound by the checker, the same every time, and whole or not at all when memory ends.
 */
#include "plan/planner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cost/cost.h"
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
                                      .micro_batches = batch.options.micro_batches,
                                      .micro_batch_multiple = batch.options.micro_batch_multiple,
                                      .micro_batch_min = batch.options.micro_batch_min,
                                      .mix = batch.options.mix,
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
    assert_string_equal(plan->policy, "joint");
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

/* Expects a refusal that names the policy's need. */
static void refuse_count(struct fixture *fixture, uint32_t needed)
{
    struct skrull_error err = {0};
    struct skrull_plan *plan = NULL;
    char words[64];

    (void)snprintf(words, sizeof(words), "step 7, which needs %u by policy", needed);
    assert_int_equal(skrull_planner_run(&fixture->input, &plan, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_null(plan);
    assert_non_null(strstr(err.message, "batch.micro_batches: "));
    assert_non_null(strstr(err.message, words));
}

/* With as many as a policy needs anyway the plan is the same, whatever equal_micro_batches says;
 * with more, dummies fill up, each costing `fixed` as they must be run; with fewer it is refused.
 */
static void check_exact_count(struct fixture *fixture, const char *policy)
{
    struct skrull_planner_options *options = &fixture->input.options;
    struct skrull_plan *free_plan, *plan;
    uint32_t needed;

    options->equal_micro_batches = true;
    options->micro_batches = 0;
    free_plan = fixture_plan(fixture, policy);
    needed = free_plan->ranks[0].n_micro_batches;
    options->equal_micro_batches = false;
    options->micro_batches = needed;
    plan = fixture_plan(fixture, policy);
    assert_memory_equal(plan->digest, free_plan->digest, SKRULL_DIGEST_SIZE);
    assert_int_equal(plan->estimate.iteration_ns, free_plan->estimate.iteration_ns);
    skrull_plan_free(plan);
    options->micro_batches = needed + 3;
    plan = fixture_plan(fixture, policy);
    check_plan(fixture, plan);
    for (size_t r = 0; r < plan->n_ranks; r++) {
        assert_int_equal(plan->ranks[r].n_micro_batches, needed + 3);
        for (uint32_t m = needed; m < needed + 3; m++) {
            assert_true(plan->micro_batches[plan->ranks[r].first_micro_batch + m].dummy);
        }
    }
    assert_int_equal(plan->estimate.iteration_ns,
                     free_plan->estimate.iteration_ns + 3 * cost_fixed_ns(fixture->cost));
    skrull_plan_free(plan);
    skrull_plan_free(free_plan);
    options->micro_batches = needed - 1;
    if (needed > 1) {
        refuse_count(fixture, needed);
    }
}

/* Of policies that take the first count that works. */
static void test_skrull_planner_run__keeps_an_exact_count(void **state)
{
    static const char *const policies[] = {"uniform", "round_robin", "skrull"};

    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct fixture fixture;

        fixture_init(&fixture, 1, 1, 1);
        fixture_randomize(&fixture, seed);
        for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
            check_exact_count(&fixture, policies[i]);
        }
        fixture_deinit(&fixture);
    }
}

static void test_skrull_planner_run__keeps_multiples_and_minima(void **state)
{
    static const uint32_t lengths[] = {90, 90, 90, 90, 90}; /* five micro-batches on one rank */
    static const struct {
        uint32_t multiple, min, wanted;
    } rows[] = {{1, 1, 5}, {2, 1, 6}, {4, 1, 8}, {5, 1, 5}, {1, 9, 9}, {4, 9, 12}, {6, 6, 6}};
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 1, 1, 100);
    fixture_set(&fixture, lengths, 5);
    fixture.input.options.equal_micro_batches = true;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fixture.input.options.micro_batch_multiple = rows[i].multiple;
        fixture.input.options.micro_batch_min = rows[i].min;
        for (const char *const *policy = skrull_planner_policies(); *policy; policy++) {
            struct skrull_plan *plan = fixture_plan(&fixture, *policy);

            check_plan(&fixture, plan);
            assert_int_equal(plan->ranks[0].n_micro_batches, rows[i].wanted);
            skrull_plan_free(plan);
        }
    }
    fixture_deinit(&fixture);
}

/* Only `uniform` has a count that no length changes. */
static void test_planner_check_counts__refuses_what_is_certain(void **state)
{
    static const struct {
        const char *policy;
        uint32_t exact;
        uint64_t n_sequences;
        const char *wanted; /* NULL: fine */
    } rows[] = {
        {"uniform", 0, 256, NULL},
        {"uniform", 86, 256, NULL},
        {"uniform", 85, 256, "needs 86 for 256 sequences on dp 3: raise it to 86"},
        {"skrull", 1, 256, NULL},
        {"magic", 1, 256, "unknown policy magic"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct skrull_planner_options options = {.dp = 3,
                                                       .cp = 2,
                                                       .bucket_tokens = 8,
                                                       .policy = rows[i].policy,
                                                       .micro_batches = rows[i].exact};
        struct skrull_error err = {0};

        assert_int_equal(planner_check_counts(&options, rows[i].n_sequences, &err),
                         rows[i].wanted ? SKRULL_ERR_INVALID_ARGUMENT : 0);
        assert_true(!rows[i].wanted || strstr(err.message, rows[i].wanted));
    }
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
    fixture.input.options.micro_batch_order = SKRULL_MICRO_BATCH_ORDER_HEAVY_MIDDLE;
    fixture.input.options.mix = SKRULL_MIX_UNIFORM;
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
        cmocka_unit_test(test_skrull_planner_run__keeps_an_exact_count),
        cmocka_unit_test(test_skrull_planner_run__keeps_multiples_and_minima),
        cmocka_unit_test(test_planner_check_counts__refuses_what_is_certain),
        cmocka_unit_test(test_skrull_planner_run__digest_is_of_what_workers_do),
        cmocka_unit_test(test_skrull_planner_evaluate__agrees_with_run),
        cmocka_unit_test(test_skrull_planner_run__survives_each_failed_allocation),
        cmocka_unit_test(test_planner_check_load__refuses_what_could_pass_2_62),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
