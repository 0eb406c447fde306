/* Proofs that no plan ends by a target time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct bound_sums;

/* True: every plan of the batch takes longer than `target_ns`. O(sizes x log n). */
bool bound_refutes(const struct bound_sums *sums, int64_t target_ns);
