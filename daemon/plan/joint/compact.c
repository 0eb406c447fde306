/*
 * Gaps come from searches that empty a micro-batch. Ranks that no group joins number theirs apart.
 */
#include "plan/joint/compact.h"

#include "arena.h"
#include "plan/counts.h"

/* Ranks of a block that no group crosses. */
static uint32_t block_size(const struct joint_problem *problem, const struct placement *placements)
{
    const uint32_t cp = problem->batch->options.cp;

    for (uint32_t k = 0; k < problem->n_sequences; k++) {
        if (cp % placements[k].group_size != 0) {
            return problem->n_ranks;
        }
    }
    return cp;
}

int joint_compact(const struct joint_problem *problem, struct placement *placements)
{
    const uint32_t size = block_size(problem, placements);
    const size_t n_blocks = problem->n_ranks / size;
    const size_t n_mb = counts_most(placements, problem->n_sequences);
    uint32_t *numbers = ARENA_ARRAY(problem->batch->scratch, uint32_t, n_blocks * n_mb);

    if (!numbers) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (uint32_t k = 0; k < problem->n_sequences; k++) {
        numbers[placements[k].group_first / size * n_mb + placements[k].micro_batch] = 1;
    }
    for (size_t block = 0; block < n_blocks; block++) {
        uint32_t n = 0;

        for (size_t mb = 0; mb < n_mb; mb++) {
            const uint32_t is_used = numbers[block * n_mb + mb];

            numbers[block * n_mb + mb] = n;
            n += is_used;
        }
    }
    for (uint32_t k = 0; k < problem->n_sequences; k++) {
        placements[k].micro_batch =
            numbers[placements[k].group_first / size * n_mb + placements[k].micro_batch];
    }
    return 0;
}
