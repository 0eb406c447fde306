/* Tests cuda/layout: one plan written out by hand, and every rule that a plan can break. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <skrull/layout.h>

/*
 * Rank 1 of <1, 4>: sample 3 (17 tokens) over all four ranks, 5 (5 tokens) over ranks 0 and 1, both
 * zigzag; 7 (3 tokens) here, in a slot of 4. Then a micro-batch that is a dummy.
 */
struct fixture {
    struct skrull_plan plan;
    struct skrull_rank rank;
    struct skrull_micro_batch micro_batches[2];
    struct skrull_segment segments[5];
};

static void fixture_init(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    f->segments[0] = (struct skrull_segment){.sample = 3,
                                             .sequence_length = 17,
                                             .token_begin = 3,
                                             .token_end = 6,
                                             .padded_tokens = 3,
                                             .group_size = 4,
                                             .loss_weight = 0.25};
    f->segments[1] = f->segments[0];
    f->segments[1].token_begin = 17;
    f->segments[1].token_end = 17;
    f->segments[2] = (struct skrull_segment){.sample = 5,
                                             .sequence_length = 5,
                                             .token_begin = 2,
                                             .token_end = 4,
                                             .padded_tokens = 2,
                                             .group_size = 2,
                                             .loss_weight = 0.5};
    f->segments[3] = f->segments[2];
    f->segments[3].token_begin = 4;
    f->segments[3].token_end = 5;
    f->segments[4] = (struct skrull_segment){.sample = 7,
                                             .index = 70,
                                             .dataset = 2,
                                             .sequence_length = 3,
                                             .token_end = 3,
                                             .padded_tokens = 4,
                                             .group_first = 1,
                                             .group_size = 1,
                                             .loss_weight = 0.125};
    f->micro_batches[0] = (struct skrull_micro_batch){.n_segments = 5};
    f->micro_batches[1] = (struct skrull_micro_batch){.first_segment = 5, .dummy = true};
    f->rank = (struct skrull_rank){.data_rank = 1, .n_micro_batches = 2};
    f->plan = (struct skrull_plan){.dp = 1,
                                   .cp = 4,
                                   .n_ranks = 1,
                                   .n_micro_batches = 2,
                                   .n_segments = 5,
                                   .ranks = &f->rank,
                                   .micro_batches = f->micro_batches,
                                   .segments = f->segments};
    f->segments[0].token_end = 6;
}

static struct skrull_layout *make(const struct fixture *f, uint32_t i_micro_batch)
{
    struct skrull_layout *layout = NULL;
    struct skrull_error err = {0};

    if (skrull_layout_new(&f->plan, 0, i_micro_batch, &layout, &err)) {
        fail_msg("%s", err.message);
    }
    return layout;
}

