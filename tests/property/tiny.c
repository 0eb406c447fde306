/*
 * The instances, their cost model and the exhaustive search.
 */
#include "property/tiny.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cost/cost.h"
#include "plan/counts.h"

#define MAX_RANKS 6
#define MAX_VISITS 500000

struct skrull_cost_model {
    int64_t linear_ns, square_ns_q10; /* of a token, of a token squared */
    int64_t shard_q10;                /* work of a distributed sequence, relative */
    int64_t base_ns[COST_ACROSS + 1]; /* exchange, by link */
    int64_t token_ns[COST_ACROSS + 1];
    uint32_t node_ranks; /* data ranks of a node; 0: all are in one */
    int64_t fixed_ns;
};

int64_t cost_comp_ns(const struct skrull_cost_model *model, uint32_t length, uint32_t degree)
{
    const int64_t s = length;
    const int64_t whole_ns = model->linear_ns * s + model->square_ns_q10 * s * s / 1024;

    return degree > 1 ? whole_ns * model->shard_q10 / 1024 / degree : whole_ns;
}

int64_t cost_exchange_ns(const struct skrull_cost_model *model, enum cost_link link,
                         uint64_t tokens)
{
    return tokens > 0 ? model->base_ns[link] + model->token_ns[link] * (int64_t)tokens : 0;
}

enum cost_link cost_link_of(const struct skrull_cost_model *model, uint32_t first, uint32_t size)
{
    for (uint32_t r = first; r < first + size && model->node_ranks > 0; r++) {
        if (r / model->node_ranks != first / model->node_ranks) {
            return COST_ACROSS;
        }
    }
    return COST_INSIDE;
}

struct cost_links cost_links_of_size(const struct skrull_cost_model *model, uint32_t n_ranks,
                                     uint32_t size)
{
    struct cost_links links = {.least = COST_ACROSS, .most = COST_INSIDE};

    for (uint32_t first = 0; first < n_ranks; first += size) {
        if (cost_link_of(model, first, size) == COST_INSIDE) {
            links.least = COST_INSIDE;
        } else {
            links.most = COST_ACROSS;
        }
    }
    return links;
}

int64_t cost_fixed_ns(const struct skrull_cost_model *model)
{
    return model->fixed_ns;
}

struct cost_line cost_exchange_floor(const struct skrull_cost_model *model, enum cost_link link)
{
    return (struct cost_line){.base_ns = model->base_ns[link],
                              .slope_q20 = model->token_ns[link] << 20};
}

struct cost_line cost_exchange_ceiling(const struct skrull_cost_model *model, enum cost_link link)
{
    return cost_exchange_floor(model, link);
}

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint32_t below(uint64_t *state, uint32_t n)
{
    return (uint32_t)((next(state) >> 32) * n >> 32);
}

static void choose_options(struct skrull_planner_options *options, uint64_t *state)
{
    static const uint32_t grids[][2] = {{1, 2}, {2, 1}, {1, 4}, {2, 2}, {4, 1}, {1, 3},
                                        {3, 1}, {2, 3}, {3, 2}, {1, 1}, {2, 2}, {1, 4}};
    static const uint32_t aligns[] = {1, 1, 1, 4, 16};
    const uint32_t *grid = grids[below(state, sizeof(grids) / sizeof(grids[0]))];

    *options = (struct skrull_planner_options){
        .dp = grid[0],
        .cp = grid[1],
        .cp_mode = below(state, 2) ? SKRULL_CP_MODE_ELASTIC : SKRULL_CP_MODE_FIXED,
        .bucket_tokens = 64 + below(state, 400),
        .align = aligns[below(state, 5)],
        .shard = below(state, 3) ? SKRULL_SHARD_ZIGZAG : SKRULL_SHARD_CONTIGUOUS,
        .equal_micro_batches = below(state, 4) == 0,
        .mix = below(state, 5) == 0 ? SKRULL_MIX_UNIFORM : SKRULL_MIX_ANY,
        .policy = "joint",
        .effort = SKRULL_EFFORT_DEFAULT,
    };
    if (options->equal_micro_batches && below(state, 3) == 0) {
        options->micro_batch_multiple = 1 + below(state, 3);
    }
}

static void choose_sequences(struct tiny *tiny, uint64_t *state)
{
    const uint32_t longest = (uint32_t)skrull_planner_longest(&tiny->input.options);
    const uint32_t bucket = tiny->input.options.bucket_tokens;

    tiny->input.sequences = tiny->sequences;
    tiny->input.n_sequences = 1 + below(state, below(state, 4) ? 4 : TINY_MAX_SEQUENCES);
    for (size_t k = 0; k < tiny->input.n_sequences; k++) {
        const uint32_t limits[] = {longest, bucket, bucket / 4 + 1};
        const uint32_t limit = limits[below(state, 3)];
        const uint32_t length = 1 + below(state, limit < longest ? limit : longest);

        tiny->sequences[k] =
            (struct skrull_sequence){.sample = k, .length = length, .loss_tokens = length};
    }
}

