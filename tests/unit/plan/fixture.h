/* Batches for the planner's tests: built from lengths, by hand or by chance. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/planner.h>

#include "arena.h"
#include "plan/batch.h"

#define FIXTURE_MAX_SEQUENCES 512

/* A planner's input with all that it points to. */
struct fixture {
    struct skrull_cost_model *cost;
    struct arena *scratch;
    struct skrull_sequence *sequences; /* [FIXTURE_MAX_SEQUENCES] */
    struct skrull_planner_input input;
    uint64_t random;
};

/* <dp, cp> with a bucket, policy skrull, the 0.5B model; no sequences yet. Asserts on failure. */
void fixture_init(struct fixture *fixture, uint32_t dp, uint32_t cp, uint32_t bucket_tokens);
void fixture_deinit(struct fixture *fixture);

/* From now on profile h100-nodes, with so many GPUs in a data rank and 8 in a node; grid as it is.
 */
void fixture_use_nodes(struct fixture *fixture, uint32_t tp);

/* The batch: samples 100, 101, ...; all tokens count in the loss. */
void fixture_set(struct fixture *fixture, const uint32_t *lengths, size_t n);

/* A number below `limit`, by the fixture's own generator. */
uint32_t fixture_random(struct fixture *fixture, uint32_t limit);

/* Random options and a random batch that they can hold: grids with primes among them, small and
 * large buckets, some loss tokens 0, lengths short and long. */
void fixture_randomize(struct fixture *fixture, uint64_t seed);

/* The batch that a policy would see, in the fixture's scratch. */
void fixture_batch(struct fixture *fixture, struct batch *ret_batch);

/* Plans by a policy; asserts success. Freed by the caller. */
struct skrull_plan *fixture_plan(struct fixture *fixture, const char *policy);
