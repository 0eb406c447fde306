/* The evaluator: by hand, and against a plain second one on random placements. */
#include "plan/evaluate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cost/cost.h"
#include "plan/layout.h"
#include "plan/options.h"
#include "unit/plan/fixture.h"
#include "unit/plan/naive.h"

static struct skrull_plan *lay_out(const struct batch *batch, const struct placement *placements)
{
    struct skrull_plan *plan = NULL;

    assert_int_equal(layout_plan(batch, placements, arena_new(PLANNER_MAX_BYTES), &plan, NULL), 0);
    return plan;
}

static void time_plan(const struct batch *batch, struct skrull_plan *plan, bool barrier)
{
    assert_int_equal(
        evaluate_plan(&batch->options, batch->cost, barrier, plan, batch->scratch, NULL), 0);
}

static const struct skrull_estimate *estimate_of(const struct skrull_plan *plan, size_t rank,
                                                 size_t m)
{
    return &plan->micro_batches[plan->ranks[rank].first_micro_batch + m].estimate;
}

/*
 * <1, 2>, one micro-batch: 4000 whole on rank 0, 6000 on both. Rank 0 computes its own while the
 * exchange runs, rank 1 only exchanges; they meet, then both compute the shard.
 */
static void test_evaluate_plan__overlaps_exchange_with_local_work(void **state)
{
    static const uint32_t lengths[] = {4000, 6000};
    static const struct placement placements[] = {{0, 0, 1}, {0, 0, 2}};
    const struct skrull_estimate *first, *second;
    int64_t fixed, local, exchange, shard;
    struct skrull_plan *plan;
    struct fixture fixture;
    struct batch batch;

    (void)state;
    fixture_init(&fixture, 1, 2, 10000);
    fixture_set(&fixture, lengths, 2);
    fixture_batch(&fixture, &batch);
    plan = lay_out(&batch, placements);
    time_plan(&batch, plan, false);
    fixed = cost_fixed_ns(fixture.cost);
    local = cost_comp_ns(fixture.cost, 4000, 1);
    exchange = cost_exchange_ns(fixture.cost, COST_INSIDE, 6000);
    shard = cost_comp_ns(fixture.cost, 6000, 2);
    assert_true(local > exchange);
    first = estimate_of(plan, 0, 0);
    assert_int_equal(first->iteration_ns, fixed + local + shard);
    assert_int_equal(first->comp_ns, fixed + local + shard);
    assert_int_equal(first->comm_ns, 0);
    assert_int_equal(first->idle_ns, 0);
    second = estimate_of(plan, 1, 0);
    assert_int_equal(second->iteration_ns, fixed + local + shard);
    assert_int_equal(second->comp_ns, fixed + shard);
    assert_int_equal(second->comm_ns, exchange);
    assert_int_equal(second->idle_ns, local - exchange);
    assert_int_equal(plan->estimate.iteration_ns, fixed + local + shard);
    assert_int_equal(plan->estimate.comp_ns, (2 * (fixed + shard) + local) / 2);
    assert_int_equal(plan->estimate.comm_ns, exchange / 2);
    assert_int_equal(plan->estimate.idle_ns, (local - exchange) / 2);
    assert_int_equal(plan->ranks[1].estimate.idle_ns, local - exchange);
    skrull_plan_free(plan);
    fixture_deinit(&fixture);
}

/*
 * <1, 4>: the pairs run before the four, whatever the order of segments: rank 0 and 1 share 8000,
 * all share 3000. Ranks 2 and 3 wait for the pair.
 */
