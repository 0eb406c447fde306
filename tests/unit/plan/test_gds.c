/* GDS: by hand, and against a plain second implementation on random batches. */
#include "plan/gds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/plan/fixture.h"
#include "unit/plan/naive.h"

#define MAX_EXAMPLE 160

static uint32_t count_micro_batches(const struct placement *placements, uint32_t n)
{
    uint32_t count = 0;

    for (uint32_t k = 0; k < n; k++) {
        count = placements[k].micro_batch + 1 > count ? placements[k].micro_batch + 1 : count;
    }
    return count;
}

static void test_gds_place__examples(void **state)
{
    static const struct {
        const char *what;
        uint32_t cp, bucket, align, length, n, micro_batches;
        bool is_local; /* all of them */
    } rows[] = {
        {"eight sequences of 7 under a cap of 8 need eight", 1, 8, 1, 7, 8, 8, true},
        {"a micro-batch that is full to the last token", 4, 100, 1, 50, 8, 1, true},
        {"one sequence more", 4, 100, 1, 50, 9, 2, true},
        {"shards dearer than whole sequences", 8, 26624, 128, 200, 150, 1, true},
        {"one long sequence", 8, 100, 1, 800, 1, 1, false},
        {"two long sequences", 8, 100, 1, 800, 2, 2, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct placement placements[MAX_EXAMPLE];
        uint32_t lengths[MAX_EXAMPLE];
        struct fixture fixture;
        struct batch batch;

        print_message("# %s\n", rows[i].what);
        for (uint32_t k = 0; k < rows[i].n; k++) {
            lengths[k] = rows[i].length;
        }
        fixture_init(&fixture, 1, rows[i].cp, rows[i].bucket);
        fixture.input.options.align = rows[i].align;
        fixture_set(&fixture, lengths, rows[i].n);
        fixture_batch(&fixture, &batch);
        assert_int_equal(gds_place(&batch, DACP_LEAST_LOADED_FIRST, placements, NULL), 0);
        assert_int_equal(count_micro_batches(placements, rows[i].n), rows[i].micro_batches);
        for (uint32_t k = 0; k < rows[i].n; k++) {
            assert_int_equal(placements[k].group_size == 1, rows[i].is_local);
        }
        fixture_deinit(&fixture);
    }
}

/* 40 > 30 > 20 > 10 in work: 40 to rank 0, 30 to 1, 20 to 1, 10 to 0 (40 < 30 + 20). */
static void test_gds_place__packs_longest_first(void **state)
{
    static const uint32_t lengths[] = {10, 20, 30, 40};
    static const uint32_t dp_ranks[] = {0, 1, 1, 0};
    struct placement placements[4];
    struct fixture fixture;
    struct batch batch;

    (void)state;
    fixture_init(&fixture, 2, 2, 100);
    fixture_set(&fixture, lengths, 4);
    fixture_batch(&fixture, &batch);
    assert_int_equal(gds_place(&batch, DACP_LEAST_LOADED_FIRST, placements, NULL), 0);
    for (size_t k = 0; k < 4; k++) {
        assert_int_equal(placements[k].group_first / 2, dp_ranks[k]);
    }
    fixture_deinit(&fixture);
}

static void test_gds_place__distributes_all_without_size_1(void **state)
{
    static const uint32_t lengths[] = {10, 20, 30, 40, 1};
    struct placement placements[5];
    struct fixture fixture;
    struct batch batch;

    (void)state;
    fixture_init(&fixture, 2, 2, 30);
    fixture.input.options.min_degree = 2;
    fixture_set(&fixture, lengths, 5);
    fixture_batch(&fixture, &batch);
    assert_int_equal(gds_place(&batch, DACP_LEAST_LOADED_FIRST, placements, NULL), 0);
    for (size_t k = 0; k < 5; k++) {
        assert_int_equal(placements[k].group_size, 2);
        assert_int_equal(placements[k].group_first % 2, 0);
    }
    fixture_deinit(&fixture);
}

/* Without an exact count 12 and 70 share a micro-batch on two ranks of 50: 12 and all of 70 in
 * halves, which uniform cuts in two, the distributed first; what has one kind stays one. */
static void test_gds_place__cuts_mixed_micro_batches_in_two(void **state)
{
    static const uint32_t lengths[] = {70, 12};
    struct placement placements[2];
    struct fixture fixture;
    struct batch batch;

    (void)state;
    for (uint32_t mix = SKRULL_MIX_ANY; mix <= SKRULL_MIX_UNIFORM; mix++) {
        fixture_init(&fixture, 1, 2, 50);
        fixture.input.options.mix = mix;
        fixture_set(&fixture, lengths, 2);
        fixture_batch(&fixture, &batch);
        assert_int_equal(gds_place(&batch, DACP_LEAST_LOADED_FIRST, placements, NULL), 0);
        assert_int_equal(placements[0].group_size, 2);
        assert_int_equal(placements[1].group_size, 1);
        assert_int_equal(placements[0].micro_batch, 0);
        assert_int_equal(placements[1].micro_batch, mix == SKRULL_MIX_UNIFORM ? 1 : 0);
        fixture_deinit(&fixture);
    }
}

/* Number of micro-batches of a random batch with uniform mix, at most `exact` where it can be. */
static uint32_t count_uniform(struct fixture *fixture, uint32_t exact)
{
    static struct placement placements[FIXTURE_MAX_SEQUENCES];
    struct batch batch;

    fixture->input.options.mix = SKRULL_MIX_UNIFORM;
    fixture->input.options.micro_batches = exact;
    fixture_batch(fixture, &batch);
    assert_int_equal(gds_place(&batch, DACP_LEAST_LOADED_FIRST, placements, NULL), 0);
    return count_micro_batches(placements, batch.n_sequences);
}

/* Cut in two they may be more than the count allows, where more and smaller ones would not be. The
 * count that a refusal names is one that is then kept, and the least is never above the first try.
 */
static void test_gds_place__finds_a_count_that_it_then_keeps(void **state)
{
    uint32_t n_better = 0;

    (void)state;
    for (uint64_t seed = 201; seed <= 700; seed++) {
        struct fixture fixture;
        uint32_t first, fewest;

        fixture_init(&fixture, 1, 1, 1);
        fixture_randomize(&fixture, seed);
        fixture.input.options.equal_micro_batches = true;
        first = count_uniform(&fixture, 0);
        fewest = count_uniform(&fixture, 1);
        assert_true(fewest <= first);
        assert_int_equal(count_uniform(&fixture, first), first);
        assert_true(count_uniform(&fixture, fewest) <= fewest);
        n_better += fewest < first;
        fixture_deinit(&fixture);
    }
    assert_true(n_better >= 3);
}

static void check_against_naive(struct fixture *fixture, bool most_room)
{
    static struct placement got[FIXTURE_MAX_SEQUENCES], wanted[FIXTURE_MAX_SEQUENCES];
    struct batch batch;

    fixture_batch(fixture, &batch);
    assert_int_equal(
        gds_place(&batch, most_room ? DACP_MOST_ROOM : DACP_LEAST_LOADED_FIRST, got, NULL), 0);
    naive_schedule(&batch, most_room, wanted);
    for (uint32_t k = 0; k < batch.n_sequences; k++) {
        assert_int_equal(got[k].micro_batch, wanted[k].micro_batch);
        assert_int_equal(got[k].group_first, wanted[k].group_first);
        assert_int_equal(got[k].group_size, wanted[k].group_size);
    }
}

static void test_gds_place__agrees_with_the_plain_one(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct fixture fixture;

        fixture_init(&fixture, 1, 1, 1);
        fixture_randomize(&fixture, seed);
        check_against_naive(&fixture, seed % 4 == 0);
        fixture_deinit(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gds_place__examples),
        cmocka_unit_test(test_gds_place__packs_longest_first),
        cmocka_unit_test(test_gds_place__distributes_all_without_size_1),
        cmocka_unit_test(test_gds_place__cuts_mixed_micro_batches_in_two),
        cmocka_unit_test(test_gds_place__finds_a_count_that_it_then_keeps),
        cmocka_unit_test(test_gds_place__agrees_with_the_plain_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
