/*
 * Random inputs of the planner: any grid of 1 to 64 ranks, any option, batches of every shape. A
 * case is a function of one number, so that a failure can be had again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <skrull/planner.h>

#define CASE_MAX_SEQUENCES 1024
#define CASE_MAX_RANKS 64

struct random_case {
    uint64_t seed, round;                    /* where it comes from */
    uint64_t state;                          /* of the generator */
    struct skrull_cost_options cost_options; /* what the model is made of */
    struct skrull_cost_model *cost;
    struct skrull_sequence sequences[CASE_MAX_SEQUENCES];
    struct skrull_planner_input input;
};

/* Which cases are run. */
struct random_rounds {
    uint64_t seed;
    uint64_t first, end; /* rounds [first, end) */
};

/*
 * From the environment: SKRULL_SEED (default: always the same), SKRULL_ROUNDS (default:
 * `default_rounds`), SKRULL_ROUND (one round only). Prints the seed as a TAP comment.
 */
struct random_rounds random_rounds_get(uint64_t default_rounds);

/* The case of a round, on the heap: a batch that its options can hold by the policy. Fails the test
 * on no memory. Freed by random_case_free. */
struct random_case *random_case_new(const struct random_rounds *rounds, uint64_t round,
                                    const char *policy);
void random_case_free(struct random_case *random);

/* The same with the grid given, everything else by chance. */
struct random_case *random_case_on_grid(const struct random_rounds *rounds, uint32_t dp,
                                        uint32_t cp, const char *policy);

/* Do all ranks have the same number of micro-batches? */
static inline bool random_case_is_equal(const struct random_case *random)
{
    return random->input.options.equal_micro_batches || random->input.options.micro_batches > 0;
}

/* A number below `limit`; one up to `most`, all magnitudes alike. Both advance `state`. */
uint32_t random_below(uint64_t *state, uint32_t limit);
uint32_t random_magnitude(uint64_t *state, uint32_t most);

/* Prints the case as TAP comments: what is needed to see why it fails. */
void random_case_print(const struct random_case *random);
