/* Tests of codec_text.c: what people and scripts read. */
#include "codec_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arena.h"

/* A plan of one rank with one segment, its digests zero. */
static struct skrull_plan *plan_new(void)
{
    struct arena *arena = arena_new(1 << 16);
    struct skrull_plan *plan = ARENA_NEW(arena, struct skrull_plan);

    plan->arena = arena;
    plan->job = "a";
    plan->uid = "";
    plan->policy = "uniform";
    plan->step = UINT64_MAX;
    plan->dp = 1;
    plan->cp = 2;
    plan->n_ranks = plan->n_micro_batches = plan->n_segments = 1;
    plan->ranks = ARENA_NEW(arena, struct skrull_rank);
    plan->micro_batches = ARENA_NEW(arena, struct skrull_micro_batch);
    plan->segments = ARENA_NEW(arena, struct skrull_segment);
    plan->ranks[0].data_rank = 1;
    plan->ranks[0].n_micro_batches = 1;
    plan->micro_batches[0].n_segments = 1;
    plan->segments[0].loss_weight = 0.125;
    return plan;
}

static void test_codec_text_plan__there_and_back(void **state)
{
    struct skrull_plan *plan = plan_new(), *again;
    char *text, *text_again;

    (void)state;
    assert_int_equal(codec_text_plan(plan, false, &text, NULL), 0);
    assert_non_null(strstr(text, "\"step\":\"18446744073709551615\"")); /* 64 bits are strings */
    assert_non_null(strstr(text, "\"dataRank\":1"));
    assert_non_null(strstr(text, "\"lossWeight\":0.125"));
    assert_null(strstr(text, "\"uid\"")); /* empty is left out */
    assert_null(strchr(text, '\n'));
    assert_int_equal(codec_text_plan_parse(text, strlen(text), &again, NULL), 0);
    assert_int_equal(codec_text_plan(again, false, &text_again, NULL), 0);
    assert_string_equal(text, text_again);
    free(text);
    free(text_again);
    skrull_plan_free(again);
    skrull_plan_free(plan);
}

static void test_codec_text_rank_plan__is_one_line(void **state)
{
    struct skrull_plan *plan = plan_new();
    char *text;

    (void)state;
    assert_int_equal(codec_text_rank_plan(plan, 0, false, &text, NULL), 0);
    assert_non_null(strstr(text, "\"rankDigest\":\"00000000000000000000000000000000\""));
    assert_null(strchr(text, '\n'));
    free(text);
    skrull_plan_free(plan);
}

static void test_codec_text_plan_parse__hostile(void **state)
{
    static const char *const texts[] = {"",
                                        "[]",
                                        "{",
                                        "{\"nothing\": 1}",
                                        "{\"step\": -1}",
                                        "{\"digest\": \"xyz\"}",
                                        "{\"ranks\": 7}",
                                        "{\"dp\": 4294967296}"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct skrull_plan *plan = NULL;
        struct skrull_error err = {0};

        print_message("# %s\n", texts[i]);
        assert_true(codec_text_plan_parse(texts[i], strlen(texts[i]), &plan, &err) < 0);
        assert_true(err.message[0] != '\0');
        assert_null(plan);
    }
}

static void test_codec_text_comparison__rows(void **state)
{
    static const struct codec_text_comparison_row rows[] = {
        {.policy = "uniform", .mean_ns = 5, .speedup = 1.0, .refused = ""},
        {.policy = "packed", .refused = "too long"},
    };
    char *text;

    (void)state;
    assert_int_equal(codec_text_comparison(rows, 2, false, &text, NULL), 0);
    assert_non_null(strstr(text, "\"policy\":\"uniform\",\"meanNs\":\"5\""));
    assert_non_null(strstr(text, "{\"policy\":\"packed\",\"refused\":\"too long\"}"));
    free(text);
}

static void test_codec_text_index_stats__histogram(void **state)
{
    struct rpc_index_stats stats = {.format = "text", .count = 3, .mean = 1.5, .n_bins = 1};
    __typeof__(*stats.bins) bin = {.upper = 4, .count = 3};
    char *text;

    (void)state;
    stats.bins = &bin;
    assert_int_equal(codec_text_index_stats(&stats, false, &text, NULL), 0);
    assert_non_null(strstr(text, "\"count\":\"3\""));
    assert_non_null(strstr(text, "\"histogram\":[{\"upper\":\"4\",\"count\":\"3\"}]"));
    free(text);
}

static void test_codec_text_health__by_name(void **state)
{
    char *text;

    (void)state;
    assert_int_equal(codec_text_health(RPC_HEALTH_SERVING, false, &text, NULL), 0);
    assert_string_equal(text, "{\"status\":\"SERVING\"}");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codec_text_plan__there_and_back),
        cmocka_unit_test(test_codec_text_rank_plan__is_one_line),
        cmocka_unit_test(test_codec_text_plan_parse__hostile),
        cmocka_unit_test(test_codec_text_comparison__rows),
        cmocka_unit_test(test_codec_text_index_stats__histogram),
        cmocka_unit_test(test_codec_text_health__by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
