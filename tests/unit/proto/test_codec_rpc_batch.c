/* PlanBatch's request as bytes: it comes back whole, and its lists have limits. */
#include "codec_rpc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arena.h"

static struct rpc_bytes pack(struct arena *arena, const struct rpc_plan_batch *value)
{
    struct rpc_bytes bytes;

    assert_int_equal(codec_plan_batch_request_pack(arena, value, &bytes, NULL), 0);
    return bytes;
}

static void test_plan_batch_request__round_trip(void **state)
{
    uint32_t lengths[] = {1, UINT32_MAX, 300}, loss_tokens[] = {0, 7, 300}, ranks[] = {31, 0};
    struct skrull_job job = {.name = "rollouts", .parallel = {.dp = 4, .cp = 8}};
    const struct rpc_plan_batch value = {.job = &job,
                                         .lengths = lengths,
                                         .n_lengths = 3,
                                         .loss_tokens = loss_tokens,
                                         .n_loss_tokens = 3,
                                         .data_ranks = ranks,
                                         .n_data_ranks = 2};
    struct arena *arena = arena_new((size_t)1 << 20);
    struct rpc_plan_batch back;

    (void)state;
    assert_int_equal(codec_plan_batch_request_unpack(arena, pack(arena, &value), &back, NULL), 0);
    assert_string_equal(back.job->name, "rollouts");
    assert_int_equal(back.job->parallel.cp, 8);
    assert_int_equal(back.n_lengths, 3);
    assert_memory_equal(back.lengths, lengths, sizeof(lengths));
    assert_int_equal(back.n_loss_tokens, 3);
    assert_memory_equal(back.loss_tokens, loss_tokens, sizeof(loss_tokens));
    assert_int_equal(back.n_data_ranks, 2);
    assert_memory_equal(back.data_ranks, ranks, sizeof(ranks));
    arena_free(arena);
}

static void test_plan_batch_request__limits(void **state)
{
    static const struct {
        size_t n_lengths, n_loss_tokens, n_ranks;
        const char *fault; /* NULL: it is taken */
    } cases[] = {
        {RPC_MAX_LENGTHS, RPC_MAX_LENGTHS, RPC_MAX_ENTRIES, NULL},
        {0, 0, 0, NULL},
        {RPC_MAX_LENGTHS + 1, 0, 0, "lengths: 1048577 entries"},
        {1, RPC_MAX_LENGTHS + 1, 0, "loss_tokens: 1048577 entries"},
        {1, 1, RPC_MAX_ENTRIES + 1, "data_ranks: 65537 entries"},
    };
    uint32_t *zeros = calloc(RPC_MAX_LENGTHS + 1, sizeof(*zeros));
    struct skrull_job job = {.name = "rollouts"};

    (void)state;
    assert_non_null(zeros);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct rpc_plan_batch value = {.job = &job,
                                             .lengths = zeros,
                                             .n_lengths = cases[i].n_lengths,
                                             .loss_tokens = zeros,
                                             .n_loss_tokens = cases[i].n_loss_tokens,
                                             .data_ranks = zeros,
                                             .n_data_ranks = cases[i].n_ranks};
        struct arena *arena = arena_new((size_t)64 << 20);
        struct skrull_error err = {0};
        struct rpc_plan_batch back;
        int code = codec_plan_batch_request_unpack(arena, pack(arena, &value), &back, &err);

        print_message("# %s\n", err.message);
        if (cases[i].fault) {
            assert_int_equal(code, SKRULL_ERR_INVALID_ARGUMENT);
            assert_memory_equal(err.message, cases[i].fault, strlen(cases[i].fault));
        } else {
            assert_int_equal(code, 0);
            assert_int_equal(back.n_lengths, cases[i].n_lengths);
        }
        arena_free(arena);
    }
    free(zeros);
}

static void test_plan_batch_request__without_job(void **state)
{
    struct arena *arena = arena_new((size_t)1 << 20);
    struct skrull_error err = {0};
    struct rpc_plan_batch back;

    (void)state;
    assert_int_equal(
        codec_plan_batch_request_unpack(arena, (struct rpc_bytes){NULL, 0}, &back, &err),
        SKRULL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "job: is required");
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_batch_request__round_trip),
        cmocka_unit_test(test_plan_batch_request__limits),
        cmocka_unit_test(test_plan_batch_request__without_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
