/* Batches for the planner's tests. */
#include "unit/plan/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

void fixture_init(struct fixture *fixture, uint32_t dp, uint32_t cp, uint32_t bucket_tokens)
{
    const struct skrull_cost_options cost = {.preset = "qwen2.5-0.5b"};

    *fixture = (struct fixture){.scratch = arena_new((size_t)1 << 30)};
    assert_non_null(fixture->scratch);
    fixture->sequences =
        ARENA_ARRAY(fixture->scratch, struct skrull_sequence, FIXTURE_MAX_SEQUENCES);
    assert_non_null(fixture->sequences);
    assert_int_equal(skrull_cost_model_new(&cost, &fixture->cost, NULL), 0);
    fixture->input = (struct skrull_planner_input){
        .options = {.dp = dp, .cp = cp, .bucket_tokens = bucket_tokens, .policy = "skrull"},
        .cost = fixture->cost,
        .sequences = fixture->sequences,
        .step = 7,
        .epoch = 1,
        .job = "a-job",
        .uid = "00112233445566778899aabbccddeeff",
        .revision = 3};
}

void fixture_use_nodes(struct fixture *fixture, uint32_t tp)
{
    const struct skrull_cost_options cost = {
        .preset = "qwen2.5-0.5b",
        .profile = "h100-nodes",
        .ranks = fixture->input.options.dp * fixture->input.options.cp,
        .tp = tp,
        .ranks_per_node = fixture->input.options.ranks_per_node};

    skrull_cost_model_free(fixture->cost);
    assert_int_equal(skrull_cost_model_new(&cost, &fixture->cost, NULL), 0);
    fixture->input.cost = fixture->cost;
}

void fixture_deinit(struct fixture *fixture)
{
    skrull_cost_model_free(fixture->cost);
    arena_free(fixture->scratch);
}

void fixture_set(struct fixture *fixture, const uint32_t *lengths, size_t n)
{
    assert_true(n <= FIXTURE_MAX_SEQUENCES);
    for (size_t k = 0; k < n; k++) {
        fixture->sequences[k] = (struct skrull_sequence){.sample = 100 + k,
                                                         .index = k,
                                                         .dataset = k % 2,
                                                         .length = lengths[k],
                                                         .loss_tokens = lengths[k]};
    }
    fixture->input.n_sequences = n;
}

uint32_t fixture_random(struct fixture *fixture, uint32_t limit)
{
    uint64_t z = fixture->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((z ^ (z >> 31)) % limit);
}

static void randomize_options(struct fixture *fixture)
{
    static const uint32_t grids[][2] = {{4, 8}, {2, 16}, {1, 1}, {8, 1}, {1, 64},
                                        {3, 6}, {1, 12}, {5, 7}, {2, 3}};
    static const uint32_t aligns[] = {1, 8, 128, 3};
    struct skrull_planner_options *options = &fixture->input.options;
    const uint32_t *grid = grids[fixture_random(fixture, sizeof(grids) / sizeof(grids[0]))];

    options->dp = grid[0];
    options->cp = grid[1];
    options->cp_mode = 1 + fixture_random(fixture, 2);
    options->align = aligns[fixture_random(fixture, 4)];
    options->bucket_tokens =
        2 * options->align + fixture_random(fixture, 1u << (8 + fixture_random(fixture, 7)));
    options->shard = 1 + fixture_random(fixture, 2);
    options->equal_micro_batches = fixture_random(fixture, 2);
    options->loss = 1 + fixture_random(fixture, 3);
}

void fixture_randomize(struct fixture *fixture, uint64_t seed)
{
    uint32_t lengths[FIXTURE_MAX_SEQUENCES];
    uint32_t longest, n, spread;

    fixture->random = seed;
    randomize_options(fixture);
    longest = (uint32_t)skrull_planner_longest(&fixture->input.options);
    assert_true(longest > 0);
    n = 1 + fixture_random(fixture, 1 + fixture_random(fixture, 200));
    for (uint32_t k = 0; k < n; k++) {
        /* One in four may be as long as fits, the others lean to the short end. */
        spread = fixture_random(fixture, 4) == 0 ? longest
                                                 : 1 + longest / (fixture->input.options.cp * 4);
        lengths[k] = 1 + fixture_random(fixture, spread);
        if (fixture_random(fixture, 4) == 0) {
            lengths[k] = k > 0 ? lengths[k - 1] : longest; /* ties */
        }
    }
    fixture_set(fixture, lengths, n);
    for (uint32_t k = 0; k < n; k++) {
        fixture->sequences[k].loss_tokens = fixture_random(fixture, lengths[k] + 1);
    }
}

void fixture_batch(struct fixture *fixture, struct batch *ret_batch)
{
    struct skrull_error err = {0};

    if (batch_init(ret_batch, &fixture->input, fixture->scratch, &err)) {
        fail_msg("%s", err.message);
    }
}

struct skrull_plan *fixture_plan(struct fixture *fixture, const char *policy)
{
    struct skrull_plan *plan = NULL;
    struct skrull_error err = {0};

    fixture->input.options.policy = policy;
    if (skrull_planner_run(&fixture->input, &plan, &err)) {
        fail_msg("%s", err.message);
    }
    return plan;
}
