/* A sound plan passes; each way of spoiling it is found and named. */
#include "plan_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan_digest.h"
#include "unit/proto/plan_fixture.h"

struct faults {
    unsigned n;
    char text[4096]; /* each on a line */
};

static void collect(void *arg, const char *message)
{
    struct faults *faults = arg;
    size_t len = strlen(faults->text);

    faults->n++;
    (void)snprintf(faults->text + len, sizeof(faults->text) - len, "%s\n", message);
}

static int run(const struct skrull_plan *plan, const struct plan_check_rules *rules,
               struct faults *faults)
{
    *faults = (struct faults){0};
    return plan_check(plan, rules, collect, faults);
}

static void assert_sound(const struct skrull_plan *plan, const struct plan_check_rules *rules)
{
    struct faults faults;
    int r = run(plan, rules, &faults);

    assert_string_equal(faults.text, "");
    assert_int_equal(r, 0);
}

/* What a case makes true again after it spoiled the plan, so that only its own fault is left. */
enum seal { SEAL_NOTHING, SEAL_DIGESTS, SEAL_SUMS };

struct spoiled {
    const char *name;
    void (*spoil)(struct skrull_plan *plan, struct plan_check_rules *rules);
    const char *message; /* part of a fault */
    enum seal seal;
};

/* Segments of the fixture by what they are. */
enum {
    RANK0_A = 0,
    RANK0_B = 2,
    RANK0_LOCAL13 = 4,
    RANK0_LOCAL15 = 5,
    RANK1_A = 6,
    RANK1_LOCAL14 = 10,
    RANK2_LOCAL17 = 15,
};

#define SPOIL(name)                                                                                \
    static void name(struct skrull_plan *plan,                                                     \
                     struct plan_check_rules *rules __attribute__((unused)))

