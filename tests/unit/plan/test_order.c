/* The order of micro-batches: by hand, and its key against the evaluator. */
#include "plan/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plan/evaluate.h"
#include "plan/layout.h"
#include "plan/options.h"
#include "unit/plan/fixture.h"

#define MAX_SEQUENCES 8

#define FIXED SKRULL_CP_MODE_FIXED
#define ELASTIC SKRULL_CP_MODE_ELASTIC
#define AS_PLANNED SKRULL_MICRO_BATCH_ORDER_AS_PLANNED
#define LARGEST SKRULL_MICRO_BATCH_ORDER_LARGEST_FIRST
#define MIDDLE SKRULL_MICRO_BATCH_ORDER_HEAVY_MIDDLE

/* <2, 2>: placements, and the numbers that they get. */
struct example {
    const char *what;
    enum skrull_micro_batch_order order;
    enum skrull_cp_mode cp_mode;
    uint32_t exact; /* 0: counts are not equal */
    uint32_t n;
    uint32_t lengths[MAX_SEQUENCES];
    struct placement placements[MAX_SEQUENCES];
    uint32_t wanted[MAX_SEQUENCES];
};

static const struct example examples[] = {
    {"as planned", AS_PLANNED, FIXED, 0, 2, {10, 90}, {{0, 0, 1}, {3, 0, 1}}, {0, 3}},
    {"each DP rank by itself",
     LARGEST,
     FIXED,
     0,
     5,
     {10, 90, 50, 20, 30},
     {{0, 0, 1}, {1, 0, 1}, {2, 1, 1}, {0, 2, 1}, {1, 3, 1}},
     {2, 0, 1, 1, 0}},
    {"all ranks of the job with elastic groups",
     LARGEST,
     ELASTIC,
     0,
     5,
     {10, 90, 50, 20, 30},
     {{0, 0, 1}, {1, 0, 1}, {2, 1, 1}, {0, 2, 1}, {1, 3, 1}},
     {2, 0, 1, 2, 0}},
    {"the slowest rank counts, not the sum",
     LARGEST,
     FIXED,
     0,
     3,
     {60, 60, 70},
     {{0, 0, 1}, {0, 1, 1}, {1, 0, 1}},
     {1, 1, 0}},
    {"several on one rank add up",
     LARGEST,
     FIXED,
     0,
     3,
     {40, 40, 70},
     {{1, 0, 1}, {1, 0, 1}, {0, 0, 1}},
     {0, 0, 1}},
    {"equal times keep their order",
     LARGEST,
     FIXED,
     0,
     4,
     {50, 50, 50, 60},
     {{0, 0, 1}, {1, 1, 1}, {2, 0, 1}, {3, 0, 1}},
     {1, 2, 3, 0}},
    {"numbers that nobody uses go", LARGEST, FIXED, 0, 2, {10, 90}, {{1, 0, 1}, {5, 1, 1}}, {1, 0}},
    {"with equal counts they are dummies, the last",
     LARGEST,
     FIXED,
     6,
     2,
     {10, 90},
     {{1, 0, 1}, {5, 1, 1}},
     {1, 0}},
    {"the middle, then right and left, of three",
     MIDDLE,
     FIXED,
     0,
     3,
     {30, 20, 10},
     {{0, 0, 1}, {1, 0, 1}, {2, 0, 1}},
     {1, 2, 0}},
    {"of four",
     MIDDLE,
     FIXED,
     0,
     4,
     {10, 20, 30, 40},
     {{0, 0, 1}, {1, 0, 1}, {2, 0, 1}, {3, 0, 1}},
     {3, 0, 2, 1}},
    {"of one", MIDDLE, FIXED, 0, 1, {10}, {{0, 0, 1}}, {0}},
    {"dummies stand on both sides: the middle is of all ranks",
     MIDDLE,
     FIXED,
     5,
     4,
     {30, 20, 10, 99},
     {{0, 0, 1}, {1, 0, 1}, {2, 0, 1}, {0, 2, 1}},
     {2, 3, 1, 2}},
};

