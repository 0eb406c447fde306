/* Plans to messages and back; the names of the fields are checked through JSON, which goes by the
 * descriptors and knows nothing of this codec. */
#include "codec_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "skrull/v1/plan.pb-c.h"

#include "codec_json.h"
#include "codec_wire.h"
#include "unit/proto/plan_fixture.h"

static void assert_estimate(const struct skrull_estimate *a, const struct skrull_estimate *b)
{
    assert_memory_equal(a, b, sizeof(*a));
}

static void assert_head(const struct skrull_plan *a, const struct skrull_plan *b)
{
    assert_string_equal(a->job, b->job);
    assert_string_equal(a->uid, b->uid);
    assert_string_equal(a->policy, b->policy);
    assert_int_equal(a->revision, b->revision);
    assert_int_equal(a->planner_version, b->planner_version);
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->epoch, b->epoch);
    assert_int_equal(a->dp, b->dp);
    assert_int_equal(a->cp, b->cp);
    assert_memory_equal(a->digest, b->digest, SKRULL_DIGEST_SIZE);
    assert_memory_equal(&a->totals, &b->totals, sizeof(a->totals));
}

static void assert_segment(const struct skrull_segment *a, const struct skrull_segment *b)
{
    assert_int_equal(a->sample, b->sample);
    assert_int_equal(a->index, b->index);
    assert_int_equal(a->dataset, b->dataset);
    assert_int_equal(a->sequence_length, b->sequence_length);
    assert_int_equal(a->token_begin, b->token_begin);
    assert_int_equal(a->token_end, b->token_end);
    assert_int_equal(a->padded_tokens, b->padded_tokens);
    assert_int_equal(a->group_first, b->group_first);
    assert_int_equal(a->group_size, b->group_size);
    assert_memory_equal(&a->loss_weight, &b->loss_weight, sizeof(a->loss_weight));
}

/* Rank `i` of `a` against rank `j` of `b`, down to the segments. */
static void assert_rank(const struct skrull_plan *a, size_t i, const struct skrull_plan *b,
                        size_t j)
{
    const struct skrull_rank *x = &a->ranks[i], *y = &b->ranks[j];

    assert_int_equal(x->data_rank, y->data_rank);
    assert_memory_equal(x->digest, y->digest, SKRULL_DIGEST_SIZE);
    assert_estimate(&x->estimate, &y->estimate);
    assert_int_equal(x->n_micro_batches, y->n_micro_batches);
    for (uint32_t k = 0; k < x->n_micro_batches; k++) {
        const struct skrull_micro_batch *m = &a->micro_batches[x->first_micro_batch + k];
        const struct skrull_micro_batch *n = &b->micro_batches[y->first_micro_batch + k];

        assert_int_equal(m->dummy, n->dummy);
        assert_int_equal(m->tokens, n->tokens);
        assert_int_equal(m->padded_tokens, n->padded_tokens);
        assert_estimate(&m->estimate, &n->estimate);
        assert_int_equal(m->n_segments, n->n_segments);
        for (uint32_t l = 0; l < m->n_segments; l++) {
            assert_segment(&a->segments[m->first_segment + l], &b->segments[n->first_segment + l]);
        }
    }
}

static void test_plan__round_trip(void **state)
{
    struct arena *arena = arena_new(SIZE_MAX);
    struct skrull_plan *plan = fixture_new(), *again;
    Skrull__V1__Plan *message;

    (void)state;
    assert_int_equal(codec_plan_encode(arena, plan, NULL, 0, &message, NULL), 0);
    assert_int_equal(codec_plan_decode(message, &again, NULL), 0);
    arena_free(arena); /* the plan borrows nothing of the message */
    assert_head(again, plan);
    assert_estimate(&again->estimate, &plan->estimate);
    assert_int_equal(again->n_ranks, plan->n_ranks);
    assert_int_equal(again->n_micro_batches, plan->n_micro_batches);
    assert_int_equal(again->n_segments, plan->n_segments);
    for (size_t i = 0; i < plan->n_ranks; i++) {
        assert_rank(again, i, plan, i);
    }
    skrull_plan_free(again);
    skrull_plan_free(plan);
}