SPOIL(rank_twice)
{
    plan->ranks[1].data_rank = 0;
}
SPOIL(rank_huge)
{
    plan->ranks[3].data_rank = UINT32_MAX;
}
SPOIL(rank_missing)
{
    plan->n_ranks = 3;
}
SPOIL(no_ranks)
{
    plan->n_ranks = 0;
}
SPOIL(grid_other)
{
    plan->dp = 4;
    plan->cp = 1;
}
SPOIL(counts_differ)
{
    rules->equal_micro_batches = true;
    (void)plan;
}
SPOIL(ends_empty)
{
    plan->micro_batches[1].n_segments = 0;
    plan->micro_batches[1].dummy = true;
}
SPOIL(dummy_missing)
{
    plan->micro_batches[7].dummy = false;
}
SPOIL(dummy_on_full)
{
    plan->micro_batches[0].dummy = true;
}
SPOIL(degree_unknown)
{
    static const uint32_t degrees[] = {1, 4};

    rules->degrees = degrees;
    rules->n_degrees = 2;
    (void)plan;
}
SPOIL(group_unaligned)
{
    plan->segments[RANK0_B].group_first = 1;
}
SPOIL(group_elsewhere)
{
    plan->segments[RANK0_B].group_first = 2;
}
SPOIL(group_beyond)
{
    plan->segments[RANK0_A].group_first = 4;
}
SPOIL(group_wraps)
{
    plan->segments[RANK0_A].group_first = UINT32_MAX - 3;
}
SPOIL(group_empty)
{
    static const uint32_t degrees[] = {0, 1, 2, 4};

    plan->segments[RANK0_LOCAL13].group_size = 0;
    rules->degrees = degrees;
    rules->n_degrees = 4;
}
SPOIL(group_not_own)
{
    plan->segments[RANK1_LOCAL14].group_first = 0;
}
SPOIL(smaller_group_first)
{
    struct skrull_segment pair[2];

    memcpy(pair, &plan->segments[RANK0_A], sizeof(pair));
    memcpy(&plan->segments[RANK0_A], &plan->segments[RANK0_B], sizeof(pair));
    memcpy(&plan->segments[RANK0_B], pair, sizeof(pair));
}
SPOIL(samples_descend)
{
    /* Another local sequence before the one that is there. */
    struct skrull_segment *segment = &plan->segments[RANK0_LOCAL15];

    *segment = plan->segments[RANK0_LOCAL13];
    plan->segments[RANK0_LOCAL13] = (struct skrull_segment){.sample = 15,
                                                            .index = 5,
                                                            .dataset = 1,
                                                            .sequence_length = 7,
                                                            .token_end = 7,
                                                            .padded_tokens = 8,
                                                            .group_size = 1,
                                                            .loss_weight = segment->loss_weight};
    plan->micro_batches[0].n_segments = 6;
    plan->micro_batches[1].n_segments = 0;
}
SPOIL(begin_moved)
{
    plan->segments[RANK1_A].token_begin++;
}
SPOIL(end_moved)
{
    plan->segments[RANK0_LOCAL13].token_end--;
}
SPOIL(range_backwards)
{
    plan->segments[RANK1_A].token_begin = 16;
    plan->segments[RANK1_A].token_end = 8;
}
SPOIL(slot_wider)
{
    plan->segments[RANK0_LOCAL13].padded_tokens += 4;
}
SPOIL(chunks_swapped)
{
    struct skrull_segment first = plan->segments[RANK0_A];

    plan->segments[RANK0_A] = plan->segments[RANK0_A + 1];
    plan->segments[RANK0_A + 1] = first;
}
SPOIL(chunk_missing)
{
    plan->micro_batches[5].n_segments = 1;
}
SPOIL(length_zero)
{
    plan->segments[RANK0_LOCAL13].sequence_length = 0;
    plan->segments[RANK0_LOCAL13].token_end = 0;
    plan->segments[RANK0_LOCAL13].padded_tokens = 0;
}
SPOIL(length_past_slot)
{
    plan->segments[RANK0_LOCAL13].sequence_length = UINT32_MAX;
}
SPOIL(bucket_small)
{
    rules->bucket_tokens = 39;
    (void)plan;
}
SPOIL(tokens_wrong)
{
    plan->micro_batches[2].tokens++;
}
SPOIL(padded_wrong)
{
    plan->micro_batches[2].padded_tokens--;
}
SPOIL(twice_on_a_rank)
{
    plan->segments[RANK0_LOCAL15] = plan->segments[RANK0_LOCAL13];
}
SPOIL(twice_in_a_micro_batch)
{
    /* Room in the arrays is at their end, so the last micro-batch of rank 3 takes it twice. */
    plan->segments[FIXTURE_SEGMENTS] = plan->segments[FIXTURE_SEGMENTS - 2];
    plan->segments[FIXTURE_SEGMENTS + 1] = plan->segments[FIXTURE_SEGMENTS - 1];
    plan->n_segments += 2;
    plan->micro_batches[8].n_segments += 2;
}
SPOIL(on_two_ranks)
{
    struct skrull_segment *segment = &plan->segments[RANK1_LOCAL14];

    *segment = plan->segments[RANK0_LOCAL13];
    segment->group_first = 1;
}
SPOIL(sample_of_two_rows)
{
    plan->segments[RANK1_LOCAL14].sample = 13;
}
SPOIL(member_missing)
{
    plan->micro_batches[8].n_segments = 0;
    plan->micro_batches[8].dummy = true;
}
SPOIL(micro_batches_differ)
{
    struct skrull_micro_batch last = plan->micro_batches[8];

    plan->micro_batches[8] = plan->micro_batches[7];
    plan->micro_batches[7] = last;
}
SPOIL(weight_differs_between_members)
{
    plan->segments[RANK1_A].loss_weight *= 2;
    plan->segments[RANK1_A + 1].loss_weight *= 2;
}
SPOIL(weight_differs_between_chunks)
{
    plan->segments[RANK1_A].loss_weight *= 2;
}
SPOIL(weight_wrong)
{
    plan->segments[RANK0_LOCAL13].loss_weight *= 1 + 1e-15; /* by the last bit or so */
}
SPOIL(weight_not_a_number)
{
    plan->segments[RANK0_LOCAL13].loss_weight = strtod("nan", NULL);
}
SPOIL(weight_without_loss_tokens)
{
    for (size_t i = 0; i < plan->n_segments; i++) {
        if (plan->segments[i].sample == 12) {
            plan->segments[i].loss_weight = 0.01;
        }
    }
}
SPOIL(weight_where_none)
{
    rules->loss = SKRULL_LOSS_NONE;
    (void)plan;
}
SPOIL(weight_of_other_mode)
{
    rules->loss = SKRULL_LOSS_SEQUENCE_MEAN;
    (void)plan;
}
SPOIL(weight_wrong_without_index)
{
    rules->lookup = NULL;
    plan->segments[RANK0_LOCAL13].loss_weight = 0.02;
}
SPOIL(weight_negative_without_index)
{
    rules->lookup = NULL;
    rules->loss = SKRULL_LOSS_SEQUENCE_MEAN;
    plan->segments[RANK0_LOCAL13].loss_weight = -0.02;
}
SPOIL(weight_none_without_index)
{
    rules->lookup = NULL;
    rules->loss = SKRULL_LOSS_NONE;
    (void)plan;
}
SPOIL(row_unknown)
{
    plan->segments[RANK0_LOCAL13].index = UINT64_MAX;
}
SPOIL(dataset_unknown)
{
    plan->segments[RANK0_LOCAL13].dataset = UINT32_MAX;
}
SPOIL(row_longer)
{
    plan->segments[RANK0_LOCAL13].index = 4;
}
SPOIL(sequences_missing)
{
    rules->n_sequences = 9;
    (void)plan;
}
SPOIL(total_sequences)
{
    plan->totals.sequences++;
}
SPOIL(total_tokens)
{
    plan->totals.tokens--;
}
SPOIL(total_loss_tokens)
{
    plan->totals.loss_tokens--;
}
SPOIL(total_loss_tokens_without_index)
{
    rules->lookup = NULL;
    plan->totals.loss_tokens = 125;
}
SPOIL(rank_digest_other)
{
    plan->ranks[2].digest[15] ^= 1;
}
SPOIL(plan_digest_other)
{
    plan->digest[0] ^= 0x80;
}
SPOIL(step_other)
{
    plan->step++;
}
SPOIL(bound_above_time)
{
    plan->estimate.bound_ns = plan->estimate.iteration_ns + 1;
}
SPOIL(micro_batches_outside)
{
    plan->ranks[3].n_micro_batches = UINT32_MAX;
}
SPOIL(micro_batches_far_outside)
{
    plan->ranks[0].first_micro_batch = SIZE_MAX;
}
SPOIL(segments_outside)
{
    plan->micro_batches[8].n_segments++;
}
SPOIL(segments_far_outside)
{
    plan->micro_batches[0].first_segment = SIZE_MAX - 1;
}
SPOIL(micro_batches_shared)
{
    plan->ranks[1].first_micro_batch = 0;
    plan->ranks[1].n_micro_batches = 9;
}
/* The longest micro-batch twice, another never. */
SPOIL(micro_batch_of_two)
{
    plan->micro_batches[1].first_segment = 0;
    plan->micro_batches[1].n_segments = (uint32_t)plan->n_segments;
    plan->ranks[0].n_micro_batches = 1;
    plan->ranks[0].first_micro_batch = plan->ranks[1].first_micro_batch = 1;
}
SPOIL(segments_shared)
{
    plan->micro_batches[7].n_segments = 24;
    plan->micro_batches[7].first_segment = 0;
}

