/*
 * The clock of the cost model a second time, as plainly as its description: for each micro-batch
 * each rank's own part, then every group of the world in ascending size.
 */
#include "property/audit.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cost/cost.h"

struct clocks {
    const struct random_case *random;
    const struct skrull_plan *plan;
    int64_t now_ns[CASE_MAX_RANKS], comp_ns[CASE_MAX_RANKS], comm_ns[CASE_MAX_RANKS];
};

static const struct skrull_micro_batch *micro_batch_of(const struct clocks *clocks, uint32_t rank,
                                                       uint32_t m)
{
    const struct skrull_rank *row = &clocks->plan->ranks[rank];

    return m < row->n_micro_batches ? &clocks->plan->micro_batches[row->first_micro_batch + m]
                                    : NULL;
}

/* What a rank's segments of one group size come to, each sequence once. */
static void add_up(const struct clocks *clocks, const struct skrull_micro_batch *micro_batch,
                   uint32_t group_size, int64_t *ret_comp_ns, uint64_t *ret_tokens)
{
    *ret_comp_ns = 0;
    *ret_tokens = 0;
    for (uint32_t i = 0; i < micro_batch->n_segments; i++) {
        const struct skrull_segment *segment =
            &clocks->plan->segments[micro_batch->first_segment + i];

        if (segment->group_size == group_size &&
            (i == 0 || segment[-1].sample != segment->sample)) {
            *ret_comp_ns +=
                cost_comp_ns(clocks->random->cost, segment->sequence_length, group_size);
            *ret_tokens += segment->sequence_length;
        }
    }
}

/* On which node is a GPU: one of the tensor-parallel peers of a data rank in a stage? */
static uint32_t node_of(const struct random_case *random, uint32_t rank, uint32_t peer,
                        uint32_t stage)
{
    const struct skrull_cost_options *cost = &random->cost_options;
    const uint32_t tp = cost->tp > 0 ? cost->tp : 1;

    return cost->ranks_per_node > 0 ? rank / cost->ranks_per_node
                                    : ((stage * cost->ranks + rank) * tp + peer) / 8;
}

/* Is there a stage and a peer whose GPUs, of all members, are not on one node? */
static bool crosses_nodes(const struct random_case *random, uint32_t first, uint32_t size)
{
    const struct skrull_cost_options *cost = &random->cost_options;

    for (uint32_t stage = 0; cost->profile && (stage == 0 || stage < cost->pp); stage++) {
        for (uint32_t peer = 0; peer == 0 || peer < cost->tp; peer++) {
            for (uint32_t r = first; r < first + size; r++) {
                if (node_of(random, r, peer, stage) != node_of(random, first, peer, stage)) {
                    return true;
                }
            }
        }
    }
    return false;
}

static void run_own_part(struct clocks *clocks, uint32_t rank, uint32_t m)
{
    const struct skrull_micro_batch *micro_batch = micro_batch_of(clocks, rank, m);
    int64_t local_ns, exchange_ns = 0, unused_ns;
    uint64_t tokens;

    if (!micro_batch || (micro_batch->n_segments == 0 && !random_case_is_equal(clocks->random))) {
        return;
    }
    add_up(clocks, micro_batch, 1, &local_ns, &tokens);
    for (uint32_t size = 2; size <= clocks->plan->n_ranks; size++) {
        add_up(clocks, micro_batch, size, &unused_ns, &tokens);
        exchange_ns += cost_exchange_ns(
            clocks->random->cost,
            crosses_nodes(clocks->random, rank / size * size, size) ? COST_ACROSS : COST_INSIDE,
            tokens);
    }
    clocks->comp_ns[rank] += cost_fixed_ns(clocks->random->cost) + local_ns;
    clocks->comm_ns[rank] += exchange_ns > local_ns ? exchange_ns - local_ns : 0;
    clocks->now_ns[rank] +=
        cost_fixed_ns(clocks->random->cost) + (exchange_ns > local_ns ? exchange_ns : local_ns);
}

