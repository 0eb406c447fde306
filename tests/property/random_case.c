/* Random cases by splitmix64; no state but the case's own. */
#include "property/random_case.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define DEFAULT_SEED UINT64_C(20250519)

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint32_t random_below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)(next(state) % limit);
}

uint32_t random_magnitude(uint64_t *state, uint32_t most)
{
    uint32_t bits = 1;

    while (bits < 32 && most >> bits) {
        bits++;
    }
    return 1 + (uint32_t)(next(state) % (UINT64_C(1) << random_below(state, bits + 1))) % most;
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

struct random_rounds random_rounds_get(uint64_t default_rounds)
{
    struct random_rounds rounds = {.seed = number_of("SKRULL_SEED", DEFAULT_SEED)};

    rounds.first = number_of("SKRULL_ROUND", UINT64_MAX);
    rounds.end = rounds.first + 1;
    if (rounds.first == UINT64_MAX) {
        rounds.first = 0;
        rounds.end = number_of("SKRULL_ROUNDS", default_rounds);
    }
    print_message("# SKRULL_SEED=%" PRIu64 ", rounds %" PRIu64 " to %" PRIu64 "\n", rounds.seed,
                  rounds.first, rounds.end);
    return rounds;
}

/* Any number of ranks, cut into dp and cp at any of its divisors. */
static void choose_grid(uint64_t *state, struct skrull_planner_options *options)
{
    const uint32_t n_ranks = random_below(state, 3) ? 1 + random_below(state, CASE_MAX_RANKS)
                                                    : random_magnitude(state, CASE_MAX_RANKS);

    do {
        options->cp = 1 + random_below(state, n_ranks);
    } while (n_ranks % options->cp);
    options->dp = n_ranks / options->cp;
}

/* Limits on group sizes, as long as they leave one. */
static void choose_degrees(uint64_t *state, struct skrull_planner_options *options)
{
    struct skrull_planner_options limited = *options;

    if (random_below(state, 3) == 0) {
        limited.min_degree = 1 + random_below(state, options->cp);
    }
    if (random_below(state, 3) == 0) {
        limited.max_degree = 1 + random_below(state, options->dp * options->cp);
    }
    if (random_below(state, 4) == 0) {
        limited.ranks_per_node = 1 + random_below(state, 16);
    }
    if (skrull_planner_check_options(&limited, NULL) == 0) {
        *options = limited;
    }
}

static uint32_t choose_align(uint64_t *state)
{
    static const uint32_t usual[] = {1, 1, 1, 2, 8, 16, 64, 128};

    return random_below(state, 2) ? usual[random_below(state, 8)] : 1 + random_below(state, 200);
}

static void choose_options(uint64_t *state, struct skrull_planner_options *options)
{
    options->cp_mode = 1 + random_below(state, 2);
    options->align = choose_align(state);
    options->bucket_tokens = 2 * options->align + random_magnitude(state, 1 << 17) - 1;
    options->shard = 1 + random_below(state, 2);
    options->loss = 1 + random_below(state, 3);
    options->equal_micro_batches = random_below(state, 2);
    options->micro_batch_order = random_below(state, 4); /* 0: not given */
    options->mix = random_below(state, 3);
    if (options->equal_micro_batches && random_below(state, 2)) {
        options->micro_batch_multiple = random_below(state, 7);
        options->micro_batch_min = random_below(state, 12);
    }
    /* Few search steps as a rule: what they change is the same as what many do. */
    options->effort = random_below(state, 8) ? 1 + random_below(state, 200) : 0;
    choose_degrees(state, options);
}

/* An exact count that any policy can keep: one sequence a micro-batch at least. */
static void choose_exact_count(struct random_case *random)
{
    struct skrull_planner_options *options = &random->input.options;
    uint32_t multiple = options->micro_batch_multiple ? options->micro_batch_multiple : 1;
    uint32_t exact = (uint32_t)random->input.n_sequences + random_below(&random->state, 8);

    if (exact > 64 || random_below(&random->state, 4)) {
        return;
    }
    exact = exact < options->micro_batch_min ? options->micro_batch_min : exact;
    options->micro_batches = (exact + multiple - 1) / multiple * multiple;
    options->equal_micro_batches &= random_below(&random->state, 2) || multiple > 1 ||
                                    options->micro_batch_min > 1; /* it is implied */
}

/* How long sequences are in this batch. */
enum shape { SHAPE_TAIL, SHAPE_ANY, SHAPE_LONG, SHAPE_TIGHT, SHAPE_EQUAL, SHAPE_ONES, N_SHAPES };

static uint32_t choose_length(uint64_t *state, enum shape shape, uint32_t longest, uint32_t bucket)
{
    uint32_t part;

    switch (shape) {
    case SHAPE_TAIL:
        return random_below(state, 16) ? random_magnitude(state, 1 + longest / 8)
                                       : 1 + random_below(state, longest);
    case SHAPE_ANY:
        return random_magnitude(state, longest);
    case SHAPE_LONG:
        return longest - random_below(state, 1 + (longest - 1) / 4);
    case SHAPE_TIGHT: /* a few fill a rank, to the token or nearly */
        part = bucket / (1 + random_below(state, 4));
        part -= part > 8 ? random_below(state, 1 + part / 8) : 0;
        return part < 1 ? 1 : part < longest ? part : longest;
    case SHAPE_EQUAL:
    case SHAPE_ONES:
    case N_SHAPES:
        break;
    }
    return 1;
}

static uint32_t choose_loss_tokens(uint64_t *state, uint32_t length, uint32_t kind)
{
    switch (kind) {
    case 0:
        return 0; /* no target in the whole batch */
    case 1:
        return random_below(state, 4) ? 0 : 1 + random_below(state, length);
    case 2:
        return random_below(state, 2) ? length : length - 1;
    default:
        return length;
    }
}

/* Samples ascend, with gaps; rows may come twice. */
static void choose_sequences(struct random_case *random)
{
    uint64_t *state = &random->state;
    const enum shape shape = random_below(state, N_SHAPES);
    const uint64_t most = skrull_planner_longest(&random->input.options);
    const uint32_t longest = most < (1u << 20) ? (uint32_t)most : 1u << 20;
    const uint32_t n = random_below(state, 8) ? random_magnitude(state, 256)
                                              : random_magnitude(state, CASE_MAX_SEQUENCES);
    const uint32_t equal = 1 + random_below(state, longest), loss_kind = random_below(state, 8);
    uint64_t sample = random_below(state, 3) ? next(state) >> 2 : 0;

    for (uint32_t k = 0; k < n; k++) {
        struct skrull_sequence *sequence = &random->sequences[k];

        sequence->sample = sample;
        sequence->index = next(state) >> random_below(state, 64);
        sequence->dataset = random_below(state, 3);
        sequence->length =
            shape == SHAPE_EQUAL
                ? equal
                : choose_length(state, shape, longest, random->input.options.bucket_tokens);
        sequence->loss_tokens = choose_loss_tokens(state, sequence->length, loss_kind);
        sample += random_below(state, 4) ? 1 : random_magnitude(state, 1 << 20);
    }
    random->input.sequences = random->sequences;
    random->input.n_sequences = n;
}

/* In half of the cases exchange across nodes costs more, for data ranks of all shapes. */
static void choose_machine(struct random_case *random)
{
    struct skrull_cost_options *cost = &random->cost_options;

    if (random_below(&random->state, 2)) {
        return;
    }
    cost->profile = "h100-nodes";
    cost->ranks = random->input.options.dp * random->input.options.cp;
    cost->ranks_per_node = random->input.options.ranks_per_node;
    cost->tp = random_below(&random->state, 3) ? 1u << random_below(&random->state, 4)
                                               : random_below(&random->state, 12);
    cost->pp = random_below(&random->state, 2) ? random_below(&random->state, 12) : 1;
}

static struct random_case *fill(uint64_t seed, uint32_t dp, uint32_t cp, const char *policy)
{
    static const char *const presets[] = {"qwen2.5-0.5b", "qwen2.5-7b"};
    struct random_case *random = calloc(1, sizeof(*random));
    struct skrull_error err = {0};

    assert_non_null(random);
    random->state = seed;
    random->input.options = (struct skrull_planner_options){.dp = dp, .cp = cp, .policy = policy};
    if (dp == 0) {
        choose_grid(&random->state, &random->input.options);
    }
    choose_options(&random->state, &random->input.options);
    if (skrull_planner_check_options(&random->input.options, &err)) {
        fail_msg("%s", err.message);
    }
    choose_sequences(random);
    choose_exact_count(random);
    random->cost_options.preset = presets[random_below(&random->state, 2)];
    random->input.step = next(&random->state);
    random->input.step >>=
        random_below(&random->state, 64); /* a statement a draw: the same case everywhere */
    random->input.epoch = random_below(&random->state, 1000);
    random->input.job = "property";
    random->input.uid = "00112233445566778899aabbccddeeff";
    random->input.revision = random_below(&random->state, 10);
    choose_machine(random);
    assert_int_equal(skrull_cost_model_new(&random->cost_options, &random->cost, NULL), 0);
    random->input.cost = random->cost;
    return random;
}

struct random_case *random_case_new(const struct random_rounds *rounds, uint64_t round,
                                    const char *policy)
{
    uint64_t state = rounds->seed ^ (round * UINT64_C(0xd1342543de82ef95));
    struct random_case *random = fill(next(&state), 0, 0, policy);

    random->seed = rounds->seed;
    random->round = round;
    return random;
}

struct random_case *random_case_on_grid(const struct random_rounds *rounds, uint32_t dp,
                                        uint32_t cp, const char *policy)
{
    uint64_t state = rounds->seed ^ ((uint64_t)dp << 32 | cp);
    struct random_case *random = fill(next(&state), dp, cp, policy);

    random->seed = rounds->seed;
    return random;
}

void random_case_free(struct random_case *random)
{
    if (random) {
        skrull_cost_model_free(random->cost);
        free(random);
    }
}

void random_case_print(const struct random_case *random)
{
    const struct skrull_planner_options *options = &random->input.options;

    print_message("# SKRULL_SEED=%" PRIu64 " SKRULL_ROUND=%" PRIu64 "\n", random->seed,
                  random->round);
    print_message("# policy %s, dp %u, cp %u, cp_mode %d, min_degree %u, max_degree %u, "
                  "ranks_per_node %u\n",
                  options->policy, options->dp, options->cp, (int)options->cp_mode,
                  options->min_degree, options->max_degree, options->ranks_per_node);
    print_message("# bucket_tokens %u, align %u, shard %d, equal_micro_batches %d, loss %d\n",
                  options->bucket_tokens, options->align, (int)options->shard,
                  options->equal_micro_batches, (int)options->loss);
    print_message("# effort %" PRIu64 ", %s, profile %s, tp %u, pp %u\n", options->effort,
                  random->cost_options.preset,
                  random->cost_options.profile ? random->cost_options.profile : "(default)",
                  random->cost_options.tp, random->cost_options.pp);
    print_message("# micro_batches %u, micro_batch_multiple %u, micro_batch_min %u, "
                  "micro_batch_order %d, mix %d\n",
                  options->micro_batches, options->micro_batch_multiple, options->micro_batch_min,
                  (int)options->micro_batch_order, (int)options->mix);
    print_message("# %zu sequences:", random->input.n_sequences);
    for (size_t k = 0; k < random->input.n_sequences && k < 32; k++) {
        print_message(" %u", random->sequences[k].length);
    }
    print_message("\n");
}