static const struct spoiled cases[] = {
    {"rank_twice", rank_twice, "ranks[1] is data rank 0", SEAL_SUMS},
    {"rank_huge", rank_huge, "ranks[3] is data rank 4294967295", SEAL_SUMS},
    {"rank_missing", rank_missing, "3 ranks, the job has 4", SEAL_SUMS},
    {"no_ranks", no_ranks, "0 ranks, the job has 4", SEAL_SUMS},
    {"grid_other", grid_other, "dp 4 cp 1, the job has dp 2 cp 2", SEAL_SUMS},
    {"counts_differ", counts_differ, "rank 1: 1 micro-batches, rank 0 has 2", SEAL_SUMS},
    {"ends_empty", ends_empty, "rank 0: ends with an empty micro-batch", SEAL_SUMS},
    {"dummy_missing", dummy_missing, "rank 3 micro-batch 1: dummy", SEAL_SUMS},
    {"dummy_on_full", dummy_on_full, "rank 0 micro-batch 0: dummy", SEAL_SUMS},
    {"degree_unknown", degree_unknown, "sample 12 in the group of 2 ranks from 0", SEAL_SUMS},
    {"group_unaligned", group_unaligned, "sample 12 in the group of 2 ranks from 1", SEAL_SUMS},
    {"group_elsewhere", group_elsewhere, "sample 12 in the group of 2 ranks from 2", SEAL_SUMS},
    {"group_beyond", group_beyond, "sample 10 in the group of 4 ranks from 4", SEAL_SUMS},
    {"group_wraps", group_wraps, "the group of 4 ranks from 4294967292", SEAL_SUMS},
    {"group_empty", group_empty, "sample 13 in the group of 0 ranks", SEAL_SUMS},
    {"group_not_own", group_not_own, "sample 14 in the group of 1 ranks from 0", SEAL_SUMS},
    {"smaller_group_first", smaller_group_first, "sample 10 out of order", SEAL_SUMS},
    {"samples_descend", samples_descend, "sample 13 out of order", SEAL_SUMS},
    {"begin_moved", begin_moved, "sample 10 as tokens 9 to 16, padded 8; expected 8 to 16",
     SEAL_SUMS},
    {"end_moved", end_moved, "sample 13 as tokens 0 to 4, padded 8; expected 0 to 5", SEAL_SUMS},
    {"range_backwards", range_backwards, "sample 10 as tokens 16 to 8", SEAL_SUMS},
    {"slot_wider", slot_wider, "padded 12; expected 0 to 5, padded 8", SEAL_SUMS},
    {"chunks_swapped", chunks_swapped, "sample 10 as tokens 37 to 37", SEAL_SUMS},
    {"chunk_missing", chunk_missing, "sample 16 in 1 segments, expected 2", SEAL_SUMS},
    {"length_zero", length_zero, "sample 13 has 0 tokens", SEAL_SUMS},
    {"length_past_slot", length_past_slot, "sample 13 has 4294967295 tokens", SEAL_SUMS},
    {"bucket_small", bucket_small, "rank 0 micro-batch 0: 40 padded tokens, the bucket has 39",
     SEAL_SUMS},
    {"tokens_wrong", tokens_wrong, "rank 1 micro-batch 0: says 31 tokens", SEAL_NOTHING},
    {"padded_wrong", padded_wrong, "says 30 tokens, padded 43; holds 30, padded 44", SEAL_NOTHING},
    {"twice_on_a_rank", twice_on_a_rank, "sample 13: twice on rank 0", SEAL_SUMS},
    {"twice_in_a_micro_batch", twice_in_a_micro_batch, "sample 16 in 4 segments, expected 2",
     SEAL_SUMS},
    {"on_two_ranks", on_two_ranks, "sample 13: ranks 0 and 1 disagree", SEAL_SUMS},
    {"sample_of_two_rows", sample_of_two_rows, "sample 13: ranks 0 and 1 disagree", SEAL_SUMS},
    {"member_missing", member_missing, "sample 16: on 1 ranks of its group of 2", SEAL_SUMS},
    {"micro_batches_differ", micro_batches_differ,
     "sample 16: in micro-batch 2 on rank 2, 1 on rank 3", SEAL_SUMS},
    {"weight_differs_between_members", weight_differs_between_members,
     "sample 10: ranks 0 and 1 disagree", SEAL_SUMS},
    {"weight_differs_between_chunks", weight_differs_between_chunks,
     "the segments of sample 10 disagree", SEAL_SUMS},
    {"weight_wrong", weight_wrong, "sample 13: loss weight 0.01", SEAL_SUMS},
    {"weight_not_a_number", weight_not_a_number, "sample 13: loss weight nan", SEAL_SUMS},
    {"weight_without_loss_tokens", weight_without_loss_tokens, "sample 12: loss weight 0.01",
     SEAL_SUMS},
    {"weight_where_none", weight_where_none, "sample 10: loss weight 0.01", SEAL_SUMS},
    {"weight_of_other_mode", weight_of_other_mode, "sample 13: loss weight 0.01", SEAL_SUMS},
    {"weight_wrong_without_index", weight_wrong_without_index, "sample 13: loss weight 0.02",
     SEAL_SUMS},
    {"weight_negative_without_index", weight_negative_without_index, "sample 13: loss weight -0.02",
     SEAL_SUMS},
    {"weight_none_without_index", weight_none_without_index, "sample 13: loss weight 0.01",
     SEAL_SUMS},
    {"row_unknown", row_unknown, "sample 13: data set 1 has no row 18446744073709551615",
     SEAL_SUMS},
    {"dataset_unknown", dataset_unknown, "sample 13: data set 4294967295 has no row 3", SEAL_SUMS},
    {"row_longer", row_longer, "sample 13: 5 tokens, the index says 9", SEAL_SUMS},
    {"sequences_missing", sequences_missing, "8 sequences, the batch has 9", SEAL_SUMS},
    {"total_sequences", total_sequences, "totals: 9 sequences", SEAL_SUMS},
    {"total_tokens", total_tokens, "totals: 8 sequences, 123 tokens", SEAL_SUMS},
    {"total_loss_tokens", total_loss_tokens, "totals: 99 loss tokens, the plan holds 100",
     SEAL_SUMS},
    {"total_loss_tokens_without_index", total_loss_tokens_without_index, "totals: 125 loss tokens",
     SEAL_SUMS},
    {"rank_digest_other", rank_digest_other, "rank 2: rank digest ", SEAL_NOTHING},
    {"plan_digest_other", plan_digest_other, "digest ca288df2edfc01b39ef520128ba1bbe6, the content",
     SEAL_NOTHING},
    {"step_other", step_other, "rank 0: rank digest ", SEAL_NOTHING},
    {"bound_above_time", bound_above_time, "the bound is above the time", SEAL_SUMS},
    {"micro_batches_outside", micro_batches_outside, "ranks[3]: its micro-batches are outside",
     SEAL_NOTHING},
    {"micro_batches_far_outside", micro_batches_far_outside, "ranks[0]: its micro-batches",
     SEAL_NOTHING},
    {"segments_outside", segments_outside, "micro_batches[8]: its segments are outside",
     SEAL_NOTHING},
    {"segments_far_outside", segments_far_outside, "micro_batches[0]: its segments", SEAL_NOTHING},
    {"micro_batches_shared", micro_batches_shared, "ranks share micro-batches", SEAL_NOTHING},
    {"micro_batch_of_two", micro_batch_of_two, "micro-batches share segments", SEAL_NOTHING},
    {"segments_shared", segments_shared, "micro-batches share segments", SEAL_NOTHING},
};