static void test_plan__some_ranks(void **state)
{
    static const uint32_t wanted[] = {3, 1, 3, 99};
    struct arena *arena = arena_new(SIZE_MAX);
    struct skrull_plan *plan = fixture_new(), *again;
    Skrull__V1__Plan *message;

    (void)state;
    assert_int_equal(codec_plan_encode(arena, plan, wanted, 4, &message, NULL), 0);
    assert_int_equal(codec_plan_decode(message, &again, NULL), 0);
    assert_head(again, plan);
    assert_int_equal(again->n_ranks, 2);
    assert_rank(again, 0, plan, 1);
    assert_rank(again, 1, plan, 3);
    skrull_plan_free(again);
    skrull_plan_free(plan);
    arena_free(arena);
}

static void test_rank_plan__round_trip(void **state)
{
    struct arena *arena = arena_new(SIZE_MAX);
    struct skrull_plan *plan = fixture_new();

    (void)state;
    for (size_t i = 0; i < plan->n_ranks; i++) {
        Skrull__V1__RankPlan *message;
        struct skrull_plan *again;
        uint8_t digest[SKRULL_DIGEST_SIZE];

        assert_int_equal(codec_rank_plan_encode(arena, plan, i, &message, NULL), 0);
        assert_int_equal(codec_rank_plan_decode(message, &again, NULL), 0);
        assert_head(again, plan);
        assert_int_equal(again->n_ranks, 1);
        assert_int_equal(again->estimate.iteration_ns, 0);
        assert_rank(again, 0, plan, i);
        assert_int_equal(skrull_rank_digest(again, 0, digest), 0);
        assert_memory_equal(digest, plan->ranks[i].digest, SKRULL_DIGEST_SIZE);
        skrull_plan_free(again);
    }
    skrull_plan_free(plan);
    arena_free(arena);
}

/* A plan whose every field differs, of one rank, so that two fields that changed places are seen.
 */
static void test_rank_plan__names(void **state)
{
    static const char expected[] =
        "{\"job\":\"j\",\"uid\":\"u\",\"revision\":1,\"plannerVersion\":2,\"step\":\"3\","
        "\"epoch\":\"4\",\"policy\":\"p\",\"digest\":\"a1000000000000000000000000000000\","
        "\"dp\":5,\"cp\":6,\"dataRank\":7,\"rankDigest\":\"b2000000000000000000000000000000\","
        "\"microBatches\":[{\"segments\":[{\"sample\":\"11\",\"dataset\":12,\"index\":\"13\","
        "\"sequenceLength\":14,\"tokenBegin\":15,\"tokenEnd\":16,\"paddedTokens\":17,"
        "\"groupFirst\":18,\"groupSize\":19,\"lossWeight\":0.5}],\"tokens\":\"20\","
        "\"paddedTokens\":\"21\",\"dummy\":true,\"estimate\":{\"iterationNs\":\"22\","
        "\"boundNs\":\"23\",\"compNs\":\"24\",\"commNs\":\"25\",\"idleNs\":\"26\"}}],"
        "\"totals\":{\"sequences\":\"27\",\"tokens\":\"28\",\"lossTokens\":\"29\"},"
        "\"estimate\":{\"iterationNs\":\"30\",\"boundNs\":\"31\",\"compNs\":\"32\","
        "\"commNs\":\"33\",\"idleNs\":\"34\"}}";
    struct skrull_segment segment = {.sample = 11,
                                     .dataset = 12,
                                     .index = 13,
                                     .sequence_length = 14,
                                     .token_begin = 15,
                                     .token_end = 16,
                                     .padded_tokens = 17,
                                     .group_first = 18,
                                     .group_size = 19,
                                     .loss_weight = 0.5};
    struct skrull_micro_batch micro_batch = {.n_segments = 1,
                                             .dummy = true,
                                             .tokens = 20,
                                             .padded_tokens = 21,
                                             .estimate = {22, 23, 24, 25, 26}};
    struct skrull_rank rank = {
        .data_rank = 7, .n_micro_batches = 1, .digest = {0xb2}, .estimate = {30, 31, 32, 33, 34}};
    const struct skrull_plan plan = {.job = "j",
                                     .uid = "u",
                                     .policy = "p",
                                     .revision = 1,
                                     .planner_version = 2,
                                     .step = 3,
                                     .epoch = 4,
                                     .dp = 5,
                                     .cp = 6,
                                     .digest = {0xa1},
                                     .totals = {27, 28, 29},
                                     .n_ranks = 1,
                                     .n_micro_batches = 1,
                                     .n_segments = 1,
                                     .ranks = &rank,
                                     .micro_batches = &micro_batch,
                                     .segments = &segment};
    struct arena *arena = arena_new(SIZE_MAX);
    Skrull__V1__RankPlan *message;
    char *json;

    (void)state;
    assert_int_equal(codec_rank_plan_encode(arena, &plan, 0, &message, NULL), 0);
    json = codec_json_encode(&message->base, false);
    assert_non_null(json);
    assert_string_equal(json, expected);
    free(json);
    arena_free(arena);
}

