/* The joint policy as a whole: never worse than the others, than fixed mode, than less effort. */
#include "plan/joint/solve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cost/cost.h"
#include "unit/plan/fixture.h"

#define N_SEEDS 40
#define EFFORT 400 /* enough for every part to run */

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

static int64_t time_of(struct fixture *fixture, const char *policy)
{
    struct skrull_plan *plan = fixture_plan(fixture, policy);
    const int64_t ns = plan->estimate.iteration_ns;

    skrull_plan_free(plan);
    return ns;
}

/* A random batch with random order and mix, too. */
static void randomize(struct fixture *fixture, uint64_t seed)
{
    struct skrull_planner_options *options = &fixture->input.options;

    fixture_init(fixture, 1, 1, 1);
    fixture_randomize(fixture, seed);
    options->micro_batch_order = 1 + fixture_random(fixture, 3);
    options->mix = 1 + fixture_random(fixture, 2);
    options->effort = EFFORT;
}

static void test_joint__is_never_slower_than_the_paper_and_uniform(void **state)
{
    static const char *const others[] = {"uniform", "round_robin", "skrull"};

    (void)state;
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        struct fixture fixture;
        int64_t joint_ns;

        randomize(&fixture, seed);
        joint_ns = time_of(&fixture, "joint");
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
            assert_true(joint_ns <= time_of(&fixture, others[i]));
        }
        fixture_deinit(&fixture);
    }
}

static void test_joint__elastic_is_never_slower_than_fixed(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        struct fixture fixture;
        int64_t fixed_ns;

        randomize(&fixture, seed);
        fixture.input.options.cp_mode = SKRULL_CP_MODE_FIXED;
        fixed_ns = time_of(&fixture, "joint");
        fixture.input.options.cp_mode = SKRULL_CP_MODE_ELASTIC;
        assert_true(time_of(&fixture, "joint") <= fixed_ns);
        fixture_deinit(&fixture);
    }
}

static void test_joint__more_effort_is_never_worse(void **state)
{
    static const uint64_t efforts[] = {1, 10, 24, 25, 80, 151, 400, 1500};

    (void)state;
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        struct fixture fixture;
        int64_t before_ns = INT64_MAX;

        randomize(&fixture, seed);
        for (size_t i = 0; i < sizeof(efforts) / sizeof(efforts[0]); i++) {
            int64_t ns;

            fixture.input.options.effort = efforts[i];
            ns = time_of(&fixture, "joint");
            assert_true(ns <= before_ns);
            before_ns = ns;
        }
        fixture_deinit(&fixture);
    }
}

/* A batch that only wider groups hold, so that no other policy gives a start: what was planned
 * without any search must remain the level below which search never falls. */
static void test_joint__more_effort_is_never_worse_without_a_start(void **state)
{
    static const uint32_t lengths[] = {172, 9093, 1, 10, 3, 15, 193, 3, 1, 15, 5639};
    int64_t before_ns = INT64_MAX;
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 2, 31, 256);
    fixture.input.options.cp_mode = SKRULL_CP_MODE_ELASTIC;
    fixture.input.options.align = 128;
    fixture.input.options.shard = SKRULL_SHARD_CONTIGUOUS;
    fixture.input.options.mix = SKRULL_MIX_UNIFORM;
    fixture_set(&fixture, lengths, sizeof(lengths) / sizeof(lengths[0]));
    for (uint64_t effort = 1; effort <= 1000; effort *= 10) {
        int64_t now_ns;

        fixture.input.options.effort = effort;
        now_ns = time_of(&fixture, "joint");
        assert_true(now_ns <= before_ns);
        before_ns = now_ns;
    }
    fixture_deinit(&fixture);
}