#define ASSERT_INTS(is, ...)                                                                       \
    do {                                                                                           \
        const int32_t should_[] = {__VA_ARGS__};                                                   \
        for (size_t i_ = 0; i_ < sizeof(should_) / sizeof(should_[0]); i_++) {                     \
            if ((is)[i_] != should_[i_]) {                                                         \
                fail_msg("%s[%zu] is %d, not %d", #is, i_, (int)(is)[i_], (int)should_[i_]);       \
            }                                                                                      \
        }                                                                                          \
    } while (0)

static void test_layout_new__packs_rows_in_segment_order(void **state)
{
    struct fixture f;
    struct skrull_layout *layout;
    static const float weights[] = {0.25F, 0.25F, 0.25F, 0,      0,      0, 0.5F,
                                    0.5F,  0,     0,     0.125F, 0.125F, 0, 0};

    (void)state;
    fixture_init(&f);
    layout = make(&f, 0);
    assert_false(layout->dummy);
    assert_int_equal(layout->data_rank, 1);
    assert_int_equal(layout->n_sequences, 3);
    assert_int_equal(layout->rows.n_rows, 14);
    assert_int_equal(layout->rows.n_tokens, 9);
    ASSERT_INTS(layout->rows.position, 3, 4, 5, -1, -1, -1, 2, 3, 4, -1, 0, 1, 2, -1);
    ASSERT_INTS(layout->rows.cu_rows, 0, 6, 10, 14);
    ASSERT_INTS(layout->rows.cu_tokens, 0, 3, 6, 9);
    ASSERT_INTS(layout->token_row, 0, 1, 2, 6, 7, 8, 10, 11, 12);
    ASSERT_INTS(layout->row_token, 0, 1, 2, -1, -1, -1, 3, 4, 5, -1, 6, 7, 8, -1);
    assert_int_equal(layout->rows.max_rows, 6);
    assert_int_equal(layout->rows.max_tokens, 3);
    /* The last token of 5 is row 8, of 7 row 12; of 3 it is on another rank. */
    assert_memory_equal(layout->loss_weight, weights, sizeof(weights));
    assert_int_equal(layout->sequences[2].index, 70);
    assert_int_equal(layout->sequences[2].dataset, 2);
    assert_int_equal(layout->local_row, 10);
    assert_int_equal(layout->local.n_sequences, 1);
    ASSERT_INTS(layout->local.cu_rows, 0, 4);
    ASSERT_INTS(layout->local.cu_tokens, 0, 3);
    ASSERT_INTS(layout->local.position, 0, 1, 2, -1);
    skrull_layout_free(layout);
}

static void test_layout_new__lists_groups_by_ascending_size(void **state)
{
    struct fixture f;
    struct skrull_layout *layout;
    const struct skrull_layout_group *pair, *all;

    (void)state;
    fixture_init(&f);
    layout = make(&f, 0);
    assert_int_equal(layout->n_groups, 2);
    pair = &layout->groups[0];
    all = &layout->groups[1];
    assert_int_equal(pair->size, 2);
    assert_int_equal(pair->first_row, 6);
    assert_int_equal(pair->first_sequence, 1);
    assert_int_equal(all->size, 4);
    assert_int_equal(all->first_row, 0);
    /* Member 0 holds the first chunk and one of padding. */
    ASSERT_INTS(pair->blocks[0].position, 0, 1, -1, -1);
    ASSERT_INTS(pair->blocks[1].position, 2, 3, 4, -1);
    assert_int_equal(pair->n_ranges, 2);
    assert_int_equal(pair->ranges[1].token_begin, 5);
    assert_int_equal(pair->ranges[1].n_tokens, 0);
    ASSERT_INTS(pair->gathered_row, 0, 1, 4, 5, 6, 7, 2, 3);
    ASSERT_INTS(pair->key_row, 0, 1, 6, 7, 2, 3, 4, 5);
    ASSERT_INTS(pair->keys.position, 0, 1, 2, 3, 4, -1, -1, -1);
    ASSERT_INTS(pair->keys.cu_rows, 0, 8);
    ASSERT_INTS(pair->keys.cu_tokens, 0, 5);
    ASSERT_INTS(all->blocks[3].position, 9, 10, 11, 12, 13, 14);
    ASSERT_INTS(all->blocks[2].position, 6, 7, 8, 15, 16, -1);
    skrull_layout_free(layout);
}

static void test_layout_new__turns_the_ring_downwards(void **state)
{
    struct fixture f;
    struct skrull_layout *layout;
    const struct skrull_layout_group *all;
    static const uint32_t held[] = {1, 0, 3, 2}, incoming[] = {0, 3, 2, 1};

    (void)state;
    fixture_init(&f);
    layout = make(&f, 0);
    all = &layout->groups[1];
    assert_int_equal(all->next, 2);
    assert_int_equal(all->previous, 0);
    for (size_t s = 0; s < 4; s++) {
        assert_int_equal(all->ring[s].held, held[s]);
        assert_int_equal(all->ring[s].incoming, incoming[s]);
    }
    skrull_layout_free(layout);
}

static void test_layout_new__cuts_contiguous_shards(void **state)
{
    struct fixture f;
    struct skrull_layout *layout;

    (void)state;
    fixture_init(&f);
    /* 17 tokens over four ranks, slots of 6 (align 2): 0-5, 6-11, 12-16, none. */
    f.segments[0].token_begin = 6;
    f.segments[0].token_end = 12;
    f.segments[0].padded_tokens = 6;
    f.micro_batches[0].n_segments = 1;
    layout = make(&f, 0);
    assert_int_equal(layout->n_groups, 1);
    assert_int_equal(layout->groups[0].n_ranges, 1);
    ASSERT_INTS(layout->groups[0].blocks[2].position, 12, 13, 14, 15, 16, -1);
    ASSERT_INTS(layout->groups[0].blocks[3].position, -1, -1, -1, -1, -1, -1);
    ASSERT_INTS(layout->groups[0].keys.cu_rows, 0, 24);
    ASSERT_INTS(layout->groups[0].gathered_row, 0, 1, 2, 3, 4, 5, 6, 7);
    skrull_layout_free(layout);
}

static void test_layout_new__dummy_has_no_rows(void **state)
{
    struct fixture f;
    struct skrull_layout *layout;

    (void)state;
    fixture_init(&f);
    layout = make(&f, 1);
    assert_true(layout->dummy);
    assert_int_equal(layout->i_micro_batch, 1);
    assert_int_equal(layout->rows.n_rows, 0);
    assert_int_equal(layout->n_groups, 0);
    ASSERT_INTS(layout->rows.cu_rows, 0);
    ASSERT_INTS(layout->local.cu_tokens, 0);
    skrull_layout_free(layout);
    skrull_layout_free(NULL);
}

static void test_layout_measure__takes_the_largest(void **state)
{
    struct fixture f;
    struct skrull_layout_limits limits;

    (void)state;
    fixture_init(&f);
    assert_int_equal(skrull_layout_measure(&f.plan, 0, &limits, NULL), 0);
    assert_int_equal(limits.rows, 14);
    assert_int_equal(limits.tokens, 9);
    assert_int_equal(limits.local_rows, 4);
    assert_int_equal(limits.block_rows, 6);
    assert_int_equal(limits.gathered_rows, 24);
    assert_int_equal(limits.distributed_rows, 10);
    assert_int_equal(limits.distributed_gathered, 32);
    assert_int_equal(limits.sequences, 3);
    assert_int_equal(limits.groups, 2);
    assert_int_equal(limits.group_size, 4);
}

/* Each breaks one rule. */
static void past_the_plan(struct fixture *f)
{
    f->micro_batches[0].n_segments = 6;
}
static void micro_batches_past_the_plan(struct fixture *f)
{
    f->rank.first_micro_batch = SIZE_MAX;
}
static void sequences_in_a_dummy(struct fixture *f)
{
    f->micro_batches[0].dummy = true;
}
static void no_group(struct fixture *f)
{
    f->segments[4].group_size = 0;
}
static void askew(struct fixture *f)
{
    f->segments[2].group_first = 1;
}
static void past_the_ranks(struct fixture *f)
{
    f->plan.cp = 3;
}
static void elsewhere(struct fixture *f)
{
    f->segments[4].group_first = 2;
}
static void small_groups_first(struct fixture *f)
{
    struct skrull_segment first = f->segments[4];

    f->segments[4] = f->segments[0];
    f->segments[0] = first;
}
static void samples_descend(struct fixture *f)
{
    f->segments[2] = f->segments[4];
    f->segments[3] = f->segments[4];
    f->segments[2].sample = 9;
    f->segments[3].sample = 8;
}
static void half_a_zigzag(struct fixture *f)
{
    f->segments[1] = f->segments[4];
    f->micro_batches[0].n_segments = 2;
}
static void wrong_chunk(struct fixture *f)
{
    f->segments[3].token_begin = 3;
}
static void token_lost(struct fixture *f)
{
    f->segments[4].token_end = 2;
}
static void slots_differ(struct fixture *f)
{
    f->segments[3].padded_tokens = 3;
}
static void slots_too_small(struct fixture *f)
{
    f->segments[4].padded_tokens = 2;
}
static void no_tokens(struct fixture *f)
{
    f->segments[4].sequence_length = 0;
    f->segments[4].token_end = 0;
}
static void lengths_differ(struct fixture *f)
{
    f->segments[3].sequence_length = 6;
}
static void heavy(struct fixture *f)
{
    f->segments[4].loss_weight = 2;
}
static void not_a_weight(struct fixture *f)
{
    f->segments[4].loss_weight = (double)__builtin_nanf("");
}

static void test_layout_new__refuses_broken_plans(void **state)
{
    static const struct {
        const char *name;
        void (*breaks)(struct fixture *);
        const char *says;
    } rows[] = {
        {"past the plan", past_the_plan, "outside the plan"},
        {"micro-batches past the plan", micro_batches_past_the_plan, "lie outside it"},
        {"sequences in a dummy", sequences_in_a_dummy, "dummy"},
        {"no group", no_group, "segment 4 (sample 7): its group is not"},
        {"askew", askew, "segment 2 (sample 5): its group is not"},
        {"past the ranks", past_the_ranks, "segment 0 (sample 3): its group is not"},
        {"elsewhere", elsewhere, "does not hold this data rank"},
        {"small groups first", small_groups_first, "does not divide"},
        {"samples descend", samples_descend, "do not ascend"},
        {"half a zigzag", half_a_zigzag, "hold less than the sequence"},
        {"wrong chunk", wrong_chunk, "not those of its chunk"},
        {"token lost", token_lost, "not those of its chunk"},
        {"slots differ", slots_differ, "not those of its chunk"},
        {"slots too small", slots_too_small, "hold less than the sequence"},
        {"no tokens", no_tokens, "hold less than the sequence"},
        {"lengths differ", lengths_differ, "differ in length"},
        {"heavy", heavy, "weight"},
        {"not a weight", not_a_weight, "weight"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture f;
        struct skrull_layout *layout = NULL;
        struct skrull_layout_limits limits;
        struct skrull_error err = {0};

        fixture_init(&f);
        rows[i].breaks(&f);
        if (skrull_layout_new(&f.plan, 0, 0, &layout, &err) != SKRULL_ERR_INVALID_ARGUMENT ||
            !strstr(err.message, rows[i].says) || layout) {
            fail_msg("%s: %s", rows[i].name, err.message);
        }
        assert_int_equal(skrull_layout_measure(&f.plan, 0, &limits, NULL),
                         SKRULL_ERR_INVALID_ARGUMENT);
    }
}

static void test_layout_new__refuses_what_is_not_there(void **state)
{
    struct fixture f;
    struct skrull_layout *layout = NULL;

    (void)state;
    fixture_init(&f);
    assert_int_equal(skrull_layout_new(&f.plan, 1, 0, &layout, NULL), SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(skrull_layout_new(&f.plan, 0, 2, &layout, NULL), SKRULL_ERR_INVALID_ARGUMENT);
    assert_null(layout);
}

static void test_layout_new__bounds_rows_by_31_bits(void **state)
{
    struct fixture f;
    struct skrull_layout *layout = NULL;
    struct skrull_error err = {0};

    (void)state;
    fixture_init(&f);
    /* Two local sequences of 2^30 tokens: each fits, both do not. */
    for (size_t i = 0; i < 2; i++) {
        f.segments[i] = f.segments[4];
        f.segments[i].sample = 10 + i;
        f.segments[i].sequence_length = 1U << 30;
        f.segments[i].token_end = 1U << 30;
        f.segments[i].padded_tokens = 1U << 30;
    }
    f.micro_batches[0].n_segments = 2;
    assert_int_equal(skrull_layout_new(&f.plan, 0, 0, &layout, &err),
                     SKRULL_ERR_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(err.message, "bucket_tokens"));
    assert_null(layout);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout_new__packs_rows_in_segment_order),
        cmocka_unit_test(test_layout_new__lists_groups_by_ascending_size),
        cmocka_unit_test(test_layout_new__turns_the_ring_downwards),
        cmocka_unit_test(test_layout_new__cuts_contiguous_shards),
        cmocka_unit_test(test_layout_new__dummy_has_no_rows),
        cmocka_unit_test(test_layout_measure__takes_the_largest),
        cmocka_unit_test(test_layout_new__refuses_broken_plans),
        cmocka_unit_test(test_layout_new__refuses_what_is_not_there),
        cmocka_unit_test(test_layout_new__bounds_rows_by_31_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