static void test_plan_check__sound(void **state)
{
    struct skrull_plan *plan = fixture_new();
    struct plan_check_rules rules = fixture_rules();

    (void)state;
    assert_sound(plan, &rules);
    rules.lookup = NULL;
    assert_sound(plan, &rules);
    rules.n_sequences = 0;
    assert_sound(plan, &rules);
    skrull_plan_free(plan);
}

static void test_plan_check__each_fault_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct skrull_plan *plan = fixture_new();
        struct plan_check_rules rules = fixture_rules();
        struct faults faults;
        int r;

        cases[i].spoil(plan, &rules);
        if (cases[i].seal == SEAL_SUMS) {
            fixture_add_up(plan);
        }
        if (cases[i].seal != SEAL_NOTHING) {
            assert_int_equal(plan_digest_all(plan), 0);
        }
        r = run(plan, &rules, &faults);
        if (r != PLAN_CHECK_UNSOUND || !strstr(faults.text, cases[i].message)) {
            fail_msg("%s: returned %d, wanted \"%s\", got:\n%s", cases[i].name, r, cases[i].message,
                     faults.text);
        }
        skrull_plan_free(plan);
    }
}

/* Weights of the other modes, computed here by hand. */
static void test_plan_check__sequence_mean(void **state)
{
    struct skrull_plan *plan = fixture_new();
    struct plan_check_rules rules = fixture_rules();

    (void)state;
    for (size_t i = 0; i < plan->n_segments; i++) {
        uint64_t loss_tokens = fixture_rows[plan->segments[i].index].loss_tokens;

        plan->segments[i].loss_weight = loss_tokens ? 1.0 / (double)(7 * loss_tokens) : 0.0;
    }
    assert_int_equal(plan_digest_all(plan), 0);
    rules.loss = SKRULL_LOSS_SEQUENCE_MEAN;
    assert_sound(plan, &rules);
    rules.lookup = NULL;
    assert_sound(plan, &rules);
    skrull_plan_free(plan);
}

