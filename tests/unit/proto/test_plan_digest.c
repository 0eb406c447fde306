/* Digests against values that another program computed, and what they do and do not cover. */
#include "plan_digest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "unit/proto/plan_fixture.h"

static void assert_digest(const uint8_t digest[SKRULL_DIGEST_SIZE], const char *expected)
{
    char hex[SKRULL_DIGEST_HEX_SIZE];

    skrull_digest_to_hex(digest, hex);
    assert_string_equal(hex, expected);
}

static void test_rank_digest__golden(void **state)
{
    static const char *const expected[] = FIXTURE_RANK_DIGESTS;
    struct skrull_plan *plan = fixture_new();

    (void)state;
    for (size_t i = 0; i < plan->n_ranks; i++) {
        uint8_t digest[SKRULL_DIGEST_SIZE];

        assert_int_equal(skrull_rank_digest(plan, i, digest), 0);
        assert_digest(digest, expected[i]);
    }
    skrull_plan_free(plan);
}

static void test_plan_digest__golden(void **state)
{
    static const char *const ranks[] = FIXTURE_RANK_DIGESTS;
    uint8_t rank_digests[FIXTURE_RANKS][SKRULL_DIGEST_SIZE], digest[SKRULL_DIGEST_SIZE];

    (void)state;
    for (size_t i = 0; i < FIXTURE_RANKS; i++) {
        assert_int_equal(skrull_digest_from_hex(ranks[i], rank_digests[i]), 0);
    }
    assert_int_equal(skrull_plan_digest(rank_digests[0], FIXTURE_RANKS, digest), 0);
    assert_digest(digest, FIXTURE_DIGEST);
}

static void test_plan_digest_all__golden(void **state)
{
    static const char *const ranks[] = FIXTURE_RANK_DIGESTS;
    struct skrull_plan *plan = fixture_new();

    (void)state;
    memset(plan->digest, 0, sizeof(plan->digest));
    for (size_t i = 0; i < plan->n_ranks; i++) {
        memset(plan->ranks[i].digest, 0, sizeof(plan->ranks[i].digest));
    }
    assert_int_equal(plan_digest_all(plan), 0);
    for (size_t i = 0; i < plan->n_ranks; i++) {
        assert_digest(plan->ranks[i].digest, ranks[i]);
    }
    assert_digest(plan->digest, FIXTURE_DIGEST);
    skrull_plan_free(plan);
}

/* More than one buffer of segments: the pieces must join without a seam. The value was computed by
 * the program that computed the fixture's. */
static void test_rank_digest__many_segments(void **state)
{
    enum { N_SEGMENTS = 1000 };
    struct skrull_segment *segments = calloc(N_SEGMENTS, sizeof(*segments));
    struct skrull_micro_batch micro_batch = {.n_segments = N_SEGMENTS};
    struct skrull_rank rank = {.data_rank = 5, .n_micro_batches = 1};
    struct skrull_plan plan = {.dp = 3, .cp = 2, .n_ranks = 1};
    uint8_t digest[SKRULL_DIGEST_SIZE];

    (void)state;
    assert_non_null(segments);
    for (uint32_t i = 0; i < N_SEGMENTS; i++) {
        segments[i] = (struct skrull_segment){.sample = (uint64_t)i << 33,
                                              .index = i * 7ULL,
                                              .dataset = i % 3,
                                              .sequence_length = i + 1,
                                              .token_end = i + 1,
                                              .padded_tokens = i + 1,
                                              .group_first = 5,
                                              .group_size = 1,
                                              .loss_weight = 1.0 / (i + 1)};
    }
    plan.ranks = &rank;
    plan.micro_batches = &micro_batch;
    plan.segments = segments;
    assert_int_equal(skrull_rank_digest(&plan, 0, digest), 0);
    assert_digest(digest, "bec284ec9a5a2e6b3403389ad1ef6fb9");
    free(segments);
}

/* Digests do not cover names, revision or estimates. */
static void test_plan_digest_all__labels_do_not_count(void **state)
{
    struct skrull_plan *plan = fixture_new();

    (void)state;
    plan->job = "other";
    plan->uid = "";
    plan->policy = "";
    plan->revision++;
    plan->estimate.iteration_ns++;
    plan->ranks[1].estimate.comp_ns++;
    plan->micro_batches[0].estimate.idle_ns++;
    assert_int_equal(plan_digest_all(plan), 0);
    assert_digest(plan->digest, FIXTURE_DIGEST);
    skrull_plan_free(plan);
}

/* Every byte of a segment that is not padding of the struct counts. */
static void test_plan_digest_all__segments_count(void **state)
{
    struct skrull_plan *plan = fixture_new();

    (void)state;
    for (size_t i = 0; i < sizeof(plan->segments[0]); i++) {
        unsigned char *bytes = (unsigned char *)&plan->segments[3];
        char hex[SKRULL_DIGEST_HEX_SIZE];

        if (i >= offsetof(struct skrull_segment, group_size) + 4 &&
            i < offsetof(struct skrull_segment, loss_weight)) {
            continue;
        }
        bytes[i] ^= 0x10;
        assert_int_equal(plan_digest_all(plan), 0);
        skrull_digest_to_hex(plan->digest, hex);
        assert_string_not_equal(hex, FIXTURE_DIGEST);
        bytes[i] ^= 0x10;
    }
    skrull_plan_free(plan);
}

static void test_plan_digest__no_ranks(void **state)
{
    uint8_t digest[SKRULL_DIGEST_SIZE];

    (void)state;
    assert_int_equal(skrull_plan_digest(NULL, 0, digest), 0);
    assert_digest(digest, "ced4a9bd779e567ffaf88bae0836b9ba");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rank_digest__golden),
        cmocka_unit_test(test_rank_digest__many_segments),
        cmocka_unit_test(test_plan_digest__golden),
        cmocka_unit_test(test_plan_digest__no_ranks),
        cmocka_unit_test(test_plan_digest_all__golden),
        cmocka_unit_test(test_plan_digest_all__labels_do_not_count),
        cmocka_unit_test(test_plan_digest_all__segments_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