/* Samples are only names: the same lengths under others are placed alike. */
static void test_joint__depends_on_lengths_alone(void **state)
{
    struct fixture fixture;
    struct skrull_plan *plan, *other;

    (void)state;
    randomize(&fixture, 5);
    plan = fixture_plan(&fixture, "joint");
    for (size_t k = 0; k < fixture.input.n_sequences; k++) {
        fixture.sequences[k].sample = 7000000 + 3 * k;
    }
    other = fixture_plan(&fixture, "joint");
    assert_int_equal(plan->n_segments, other->n_segments);
    for (size_t i = 0; i < plan->n_segments; i++) {
        assert_int_equal(plan->segments[i].index, other->segments[i].index);
        assert_int_equal(plan->segments[i].group_first, other->segments[i].group_first);
    }
    skrull_plan_free(plan);
    skrull_plan_free(other);
    fixture_deinit(&fixture);
}

/* Two on one rank each, for half the time of both on one. */
static void test_joint__two_sequences_on_two_ranks(void **state)
{
    static const uint32_t lengths[] = {1000, 1000};
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 2, 1, 4000);
    fixture_set(&fixture, lengths, 2);
    assert_int_equal(time_of(&fixture, "joint"),
                     cost_fixed_ns(fixture.cost) + cost_comp_ns(fixture.cost, 1000, 1));
    fixture_deinit(&fixture);
}

/* Longer than CP ranks hold: only elastic groups take it, over both DP ranks. */
static void test_joint__elastic_holds_what_fixed_cannot(void **state)
{
    static const uint32_t lengths[] = {6000};
    struct fixture fixture;
    struct skrull_plan *plan;

    (void)state;
    fixture_init(&fixture, 2, 2, 2000);
    fixture_set(&fixture, lengths, 1);
    fixture.input.options.cp_mode = SKRULL_CP_MODE_ELASTIC;
    plan = fixture_plan(&fixture, "joint");
    assert_int_equal(plan->segments[0].group_size, 4);
    skrull_plan_free(plan);
    fixture_deinit(&fixture);
}

/* A batch of many micro-batches on a rank, which is more than the search keeps sums for. */
static void test_joint__many_micro_batches(void **state)
{
    uint32_t lengths[FIXTURE_MAX_SEQUENCES];
    struct fixture fixture;
    struct skrull_plan *plan;

    (void)state;
    for (size_t k = 0; k < FIXTURE_MAX_SEQUENCES; k++) {
        lengths[k] = 60 + (uint32_t)k % 5;
    }
    fixture_init(&fixture, 1, 2, 64);
    fixture_set(&fixture, lengths, FIXTURE_MAX_SEQUENCES);
    fixture.input.options.effort = EFFORT;
    plan = fixture_plan(&fixture, "joint");
    assert_int_equal(plan->ranks[0].n_micro_batches, FIXTURE_MAX_SEQUENCES / 2);
    skrull_plan_free(plan);
    fixture_deinit(&fixture);
}

static void test_joint__keeps_an_exact_count(void **state)
{
    static const uint32_t lengths[] = {900, 800, 700, 600, 500, 400, 300, 200};
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 1, 2, 1000);
    fixture_set(&fixture, lengths, 8);
    for (uint32_t count = 3; count <= 6; count++) {
        struct skrull_plan *plan;

        fixture.input.options.micro_batches = count;
        plan = fixture_plan(&fixture, "joint");
        assert_int_equal(plan->ranks[0].n_micro_batches, count);
        assert_int_equal(plan->ranks[1].n_micro_batches, count);
        skrull_plan_free(plan);
    }
    fixture_deinit(&fixture);
}

/* Whole or not at all when memory ends, wherever that is. */
static void test_joint__out_of_memory(void **state)
{
    struct fixture fixture;
    unsigned n = 0;
    int rc;

    (void)state;
    randomize(&fixture, 3);
    fixture.input.options.policy = "joint";
    do {
        struct skrull_plan *plan = NULL;

        fail_in = ++n;
        rc = skrull_planner_run(&fixture.input, &plan, NULL);
        fail_in = 0;
        assert_true(rc == 0 || rc == SKRULL_ERR_RESOURCE_EXHAUSTED);
        assert_true((rc == 0) == (plan != NULL));
        skrull_plan_free(plan);
    } while (rc);
    assert_true(n > 2);
    fixture_deinit(&fixture);
}