static void test_plan_check__loss_none(void **state)
{
    struct skrull_plan *plan = fixture_new();
    struct plan_check_rules rules = fixture_rules();

    (void)state;
    for (size_t i = 0; i < plan->n_segments; i++) {
        plan->segments[i].loss_weight = 0.0;
    }
    assert_int_equal(plan_digest_all(plan), 0);
    rules.loss = SKRULL_LOSS_NONE;
    assert_sound(plan, &rules);
    skrull_plan_free(plan);
}

/* Equal counts: ranks that have less end with dummies, which is then no fault. */
static void test_plan_check__equal_counts(void **state)
{
    static const uint32_t degrees[] = {1};
    struct skrull_segment segments[] = {{.sequence_length = 5,
                                         .token_end = 5,
                                         .padded_tokens = 5,
                                         .group_size = 1,
                                         .loss_weight = 0.2}};
    struct skrull_micro_batch micro_batches[] = {{.n_segments = 1, .tokens = 5, .padded_tokens = 5},
                                                 {.first_segment = 1, .dummy = true}};
    struct skrull_rank ranks[] = {{.data_rank = 0, .n_micro_batches = 1},
                                  {.data_rank = 1, .n_micro_batches = 1, .first_micro_batch = 1}};
    struct skrull_plan plan = {.dp = 2,
                               .cp = 1,
                               .totals = {1, 5, 5},
                               .n_ranks = 2,
                               .n_micro_batches = 2,
                               .n_segments = 1,
                               .ranks = ranks,
                               .micro_batches = micro_batches,
                               .segments = segments};
    struct plan_check_rules rules = {.dp = 2,
                                     .cp = 1,
                                     .degrees = degrees,
                                     .n_degrees = 1,
                                     .bucket_tokens = 5,
                                     .align = 1,
                                     .shard = SKRULL_SHARD_ZIGZAG,
                                     .loss = SKRULL_LOSS_TOKEN_MEAN,
                                     .equal_micro_batches = true};
    struct faults faults;

    (void)state;
    assert_int_equal(plan_digest_all(&plan), 0);
    assert_sound(&plan, &rules);
    rules.equal_micro_batches = false;
    assert_int_equal(run(&plan, &rules, &faults), PLAN_CHECK_UNSOUND);
    assert_string_equal(faults.text, "rank 1: ends with an empty micro-batch\n");
}

