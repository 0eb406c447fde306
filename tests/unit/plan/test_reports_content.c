/* Reports about what a plan must say: real and padded offsets, groups, and the same to everyone. */
#include "unit/plan/reports.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "codec_rpc.h"

/* What a rank's segments of one micro-batch must say of their tokens, in order. */
struct cut {
    uint32_t begin, end, padded;
};

static void expect_cuts(const struct skrull_plan *plan, uint32_t rank, const struct cut *cuts,
                        uint32_t n)
{
    const struct skrull_segment *segments = reports_segments(plan, rank, 0);

    assert_int_equal(reports_micro_batch(plan, rank, 0)->n_segments, n);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(segments[i].token_begin, cuts[i].begin);
        assert_int_equal(segments[i].token_end, cuts[i].end);
        assert_int_equal(segments[i].padded_tokens, cuts[i].padded);
    }
}

/* A fixture of one DP rank where every sequence is shared by all `cp` ranks. */
static void init_shared(struct fixture *fixture, uint32_t cp, uint32_t bucket_tokens)
{
    fixture_init(fixture, 1, cp, bucket_tokens);
    fixture->input.options.min_degree = cp;
}

/* The bytes of rank `i`, as a peer gets them. */
static struct rpc_bytes pack_rank(struct arena *arena, const struct skrull_plan *plan, uint32_t i)
{
    struct rpc_bytes bytes = {0};

    assert_int_equal(codec_plan_pack(arena, plan, &i, 1, &bytes, NULL), 0);
    return bytes;
}

/* Tensor and pipeline peers share a data rank: whoever plans it, they hold the same bytes. */
static void test_R14__every_peer_gets_the_same_bytes(void **state)
{
    static const uint32_t lengths[] = {500, 30, 20, 90, 90, 311, 5, 64};

    (void)state;
    REPORTS_EACH_POLICY(policy)
    {
        struct arena *arena = arena_new((size_t)1 << 24);
        struct skrull_plan *plans[2];
        struct fixture fixtures[2];

        for (int i = 0; i < 2; i++) {
            fixture_init(&fixtures[i], 2, 4, 150);
            plans[i] = reports_plan(&fixtures[i], *policy, lengths, REPORTS_COUNT(lengths));
        }
        for (uint32_t r = 0; r < 8; r++) {
            const struct rpc_bytes a = pack_rank(arena, plans[0], r);
            const struct rpc_bytes b = pack_rank(arena, plans[1], r);

            assert_int_equal(a.len, b.len);
            assert_memory_equal(a.data, b.data, a.len);
        }
        for (int i = 0; i < 2; i++) {
            skrull_plan_free(plans[i]);
            fixture_deinit(&fixtures[i]);
        }
        arena_free(arena);
    }
}

/* What ranks gather to compare: a fault in one of them is seen by all. */
static void test_R14__the_gathered_rank_digests_prove_the_plan(void **state)
{
    static const uint32_t lengths[] = {500, 30, 20, 90, 90, 311, 5, 64};
    uint8_t gathered[8 * SKRULL_DIGEST_SIZE], digest[SKRULL_DIGEST_SIZE];
    struct skrull_plan *plan;
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 2, 4, 150);
    plan = reports_plan(&fixture, "skrull", lengths, REPORTS_COUNT(lengths));
    for (size_t r = 0; r < 8; r++) {
        assert_int_equal(skrull_rank_digest(plan, r, &gathered[r * SKRULL_DIGEST_SIZE]), 0);
    }
    assert_int_equal(skrull_plan_digest(gathered, 8, digest), 0);
    assert_memory_equal(digest, plan->digest, SKRULL_DIGEST_SIZE);
    gathered[5 * SKRULL_DIGEST_SIZE] ^= 1;
    assert_int_equal(skrull_plan_digest(gathered, 8, digest), 0);
    assert_memory_not_equal(digest, plan->digest, SKRULL_DIGEST_SIZE);
    skrull_plan_free(plan);
    fixture_deinit(&fixture);
}