/* 8,000 tokens on <1, 16>: on all ranks a sequence computes least, and where exchange costs the
 * same everywhere it is shared by all; where they are two nodes, by the ranks of one. */
static void test_joint__takes_a_size_that_stays_in_a_node(void **state)
{
    static const uint32_t lengths[] = {8000};
    struct fixture fixture;
    struct skrull_plan *plan;

    (void)state;
    fixture_init(&fixture, 1, 16, 16000);
    fixture.input.options.cp_mode = SKRULL_CP_MODE_ELASTIC;
    fixture_set(&fixture, lengths, 1);
    plan = fixture_plan(&fixture, "joint");
    assert_int_equal(plan->segments[0].group_size, 16);
    skrull_plan_free(plan);
    fixture_use_nodes(&fixture, 1);
    plan = fixture_plan(&fixture, "joint");
    assert_int_equal(plan->segments[0].group_size, 8);
    assert_int_equal(plan->estimate.iteration_ns,
                     cost_fixed_ns(fixture.cost) + cost_comp_ns(fixture.cost, 8000, 8) +
                         cost_exchange_ns(fixture.cost, COST_INSIDE, 8000));
    assert_int_equal(plan->estimate.bound_ns, plan->estimate.iteration_ns);
    skrull_plan_free(plan);
    fixture_deinit(&fixture);
}

static uint32_t count_crossing(const struct fixture *fixture, const struct skrull_plan *plan)
{
    uint32_t n = 0;

    for (size_t i = 0; i < plan->n_segments; i++) {
        n += cost_link_of(fixture->cost, plan->segments[i].group_first,
                          plan->segments[i].group_size) == COST_ACROSS;
    }
    return n;
}

/* Three GPUs a rank: of the pairs on <4, 2> the first and the last lie in a node, the second and
 * the third reach over two. Two sequences too long for a rank go to those two. */
static void test_joint__takes_the_groups_that_stay_in_a_node(void **state)
{
    static const uint32_t lengths[] = {9000, 9000};
    static const enum skrull_cp_mode modes[] = {SKRULL_CP_MODE_FIXED, SKRULL_CP_MODE_ELASTIC};
    struct fixture fixture;
    struct skrull_plan *plan;

    (void)state;
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        fixture_init(&fixture, 4, 2, 5000);
        fixture.input.options.cp_mode = modes[i];
        fixture.input.options.max_degree = 2;
        fixture_set(&fixture, lengths, 2);
        fixture_use_nodes(&fixture, 3);
        plan = fixture_plan(&fixture, "joint");
        assert_int_equal(plan->n_segments, 8); /* two on each of four ranks */
        assert_int_equal(count_crossing(&fixture, plan), 0);
        assert_int_equal(plan->estimate.iteration_ns,
                         cost_fixed_ns(fixture.cost) + cost_comp_ns(fixture.cost, 9000, 2) +
                             cost_exchange_ns(fixture.cost, COST_INSIDE, 9000));
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joint__is_never_slower_than_the_paper_and_uniform),
        cmocka_unit_test(test_joint__elastic_is_never_slower_than_fixed),
        cmocka_unit_test(test_joint__more_effort_is_never_worse),
        cmocka_unit_test(test_joint__more_effort_is_never_worse_without_a_start),
        cmocka_unit_test(test_joint__depends_on_lengths_alone),
        cmocka_unit_test(test_joint__two_sequences_on_two_ranks),
        cmocka_unit_test(test_joint__elastic_holds_what_fixed_cannot),
        cmocka_unit_test(test_joint__takes_a_size_that_stays_in_a_node),
        cmocka_unit_test(test_joint__takes_the_groups_that_stay_in_a_node),
        cmocka_unit_test(test_joint__many_micro_batches),
        cmocka_unit_test(test_joint__keeps_an_exact_count),
        cmocka_unit_test(test_joint__out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