/* Two micro-batches on each of two ranks, the last a dummy, held against counts. */
static void test_plan_check__fixed_counts(void **state)
{
    static const struct {
        bool equal;
        uint32_t exact, multiple, min;
        const char *fault; /* NULL: none */
    } rows[] = {
        {true, 0, 0, 0, NULL},
        {true, 0, 2, 2, NULL},
        {false, 2, 1, 1, NULL}, /* equal by the exact count: a dummy may stand at the end */
        {false, 0, 0, 0, "rank 0: ends with an empty micro-batch"},
        {false, 3, 0, 0, "rank 0: 2 micro-batches, the job wants 3"},
        {true, 1, 0, 0, "rank 1: 2 micro-batches, the job wants 1"},
        {true, 0, 3, 0, "rank 1: 2 micro-batches, the job wants a multiple of 3"},
        {true, 0, 0, 3, "rank 0: 2 micro-batches, the job wants at least 3"},
    };
    static const uint32_t degrees[] = {1};
    struct skrull_segment segments[2];
    struct skrull_micro_batch micro_batches[4] = {
        {.n_segments = 1, .tokens = 5, .padded_tokens = 5},
        {.first_segment = 1, .dummy = true},
        {.first_segment = 1, .n_segments = 1, .tokens = 5, .padded_tokens = 5},
        {.first_segment = 2, .dummy = true}};
    struct skrull_rank ranks[] = {{.data_rank = 0, .n_micro_batches = 2},
                                  {.data_rank = 1, .n_micro_batches = 2, .first_micro_batch = 2}};
    struct skrull_plan plan = {.dp = 2,
                               .cp = 1,
                               .totals = {2, 10, 10},
                               .n_ranks = 2,
                               .n_micro_batches = 4,
                               .n_segments = 2,
                               .ranks = ranks,
                               .micro_batches = micro_batches,
                               .segments = segments};

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        segments[i] = (struct skrull_segment){.sample = i,
                                              .sequence_length = 5,
                                              .token_end = 5,
                                              .padded_tokens = 5,
                                              .group_first = i,
                                              .group_size = 1,
                                              .loss_weight = 0.1};
    }
    assert_int_equal(plan_digest_all(&plan), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct plan_check_rules rules = {.dp = 2,
                                               .cp = 1,
                                               .degrees = degrees,
                                               .n_degrees = 1,
                                               .bucket_tokens = 5,
                                               .align = 1,
                                               .shard = SKRULL_SHARD_ZIGZAG,
                                               .loss = SKRULL_LOSS_TOKEN_MEAN,
                                               .equal_micro_batches = rows[i].equal,
                                               .micro_batches = rows[i].exact,
                                               .micro_batch_multiple = rows[i].multiple,
                                               .micro_batch_min = rows[i].min};
        static struct faults faults; /* large */

        print_message("# row %zu\n", i);
        if (!rows[i].fault) {
            assert_sound(&plan, &rules);
            continue;
        }
        assert_int_equal(run(&plan, &rules, &faults), PLAN_CHECK_UNSOUND);
        assert_non_null(strstr(faults.text, rows[i].fault));
    }
}

