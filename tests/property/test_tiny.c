/*
 * Against every plan of tiny batches: no bound exceeds the optimum, and the joint solver is close
 * to it. usage: test_tiny ROUNDS; SKRULL_SEED and SKRULL_ROUNDS as for the other property tests.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan/bound.h"
#include "property/tiny.h"

#define MEAN_GAP 0.01  /* of the joint solver to the optimum */
#define WORST_GAP 0.10 /* in one batch of a hundred at most */

static uint64_t n_rounds = 1200;

static int64_t bound_of(const struct tiny *tiny)
{
    uint32_t lengths[TINY_MAX_SEQUENCES];
    struct bound_input input = {.options = &tiny->batch.options,
                                .degrees = &tiny->batch.degrees,
                                .cost = tiny->batch.cost,
                                .lengths = lengths,
                                .n = tiny->batch.n_sequences};
    int64_t bound_ns = 0;

    for (uint32_t k = 0; k < input.n; k++) {
        lengths[k] = tiny->sequences[k].length;
    }
    assert_int_equal(bound_of_lengths(&input, tiny->arena, &bound_ns, NULL), 0);
    return bound_ns;
}

static uint64_t env_number(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : fallback;
}

struct tally {
    uint64_t n, n_whole, n_optimal, n_far, n_tight;
    double gaps, bound_gaps;
};

static void run_round(uint64_t seed, struct tally *tally)
{
    struct tiny *tiny = tiny_new(seed);
    struct placement placements[TINY_MAX_SEQUENCES];
    int64_t joint_ns, optimum_ns, bound_ns;
    bool is_whole;
    double gap;

    assert_int_equal(policy_joint_place(&tiny->batch, placements, NULL), 0);
    joint_ns = tiny_time(tiny, placements, tiny->batch.n_sequences);
    optimum_ns = tiny_optimum(tiny, joint_ns, &is_whole);
    bound_ns = bound_of(tiny);
    if (bound_ns > optimum_ns) {
        fail_msg("seed %llu: bound %lld, a plan takes %lld", (unsigned long long)seed,
                 (long long)bound_ns, (long long)optimum_ns);
    }
    gap = optimum_ns > 0 ? (double)joint_ns / (double)optimum_ns - 1 : 0;
    tally->n++;
    tally->n_whole += is_whole;
    tally->n_optimal += joint_ns == optimum_ns;
    tally->n_far += gap > WORST_GAP;
    tally->n_tight += bound_ns == optimum_ns;
    tally->gaps += gap;
    tally->bound_gaps += bound_ns > 0 ? (double)optimum_ns / (double)bound_ns - 1 : 0;
    tiny_free(tiny);
}

static void test_tiny__bounds_hold_and_joint_is_close(void **state)
{
    const uint64_t first = env_number("SKRULL_SEED", 20250519) << 20;
    const uint64_t rounds = env_number("SKRULL_ROUNDS", n_rounds);
    struct tally tally = {0};

    (void)state;
    for (uint64_t i = 0; i < rounds; i++) {
        run_round(first + i, &tally);
    }
    print_message("# %llu batches, %llu searched whole: joint optimal in %llu, mean gap %.3f %%; "
                  "optimum over bound %.2f %%, equal in %llu\n",
                  (unsigned long long)tally.n, (unsigned long long)tally.n_whole,
                  (unsigned long long)tally.n_optimal, 100 * tally.gaps / (double)tally.n,
                  100 * tally.bound_gaps / (double)tally.n, (unsigned long long)tally.n_tight);
    assert_true(tally.gaps <= MEAN_GAP * (double)tally.n);
    assert_true(tally.n_far * 100 <= tally.n);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiny__bounds_hold_and_joint_is_close),
    };

    n_rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : n_rounds;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
