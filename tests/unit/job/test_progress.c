/* Reports in every order against a table of booleans. */
#include "job/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arena.h"

static struct progress *make(uint32_t n_ranks, uint64_t steps)
{
    const struct progress_span span = {0, n_ranks};
    struct progress *progress = NULL;

    assert_int_equal(progress_new(&span, 1, steps, &progress, NULL), 0);
    return progress;
}

static void test_progress_report__in_order(void **state)
{
    struct progress *progress = make(3, 4);
    uint64_t step;
    uint32_t rank;

    (void)state;
    for (step = 0; step < 4; step++) {
        for (rank = 0; rank < 3; rank++) {
            assert_int_equal(progress_next_step(progress), step);
            assert_int_equal(progress_report(progress, rank, step, NULL), 0);
            assert_int_equal(progress_rank_below(progress, rank), step + 1);
        }
    }
    assert_int_equal(progress_next_step(progress), 4);
    progress_free(progress);
}

static void test_progress_report__out_of_range(void **state)
{
    struct progress *progress = make(3, 4);
    struct skrull_error err = {0};

    (void)state;
    assert_int_equal(progress_report(progress, 3, 0, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "data_rank: 3"));
    assert_int_equal(progress_report(progress, 0, 4, &err), SKRULL_ERR_OUT_OF_RANGE);
    assert_non_null(strstr(err.message, "step 4"));
    assert_int_equal(progress_report(progress, 0, UINT64_MAX, &err), SKRULL_ERR_OUT_OF_RANGE);
    assert_false(progress_is_dirty(progress));
    progress_free(progress);
}

static void test_progress_report__repeated(void **state)
{
    struct progress *progress = make(2, 10);

    (void)state;
    assert_int_equal(progress_report(progress, 0, 5, NULL), 0);
    assert_int_equal(progress_report(progress, 0, 5, NULL), PROGRESS_REPEATED);
    assert_int_equal(progress_report(progress, 0, 4, NULL), 0);
    assert_int_equal(progress_report(progress, 0, 4, NULL), PROGRESS_REPEATED);
    assert_int_equal(progress_n_reports(progress, 0), 4);
    assert_int_equal(progress_last_step(progress, 0), 4);
    assert_int_equal(progress_n_reports(progress, 1), 0);
    progress_free(progress);
}

/* A worker that goes on from a checkpoint is ahead of a daemon that knows nothing. */
static void test_progress_report__from_a_checkpoint(void **state)
{
    struct progress *progress = make(2, UINT64_C(1) << 62);
    uint64_t step;

    (void)state;
    for (step = 5000; step < 6000; step++) {
        assert_int_equal(progress_report(progress, 0, step, NULL), 0);
        assert_int_equal(progress_report(progress, 1, step, NULL), 0);
    }
    assert_int_equal(progress_next_step(progress), 0);
    for (step = 0; step < 5000; step++) {
        assert_int_equal(progress_report(progress, 0, step, NULL), 0);
        assert_int_equal(progress_report(progress, 1, 4999 - step, NULL), 0);
    }
    assert_int_equal(progress_next_step(progress), 6000);
    progress_free(progress);
}

static void test_progress_report__too_many_holes(void **state)
{
    struct progress *progress = make(1, 1000000);
    struct skrull_error err = {0};
    uint64_t i;

    (void)state;
    for (i = 0; i < PROGRESS_MAX_RANGES; i++) {
        assert_int_equal(progress_report(progress, 0, 2 * i + 1, NULL), 0);
    }
    assert_int_equal(progress_report(progress, 0, 999999, &err), SKRULL_ERR_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(err.message, "step 0"));
    assert_false(progress_is_reported(progress, 0, 999999));
    assert_int_equal(progress_report(progress, 0, 2, NULL), 0); /* closes a hole */
    assert_int_equal(progress_report(progress, 0, 999999, NULL), 0);
    progress_free(progress);
}

/* A small generator, so that the test is the same everywhere. */
static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

enum { MOST_RANKS = 9, MOST_STEPS = 40 };

struct naive {
    uint32_t n_ranks, steps;
    bool is_absent[MOST_RANKS][MOST_STEPS]; /* the step has no such rank */
    bool is_reported[MOST_RANKS][MOST_STEPS];
};

static uint64_t naive_below(const struct naive *naive, uint32_t rank)
{
    uint64_t step = 0;

    while (step < naive->steps &&
           (naive->is_reported[rank][step] || naive->is_absent[rank][step])) {
        step++;
    }
    return step;
}

static void compare(const struct naive *naive, const struct progress *progress)
{
    uint64_t smallest = naive->steps, below;
    uint32_t rank;
    uint64_t step;

    for (rank = 0; rank < naive->n_ranks; rank++) {
        below = naive_below(naive, rank);
        smallest = below < smallest ? below : smallest;
        assert_int_equal(progress_rank_below(progress, rank), below);
        for (step = 0; step < naive->steps; step++) {
            assert_int_equal(progress_is_reported(progress, rank, step),
                             naive->is_reported[rank][step]);
        }
    }
    assert_int_equal(progress_next_step(progress), smallest);
}