/* 100 tokens on four ranks are eight chunks of 13: rotary positions are the chunks' begins. */
static void test_R15__chunks_carry_real_offsets_and_their_group(void **state)
{
    static const uint32_t lengths[] = {100};
    static const struct cut cuts[4][2] = {{{0, 13, 13}, {91, 100, 13}},
                                          {{13, 26, 13}, {78, 91, 13}},
                                          {{26, 39, 13}, {65, 78, 13}},
                                          {{39, 52, 13}, {52, 65, 13}}};
    struct skrull_plan *plan;
    struct fixture fixture;

    (void)state;
    init_shared(&fixture, 4, 64);
    plan = reports_plan(&fixture, "skrull", lengths, 1);
    for (uint32_t r = 0; r < 4; r++) {
        expect_cuts(plan, r, cuts[r], 2);
        for (uint32_t i = 0; i < 2; i++) {
            assert_int_equal(reports_segments(plan, r, 0)[i].sequence_length, 100);
            assert_int_equal(reports_segments(plan, r, 0)[i].group_first, 0);
            assert_int_equal(reports_segments(plan, r, 0)[i].group_size, 4);
        }
    }
    skrull_plan_free(plan);
    fixture_deinit(&fixture);
}

/* 698 on four ranks is 704 padded; the second of two such starts where its own slot does. */
static void test_R16__each_sequence_of_a_pack_is_aligned(void **state)
{
    static const uint32_t lengths[] = {698, 698};
    static const struct cut first_rank[] = {
        {0, 88, 88}, {616, 698, 88}, {0, 88, 88}, {616, 698, 88}};
    struct skrull_plan *plan;
    struct fixture fixture;
    uint64_t tokens = 0, padded_tokens = 0;

    (void)state;
    init_shared(&fixture, 4, 1024);
    plan = reports_plan(&fixture, "skrull", lengths, 2);
    expect_cuts(plan, 0, first_rank, 4);
    for (uint32_t r = 0; r < 4; r++) {
        tokens += reports_micro_batch(plan, r, 0)->tokens;
        padded_tokens += reports_micro_batch(plan, r, 0)->padded_tokens;
        assert_int_equal(reports_micro_batch(plan, r, 0)->padded_tokens, 2 * 704 / 4);
    }
    assert_int_equal(tokens, 2 * 698);
    assert_int_equal(padded_tokens, 2 * 704);
    skrull_plan_free(plan);
    fixture_deinit(&fixture);
}

/* Up to 2 x cp = 4 chunks of 2, never down to 6 tokens. */
static void test_R17__7_tokens_on_2_ranks_are_8_padded(void **state)
{
    static const uint32_t lengths[] = {7};
    static const struct cut cuts[2][2] = {{{0, 2, 2}, {6, 7, 2}}, {{2, 4, 2}, {4, 6, 2}}};
    struct skrull_plan *plan;
    struct fixture fixture;

    (void)state;
    init_shared(&fixture, 2, 64);
    plan = reports_plan(&fixture, "skrull", lengths, 1);
    expect_cuts(plan, 0, cuts[0], 2);
    expect_cuts(plan, 1, cuts[1], 2);
    assert_int_equal(plan->totals.tokens, 7);
    skrull_plan_free(plan);
    fixture_deinit(&fixture);
}

/* Padded offsets are sums of slots (0, 8, 16), real ends are the lengths; both are there. */
static void test_R18__odd_lengths_keep_real_and_padded_offsets_apart(void **state)
{
    static const uint32_t lengths[] = {5, 7, 9};
    static const struct cut cuts[] = {{0, 5, 8}, {0, 7, 8}, {0, 9, 16}};
    struct skrull_plan *plan, *again;
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 1, 1, 64);
    fixture.input.options.align = 8;
    plan = reports_plan(&fixture, "skrull", lengths, 3);
    expect_cuts(plan, 0, cuts, 3);
    again = reports_plan(&fixture, "skrull", lengths, 3);
    assert_memory_equal(plan->ranks[0].digest, again->ranks[0].digest, SKRULL_DIGEST_SIZE);
    skrull_plan_free(again);
    skrull_plan_free(plan);
    fixture_deinit(&fixture);
}