static void test_evaluate_plan__runs_smaller_groups_first(void **state)
{
    static const uint32_t lengths[] = {3000, 8000};
    static const struct placement placements[] = {{0, 0, 4}, {0, 0, 2}};
    int64_t fixed, exchange, pair, four;
    struct skrull_plan *plan;
    struct fixture fixture;
    struct batch batch;

    (void)state;
    fixture_init(&fixture, 1, 4, 10000);
    fixture_set(&fixture, lengths, 2);
    fixture_batch(&fixture, &batch);
    plan = lay_out(&batch, placements);
    time_plan(&batch, plan, false);
    fixed = cost_fixed_ns(fixture.cost);
    exchange = cost_exchange_ns(fixture.cost, COST_INSIDE, 3000) +
               cost_exchange_ns(fixture.cost, COST_INSIDE, 8000);
    pair = cost_comp_ns(fixture.cost, 8000, 2);
    four = cost_comp_ns(fixture.cost, 3000, 4);
    assert_int_equal(plan->estimate.iteration_ns, fixed + exchange + pair + four);
    assert_int_equal(estimate_of(plan, 3, 0)->idle_ns,
                     pair + cost_exchange_ns(fixture.cost, COST_INSIDE, 8000));
    skrull_plan_free(plan);
    fixture_deinit(&fixture);
}