/* Saves what is dirty into `saved_in`, a second table, which then must say the same. */
static void save(struct progress *progress, struct progress *saved_in)
{
    struct arena *arena = arena_new(1 << 20);
    struct store_progress *saved = NULL;
    size_t n = 0, i;

    assert_int_equal(progress_take_dirty(progress, arena, &saved, &n, NULL), 0);
    for (i = 0; i < n; i++) {
        assert_int_equal(progress_restore(saved_in, &saved[i], NULL), 0);
    }
    assert_false(progress_is_dirty(progress));
    assert_false(progress_is_dirty(saved_in));
    arena_free(arena);
}

static void run_against_naive(uint64_t seed, uint32_t n_ranks, uint32_t steps)
{
    struct progress *progress = make(n_ranks, steps), *saved_in = make(n_ranks, steps);
    struct naive naive = {.n_ranks = n_ranks, .steps = steps};
    uint32_t i, rank, step;
    int expected;

    for (i = 0; i < n_ranks * steps * 2; i++) {
        rank = next_random(&seed) % n_ranks;
        step = next_random(&seed) % steps;
        expected = naive.is_reported[rank][step] ? PROGRESS_REPEATED : 0;
        assert_int_equal(progress_report(progress, rank, step, NULL), expected);
        naive.is_reported[rank][step] = true;
        compare(&naive, progress);
        if (i % 7 == 0) {
            save(progress, saved_in);
            compare(&naive, saved_in);
        }
    }
    progress_free(progress);
    progress_free(saved_in);
}

static void test_progress_report__against_naive(void **state)
{
    uint32_t n_ranks;
    uint64_t seed;

    (void)state;
    for (n_ranks = 1; n_ranks <= MOST_RANKS; n_ranks++) {
        for (seed = 0; seed < 3; seed++) {
            run_against_naive(seed * 977 + n_ranks, n_ranks, MOST_STEPS - 5 * (uint32_t)seed);
        }
    }
}

/* Makes every step from `first_step` on have so many ranks. */
static void naive_revise(struct naive *naive, uint64_t first_step, uint32_t n_ranks)
{
    for (uint32_t rank = 0; rank < MOST_RANKS; rank++) {
        for (uint64_t step = first_step; step < MOST_STEPS; step++) {
            naive->is_absent[rank][step] = rank >= n_ranks;
        }
    }
    naive->n_ranks = n_ranks > naive->n_ranks ? n_ranks : naive->n_ranks;
}

/* Reports at random, now and then a revision at or past all that was reported. */
static void run_revisions(uint64_t seed)
{
    enum { MOST_SPANS = 6 };
    struct progress_span spans[MOST_SPANS] = {{0, 1 + next_random(&seed) % MOST_RANKS}};
    struct naive naive = {.steps = MOST_STEPS};
    struct progress *progress = NULL, *next = NULL;
    uint32_t n_spans = 1, limit = 4; /* workers are below it */
    uint64_t next_step = 0;

    naive_revise(&naive, 0, spans[0].n_ranks);
    assert_int_equal(progress_new(spans, 1, MOST_STEPS, &progress, NULL), 0);
    for (uint32_t i = 0; i < 1500; i++) {
        uint32_t rank = next_random(&seed) % MOST_RANKS, step = next_random(&seed) % limit;
        int expected = naive.is_absent[rank][step]     ? SKRULL_ERR_INVALID_ARGUMENT
                       : naive.is_reported[rank][step] ? PROGRESS_REPEATED
                                                       : 0;

        assert_int_equal(progress_report(progress, rank, step, NULL), expected);
        naive.is_reported[rank][step] |= expected == 0;
        compare(&naive, progress);
        assert_true(progress_next_step(progress) >= next_step);
        next_step = progress_next_step(progress);
        if (i % 100 == 99) {
            limit = limit + 6 < MOST_STEPS ? limit + 6 : MOST_STEPS;
        }
        if (i % 200 == 150 && n_spans < MOST_SPANS) {
            uint64_t x = progress_end(progress) + next_random(&seed) % 3;

            x = x < MOST_STEPS ? x : MOST_STEPS;
            spans[n_spans++] = (struct progress_span){x, 1 + next_random(&seed) % MOST_RANKS};
            naive_revise(&naive, x, spans[n_spans - 1].n_ranks);
            assert_int_equal(progress_new(spans, n_spans, MOST_STEPS, &next, NULL), 0);
            progress_take(next, progress);
            assert_false(progress_is_dirty(progress));
            progress_free(progress);
            progress = next;
            compare(&naive, progress);
            assert_true(progress_next_step(progress) >= next_step);
        }
    }
    progress_free(progress);
}

static void test_progress_take__against_naive(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        run_revisions(seed * 7919);
    }
}