struct refused {
    const char *name;
    void (*spoil)(Skrull__V1__Plan *message);
    int code;
    const char *message;
};

#define SPOIL(name) static void name(Skrull__V1__Plan *message)

SPOIL(digest_missing)
{
    message->digest = codec_wire_borrow("");
    for (size_t i = 0; i < message->n_ranks; i++) {
        message->ranks[i]->digest = message->digest;
    }
}
SPOIL(rank_digest_short)
{
    message->ranks[2]->rank_digest = codec_wire_borrow("00112233445566778899aabbccddeef");
}
SPOIL(rank_of_other_plan)
{
    message->ranks[1]->digest = codec_wire_borrow("00112233445566778899aabbccddeeff");
}
SPOIL(rank_of_other_step)
{
    message->ranks[1]->step++;
}
SPOIL(rank_of_other_epoch)
{
    message->ranks[3]->epoch++;
}
SPOIL(rank_of_other_job)
{
    message->ranks[1]->job = codec_wire_borrow("other");
}
SPOIL(rank_of_other_uid)
{
    message->ranks[1]->uid = codec_wire_borrow("");
}
SPOIL(rank_of_other_policy)
{
    message->ranks[1]->policy = codec_wire_borrow("");
}
SPOIL(rank_of_other_revision)
{
    message->ranks[1]->revision++;
}
SPOIL(rank_of_other_version)
{
    message->ranks[1]->planner_version++;
}
SPOIL(rank_of_other_grid)
{
    message->ranks[1]->dp++;
}
SPOIL(rank_of_other_cp)
{
    message->ranks[1]->cp++;
}
SPOIL(rank_without_totals)
{
    message->ranks[1]->totals = NULL;
}
SPOIL(job_long)
{
    message->job =
        codec_wire_borrow("aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff1234");
    for (size_t i = 0; i < message->n_ranks; i++) {
        message->ranks[i]->job = message->job;
    }
}
SPOIL(uid_long)
{
    message->uid = codec_wire_borrow("00112233445566778899aabbccddeeff0");
    for (size_t i = 0; i < message->n_ranks; i++) {
        message->ranks[i]->uid = message->uid;
    }
}