/* Rank 1 holds shards of two group sizes and a local sequence in its one micro-batch. */
static void test_plan_check__uniform_mix(void **state)
{
    struct skrull_plan *plan = fixture_new();
    struct plan_check_rules rules = fixture_rules();
    struct faults faults;

    (void)state;
    rules.mix = SKRULL_MIX_ANY;
    assert_sound(plan, &rules);
    rules.mix = SKRULL_MIX_UNIFORM;
    assert_int_equal(run(plan, &rules, &faults), PLAN_CHECK_UNSOUND);
    assert_non_null(
        strstr(faults.text,
               "rank 1 micro-batch 0: groups of 4 and of 2 ranks, the job's mix is uniform\n"));
    assert_null(strstr(faults.text, "rank 2 micro-batch 1"));
    skrull_plan_free(plan);
}

static void test_plan_check__faults_are_limited(void **state)
{
    struct skrull_plan *plan = fixture_new();
    struct plan_check_rules rules = fixture_rules();
    struct faults faults;

    (void)state;
    for (size_t i = 0; i < plan->n_segments; i++) {
        plan->segments[i].token_begin += 100;
        plan->segments[i].loss_weight = (double)i;
    }
    assert_int_equal(run(plan, &rules, &faults), PLAN_CHECK_UNSOUND);
    assert_int_equal(faults.n, PLAN_CHECK_MAX_FAULTS);
    assert_int_equal(plan_check(plan, &rules, NULL, NULL), PLAN_CHECK_UNSOUND);
    skrull_plan_free(plan);
}

