/* Every check on a planner's input. */
#include "plan/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plan/options.h"
#include "unit/plan/fixture.h"

static void expect_refusal(struct fixture *fixture, const char *wanted)
{
    struct skrull_error err = {0};
    struct batch batch;

    assert_int_equal(batch_init(&batch, &fixture->input, fixture->scratch, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    print_message("# %s\n", err.message);
    assert_non_null(strstr(err.message, wanted));
}

static void test_batch_init__refuses_malformed_sequences(void **state)
{
    static const uint32_t lengths[] = {10, 20};
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 1, 2, 100);
    fixture_set(&fixture, lengths, 0);
    expect_refusal(&fixture, "a batch of 0 sequences");
    fixture.input.n_sequences = PLANNER_MAX_SEQUENCES + (size_t)1;
    expect_refusal(&fixture, "1 to 16777216 are allowed");
    fixture_set(&fixture, lengths, 2);
    fixture.sequences[1].length = 0;
    expect_refusal(&fixture, "sample 101: length 0");
    fixture_set(&fixture, lengths, 2);
    fixture.sequences[1].loss_tokens = 21;
    expect_refusal(&fixture, "loss tokens 21");
    fixture_set(&fixture, lengths, 2);
    fixture.sequences[1].sample = 100;
    expect_refusal(&fixture, "samples of a batch must ascend");
    fixture_deinit(&fixture);
}

/* The message says which sequence, what limit, what to change. */
static void test_batch_init__names_a_sequence_that_fits_nowhere(void **state)
{
    static const uint32_t lengths[] = {10, 201};
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 1, 2, 100);
    fixture_set(&fixture, lengths, 2);
    expect_refusal(&fixture, "sample 101 (row 1 of data set 1) has 201 tokens, at most 200 fit");
    expect_refusal(&fixture, "raise batch.bucket_tokens or parallel.cp");
    fixture.input.options.max_degree = 1;
    expect_refusal(&fixture, "at most 100 fit");
    fixture.sequences[1].length = 100;
    fixture.sequences[1].loss_tokens = 100;
    fixture.input.options.align = 16;
    expect_refusal(&fixture, "has 100 tokens, at most 96 fit");
    fixture_deinit(&fixture);
}

/* 2^53 ns each: 511 of them may pass, 512 may not. */
static void test_batch_init__refuses_a_batch_past_2_62_ns(void **state)
{
    uint32_t lengths[FIXTURE_MAX_SEQUENCES];
    struct fixture fixture;
    struct batch batch;

    (void)state;
    for (size_t k = 0; k < FIXTURE_MAX_SEQUENCES; k++) {
        lengths[k] = UINT32_MAX - 1;
    }
    fixture_init(&fixture, 1, 4, INT32_MAX);
    fixture_set(&fixture, lengths, 511);
    fixture_batch(&fixture, &batch);
    fixture_set(&fixture, lengths, 512);
    expect_refusal(&fixture, "could pass 2^62 ns");
    fixture_deinit(&fixture);
}

static void test_batch_init__computes_slots_and_costs(void **state)
{
    static const uint32_t lengths[] = {150, 900};
    struct fixture fixture;
    struct batch batch;

    (void)state;
    fixture_init(&fixture, 1, 8, 800);
    fixture.input.options.align = 128;
    fixture_set(&fixture, lengths, 2);
    fixture_batch(&fixture, &batch);
    assert_int_equal(batch.items[0].local_slot, 256);
    assert_int_equal(batch.items[0].shard_slot, 256);
    assert_true(batch.items[1].local_slot == SLOT_NONE);
    assert_int_equal(batch.items[1].shard_slot, 256);
    assert_true(batch.items[1].shard_ns < batch.items[1].local_ns);
    fixture.input.options.min_degree = 2;
    fixture_batch(&fixture, &batch);
    assert_true(batch.items[0].local_slot == SLOT_NONE);
    assert_false(batch.has_local);
    fixture_deinit(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch_init__refuses_malformed_sequences),
        cmocka_unit_test(test_batch_init__names_a_sequence_that_fits_nowhere),
        cmocka_unit_test(test_batch_init__refuses_a_batch_past_2_62_ns),
        cmocka_unit_test(test_batch_init__computes_slots_and_costs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
