/*
 * Golden digests: the same job gives the same plans with every compiler, on every machine, in every
 * version that calls itself planner version 0. A line of digests.def is a job's options, then
 * digest, time and bound of one batch. A change here changes running jobs' plans: it needs a new
 * planner version once jobs are kept over upgrades.
 *
 * usage: test_digests [--print]       prints the table as it now is
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <skrull/planner.h>

#include "unit/plan/fixture.h"

#define N_SEQUENCES 96

struct golden {
    const char *policy;
    uint32_t dp, cp, bucket_tokens, align;
    enum skrull_shard shard;
    bool equal_micro_batches;
    enum skrull_loss loss;
    const char *digest;
    int64_t iteration_ns, bound_ns;
    /* Of GOLDEN_WITH. */
    uint32_t micro_batches, micro_batch_multiple, micro_batch_min;
    enum skrull_micro_batch_order micro_batch_order;
    enum skrull_mix mix;
};

#define ZIGZAG SKRULL_SHARD_ZIGZAG
#define CONTIGUOUS SKRULL_SHARD_CONTIGUOUS
#define TOKEN_MEAN SKRULL_LOSS_TOKEN_MEAN
#define SEQUENCE_MEAN SKRULL_LOSS_SEQUENCE_MEAN
#define NONE SKRULL_LOSS_NONE
#define LARGEST_FIRST SKRULL_MICRO_BATCH_ORDER_LARGEST_FIRST
#define HEAVY_MIDDLE SKRULL_MICRO_BATCH_ORDER_HEAVY_MIDDLE
#define UNIFORM SKRULL_MIX_UNIFORM
#define GOLDEN(...) GOLDEN_WITH(__VA_ARGS__, 0, 0, 0, 0, 0)
#define GOLDEN_WITH(...) {__VA_ARGS__},
static const struct golden goldens[] = {
#include "golden/digests.def"
};
#undef GOLDEN
#undef GOLDEN_WITH

/* Lengths over five orders of magnitude, as fits; by integer arithmetic alone. */
static void set_lengths(struct fixture *fixture)
{
    const uint32_t longest = (uint32_t)skrull_planner_longest(&fixture->input.options);
    uint32_t lengths[N_SEQUENCES];

    fixture->random = 20250926;
    for (size_t k = 0; k < N_SEQUENCES; k++) {
        /* A draw a statement: within one, compilers may take them in either order. */
        const uint32_t draw = fixture_random(fixture, 131072);
        const uint32_t length = 1 + (draw >> fixture_random(fixture, 14));

        lengths[k] = length < longest ? length : longest;
    }
    fixture_set(fixture, lengths, N_SEQUENCES);
    for (size_t k = 0; k < N_SEQUENCES; k++) {
        fixture->sequences[k].loss_tokens = lengths[k] - fixture_random(fixture, lengths[k] + 1);
    }
}

static struct skrull_plan *plan_golden(const struct golden *golden)
{
    struct skrull_plan *plan;
    struct fixture fixture;

    fixture_init(&fixture, golden->dp, golden->cp, golden->bucket_tokens);
    fixture.input.options.align = golden->align;
    fixture.input.options.shard = golden->shard;
    fixture.input.options.equal_micro_batches = golden->equal_micro_batches;
    fixture.input.options.loss = golden->loss;
    fixture.input.options.micro_batches = golden->micro_batches;
    fixture.input.options.micro_batch_multiple = golden->micro_batch_multiple;
    fixture.input.options.micro_batch_min = golden->micro_batch_min;
    fixture.input.options.micro_batch_order = golden->micro_batch_order;
    fixture.input.options.mix = golden->mix;
    set_lengths(&fixture);
    plan = fixture_plan(&fixture, golden->policy);
    fixture_deinit(&fixture);
    return plan;
}

static void test_skrull_planner_run__digests_are_golden(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++) {
        struct skrull_plan *plan = plan_golden(&goldens[i]);
        char digest[SKRULL_DIGEST_HEX_SIZE];

        print_message("# line %zu: %s <%u, %u>\n", i + 1, goldens[i].policy, goldens[i].dp,
                      goldens[i].cp);
        skrull_digest_to_hex(plan->digest, digest);
        assert_string_equal(digest, goldens[i].digest);
        assert_int_equal(plan->estimate.iteration_ns, goldens[i].iteration_ns);
        assert_int_equal(plan->estimate.bound_ns, goldens[i].bound_ns);
        skrull_plan_free(plan);
    }
}

static void print_goldens(void)
{
    static const char *const losses[] = {"", "TOKEN_MEAN", "SEQUENCE_MEAN", "NONE"};
    static const char *const orders[] = {"0", "0", "LARGEST_FIRST", "HEAVY_MIDDLE"};

    for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++) {
        const struct golden *golden = &goldens[i];
        const bool has_more = golden->micro_batches || golden->micro_batch_multiple ||
                              golden->micro_batch_order || golden->mix;
        struct skrull_plan *plan = plan_golden(golden);
        char digest[SKRULL_DIGEST_HEX_SIZE];

        skrull_digest_to_hex(plan->digest, digest);
        printf("%s(\"%s\", %u, %u, %u, %u, %s, %s, %s,\n       \"%s\", %lld, %lld",
               has_more ? "GOLDEN_WITH" : "GOLDEN", golden->policy, golden->dp, golden->cp,
               golden->bucket_tokens, golden->align,
               golden->shard == ZIGZAG ? "ZIGZAG" : "CONTIGUOUS",
               golden->equal_micro_batches ? "true" : "false", losses[golden->loss], digest,
               (long long)plan->estimate.iteration_ns, (long long)plan->estimate.bound_ns);
        if (has_more) {
            printf(",\n       %u, %u, %u, %s, %s", golden->micro_batches,
                   golden->micro_batch_multiple, golden->micro_batch_min,
                   orders[golden->micro_batch_order], golden->mix ? "UNIFORM" : "0");
        }
        printf(")\n");
        skrull_plan_free(plan);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skrull_planner_run__digests_are_golden),
    };

    if (argc > 1 && strcmp(argv[1], "--print") == 0) {
        print_goldens();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
