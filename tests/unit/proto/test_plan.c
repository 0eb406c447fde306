/* Slots against a count of every token by brute force; digests as hex. */
#include <skrull/plan.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const enum skrull_shard shards[] = {SKRULL_SHARD_ZIGZAG, SKRULL_SHARD_CONTIGUOUS};

/* Smallest chunk, a multiple of align, of which `n_chunks` hold `length`: found by trying. */
static uint32_t smallest_chunk(uint32_t length, uint32_t n_chunks, uint32_t align)
{
    uint32_t chunk = 0;

    while (chunk * n_chunks < length) {
        chunk += align;
    }
    return chunk;
}

static void assert_cut(uint32_t length, uint32_t size, uint32_t align, enum skrull_shard shard)
{
    uint32_t n_segments = skrull_slot_segments(size, shard), n_chunks = n_segments * size;
    uint32_t chunk = smallest_chunk(length, n_chunks, align);
    unsigned char *seen = calloc(length + 1, 1);

    assert_non_null(seen);
    assert_int_equal(skrull_slot_tokens(length, size, align, shard), chunk * n_segments);
    for (uint32_t member = 0; member < size; member++) {
        struct skrull_segment segments[2];

        skrull_slot_cut(length, size, member, align, shard, segments);
        for (uint32_t i = 0; i < n_segments; i++) {
            uint32_t i_chunk = i == 0 ? member : 2 * size - 1 - member;
            const struct skrull_segment *segment = &segments[i];

            assert_int_equal(segment->padded_tokens, chunk);
            assert_true(segment->token_begin <= segment->token_end);
            assert_true(segment->token_end <= length);
            for (uint32_t token = segment->token_begin; token < segment->token_end; token++) {
                assert_int_equal(token / chunk, i_chunk);
                assert_int_equal(seen[token]++, 0);
            }
            if (segment->token_begin == segment->token_end) {
                assert_int_equal(segment->token_begin, length);
            }
        }
    }
    for (uint32_t token = 0; token < length; token++) {
        assert_int_equal(seen[token], 1);
    }
    free(seen);
}

static void test_slot_cut__brute_force(void **state)
{
    static const uint32_t sizes[] = {1, 2, 3, 4, 6, 8}, aligns[] = {1, 2, 3, 8, 128};

    (void)state;
    for (uint32_t length = 1; length <= 130; length++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            for (size_t j = 0; j < sizeof(aligns) / sizeof(aligns[0]); j++) {
                assert_cut(length, sizes[i], aligns[j], shards[0]);
                assert_cut(length, sizes[i], aligns[j], shards[1]);
            }
        }
    }
}

static void test_slot_segments__zigzag_pairs(void **state)
{
    (void)state;
    assert_int_equal(skrull_slot_segments(1, SKRULL_SHARD_ZIGZAG), 1);
    assert_int_equal(skrull_slot_segments(2, SKRULL_SHARD_ZIGZAG), 2);
    assert_int_equal(skrull_slot_segments(2, SKRULL_SHARD_CONTIGUOUS), 1);
}

static void test_slot_tokens__large(void **state)
{
    (void)state;
    /* A local slot is rounded past 32 bits, not around them. */
    assert_int_equal(skrull_slot_tokens(UINT32_MAX, 1, 2, SKRULL_SHARD_ZIGZAG), 1ULL << 32);
    assert_int_equal(skrull_slot_tokens(1, UINT32_MAX, UINT32_MAX, SKRULL_SHARD_ZIGZAG),
                     2ULL * UINT32_MAX);
    assert_int_equal(skrull_slot_tokens(UINT64_MAX, 1, 1, SKRULL_SHARD_ZIGZAG), UINT64_MAX);
    assert_int_equal(skrull_slot_tokens(UINT64_MAX, 1, 2, SKRULL_SHARD_ZIGZAG), UINT64_MAX);
    assert_int_equal(skrull_slot_tokens(UINT64_MAX, 2, 1, SKRULL_SHARD_CONTIGUOUS), 1ULL << 63);
}