static void test_order_micro_batches__examples(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        const struct example *example = &examples[i];
        struct placement placements[MAX_SEQUENCES];
        struct fixture fixture;
        struct batch batch;

        print_message("# %s\n", example->what);
        fixture_init(&fixture, 2, 2, 1000);
        fixture.input.options.micro_batch_order = example->order;
        fixture.input.options.cp_mode = example->cp_mode;
        fixture.input.options.micro_batches = example->exact;
        fixture_set(&fixture, example->lengths, example->n);
        fixture_batch(&fixture, &batch);
        memcpy(placements, example->placements, sizeof(placements));
        assert_int_equal(order_micro_batches(&batch, placements, NULL), 0);
        for (uint32_t k = 0; k < example->n; k++) {
            assert_int_equal(placements[k].micro_batch, example->wanted[k]);
            assert_int_equal(placements[k].group_first, example->placements[k].group_first);
            assert_int_equal(placements[k].group_size, example->placements[k].group_size);
        }
        fixture_deinit(&fixture);
    }
}

/* Iteration time of the sequences of one micro-batch, as if there were no others. */
static int64_t evaluate_alone(struct fixture *fixture, const struct placement *placements,
                              uint32_t m)
{
    static struct placement some[FIXTURE_MAX_SEQUENCES];
    const struct skrull_sequence *all = fixture->input.sequences;
    const size_t n = fixture->input.n_sequences;
    struct arena *arena = arena_new(PLANNER_MAX_BYTES);
    struct skrull_sequence *chosen = ARENA_ARRAY(arena, struct skrull_sequence, n);
    struct skrull_plan *plan = NULL;
    struct batch batch;
    size_t n_chosen = 0;
    int64_t time_ns = 0;

    assert_non_null(chosen);
    for (size_t k = 0; k < n; k++) {
        if (placements[k].micro_batch == m) {
            some[n_chosen] = placements[k];
            some[n_chosen].micro_batch = 0;
            chosen[n_chosen++] = all[k];
        }
    }
    if (n_chosen > 0) {
        fixture->input.sequences = chosen;
        fixture->input.n_sequences = n_chosen;
        fixture_batch(fixture, &batch);
        assert_int_equal(layout_plan(&batch, some, arena, &plan, NULL), 0);
        assert_int_equal(
            evaluate_plan(&batch.options, fixture->cost, false, plan, fixture->scratch, NULL), 0);
        time_ns = plan->estimate.iteration_ns;
        fixture->input.sequences = all;
        fixture->input.n_sequences = n;
    }
    arena_free(arena);
    return time_ns;
}

/* Nested groups of every size, at random places: the times that the evaluator gives each
 * micro-batch alone descend. */
static void test_order_micro_batches__agrees_with_the_evaluator(void **state)
{
    static const uint32_t sizes[] = {1, 1, 1, 2, 4, 8};
    struct placement placements[40];
    uint32_t lengths[40];

    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct fixture fixture;
        struct batch batch;
        int64_t before_ns = INT64_MAX;

        fixture_init(&fixture, 4, 2, 1 << 24);
        fixture.random = seed;
        fixture.input.options.cp_mode = ELASTIC;
        for (uint32_t k = 0; k < 40; k++) {
            const uint32_t size = sizes[fixture_random(&fixture, 6)];

            lengths[k] = 1 + fixture_random(&fixture, 1u << fixture_random(&fixture, 17));
            placements[k] =
                (struct placement){.micro_batch = fixture_random(&fixture, 6),
                                   .group_first = fixture_random(&fixture, 8 / size) * size,
                                   .group_size = size};
        }
        fixture_set(&fixture, lengths, 40);
        fixture.input.options.micro_batch_order = LARGEST;
        fixture_batch(&fixture, &batch);
        assert_int_equal(order_micro_batches(&batch, placements, NULL), 0);
        for (uint32_t m = 0; m < 6; m++) {
            const int64_t time_ns = evaluate_alone(&fixture, placements, m);

            assert_true(time_ns <= before_ns);
            before_ns = time_ns;
        }
        fixture_deinit(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_micro_batches__examples),
        cmocka_unit_test(test_order_micro_batches__agrees_with_the_evaluator),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