/* In two of three instances nodes of any number of ranks, with exchange that costs up to a multiple
 * more across them. */
static void choose_nodes(struct skrull_cost_model *cost, int64_t typical_token_ns, uint64_t *state)
{
    cost->node_ranks = below(state, 3) ? 1 + below(state, MAX_RANKS) : 0;
    cost->base_ns[COST_ACROSS] = cost->base_ns[COST_INSIDE] * (1 + below(state, 5));
    cost->token_ns[COST_ACROSS] = cost->token_ns[COST_INSIDE] * (1 + below(state, 5));
    if (below(state, 4) == 0) {
        cost->token_ns[COST_ACROSS] += typical_token_ns;
    }
}

/* Overheads from nothing to twice a typical sequence's work. */
static void choose_costs(struct tiny *tiny, struct skrull_cost_model *cost, uint64_t *state)
{
    static const int64_t shares_q10[] = {0, 10, 51, 205, 512, 2048};
    int64_t typical_ns = 0;

    cost->linear_ns = 50 + below(state, 1000);
    cost->square_ns_q10 = below(state, 3) ? below(state, 20000) : 0;
    cost->shard_q10 = 1024 + below(state, 3) * 205;
    for (size_t k = 0; k < tiny->input.n_sequences; k++) {
        typical_ns += cost_comp_ns(cost, tiny->sequences[k].length, 1);
    }
    typical_ns = typical_ns / (int64_t)tiny->input.n_sequences + 1;
    cost->fixed_ns = typical_ns * shares_q10[below(state, 6)] / 1024;
    cost->base_ns[COST_INSIDE] = typical_ns * shares_q10[below(state, 6)] / 1024 / 3;
    cost->token_ns[COST_INSIDE] =
        typical_ns * shares_q10[below(state, 6)] / 1024 * 3 / 5 / tiny->input.options.bucket_tokens;
    choose_nodes(cost, typical_ns / tiny->input.options.bucket_tokens, state);
}

struct tiny *tiny_new(uint64_t seed)
{
    struct arena *arena = arena_new((size_t)1 << 28);
    struct tiny *tiny = ARENA_NEW(arena, struct tiny);
    struct skrull_cost_model *cost = ARENA_NEW(arena, struct skrull_cost_model);
    uint64_t state = seed;

    assert_non_null(tiny);
    assert_non_null(cost);
    tiny->arena = arena;
    do {
        choose_options(&tiny->input.options, &state);
    } while (skrull_planner_longest(&tiny->input.options) == 0 ||
             skrull_planner_check_options(&tiny->input.options, NULL));
    choose_sequences(tiny, &state);
    choose_costs(tiny, cost, &state);
    tiny->input.cost = cost;
    assert_int_equal(batch_init(&tiny->batch, &tiny->input, arena, NULL), 0);
    return tiny;
}

void tiny_free(struct tiny *tiny)
{
    arena_free(tiny->arena);
}

/* One micro-batch: clocks before it become clocks after it. */
static void run_micro_batch(const struct tiny *tiny, const struct placement *placements, uint32_t n,
                            uint32_t mb, int64_t *clocks)
{
    const struct batch *batch = &tiny->batch;
    const uint32_t n_ranks = batch->options.dp * batch->options.cp;
    uint64_t tokens[MAX_RANKS + 1][MAX_RANKS] = {{0}};
    int64_t work[MAX_RANKS + 1][MAX_RANKS] = {{0}};

    for (uint32_t k = 0; k < n; k++) {
        const uint32_t size = placements[k].group_size, first = placements[k].group_first;

        if (placements[k].micro_batch == mb) {
            tokens[size][first] += batch->sequences[k].length;
            work[size][first] += cost_comp_ns(batch->cost, batch->sequences[k].length, size);
        }
    }
    for (uint32_t r = 0; r < n_ranks; r++) {
        int64_t exchange_ns = 0;
        bool has_work = tokens[1][r] > 0;

        for (uint32_t size = 2; size <= n_ranks; size++) {
            exchange_ns +=
                cost_exchange_ns(batch->cost, cost_link_of(batch->cost, r / size * size, size),
                                 tokens[size][r / size * size]);
            has_work |= tokens[size][r / size * size] > 0;
        }
        if (has_work || batch->options.equal_micro_batches) {
            clocks[r] +=
                batch->cost->fixed_ns + (work[1][r] > exchange_ns ? work[1][r] : exchange_ns);
        }
    }
    for (uint32_t size = 2; size <= n_ranks; size++) {
        for (uint32_t first = 0; first + size <= n_ranks; first += size) {
            int64_t clock = 0;

            for (uint32_t r = first; r < first + size && tokens[size][first] > 0; r++) {
                clock = clocks[r] > clock ? clocks[r] : clock;
            }
            for (uint32_t r = first; r < first + size && tokens[size][first] > 0; r++) {
                clocks[r] = clock + work[size][first];
            }
        }
    }
}