static const struct refused refused[] = {
    {"digest_missing", digest_missing, SKRULL_ERR_DATA_LOSS, "digest: not 32"},
    {"rank_digest_short", rank_digest_short, SKRULL_ERR_DATA_LOSS, "rank_digest: not 32"},
    {"rank_of_other_plan", rank_of_other_plan, SKRULL_ERR_DATA_LOSS, "ranks[1].digest is not"},
    {"rank_of_other_step", rank_of_other_step, SKRULL_ERR_DATA_LOSS, "ranks[1].step is not"},
    {"rank_of_other_epoch", rank_of_other_epoch, SKRULL_ERR_DATA_LOSS, "ranks[3].epoch is not"},
    {"rank_of_other_job", rank_of_other_job, SKRULL_ERR_DATA_LOSS, "ranks[1].job is not"},
    {"rank_of_other_uid", rank_of_other_uid, SKRULL_ERR_DATA_LOSS, "ranks[1].uid is not"},
    {"rank_of_other_policy", rank_of_other_policy, SKRULL_ERR_DATA_LOSS, "ranks[1].policy is"},
    {"rank_of_other_revision", rank_of_other_revision, SKRULL_ERR_DATA_LOSS, "ranks[1].revision"},
    {"rank_of_other_version", rank_of_other_version, SKRULL_ERR_DATA_LOSS, "planner_version"},
    {"rank_of_other_grid", rank_of_other_grid, SKRULL_ERR_DATA_LOSS, "ranks[1].dp is not"},
    {"rank_of_other_cp", rank_of_other_cp, SKRULL_ERR_DATA_LOSS, "ranks[1].cp is not"},
    {"rank_without_totals", rank_without_totals, SKRULL_ERR_DATA_LOSS, "ranks[1].totals is not"},
    {"job_long", job_long, SKRULL_ERR_INVALID_ARGUMENT, "job: 64 bytes, at most 63"},
    {"uid_long", uid_long, SKRULL_ERR_INVALID_ARGUMENT, "uid: 33 bytes, at most 32"},
};

static void test_plan_decode__refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct arena *arena = arena_new(SIZE_MAX);
        struct skrull_plan *plan = fixture_new(), *again = NULL;
        Skrull__V1__Plan *message;
        struct skrull_error err;
        int r;

        assert_int_equal(codec_plan_encode(arena, plan, NULL, 0, &message, NULL), 0);
        refused[i].spoil(message);
        r = codec_plan_decode(message, &again, &err);
        if (r != refused[i].code || !strstr(err.message, refused[i].message)) {
            fail_msg("%s: %d, \"%s\"", refused[i].name, r, err.message);
        }
        assert_null(again);
        skrull_plan_free(plan);
        arena_free(arena);
    }
}

/* Nothing given: a message of defaults has no digest, so it is no plan. */
static void test_rank_plan_decode__empty(void **state)
{
    Skrull__V1__RankPlan message;
    struct skrull_plan *plan;

    (void)state;
    skrull__v1__rank_plan__init(&message);
    assert_int_equal(codec_rank_plan_decode(&message, &plan, NULL), SKRULL_ERR_DATA_LOSS);
    message.digest = codec_wire_borrow(FIXTURE_DIGEST);
    message.rank_digest = message.digest;
    assert_int_equal(codec_rank_plan_decode(&message, &plan, NULL), 0);
    assert_int_equal(plan->n_micro_batches, 0);
    skrull_plan_free(plan);
}

/* Memory runs out at each allocation in turn. */
static void test_plan_encode__every_budget(void **state)
{
    struct skrull_plan *plan = fixture_new();
    size_t budget = 0;
    int r;

    (void)state;
    do {
        struct arena *arena = arena_new(budget);
        Skrull__V1__Plan *message;

        r = codec_plan_encode(arena, plan, NULL, 0, &message, NULL);
        assert_true(r == 0 || r == SKRULL_ERR_RESOURCE_EXHAUSTED);
        arena_free(arena);
        budget += 16;
    } while (r);
    budget = 0;
    do {
        struct arena *arena = arena_new(budget);
        Skrull__V1__RankPlan *message;

        r = codec_rank_plan_encode(arena, plan, 0, &message, NULL);
        assert_true(r == 0 || r == SKRULL_ERR_RESOURCE_EXHAUSTED);
        arena_free(arena);
        budget += 16;
    } while (r);
    skrull_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan__round_trip),
        cmocka_unit_test(test_plan__some_ranks),
        cmocka_unit_test(test_rank_plan__round_trip),
        cmocka_unit_test(test_rank_plan__names),
        cmocka_unit_test(test_plan_decode__refuses),
        cmocka_unit_test(test_rank_plan_decode__empty),
        cmocka_unit_test(test_plan_encode__every_budget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
