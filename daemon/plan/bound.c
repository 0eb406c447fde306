/*
 * The lower bound: a simple one, then the largest target time that bound_refute.h refutes, by
 * bisection. Why the simple one holds: the ranks' clocks together contain all the work and `fixed`
 * for each micro-batch that a rank runs, at least tokens / bucket of them over all ranks; the
 * largest clock is at least their mean, and it belongs to a rank that runs one micro-batch at
 * least. Sums are 128 bits wide, so that nothing is rounded before the last division.
 */
#include "plan/bound.h"

#include "arena.h"
#include "cost/cost.h"
#include "plan/bound_refute.h"
#include "plan/bound_sums.h"
#include "plan/options.h"
#include "plan/sort.h"

static wide largest(wide a, wide b)
{
    return a > b ? a : b;
}

static int64_t simple_bound(const struct bound_sums *sums)
{
    const wide ranks = sums->n_ranks, fixed_ns = sums->fixed_ns;
    const wide capacity = (wide)sums->bucket * ranks;
    const wide tokens = (wide)sums->tokens[sums->n];
    wide result_ns;

    result_ns = (sums->least_work_ns * sums->bucket + fixed_ns * tokens) / capacity;
    result_ns = largest(result_ns, sums->least_work_ns / ranks + (sums->n > 0 ? fixed_ns : 0));
    result_ns = largest(result_ns, sums->n > 0 ? sums->alone_ns + fixed_ns : 0);
    result_ns = largest(result_ns, (tokens + capacity - 1) / capacity * fixed_ns);
    return result_ns > PLANNER_MAX_NS ? PLANNER_MAX_NS : (int64_t)result_ns;
}

/* The largest refuted target and 1. A target below one that stands is never tried again; that
 * refutation is monotone is not needed for the proof. */
static int64_t bisect(const struct bound_sums *sums, int64_t bound_ns)
{
    int64_t refuted = bound_ns, stands;

    if (!bound_refutes(sums, refuted)) {
        return bound_ns;
    }
    stands = refuted + refuted / 8 + 1;
    while (bound_refutes(sums, stands) && stands < PLANNER_MAX_NS / 2) {
        refuted = stands;
        stands *= 2;
    }
    while (stands - refuted > 1 + refuted / (1 << 20)) {
        const int64_t middle = refuted + (stands - refuted) / 2;

        if (bound_refutes(sums, middle)) {
            refuted = middle;
        } else {
            stands = middle;
        }
    }
    return refuted + 1;
}

int bound_of_lengths(struct bound_input *input, struct arena *scratch, int64_t *ret_bound_ns,
                     struct skrull_error *err)
{
    struct bound_sums sums;
    int64_t bound_ns;
    int rc;

    rc = sort_lengths(input->lengths, input->n, scratch);
    rc = rc ? rc : bound_sums_init(&sums, input, scratch);
    if (rc) {
        return skrull_error_set(err, rc, "out of memory to bound a batch of %u sequences",
                                input->n);
    }
    bound_ns = simple_bound(&sums);
    *ret_bound_ns = sums.is_saturated || sums.n == 0 ? bound_ns : bisect(&sums, bound_ns);
    return 0;
}

/* The first member of a group holds its sequences: each is counted once. */
static uint32_t collect_lengths(const struct skrull_plan *plan, uint32_t *lengths, uint32_t n)
{
    uint32_t found = 0;

    for (size_t r = 0; r < plan->n_ranks; r++) {
        const struct skrull_rank *rank = &plan->ranks[r];

        for (uint32_t m = 0; m < rank->n_micro_batches; m++) {
            const struct skrull_micro_batch *micro_batch =
                &plan->micro_batches[rank->first_micro_batch + m];
            const struct skrull_segment *segments = &plan->segments[micro_batch->first_segment];

            for (uint32_t i = 0; i < micro_batch->n_segments && found < n; i++) {
                if (segments[i].group_first == rank->data_rank &&
                    (i == 0 || segments[i].sample != segments[i - 1].sample)) {
                    lengths[found++] = segments[i].sequence_length;
                }
            }
        }
    }
    return found;
}

int bound_of_plan(const struct skrull_planner_options *options, const struct degrees *degrees,
                  const struct skrull_cost_model *cost, const struct skrull_plan *plan,
                  struct arena *scratch, int64_t *ret_bound_ns, struct skrull_error *err)
{
    /* A sequence has a segment at least; a plan has at most 2^24 sequences. */
    const uint32_t most = plan->n_segments > PLANNER_MAX_SEQUENCES ? PLANNER_MAX_SEQUENCES
                                                                   : (uint32_t)plan->n_segments;
    struct bound_input input = {.options = options,
                                .degrees = degrees,
                                .cost = cost,
                                .lengths = ARENA_ARRAY(scratch, uint32_t, most)};

    if (!input.lengths) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "out of memory to bound a plan of %zu segments", plan->n_segments);
    }
    input.n = collect_lengths(plan, input.lengths, most);
    return bound_of_lengths(&input, scratch, ret_bound_ns, err);
}
