/* Batches drawn at random from a list. */
#pragma once

#include "bench/length_list.h"

/* `n` rows, each at most once (lists shorter than n: with repeats), by `seed` alone. */
void length_draw(const struct length_list *list, uint64_t seed, struct skrull_sequence *batch,
                 size_t n);
