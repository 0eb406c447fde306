/*
 * Batches so small that every plan can be tried: random grids, options and sequences, under a cost
 * model of random factors, which takes the place of the real one at link time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "plan/batch.h"
#include "plan/policy.h"

#define TINY_MAX_SEQUENCES 5
#define TINY_MAX_MICRO_BATCHES 5

struct tiny {
    struct skrull_sequence sequences[TINY_MAX_SEQUENCES];
    struct skrull_planner_input input;
    struct batch batch; /* of policy joint */
    struct arena *arena;
};

/* A random instance that some plan can hold. Fails the test on no memory. */
struct tiny *tiny_new(uint64_t seed);
void tiny_free(struct tiny *tiny);

/* Time of placements by the model of model.md, plainly. */
int64_t tiny_time(const struct tiny *tiny, const struct placement *placements, uint32_t n);

/*
 * The least time of any plan, found by trying all that are not refuted by their beginning. Starts
 * from a time that some plan has. Micro-batches: as many as there are sequences, at most
 * TINY_MAX_MICRO_BATCHES; `ret_is_whole`: no plan needs more, and the search was not cut short.
 */
int64_t tiny_optimum(const struct tiny *tiny, int64_t known_ns, bool *ret_is_whole);