/* Dummies cost `fixed` where all must run the same number, else nothing. */
static void test_evaluate_plan__charges_dummies_that_run(void **state)
{
    static const uint32_t lengths[] = {3000, 100};
    static const struct placement placements[] = {{0, 0, 1}, {1, 1, 1}};

    (void)state;
    for (int equal = 0; equal < 2; equal++) {
        struct skrull_plan *plan;
        struct fixture fixture;
        struct batch batch;
        int64_t fixed;

        fixture_init(&fixture, 1, 2, 10000);
        fixture.input.options.equal_micro_batches = equal;
        fixture_set(&fixture, lengths, 2);
        fixture_batch(&fixture, &batch);
        plan = lay_out(&batch, placements);
        time_plan(&batch, plan, false);
        fixed = cost_fixed_ns(fixture.cost);
        assert_int_equal(plan->estimate.iteration_ns,
                         (1 + equal) * fixed + cost_comp_ns(fixture.cost, 3000, 1));
        assert_int_equal(estimate_of(plan, 1, 0)->comp_ns, equal * fixed);
        assert_int_equal(plan->ranks[1].estimate.comp_ns,
                         (1 + equal) * fixed + cost_comp_ns(fixture.cost, 100, 1));
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

/* With the barrier rank 0's long micro-batch holds rank 1 up, each in turn. */
static void test_evaluate_plan__waits_at_the_barrier(void **state)
{
    static const uint32_t lengths[] = {3000, 100, 100, 3000};
    static const struct placement placements[] = {{0, 0, 1}, {0, 1, 1}, {1, 0, 1}, {1, 1, 1}};
    struct skrull_plan *plan;
    struct fixture fixture;
    struct batch batch;
    int64_t both, once;

    (void)state;
    fixture_init(&fixture, 1, 2, 10000);
    fixture_set(&fixture, lengths, 4);
    fixture_batch(&fixture, &batch);
    plan = lay_out(&batch, placements);
    once = cost_fixed_ns(fixture.cost) + cost_comp_ns(fixture.cost, 3000, 1);
    both = once + cost_fixed_ns(fixture.cost) + cost_comp_ns(fixture.cost, 100, 1);
    time_plan(&batch, plan, false);
    assert_int_equal(plan->estimate.iteration_ns, both);
    time_plan(&batch, plan, true);
    assert_int_equal(plan->estimate.iteration_ns, 2 * once);
    assert_int_equal(estimate_of(plan, 1, 0)->idle_ns, 2 * once - both);
    skrull_plan_free(plan);
    fixture_deinit(&fixture);
}

/* Any aligned groups of the elastic chain, any micro-batches. */
static void place_at_random(struct fixture *fixture, const struct batch *batch,
                            struct placement *placements)
{
    struct degrees degrees;
    const uint32_t n_ranks = batch->options.dp * batch->options.cp;

    assert_int_equal(degrees_of_job(&batch->options, &degrees, NULL), 0);
    for (uint32_t k = 0; k < batch->n_sequences; k++) {
        const uint32_t size = degrees.sizes[fixture_random(fixture, (uint32_t)degrees.n)];

        placements[k].micro_batch = fixture_random(fixture, 4);
        placements[k].group_size = size;
        placements[k].group_first = fixture_random(fixture, n_ranks / size) * size;
    }
}

static void check_sums(const struct skrull_plan *plan)
{
    const struct skrull_estimate *whole = &plan->estimate;

    for (size_t r = 0; r < plan->n_ranks; r++) {
        const struct skrull_estimate *rank = &plan->ranks[r].estimate;
        int64_t comp_ns = 0, comm_ns = 0;

        for (size_t m = 0; m < plan->ranks[r].n_micro_batches; m++) {
            const struct skrull_estimate *one = estimate_of(plan, r, m);

            assert_true(one->idle_ns >= 0 && one->comm_ns >= 0);
            assert_int_equal(one->iteration_ns, one->comp_ns + one->comm_ns + one->idle_ns);
            comp_ns += one->comp_ns;
            comm_ns += one->comm_ns;
        }
        assert_int_equal(rank->comp_ns, comp_ns);
        assert_int_equal(rank->comm_ns, comm_ns);
        assert_int_equal(rank->iteration_ns, whole->iteration_ns);
        assert_int_equal(rank->idle_ns, whole->iteration_ns - comp_ns - comm_ns);
        assert_true(rank->idle_ns >= 0);
    }
    assert_in_range(whole->iteration_ns - whole->comp_ns - whole->comm_ns - whole->idle_ns, 0, 2);
}

static void test_evaluate_plan__agrees_with_the_plain_one(void **state)
{
    static struct placement placements[FIXTURE_MAX_SEQUENCES];

    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct skrull_plan *plan;
        struct fixture fixture;
        struct batch batch;

        fixture_init(&fixture, 1, 1, 1);
        fixture_randomize(&fixture, seed);
        if (fixture.input.n_sequences > 40) {
            fixture.input.n_sequences = 40;
        }
        fixture.input.options.bucket_tokens = 1 << 30; /* capacity is not the evaluator's matter */
        fixture_batch(&fixture, &batch);
        place_at_random(&fixture, &batch, placements);
        plan = lay_out(&batch, placements);
        for (int barrier = 0; barrier < 2; barrier++) {
            time_plan(&batch, plan, barrier);
            assert_int_equal(plan->estimate.iteration_ns,
                             naive_evaluate(&batch, placements, barrier));
            check_sums(plan);
        }
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

/* What did not pass a check is refused, never followed. */
static void test_evaluate_plan__refuses_a_plan_that_is_torn(void **state)
{
    static const uint32_t lengths[] = {3000, 6000};
    static const struct placement placements[] = {{0, 0, 1}, {0, 0, 2}};
    struct skrull_plan *plan, broken;
    struct skrull_segment segments[8];
    struct skrull_rank ranks[2];
    struct fixture fixture;
    struct batch batch;

    (void)state;
    fixture_init(&fixture, 1, 2, 10000);
    fixture_set(&fixture, lengths, 2);
    fixture_batch(&fixture, &batch);
    plan = lay_out(&batch, placements);
    for (int fault = 0; fault < 5; fault++) {
        broken = *plan;
        memcpy(segments, plan->segments, plan->n_segments * sizeof(segments[0]));
        memcpy(ranks, plan->ranks, sizeof(ranks));
        broken.segments = segments;
        broken.ranks = ranks;
        broken.n_ranks -= fault == 0;
        ranks[1].n_micro_batches += fault == 1 ? 9 : 0;
        segments[0].group_size += fault == 2 ? 1 : 0;
        broken.n_segments -= fault == 3 ? 3 : 0;
        ranks[1].n_micro_batches -= fault == 4;
        print_message("# fault %d\n", fault);
        assert_int_equal(
            evaluate_plan(&batch.options, batch.cost, false, &broken, batch.scratch, NULL),
            SKRULL_ERR_INVALID_ARGUMENT);
    }
    skrull_plan_free(plan);
    fixture_deinit(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evaluate_plan__overlaps_exchange_with_local_work),
        cmocka_unit_test(test_evaluate_plan__runs_smaller_groups_first),
        cmocka_unit_test(test_evaluate_plan__charges_dummies_that_run),
        cmocka_unit_test(test_evaluate_plan__waits_at_the_barrier),
        cmocka_unit_test(test_evaluate_plan__agrees_with_the_plain_one),
        cmocka_unit_test(test_evaluate_plan__refuses_a_plan_that_is_torn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