int64_t tiny_time(const struct tiny *tiny, const struct placement *placements, uint32_t n)
{
    const struct skrull_planner_options *options = &tiny->batch.options;
    const uint32_t most = counts_most(placements, n);
    int64_t clocks[MAX_RANKS] = {0}, last = 0;

    for (uint32_t mb = 0; mb < most; mb++) {
        run_micro_batch(tiny, placements, n, mb, clocks);
    }
    for (uint32_t r = 0; r < options->dp * options->cp; r++) {
        last = clocks[r] > last ? clocks[r] : last;
    }
    if (options->equal_micro_batches) {
        last += tiny->batch.cost->fixed_ns * (counts_equal(options, most) - most);
    }
    return last;
}

struct exhaustion {
    const struct tiny *tiny;
    struct placement placements[TINY_MAX_SEQUENCES];
    uint32_t padded[TINY_MAX_MICRO_BATCHES][MAX_RANKS];
    uint32_t n_micro_batches;
    int64_t best_ns;
    uint64_t visits;
};

static bool fits(const struct exhaustion *ex, uint32_t k, const struct placement *at)
{
    const struct skrull_planner_options *options = &ex->tiny->batch.options;
    const uint64_t slot = skrull_slot_tokens(ex->tiny->batch.sequences[k].length, at->group_size,
                                             options->align, options->shard);

    for (uint32_t r = at->group_first; r < at->group_first + at->group_size; r++) {
        if (ex->padded[at->micro_batch][r] + slot > options->bucket_tokens) {
            return false;
        }
        for (uint32_t i = 0; i < k && options->mix == SKRULL_MIX_UNIFORM; i++) {
            const struct placement *other = &ex->placements[i];

            if (other->micro_batch == at->micro_batch && other->group_first <= r &&
                r < other->group_first + other->group_size && other->group_size != at->group_size) {
                return false;
            }
        }
    }
    return true;
}

static void fill(struct exhaustion *ex, uint32_t k, const struct placement *at, bool is_added)
{
    const struct skrull_planner_options *options = &ex->tiny->batch.options;
    const uint32_t slot = (uint32_t)skrull_slot_tokens(
        ex->tiny->batch.sequences[k].length, at->group_size, options->align, options->shard);

    for (uint32_t r = at->group_first; r < at->group_first + at->group_size; r++) {
        ex->padded[at->micro_batch][r] += is_added ? slot : -slot;
    }
}

/* Places sequence k in every way. A beginning that takes as long as the best plan is given up: more
 * work never ends earlier. */
static void place_from(struct exhaustion *ex, uint32_t k)
{
    const struct batch *batch = &ex->tiny->batch;
    const uint32_t n_ranks = batch->options.dp * batch->options.cp;

    if (k == batch->n_sequences) {
        ex->best_ns = tiny_time(ex->tiny, ex->placements, k);
        return;
    }
    for (size_t i = 0; i < batch->degrees.n; i++) {
        const uint32_t size = batch->degrees.sizes[i];

        for (uint32_t at = 0; at < n_ranks / size * ex->n_micro_batches; at++) {
            const struct placement place = {.micro_batch = at % ex->n_micro_batches,
                                            .group_first = at / ex->n_micro_batches * size,
                                            .group_size = size};

            if (ex->visits > MAX_VISITS || !fits(ex, k, &place)) {
                continue;
            }
            ex->visits++;
            ex->placements[k] = place;
            if (tiny_time(ex->tiny, ex->placements, k + 1) < ex->best_ns) {
                fill(ex, k, &place, true);
                place_from(ex, k + 1);
                fill(ex, k, &place, false);
            }
        }
    }
}

int64_t tiny_optimum(const struct tiny *tiny, int64_t known_ns, bool *ret_is_whole)
{
    const uint32_t n = tiny->batch.n_sequences;
    struct exhaustion ex = {.tiny = tiny,
                            .n_micro_batches =
                                n < TINY_MAX_MICRO_BATCHES ? n : TINY_MAX_MICRO_BATCHES,
                            .best_ns = known_ns};

    place_from(&ex, 0);
    *ret_is_whole = n <= TINY_MAX_MICRO_BATCHES && ex.visits <= MAX_VISITS;
    return ex.best_ns;
}