static void test_slot_cut__large(void **state)
{
    struct skrull_segment segments[2];

    (void)state;
    skrull_slot_cut(UINT32_MAX, 2, 0, 1, SKRULL_SHARD_ZIGZAG, segments);
    assert_int_equal(segments[0].token_begin, 0);
    assert_int_equal(segments[0].token_end, 1U << 30);
    assert_int_equal(segments[1].token_begin, 3U << 30);
    assert_int_equal(segments[1].token_end, UINT32_MAX);
    assert_int_equal(segments[1].padded_tokens, 1U << 30);
    /* Far past the end of the sequence, where 64 bits would not hold the token's number. */
    skrull_slot_cut(1, UINT32_MAX, UINT32_MAX - 1, 1U << 31, SKRULL_SHARD_ZIGZAG, segments);
    assert_int_equal(segments[0].token_begin, 1);
    assert_int_equal(segments[0].token_end, 1);
    assert_int_equal(segments[1].token_begin, 1);
}

static void test_longest_tokens__is_the_last_that_fits(void **state)
{
    static const uint32_t buckets[] = {1, 2, 7, 8, 63, 64, 100}, aligns[] = {1, 3, 8};

    (void)state;
    for (size_t i = 0; i < sizeof(buckets) / sizeof(buckets[0]); i++) {
        for (size_t j = 0; j < sizeof(aligns) / sizeof(aligns[0]); j++) {
            for (uint32_t size = 1; size <= 6; size++) {
                for (size_t k = 0; k < 2; k++) {
                    uint64_t longest =
                        skrull_longest_tokens(buckets[i], size, aligns[j], shards[k]);

                    assert_true(skrull_slot_tokens(longest, size, aligns[j], shards[k]) <=
                                buckets[i]);
                    assert_true(skrull_slot_tokens(longest + 1, size, aligns[j], shards[k]) >
                                buckets[i]);
                }
            }
        }
    }
}

static void test_longest_tokens__large(void **state)
{
    (void)state;
    assert_int_equal(skrull_longest_tokens(UINT32_MAX, UINT32_MAX, 1, SKRULL_SHARD_CONTIGUOUS),
                     (uint64_t)UINT32_MAX * UINT32_MAX);
    assert_int_equal(skrull_longest_tokens(1, 2, UINT32_MAX, SKRULL_SHARD_ZIGZAG), 0);
}

static void test_digest_to_hex__and_back(void **state)
{
    static const char hex[] = "00f1e2d3c4b5a69788796a5b4c3d2e1f";
    uint8_t digest[SKRULL_DIGEST_SIZE];
    char again[SKRULL_DIGEST_HEX_SIZE];

    (void)state;
    assert_int_equal(skrull_digest_from_hex(hex, digest), 0);
    assert_int_equal(digest[1], 0xf1);
    assert_int_equal(digest[15], 0x1f);
    skrull_digest_to_hex(digest, again);
    assert_string_equal(again, hex);
}

static void test_digest_from_hex__refuses(void **state)
{
    static const char *const bad[] = {
        NULL,
        "",
        "00f1e2d3c4b5a69788796a5b4c3d2e1",
        "00f1e2d3c4b5a69788796a5b4c3d2e1f0",
        "00F1e2d3c4b5a69788796a5b4c3d2e1f",
        "g0f1e2d3c4b5a69788796a5b4c3d2e1f",
        "0/f1e2d3c4b5a69788796a5b4c3d2e1f",
        " 0f1e2d3c4b5a69788796a5b4c3d2e1f",
        "00f1e2d3c4b5a69788796a5b4c3d2e1:",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint8_t digest[SKRULL_DIGEST_SIZE] = {42};

        assert_int_equal(skrull_digest_from_hex(bad[i], digest), SKRULL_ERR_INVALID_ARGUMENT);
        assert_int_equal(digest[0], 42); /* out-parameters are for success */
    }
}

static void test_plan_free__null(void **state)
{
    (void)state;
    skrull_plan_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slot_cut__brute_force),
        cmocka_unit_test(test_slot_segments__zigzag_pairs),
        cmocka_unit_test(test_slot_tokens__large),
        cmocka_unit_test(test_slot_cut__large),
        cmocka_unit_test(test_longest_tokens__is_the_last_that_fits),
        cmocka_unit_test(test_longest_tokens__large),
        cmocka_unit_test(test_digest_to_hex__and_back),
        cmocka_unit_test(test_digest_from_hex__refuses),
        cmocka_unit_test(test_plan_free__null),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