static void wait_for_each_other(struct clocks *clocks, uint32_t first, uint32_t size)
{
    int64_t last_ns = 0;

    for (uint32_t r = first; r < first + size; r++) {
        last_ns = clocks->now_ns[r] > last_ns ? clocks->now_ns[r] : last_ns;
    }
    for (uint32_t r = first; r < first + size; r++) {
        clocks->now_ns[r] = last_ns;
    }
}

static void run_group(struct clocks *clocks, uint32_t first, uint32_t size, uint32_t m)
{
    const struct skrull_micro_batch *micro_batch = micro_batch_of(clocks, first, m);
    int64_t dist_ns = 0;
    uint64_t tokens = 0;

    if (micro_batch) {
        add_up(clocks, micro_batch, size, &dist_ns, &tokens);
    }
    if (tokens == 0) {
        return; /* no such group in this micro-batch */
    }
    wait_for_each_other(clocks, first, size);
    for (uint32_t r = first; r < first + size; r++) {
        clocks->now_ns[r] += dist_ns;
        clocks->comp_ns[r] += dist_ns;
    }
}

static void run_micro_batch(struct clocks *clocks, uint32_t m, bool barrier)
{
    const uint32_t n_ranks = (uint32_t)clocks->plan->n_ranks;

    for (uint32_t r = 0; r < n_ranks; r++) {
        run_own_part(clocks, r, m);
    }
    for (uint32_t size = 2; size <= n_ranks; size++) {
        for (uint32_t first = 0; first + size <= n_ranks; first += size) {
            run_group(clocks, first, size, m);
        }
    }
    for (uint32_t r = 0; barrier && r < n_ranks; r += clocks->plan->cp) {
        wait_for_each_other(clocks, r, clocks->plan->cp);
    }
}

/* Micro-batches of the longest of ranks [first, end). */
static uint32_t count_micro_batches(const struct skrull_plan *plan, uint32_t first, uint32_t end)
{
    uint32_t most = 0;

    for (uint32_t r = first; r < end; r++) {
        most = plan->ranks[r].n_micro_batches > most ? plan->ranks[r].n_micro_batches : most;
    }
    return most;
}

static void run(struct clocks *clocks, bool barrier)
{
    const uint32_t n_ranks = (uint32_t)clocks->plan->n_ranks;
    const uint32_t most = count_micro_batches(clocks->plan, 0, n_ranks);

    for (uint32_t m = 0; m < most; m++) {
        run_micro_batch(clocks, m, barrier);
    }
}

static int compare(const struct clocks *clocks, char ret_message[AUDIT_MESSAGE_SIZE])
{
    const struct skrull_plan *plan = clocks->plan;
    int64_t last_ns = 0;

    for (uint32_t r = 0; r < plan->n_ranks; r++) {
        last_ns = clocks->now_ns[r] > last_ns ? clocks->now_ns[r] : last_ns;
    }
    if (plan->estimate.iteration_ns != last_ns) {
        (void)snprintf(ret_message, AUDIT_MESSAGE_SIZE,
                       "%" PRId64 " ns, the plain clock has %" PRId64, plan->estimate.iteration_ns,
                       last_ns);
        return 1;
    }
    for (uint32_t r = 0; r < plan->n_ranks; r++) {
        const struct skrull_estimate *estimate = &plan->ranks[r].estimate;

        if (estimate->iteration_ns != last_ns || estimate->comp_ns != clocks->comp_ns[r] ||
            estimate->comm_ns != clocks->comm_ns[r] ||
            estimate->idle_ns != last_ns - clocks->comp_ns[r] - clocks->comm_ns[r]) {
            (void)snprintf(ret_message, AUDIT_MESSAGE_SIZE,
                           "rank %u computes %" PRId64 " ns and exchanges %" PRId64
                           ", the plain clock has %" PRId64 " and %" PRId64,
                           r, estimate->comp_ns, estimate->comm_ns, clocks->comp_ns[r],
                           clocks->comm_ns[r]);
            return 1;
        }
    }
    return 0;
}

