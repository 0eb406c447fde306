/*
 * The lower bound. Why it holds: the ranks' clocks together contain all the work and `fixed` for
 * each micro-batch that a rank runs, at least tokens / bucket of them over all ranks; the largest
 * clock is at least their mean, and it belongs to a rank that runs one micro-batch at least. Sums
 * are 128 bits wide, so that nothing is rounded before the last division.
 */
#include "plan/bound.h"

#include "cost/cost.h"

__extension__ typedef unsigned __int128 wide;

struct bound {
    const struct skrull_planner_options *options;
    const struct degrees *degrees;
    const struct skrull_cost_model *cost;
    wide work_ns;
    uint64_t tokens;
    int64_t alone_ns;
};

static void add_sequence(struct bound *bound, uint32_t length)
{
    const struct skrull_planner_options *options = bound->options;
    const int64_t exchange_ns = cost_exchange_ns(bound->cost, length);
    int64_t alone_ns = INT64_MAX;
    uint64_t work_ns = UINT64_MAX;

    for (size_t i = 0; i < bound->degrees->n; i++) {
        const uint32_t degree = bound->degrees->sizes[i];
        const int64_t comp_ns = cost_comp_ns(bound->cost, length, degree);
        const int64_t time_ns = comp_ns + (degree > 1 ? exchange_ns : 0);
        /* At most 2^53 times 2^20 ranks would pass 64 bits; a bound may be lower. */
        const uint64_t product =
            (uint64_t)comp_ns < UINT64_MAX / degree ? (uint64_t)comp_ns * degree : UINT64_MAX;

        if (skrull_slot_tokens(length, degree, options->align, options->shard) >
            options->bucket_tokens) {
            continue;
        }
        alone_ns = time_ns < alone_ns ? time_ns : alone_ns;
        work_ns = product < work_ns ? product : work_ns;
    }
    if (alone_ns == INT64_MAX) {
        return; /* fits nowhere: not a sound plan */
    }
    bound->alone_ns = alone_ns > bound->alone_ns ? alone_ns : bound->alone_ns;
    bound->work_ns += work_ns;
    bound->tokens += length;
}

/* Adds each sequence once: as the first member of its group holds it. */
static void add_sequences(struct bound *bound, const struct skrull_plan *plan)
{
    for (size_t r = 0; r < plan->n_ranks; r++) {
        const struct skrull_rank *rank = &plan->ranks[r];

        for (uint32_t m = 0; m < rank->n_micro_batches; m++) {
            const struct skrull_micro_batch *micro_batch =
                &plan->micro_batches[rank->first_micro_batch + m];
            const struct skrull_segment *segments = &plan->segments[micro_batch->first_segment];

            for (uint32_t i = 0; i < micro_batch->n_segments; i++) {
                if (segments[i].group_first == rank->data_rank &&
                    (i == 0 || segments[i].sample != segments[i - 1].sample)) {
                    add_sequence(bound, segments[i].sequence_length);
                }
            }
        }
    }
}

static wide largest(wide a, wide b)
{
    return a > b ? a : b;
}

int64_t bound_of_plan(const struct skrull_planner_options *options, const struct degrees *degrees,
                      const struct skrull_cost_model *cost, const struct skrull_plan *plan)
{
    struct bound bound = {.options = options, .degrees = degrees, .cost = cost};
    const uint64_t n_ranks = plan->n_ranks;
    const wide fixed_ns = (uint64_t)cost_fixed_ns(cost);
    wide capacity, mean_ns, rounds, result_ns;

    add_sequences(&bound, plan);
    capacity = (wide)options->bucket_tokens * n_ranks;
    mean_ns = (bound.work_ns * options->bucket_tokens + fixed_ns * bound.tokens) / capacity;
    rounds = ((wide)bound.tokens + capacity - 1) / capacity;
    result_ns = largest(mean_ns, bound.work_ns / n_ranks + fixed_ns);
    result_ns = largest(result_ns, (uint64_t)bound.alone_ns + fixed_ns);
    result_ns = largest(result_ns, rounds * fixed_ns);
    return result_ns > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)result_ns;
}
