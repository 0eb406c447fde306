/* Presets, profile and FLOP function against numbers worked out by hand from model.md. */
#include "cost/cost.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct skrull_cost_model *model_of(const char *preset)
{
    const struct skrull_cost_options options = {.preset = preset};
    struct skrull_cost_model *model = NULL;

    assert_int_equal(skrull_cost_model_new(&options, &model, NULL), 0);
    return model;
}

/* 3 x 24 x (20 x 896^2 x S + 4 x 896 x 128 x S + 4 x 896 x S^2) / (989e12 x 0.6) s; 3 x 28 for 7B.
 */
static void test_cost_comp_ns__matches_equation_13(void **state)
{
    static const struct {
        const char *preset;
        uint32_t length, degree;
        int64_t ns;
    } rows[] = {
        {"qwen2.5-0.5b", 1, 1, 2004},          {"qwen2.5-0.5b", 1000, 1, 2438714},
        {"qwen2.5-0.5b", 32768, 1, 532593316}, {"qwen2.5-0.5b", 32768, 8, 79888997}, /* x 1.2 / 8 */
        {"qwen2.5-7b", 4096, 1, 187258837},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct skrull_cost_model *model = model_of(rows[i].preset);

        print_message("# row %zu\n", i);
        assert_int_equal(cost_comp_ns(model, rows[i].length, rows[i].degree), rows[i].ns);
        skrull_cost_model_free(model);
    }
}

/* One sequence of 2^32 - 1 tokens costs 3.7e19 ns on the 7B model, more than 64 bits hold. */
static void test_cost_comp_ns__saturates(void **state)
{
    struct skrull_cost_model *model = model_of("qwen2.5-7b");

    (void)state;
    assert_int_equal(cost_comp_ns(model, UINT32_MAX, 1), COST_MAX_NS);
    assert_true(cost_comp_ns(model, 1 << 20, 1) < COST_MAX_NS);
    skrull_cost_model_free(model);
}

/* 3 layers x (30 us + 6.3 us per 1e6 bytes x 4 x h_kv x tokens). */
static void test_cost_exchange_ns__is_latency_and_slope(void **state)
{
    struct skrull_cost_model *model = model_of("qwen2.5-0.5b");

    (void)state;
    assert_int_equal(cost_exchange_ns(model, 0), 0);
    assert_int_equal(cost_exchange_ns(model, 1000), 2392243);
    skrull_cost_model_free(model);
    model = model_of("qwen2.5-7b");
    assert_int_equal(cost_exchange_ns(model, 1000), 3603802);
    skrull_cost_model_free(model);
}

static void test_constants__of_both_presets(void **state)
{
    struct skrull_cost_model *model = model_of("qwen2.5-0.5b");

    (void)state;
    assert_int_equal(cost_fixed_ns(model), 8160000);
    assert_int_equal(skrull_cost_step_ns(model), 62350819);
    skrull_cost_model_free(model);
    model = model_of("qwen2.5-7b");
    assert_int_equal(cost_fixed_ns(model), 9520000);
    assert_int_equal(skrull_cost_step_ns(model), 240390413);
    skrull_cost_model_free(model);
}

static void test_skrull_cost_model_new__refuses_what_it_does_not_know(void **state)
{
    static const struct {
        struct skrull_cost_options options;
        const char *wanted; /* in the message */
    } rows[] = {
        {{.preset = NULL}, "model.preset is missing"},
        {{.preset = "qwen"}, "unknown preset qwen, there are: qwen2.5-0.5b, qwen2.5-7b"},
        {{.preset = "qwen2.5-7b", .profile = "a100"},
         "unknown profile a100, there are: paper-h100"},
        {{.preset = "qwen2.5-7b", .flops = SKRULL_FLOPS_EXACT}, "exact is not built yet"},
        {{.preset = "qwen2.5-7b", .flops = (enum skrull_flops)9}, "model.flops: unknown value 9"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct skrull_cost_model *model = NULL;
        struct skrull_error err = {0};

        print_message("# row %zu\n", i);
        assert_int_equal(skrull_cost_model_new(&rows[i].options, &model, &err),
                         SKRULL_ERR_INVALID_ARGUMENT);
        assert_null(model);
        assert_non_null(strstr(err.message, rows[i].wanted));
    }
}

static void test_skrull_cost_model_new__fills_in_defaults(void **state)
{
    const struct skrull_cost_options options = {
        .preset = "qwen2.5-7b", .profile = "paper-h100", .flops = SKRULL_FLOPS_PAPER};
    struct skrull_cost_model *given = NULL, *defaults = model_of("qwen2.5-7b");

    (void)state;
    assert_int_equal(skrull_cost_model_new(&options, &given, NULL), 0);
    assert_int_equal(cost_comp_ns(given, 5000, 4), cost_comp_ns(defaults, 5000, 4));
    skrull_cost_model_free(given);
    skrull_cost_model_free(defaults);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost_comp_ns__matches_equation_13),
        cmocka_unit_test(test_cost_comp_ns__saturates),
        cmocka_unit_test(test_cost_exchange_ns__is_latency_and_slope),
        cmocka_unit_test(test_constants__of_both_presets),
        cmocka_unit_test(test_skrull_cost_model_new__refuses_what_it_does_not_know),
        cmocka_unit_test(test_skrull_cost_model_new__fills_in_defaults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
