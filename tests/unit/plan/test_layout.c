/* From placements to segments: order, padding, dummies, equal counts. */
#include "plan/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plan/options.h"
#include "unit/plan/fixture.h"

static struct skrull_plan *lay_out(struct fixture *fixture, const struct placement *placements)
{
    struct arena *arena = arena_new(PLANNER_MAX_BYTES);
    struct skrull_plan *plan = NULL;
    struct batch batch;

    fixture_batch(fixture, &batch);
    assert_int_equal(layout_plan(&batch, placements, arena, &plan, NULL), 0);
    assert_ptr_equal(plan->arena, arena);
    return plan;
}

static const struct skrull_micro_batch *micro_batch_of(const struct skrull_plan *plan, size_t rank,
                                                       size_t m)
{
    assert_true(m < plan->ranks[rank].n_micro_batches);
    return &plan->micro_batches[plan->ranks[rank].first_micro_batch + m];
}

/* Larger groups first, then ascending sample; both chunks of a zigzag shard adjacent. */
static void test_layout_plan__orders_a_micro_batch(void **state)
{
    static const uint32_t lengths[] = {5, 30, 9, 41};
    static const struct placement placements[] = {{0, 1, 1}, {0, 0, 4}, {0, 0, 2}, {0, 0, 4}};
    static const struct {
        uint64_t sample;
        uint32_t begin, end, padded, first, size;
    } wanted[] = {
        /* 30 over 8 chunks of 4: member 1 has chunks 1 and 6; 41 over 8 chunks of 6. */
        {101, 4, 8, 4, 0, 4}, {101, 24, 28, 4, 0, 4}, {103, 6, 12, 6, 0, 4}, {103, 36, 41, 6, 0, 4},
        {102, 3, 6, 3, 0, 2}, {102, 6, 9, 3, 0, 2},   {100, 0, 5, 5, 1, 1},
    };
    const struct skrull_micro_batch *micro_batch;
    struct skrull_plan *plan;
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 2, 2, 1000);
    fixture_set(&fixture, lengths, 4);
    plan = lay_out(&fixture, placements);
    micro_batch = micro_batch_of(plan, 1, 0);
    assert_int_equal(micro_batch->n_segments, sizeof(wanted) / sizeof(wanted[0]));
    for (size_t i = 0; i < micro_batch->n_segments; i++) {
        const struct skrull_segment *segment = &plan->segments[micro_batch->first_segment + i];

        print_message("# segment %zu\n", i);
        assert_int_equal(segment->sample, wanted[i].sample);
        assert_int_equal(segment->index, wanted[i].sample - 100);
        assert_int_equal(segment->dataset, wanted[i].sample % 2);
        assert_int_equal(segment->sequence_length, lengths[wanted[i].sample - 100]);
        assert_int_equal(segment->token_begin, wanted[i].begin);
        assert_int_equal(segment->token_end, wanted[i].end);
        assert_int_equal(segment->padded_tokens, wanted[i].padded);
        assert_int_equal(segment->group_first, wanted[i].first);
        assert_int_equal(segment->group_size, wanted[i].size);
    }
    assert_int_equal(micro_batch->tokens, 4 + 4 + 6 + 5 + 3 + 3 + 5);
    assert_int_equal(micro_batch->padded_tokens, 4 + 4 + 6 + 6 + 3 + 3 + 5);
    assert_int_equal(micro_batch_of(plan, 3, 0)->n_segments, 4);
    skrull_plan_free(plan);
    fixture_deinit(&fixture);
}

/* Rank 0 works in micro-batches 0 and 2, rank 1 in 0, rank 2 never, rank 3 in 1. */
static void test_layout_plan__fills_up_with_dummies(void **state)
{
    static const uint32_t lengths[] = {5, 6, 7, 8};
    static const struct placement placements[] = {{0, 0, 1}, {2, 0, 1}, {0, 1, 1}, {1, 3, 1}};
    static const struct {
        bool equal;
        uint32_t counts[4];
        const char *dummies[4];
    } rows[] = {
        {false, {3, 1, 0, 2}, {"wdw", "w", "", "dw"}},
        {true, {3, 3, 3, 3}, {"wdw", "wdd", "ddd", "dwd"}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct skrull_plan *plan;
        struct fixture fixture;

        fixture_init(&fixture, 2, 2, 1000);
        fixture.input.options.equal_micro_batches = rows[i].equal;
        fixture_set(&fixture, lengths, 4);
        plan = lay_out(&fixture, placements);
        for (size_t r = 0; r < 4; r++) {
            print_message("# equal %d, rank %zu\n", rows[i].equal, r);
            assert_int_equal(plan->ranks[r].data_rank, r);
            assert_int_equal(plan->ranks[r].n_micro_batches, rows[i].counts[r]);
            for (size_t m = 0; m < rows[i].counts[r]; m++) {
                const struct skrull_micro_batch *micro_batch = micro_batch_of(plan, r, m);

                assert_int_equal(micro_batch->dummy, rows[i].dummies[r][m] == 'd');
                assert_int_equal(micro_batch->n_segments == 0, micro_batch->dummy);
            }
        }
        skrull_plan_free(plan);
        fixture_deinit(&fixture);
    }
}

/* 2^24 placements on 64 ranks, two segments each, would be 120 GB: refused by name before any is
 * laid out. Here: one sequence in the micro-batch 2^26, equal counts on 64 ranks. */
static void test_layout_plan__refuses_what_a_plan_may_not_take(void **state)
{
    static const uint32_t lengths[] = {5};
    static const struct placement placements[] = {{1u << 26, 0, 1}};
    struct arena *arena = arena_new(PLANNER_MAX_BYTES);
    struct skrull_plan *plan = NULL;
    struct skrull_error err = {0};
    struct fixture fixture;
    struct batch batch;

    (void)state;
    fixture_init(&fixture, 8, 8, 1000);
    fixture.input.options.equal_micro_batches = true;
    fixture_set(&fixture, lengths, 1);
    fixture_batch(&fixture, &batch);
    assert_int_equal(layout_plan(&batch, placements, arena, &plan, &err),
                     SKRULL_ERR_RESOURCE_EXHAUSTED);
    assert_null(plan);
    assert_non_null(strstr(err.message, "more than the 2048 MiB that a plan may take"));
    arena_free(arena);
    fixture_deinit(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout_plan__orders_a_micro_batch),
        cmocka_unit_test(test_layout_plan__fills_up_with_dummies),
        cmocka_unit_test(test_layout_plan__refuses_what_a_plan_may_not_take),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
