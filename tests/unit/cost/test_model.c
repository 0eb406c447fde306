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

static struct skrull_cost_model *model_on(const char *profile, uint32_t ranks, uint32_t tp,
                                          uint32_t pp, uint32_t ranks_per_node)
{
    const struct skrull_cost_options options = {.preset = "qwen2.5-0.5b",
                                                .profile = profile,
                                                .ranks = ranks,
                                                .tp = tp,
                                                .pp = pp,
                                                .ranks_per_node = ranks_per_node};
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
    assert_int_equal(cost_exchange_ns(model, COST_INSIDE, 0), 0);
    assert_int_equal(cost_exchange_ns(model, COST_INSIDE, 1000), 2392243);
    skrull_cost_model_free(model);
    model = model_of("qwen2.5-7b");
    assert_int_equal(cost_exchange_ns(model, COST_INSIDE, 1000), 3603802);
    skrull_cost_model_free(model);
}

/* 72 x (51.2 us + 20 us per 1e6 bytes x 512 x tokens). */
static void test_cost_exchange_ns__costs_more_across_nodes(void **state)
{
    struct skrull_cost_model *model = model_on("h100-nodes", 0, 0, 0, 0);

    (void)state;
    assert_int_equal(cost_exchange_ns(model, COST_ACROSS, 0), 0);
    assert_int_equal(cost_exchange_ns(model, COST_ACROSS, 1000), 4423680);
    assert_int_equal(cost_exchange_ns(model, COST_INSIDE, 1000), 2392243);
    skrull_cost_model_free(model);
    model = model_on("paper-h100", 0, 0, 0, 0); /* knows no nodes */
    assert_int_equal(cost_exchange_ns(model, COST_ACROSS, 1000), 2392243);
    assert_int_equal(cost_link_of(model, 0, 64), COST_INSIDE);
    skrull_cost_model_free(model);
}

/* Which groups cross nodes of 8 GPUs. */
static void test_cost_link_of__is_exact(void **state)
{
    static const struct {
        uint32_t ranks, tp, pp, ranks_per_node;
        uint32_t first, size;
        enum cost_link link;
    } rows[] = {
        {32, 0, 0, 0, 0, 8, COST_INSIDE},
        {32, 1, 1, 0, 24, 8, COST_INSIDE},
        {32, 1, 1, 0, 0, 16, COST_ACROSS},
        {32, 1, 1, 0, 7, 1, COST_INSIDE},
        /* 3 does not divide 8: of its groups 6 to 8 has a border inside. */
        {9, 1, 1, 0, 0, 3, COST_INSIDE},
        {9, 1, 1, 0, 3, 3, COST_INSIDE},
        {9, 1, 1, 0, 6, 3, COST_ACROSS},
        {18, 1, 1, 0, 0, 6, COST_INSIDE},
        {18, 1, 1, 0, 6, 6, COST_ACROSS},
        /* Four GPUs a rank, two ranks a node; sixteen, each rank is more than one. */
        {8, 4, 1, 0, 2, 2, COST_INSIDE},
        {8, 4, 1, 0, 0, 4, COST_ACROSS},
        {8, 8, 1, 0, 0, 2, COST_ACROSS},
        {8, 16, 1, 0, 0, 2, COST_ACROSS},
        {8, 16, 1, 0, 3, 1, COST_INSIDE},
        /* Three GPUs a rank: ranks 2 and 3 are GPUs 6 to 11. */
        {8, 3, 1, 0, 0, 2, COST_INSIDE},
        {8, 3, 1, 0, 2, 2, COST_ACROSS},
        {8, 3, 1, 0, 6, 2, COST_INSIDE},
        /* Stages of 6 GPUs: in the second, ranks 2 and 3 are GPUs 8 and 9, 0 and 1 are 6 and 7,
         * ranks 0 to 2 cross. */
        {6, 1, 1, 0, 0, 3, COST_INSIDE},
        {6, 1, 2, 0, 0, 3, COST_ACROSS},
        {6, 1, 2, 0, 0, 2, COST_INSIDE},
        {6, 1, 2, 0, 2, 2, COST_INSIDE},
        /* Of 3 GPUs: ranks 0 and 1 are GPUs 15 and 16 in the sixth. */
        {3, 1, 5, 0, 0, 2, COST_INSIDE},
        {3, 1, 6, 0, 0, 2, COST_ACROSS},
        {3, 1, 65536, 0, 0, 2, COST_ACROSS},
        /* The job says what a node is. */
        {32, 1, 1, 16, 0, 16, COST_INSIDE},
        {32, 1, 1, 4, 0, 8, COST_ACROSS},
        {32, 4, 1, 4, 0, 4, COST_INSIDE},
        {65536, 65536, 65536, 0, 0, 65536, COST_ACROSS},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct skrull_cost_model *model =
            model_on("h100-nodes", rows[i].ranks, rows[i].tp, rows[i].pp, rows[i].ranks_per_node);

        print_message("# row %zu\n", i);
        assert_int_equal(cost_link_of(model, rows[i].first, rows[i].size), rows[i].link);
        skrull_cost_model_free(model);
    }
}

static void test_cost_links_of_size__spans_all_groups(void **state)
{
    struct skrull_cost_model *model = model_on("h100-nodes", 18, 1, 1, 0);
    static const struct {
        uint32_t size;
        enum cost_link least, most;
    } rows[] = {{1, COST_INSIDE, COST_INSIDE},
                {2, COST_INSIDE, COST_INSIDE},
                {6, COST_INSIDE, COST_ACROSS},
                {18, COST_ACROSS, COST_ACROSS}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct cost_links links = cost_links_of_size(model, 18, rows[i].size);

        print_message("# row %zu\n", i);
        assert_int_equal(links.least, rows[i].least);
        assert_int_equal(links.most, rows[i].most);
    }
    skrull_cost_model_free(model);
}

/* What proofs about plans need. */
static void test_cost_exchange_lines__hold_on_both_links(void **state)
{
    static const uint64_t tokens[] = {1, 2, 1000, 123457, 99999999};
    struct skrull_cost_model *model = model_on("h100-nodes", 32, 1, 1, 0);

    (void)state;
    for (int link = COST_INSIDE; link <= COST_ACROSS; link++) {
        const struct cost_line floor = cost_exchange_floor(model, (enum cost_link)link);
        const struct cost_line ceiling = cost_exchange_ceiling(model, (enum cost_link)link);
        const struct cost_line inside = cost_exchange_floor(model, COST_INSIDE);

        assert_true(floor.base_ns >= inside.base_ns && floor.slope_q20 >= inside.slope_q20);
        for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
            const double t = (double)tokens[i] / 1048576.0;
            const double ns = (double)cost_exchange_ns(model, (enum cost_link)link, tokens[i]);

            assert_true((double)floor.base_ns + (double)floor.slope_q20 * t <= ns);
            assert_true((double)ceiling.base_ns + (double)ceiling.slope_q20 * t >= ns);
        }
    }
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
         "unknown profile a100, there are: paper-h100, h100-nodes"},
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
        cmocka_unit_test(test_cost_exchange_ns__costs_more_across_nodes),
        cmocka_unit_test(test_cost_link_of__is_exact),
        cmocka_unit_test(test_cost_links_of_size__spans_all_groups),
        cmocka_unit_test(test_cost_exchange_lines__hold_on_both_links),
        cmocka_unit_test(test_constants__of_both_presets),
        cmocka_unit_test(test_skrull_cost_model_new__refuses_what_it_does_not_know),
        cmocka_unit_test(test_skrull_cost_model_new__fills_in_defaults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