static int audit_clock(const struct random_case *random, const struct skrull_plan *plan,
                       bool barrier, char ret_message[AUDIT_MESSAGE_SIZE])
{
    struct clocks clocks = {.random = random, .plan = plan};

    run(&clocks, barrier);
    return compare(&clocks, ret_message);
}

int audit_estimate(const struct random_case *random, struct skrull_plan *plan,
                   char ret_message[AUDIT_MESSAGE_SIZE])
{
    const struct skrull_estimate estimate = plan->estimate;

    if (estimate.bound_ns < 1 || estimate.bound_ns > estimate.iteration_ns) {
        (void)snprintf(ret_message, AUDIT_MESSAGE_SIZE, "bound %" PRId64 " ns, time %" PRId64 " ns",
                       estimate.bound_ns, estimate.iteration_ns);
        return 1;
    }
    for (int barrier = 0; barrier < 2; barrier++) {
        if (barrier &&
            skrull_planner_evaluate(&random->input.options, random->cost, true, plan, NULL)) {
            (void)snprintf(ret_message, AUDIT_MESSAGE_SIZE, "it cannot be timed with the barrier");
            return 1;
        }
        if (audit_clock(random, plan, barrier, ret_message)) {
            return 1;
        }
    }
    assert_int_equal(
        skrull_planner_evaluate(&random->input.options, random->cost, false, plan, NULL), 0);
    if (memcmp(&plan->estimate, &estimate, sizeof(estimate)) != 0) {
        (void)snprintf(ret_message, AUDIT_MESSAGE_SIZE, "timed again it has another estimate");
        return 1;
    }
    return 0;
}

/* Time of each micro-batch by itself, of the slowest of ranks [first, end). */
static void time_each(const struct random_case *random, const struct skrull_plan *plan,
                      uint32_t first, uint32_t end, int64_t *ret_times_ns)
{
    const uint32_t n = count_micro_batches(plan, first, end);

    for (uint32_t m = 0; m < n; m++) {
        struct clocks clocks = {.random = random, .plan = plan};

        run_micro_batch(&clocks, m, false);
        ret_times_ns[m] = 0;
        for (uint32_t r = first; r < end; r++) {
            ret_times_ns[m] =
                clocks.now_ns[r] > ret_times_ns[m] ? clocks.now_ns[r] : ret_times_ns[m];
        }
    }
}

/* Walks from the one that must be the longest to the shortest. */
static int audit_descent(const int64_t *times_ns, uint32_t n, bool from_middle,
                         char ret_message[AUDIT_MESSAGE_SIZE])
{
    uint32_t at = from_middle ? (n - 1) / 2 : 0, next;

    for (uint32_t i = 1; i < n; i++, at = next) {
        next = !from_middle ? i : i % 2 ? at + i : at - i;
        if (times_ns[next] > times_ns[at]) {
            (void)snprintf(ret_message, AUDIT_MESSAGE_SIZE,
                           "of %u micro-batches %u takes longer than %u by itself", n, next, at);
            return 1;
        }
    }
    return 0;
}

int audit_order(const struct random_case *random, const struct skrull_plan *plan,
                char ret_message[AUDIT_MESSAGE_SIZE])
{
    const struct skrull_planner_options *options = &random->input.options;
    const uint32_t n_ranks = options->dp * options->cp;
    const uint32_t size = options->cp_mode == SKRULL_CP_MODE_ELASTIC ? n_ranks : options->cp;
    int result = 0;

    if (options->micro_batch_order < SKRULL_MICRO_BATCH_ORDER_LARGEST_FIRST) {
        return 0;
    }
    for (uint32_t first = 0; first < n_ranks && result == 0; first += size) {
        const uint32_t n = count_micro_batches(plan, first, first + size);
        int64_t *times_ns = calloc(n + 1, sizeof(*times_ns));

        assert_non_null(times_ns);
        time_each(random, plan, first, first + size, times_ns);
        result = audit_descent(times_ns, n,
                               options->micro_batch_order == SKRULL_MICRO_BATCH_ORDER_HEAVY_MIDDLE,
                               ret_message);
        free(times_ns);
    }
    return result;
}