/* xorshift64, fixed seed. */
static uint64_t next_random(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

/* A number such as breaks arithmetic. */
static uint32_t odd_number(uint64_t *random)
{
    static const uint32_t odd[] = {0, 1, 2, 3, 4, 8, 37, 0x7fffffff, 0x80000000, UINT32_MAX};

    return odd[next_random(random) % (sizeof(odd) / sizeof(odd[0]))];
}

static void spoil_at_random(struct skrull_plan *plan, uint64_t *random)
{
    struct skrull_segment *segment = &plan->segments[next_random(random) % plan->n_segments];
    struct skrull_micro_batch *micro_batch =
        &plan->micro_batches[next_random(random) % plan->n_micro_batches];
    struct skrull_rank *rank = &plan->ranks[next_random(random) % FIXTURE_RANKS];

    switch (next_random(random) % 14) {
    case 0:
        segment->sample = odd_number(random);
        break;
    case 1:
        segment->sequence_length = odd_number(random);
        break;
    case 2:
        segment->token_begin = odd_number(random);
        break;
    case 3:
        segment->token_end = odd_number(random);
        break;
    case 4:
        segment->padded_tokens = odd_number(random);
        break;
    case 5:
        segment->group_first = odd_number(random);
        break;
    case 6:
        segment->group_size = odd_number(random);
        break;
    case 7:
        micro_batch->n_segments = odd_number(random);
        break;
    case 8:
        micro_batch->first_segment = odd_number(random);
        break;
    case 9:
        rank->n_micro_batches = odd_number(random);
        break;
    case 10:
        rank->first_micro_batch = odd_number(random);
        break;
    case 11:
        rank->data_rank = odd_number(random);
        break;
    case 12:
        segment->loss_weight = (double)odd_number(random);
        break;
    default:
        plan->n_ranks = odd_number(random) % (FIXTURE_RANKS + 1);
        break;
    }
}

/* No plan crashes it; sanitizers look on. Rules too are odd now and then. */
static void test_plan_check__random_plans(void **state)
{
    uint64_t random = 0x9e3779b97f4a7c15;

    (void)state;
    for (int i = 0; i < 3000; i++) {
        struct skrull_plan *plan = fixture_new();
        struct plan_check_rules rules = fixture_rules();
        uint64_t n = 1 + next_random(&random) % 4;

        for (uint64_t j = 0; j < n; j++) {
            spoil_at_random(plan, &random);
        }
        if (i % 8 == 0) {
            rules.align = odd_number(&random);
            rules.shard = SKRULL_SHARD_CONTIGUOUS;
        }
        assert_true(plan_check(plan, &rules, NULL, NULL) >= 0);
        skrull_plan_free(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_check__sound),
        cmocka_unit_test(test_plan_check__each_fault_is_named),
        cmocka_unit_test(test_plan_check__sequence_mean),
        cmocka_unit_test(test_plan_check__loss_none),
        cmocka_unit_test(test_plan_check__equal_counts),
        cmocka_unit_test(test_plan_check__fixed_counts),
        cmocka_unit_test(test_plan_check__uniform_mix),
        cmocka_unit_test(test_plan_check__faults_are_limited),
        cmocka_unit_test(test_plan_check__random_plans),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
