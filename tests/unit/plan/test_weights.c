/* Loss weights: every mode sums to one over the loss tokens. */
#include "plan/weights.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/plan/fixture.h"

/* Bits of a double, since equality of floats is what is meant here. */
static uint64_t bits(double value)
{
    union {
        double value;
        uint64_t bits;
    } both = {.value = value};

    return both.bits;
}

static void test_weights_of__each_mode(void **state)
{
    static const uint32_t lengths[] = {10, 20, 30};
    static const struct {
        enum skrull_loss loss;
        double weights[3];
    } rows[] = {
        {SKRULL_LOSS_TOKEN_MEAN, {1.0 / 14, 0, 1.0 / 14}},
        {SKRULL_LOSS_SEQUENCE_MEAN, {1.0 / 8, 0, 1.0 / 20}},
        {SKRULL_LOSS_NONE, {0, 0, 0}},
    };
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture, 1, 1, 100);
    fixture_set(&fixture, lengths, 3);
    fixture.sequences[0].loss_tokens = 4;
    fixture.sequences[1].loss_tokens = 0;
    fixture.sequences[2].loss_tokens = 10;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct skrull_totals totals;
        struct weights weights;
        struct batch batch;

        print_message("# row %zu\n", i);
        fixture.input.options.loss = rows[i].loss;
        fixture_batch(&fixture, &batch);
        weights_init(&weights, &batch, &totals);
        assert_int_equal(totals.sequences, 3);
        assert_int_equal(totals.tokens, 60);
        assert_int_equal(totals.loss_tokens, 14);
        for (size_t k = 0; k < 3; k++) {
            const double weight = weights_of(&weights, fixture.sequences[k].loss_tokens);

            assert_int_equal(bits(weight), bits(rows[i].weights[k]));
        }
    }
    fixture_deinit(&fixture);
}

static void test_weights_of__a_batch_without_loss_tokens(void **state)
{
    static const uint32_t lengths[] = {10};
    struct skrull_totals totals;
    struct weights weights;
    struct fixture fixture;
    struct batch batch;

    (void)state;
    fixture_init(&fixture, 1, 1, 100);
    fixture_set(&fixture, lengths, 1);
    fixture.sequences[0].loss_tokens = 0;
    fixture_batch(&fixture, &batch);
    weights_init(&weights, &batch, &totals);
    assert_int_equal(bits(weights_of(&weights, 0)), 0);
    fixture_deinit(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights_of__each_mode),
        cmocka_unit_test(test_weights_of__a_batch_without_loss_tokens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
