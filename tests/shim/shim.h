/* The CPU shim of the kernels, for tests: what ran. Counts are of the calling OS thread. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct shim_stats {
    uint64_t launches, blocks, barriers, warp_operations, switches;
    uint64_t ldmatrix_rows_of_8, ldmatrix_conflicts; /* groups of eight rows; those in one bank */
};

/* What was counted since the last call. */
struct shim_stats shim_stats_take(void);

/* The order of threads for launches that follow: 0 the lowest first, 1 the highest, 2 at random;
 * negative: as SHIM_ORDER says or, without it, another for each launch, by SHIM_SEED. */
void shim_set_order(int order);

#ifdef __cplusplus
}
#endif