/* Seed 777 gave other packs after somebody else had drawn a number. */
static void test_R30__a_plan_does_not_depend_on_plans_before_it(void **state)
{
    REPORTS_EACH_POLICY(policy)
    {
        uint8_t digest[SKRULL_DIGEST_SIZE];

        (void)state;
        for (int round = 0; round < 3; round++) {
            struct skrull_plan *plan;
            struct fixture fixture;

            fixture_init(&fixture, 1, 1, 1);
            fixture_randomize(&fixture, 1000 + (uint64_t)round); /* another batch in between */
            skrull_plan_free(fixture_plan(&fixture, *policy));
            fixture_randomize(&fixture, 777);
            plan = reports_replan(&fixture, *policy);
            if (round == 0) {
                memcpy(digest, plan->digest, sizeof(digest));
            }
            assert_memory_equal(plan->digest, digest, SKRULL_DIGEST_SIZE);
            skrull_plan_free(plan);
            fixture_deinit(&fixture);
        }
    }
}

/* Two documents in one pack: no segment reaches over a boundary, each counts from its own start. */
static void test_R40__a_pack_keeps_its_documents_apart(void **state)
{
    static const uint32_t lengths[] = {50, 30};
    static const struct cut cuts[2][4] = {{{0, 13, 13}, {39, 50, 13}, {0, 8, 8}, {24, 30, 8}},
                                          {{13, 26, 13}, {26, 39, 13}, {8, 16, 8}, {16, 24, 8}}};
    struct skrull_plan *plan;
    struct fixture fixture;

    (void)state;
    init_shared(&fixture, 2, 64);
    plan = reports_plan(&fixture, "skrull", lengths, 2);
    for (uint32_t r = 0; r < 2; r++) {
        expect_cuts(plan, r, cuts[r], 4);
        for (uint32_t i = 0; i < 4; i++) {
            assert_int_equal(reports_segments(plan, r, 0)[i].sample, 100 + i / 2);
        }
    }
    skrull_plan_free(plan);
    fixture_deinit(&fixture);
}

static void test_R41__a_sequence_of_no_tokens_is_refused(void **state)
{
    static const uint32_t lengths[] = {5, 0, 3};
    static const char *const words[] = {"sample 101", "length 0", "at least 1 token"};

    (void)state;
    REPORTS_EACH_POLICY(policy)
    {
        struct fixture fixture;

        fixture_init(&fixture, 1, 2, 64);
        reports_refuse(&fixture, *policy, lengths, 3, words, REPORTS_COUNT(words));
        fixture_deinit(&fixture);
    }
}

/* One token on eight ranks: fifteen chunks are padding, and say so: they begin where they end. */
static void test_R41__chunks_of_padding_have_no_tokens(void **state)
{
    static const uint32_t lengths[] = {1};
    static const struct cut first[] = {{0, 1, 1}, {1, 1, 1}}, other[] = {{1, 1, 1}, {1, 1, 1}};
    struct skrull_plan *plan;
    struct fixture fixture;

    (void)state;
    init_shared(&fixture, 8, 64);
    plan = reports_plan(&fixture, "skrull", lengths, 1);
    expect_cuts(plan, 0, first, 2);
    for (uint32_t r = 1; r < 8; r++) {
        expect_cuts(plan, r, other, 2);
        assert_int_equal(reports_micro_batch(plan, r, 0)->tokens, 0);
        assert_false(reports_micro_batch(plan, r, 0)->dummy);
    }
    skrull_plan_free(plan);
    fixture_deinit(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_R14__every_peer_gets_the_same_bytes),
        cmocka_unit_test(test_R14__the_gathered_rank_digests_prove_the_plan),
        cmocka_unit_test(test_R15__chunks_carry_real_offsets_and_their_group),
        cmocka_unit_test(test_R16__each_sequence_of_a_pack_is_aligned),
        cmocka_unit_test(test_R17__7_tokens_on_2_ranks_are_8_padded),
        cmocka_unit_test(test_R18__odd_lengths_keep_real_and_padded_offsets_apart),
        cmocka_unit_test(test_R30__a_plan_does_not_depend_on_plans_before_it),
        cmocka_unit_test(test_R40__a_pack_keeps_its_documents_apart),
        cmocka_unit_test(test_R41__a_sequence_of_no_tokens_is_refused),
        cmocka_unit_test(test_R41__chunks_of_padding_have_no_tokens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
