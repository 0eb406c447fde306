/* Tests of plan_parts.c. */
#include "plan_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arena.h"

#define N_RANKS 4

/* A plan of ranks [first, first + n), each with two micro-batches of one and two segments, with
 * true digests. */
static struct skrull_plan *part_new(uint32_t first, uint32_t n)
{
    struct arena *arena = arena_new(1 << 20);
    struct skrull_plan *plan = ARENA_NEW(arena, struct skrull_plan);

    plan->arena = arena;
    plan->job = "job";
    plan->uid = "0123456789abcdef0123456789abcdef";
    plan->policy = "uniform";
    plan->step = 3;
    plan->dp = 2;
    plan->cp = 2;
    plan->n_ranks = n;
    plan->n_micro_batches = 2 * (size_t)n;
    plan->n_segments = 3 * (size_t)n;
    plan->ranks = ARENA_ARRAY(arena, struct skrull_rank, plan->n_ranks);
    plan->micro_batches = ARENA_ARRAY(arena, struct skrull_micro_batch, plan->n_micro_batches);
    plan->segments = ARENA_ARRAY(arena, struct skrull_segment, plan->n_segments);
    for (uint32_t i = 0; i < n; i++) {
        plan->ranks[i].data_rank = first + i;
        plan->ranks[i].first_micro_batch = 2 * (size_t)i;
        plan->ranks[i].n_micro_batches = 2;
        for (uint32_t k = 0; k < 2; k++) {
            plan->micro_batches[2 * i + k].first_segment = 3 * (size_t)i + k;
            plan->micro_batches[2 * i + k].n_segments = k + 1;
        }
        for (uint32_t k = 0; k < 3; k++) {
            plan->segments[3 * i + k].sample = 10 * (first + i) + k;
        }
        assert_int_equal(skrull_rank_digest(plan, i, plan->ranks[i].digest), 0);
    }
    return plan;
}

/* Gives parts the digest of the whole. */
static void set_digest(struct skrull_plan *plan)
{
    struct skrull_plan *whole = part_new(0, N_RANKS);
    uint8_t digests[N_RANKS][SKRULL_DIGEST_SIZE];

    for (size_t i = 0; i < N_RANKS; i++) {
        memcpy(digests[i], whole->ranks[i].digest, SKRULL_DIGEST_SIZE);
    }
    assert_int_equal(skrull_plan_digest(&digests[0][0], N_RANKS, plan->digest), 0);
    skrull_plan_free(whole);
}

static void test_plan_merge__parts_become_the_whole(void **state)
{
    struct skrull_plan *parts[3] = {part_new(0, 1), part_new(1, 2), part_new(3, 1)};
    struct skrull_plan *plan;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        set_digest(parts[i]);
    }
    assert_int_equal(plan_merge(parts, 3, &plan, NULL), 0);
    for (size_t i = 0; i < 3; i++) {
        skrull_plan_free(parts[i]);
    }
    assert_int_equal(plan->n_ranks, N_RANKS);
    assert_int_equal(plan->n_segments, 3 * N_RANKS);
    for (size_t i = 0; i < N_RANKS; i++) {
        const struct skrull_micro_batch *second =
            &plan->micro_batches[plan->ranks[i].first_micro_batch + 1];

        assert_int_equal(plan->ranks[i].data_rank, i);
        assert_int_equal(plan->segments[second->first_segment + 1].sample, 10 * i + 2);
    }
    assert_string_equal(plan->uid, "0123456789abcdef0123456789abcdef");
    assert_int_equal(plan_verify_digests(plan, NULL), 0); /* the segments are where they were */
    skrull_plan_free(plan);
}

static void test_plan_merge__parts_of_two_plans(void **state)
{
    struct skrull_plan *parts[2] = {part_new(0, 2), part_new(2, 2)};
    struct skrull_plan *plan = NULL;

    (void)state;
    set_digest(parts[0]);
    assert_int_equal(plan_merge(parts, 2, &plan, NULL), SKRULL_ERR_ABORTED); /* digests differ */
    set_digest(parts[1]);
    parts[1]->revision = 2;
    assert_int_equal(plan_merge(parts, 2, &plan, NULL), SKRULL_ERR_ABORTED);
    parts[1]->revision = 0;
    parts[1]->ranks[0].data_rank = 1; /* one that the first part has */
    assert_int_equal(plan_merge(parts, 2, &plan, NULL), SKRULL_ERR_ABORTED);
    assert_null(plan);
    skrull_plan_free(parts[0]);
    skrull_plan_free(parts[1]);
}

static void test_plan_verify_digests__an_altered_segment(void **state)
{
    struct skrull_plan *plan = part_new(0, N_RANKS);
    struct skrull_error err;

    (void)state;
    set_digest(plan);
    assert_int_equal(plan_verify_digests(plan, &err), 0);
    plan->segments[4].index = 1;
    assert_int_equal(plan_verify_digests(plan, &err), SKRULL_ERR_DATA_LOSS);
    assert_non_null(strstr(err.message, "step 3, rank 1"));
    skrull_plan_free(plan);
}

static void test_plan_verify_digests__a_whole_plan_with_a_wrong_digest(void **state)
{
    struct skrull_plan *plan = part_new(0, N_RANKS), *part = part_new(0, 1);

    (void)state;
    assert_int_equal(plan_verify_digests(plan, NULL), SKRULL_ERR_DATA_LOSS);
    assert_int_equal(plan_verify_digests(part, NULL), 0); /* one rank cannot know the whole */
    skrull_plan_free(plan);
    skrull_plan_free(part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_merge__parts_become_the_whole),
        cmocka_unit_test(test_plan_merge__parts_of_two_plans),
        cmocka_unit_test(test_plan_verify_digests__an_altered_segment),
        cmocka_unit_test(test_plan_verify_digests__a_whole_plan_with_a_wrong_digest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