static void test_progress_take__keeps_all(void **state)
{
    static const struct progress_span spans[] = {{0, 2}, {5, 4}};
    struct progress *progress = make(2, 10), *next = NULL;
    struct arena *arena = arena_new(1 << 16);
    struct store_progress *saved = NULL;
    size_t n = 0;

    (void)state;
    assert_int_equal(progress_end(progress), 0);
    assert_int_equal(progress_report(progress, 1, 3, NULL), 0);
    assert_int_equal(progress_end(progress), 4);
    assert_int_equal(progress_new(spans, 2, 20, &next, NULL), 0);
    progress_take(next, progress);
    progress_free(progress);
    assert_int_equal(progress_end(next), 4);
    assert_int_equal(progress_n_reports(next, 1), 1);
    assert_int_equal(progress_last_step(next, 1), 3);
    assert_true(progress_is_dirty(next)); /* was not saved yet */
    assert_int_equal(progress_report(next, 3, 4, NULL), SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(progress_report(next, 3, 5, NULL), 0);
    assert_int_equal(progress_rank_below(next, 2), 5);
    assert_int_equal(progress_rank_below(next, 3), 6);
    assert_int_equal(progress_take_dirty(next, arena, &saved, &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_int_equal(saved[0].data_rank, 1);
    assert_int_equal(saved[1].data_rank, 3);
    arena_free(arena);
    progress_free(next);
}

static void test_progress_take_dirty__only_what_changed(void **state)
{
    struct progress *progress = make(4, 10);
    struct arena *arena = arena_new(1 << 16);
    struct store_progress *saved = NULL, *again = NULL;
    size_t n = 0;

    (void)state;
    assert_int_equal(progress_report(progress, 2, 0, NULL), 0);
    assert_int_equal(progress_report(progress, 2, 7, NULL), 0);
    assert_int_equal(progress_take_dirty(progress, arena, &saved, &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_int_equal(saved[0].data_rank, 2);
    assert_int_equal(saved[0].n_ranges, 2);
    assert_int_equal(saved[0].ranges[1].begin, 7);
    assert_int_equal(progress_report(progress, 2, 7, NULL), PROGRESS_REPEATED);
    assert_false(progress_is_dirty(progress));
    progress_mark_dirty(progress, saved, n);
    progress_mark_dirty(progress, saved, n);
    assert_int_equal(progress_report(progress, 3, 0, NULL), 0);
    assert_int_equal(progress_take_dirty(progress, arena, &again, &n, NULL), 0);
    assert_int_equal(n, 2);
    arena_free(arena);
    progress_free(progress);
}

static void test_progress_take_dirty__out_of_memory(void **state)
{
    struct progress *progress = make(4, 10);
    struct arena *small = arena_new(64), *arena = arena_new(1 << 16);
    struct store_progress *saved = NULL;
    size_t n = 0;
    uint32_t rank;

    (void)state;
    for (rank = 0; rank < 4; rank++) {
        assert_int_equal(progress_report(progress, rank, rank, NULL), 0);
    }
    assert_int_equal(progress_take_dirty(progress, small, &saved, &n, NULL),
                     SKRULL_ERR_RESOURCE_EXHAUSTED);
    assert_int_equal(progress_take_dirty(progress, arena, &saved, &n, NULL), 0);
    assert_int_equal(n, 4);
    arena_free(small);
    arena_free(arena);
    progress_free(progress);
}

static void test_progress_restore__unsound(void **state)
{
    static const struct {
        const char *what;
        uint32_t data_rank;
        struct store_range ranges[2];
        size_t n_ranges;
    } cases[] = {
        {"no such rank", 2, {{0, 1}}, 1},
        {"empty range", 0, {{3, 3}}, 1},
        {"backwards", 0, {{3, 2}}, 1},
        {"past the steps", 0, {{3, 11}}, 1},
        {"overlap", 0, {{3, 5}, {4, 6}}, 2},
        {"touch", 0, {{3, 5}, {5, 6}}, 2},
        {"out of order", 0, {{5, 6}, {1, 2}}, 2},
    };
    struct progress *progress = make(2, 10);
    struct store_progress saved;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        saved = (struct store_progress){cases[i].data_rank, cases[i].ranges, cases[i].n_ranges};
        if (progress_restore(progress, &saved, NULL) != SKRULL_ERR_DATA_LOSS) {
            fail_msg("%s was restored", cases[i].what);
        }
    }
    progress_free(progress);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_progress_report__in_order),
        cmocka_unit_test(test_progress_report__out_of_range),
        cmocka_unit_test(test_progress_report__repeated),
        cmocka_unit_test(test_progress_report__from_a_checkpoint),
        cmocka_unit_test(test_progress_report__too_many_holes),
        cmocka_unit_test(test_progress_report__against_naive),
        cmocka_unit_test(test_progress_take__against_naive),
        cmocka_unit_test(test_progress_take__keeps_all),
        cmocka_unit_test(test_progress_take_dirty__only_what_changed),
        cmocka_unit_test(test_progress_take_dirty__out_of_memory),
        cmocka_unit_test(test_progress_restore__unsound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
