/*
 * Times placements micro-batch by micro-batch, visiting only ranks that have work there, so that
 * policies with thousands of micro-batches cost no more than others.
 */
#include "plan/joint/timing.h"

#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "plan/order.h"

struct timing {
    const struct joint_problem *problem;
    int64_t *clocks, *local_ns, *exchange_ns; /* [n_ranks]; the last two of this micro-batch */
    bool *has_work;                           /* [n_ranks] */
    uint32_t *busy;                           /* [n_busy] ranks with work */
    int64_t *work_ns;                         /* [n_nodes] of this micro-batch */
    uint64_t *tokens;                         /* [n_nodes] */
    uint32_t *groups;                         /* [n_groups] nodes of several ranks */
    uint32_t n_busy, n_groups;
};

uint32_t joint_level_of(const struct joint_problem *problem, uint32_t size)
{
    uint32_t l = 0;

    while (l < problem->n_levels && problem->levels[l].size != size) {
        l++;
    }
    return l;
}

static int compare_nodes(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

    return a < b ? -1 : a > b;
}

/* Sequences by micro-batch, in `ret_order` ([n_sequences]), by counting. Returns how many
 * micro-batches there are; 0: no memory. */
static uint32_t order_sequences(const struct joint_problem *problem,
                                const struct placement *placements, uint32_t *ret_order)
{
    const uint32_t n = problem->n_sequences;
    uint32_t n_mb = 0, *starts;

    for (uint32_t k = 0; k < n; k++) {
        n_mb = placements[k].micro_batch < n_mb ? n_mb : placements[k].micro_batch + 1;
    }
    starts = ARENA_ARRAY(problem->batch->scratch, uint32_t, (size_t)n_mb + 1);
    if (!starts) {
        return 0;
    }
    for (uint32_t k = 0; k < n; k++) {
        starts[placements[k].micro_batch + 1]++;
    }
    for (uint32_t mb = 0; mb < n_mb; mb++) {
        starts[mb + 1] += starts[mb];
    }
    for (uint32_t k = 0; k < n; k++) {
        ret_order[starts[placements[k].micro_batch]++] = k;
    }
    return n_mb;
}

static int timing_init(struct timing *timing, const struct joint_problem *problem)
{
    struct arena *arena = problem->batch->scratch;
    const uint32_t n_ranks = problem->n_ranks, n_nodes = problem->n_nodes;

    *timing = (struct timing){
        .problem = problem,
        .clocks = ARENA_ARRAY(arena, int64_t, n_ranks),
        .local_ns = ARENA_ARRAY(arena, int64_t, n_ranks),
        .exchange_ns = ARENA_ARRAY(arena, int64_t, n_ranks),
        .has_work = ARENA_ARRAY(arena, bool, n_ranks),
        .busy = ARENA_ARRAY(arena, uint32_t, n_ranks),
        .work_ns = ARENA_ARRAY(arena, int64_t, n_nodes),
        .tokens = ARENA_ARRAY(arena, uint64_t, n_nodes),
        .groups = ARENA_ARRAY(arena, uint32_t, n_nodes),
    };
    return timing->clocks && timing->local_ns && timing->exchange_ns && timing->has_work &&
                   timing->busy && timing->work_ns && timing->tokens && timing->groups
               ? 0
               : SKRULL_ERR_RESOURCE_EXHAUSTED;
}

static void wake(struct timing *timing, uint32_t rank)
{
    if (!timing->has_work[rank]) {
        timing->has_work[rank] = true;
        timing->busy[timing->n_busy++] = rank;
    }
}

static void visit_sequence(struct timing *timing, uint32_t k, uint32_t node)
{
    const struct joint_level *level = &timing->problem->levels[timing->problem->node_levels[node]];

    if (level->size == 1) {
        wake(timing, node - level->first_node);
        timing->local_ns[node - level->first_node] += level->comp_ns[k];
        return;
    }
    if (timing->tokens[node] == 0) {
        timing->groups[timing->n_groups++] = node;
    }
    timing->tokens[node] += timing->problem->lengths[k];
    timing->work_ns[node] += level->comp_ns[k];
}

static void end_micro_batch(struct timing *timing)
{
    const struct joint_problem *problem = timing->problem;

    for (uint32_t i = 0; i < timing->n_groups; i++) {
        const uint32_t node = timing->groups[i], first = joint_first_rank(problem, node);
        const int64_t exchange_ns = joint_exchange_ns(problem, node, timing->tokens[node]);

        for (uint32_t j = 0; j < problem->levels[problem->node_levels[node]].size; j++) {
            wake(timing, first + j);
            timing->exchange_ns[first + j] += exchange_ns;
        }
    }
    for (uint32_t i = 0; i < timing->n_busy; i++) {
        const uint32_t r = timing->busy[i];

        timing->clocks[r] += problem->fixed_ns + (timing->local_ns[r] > timing->exchange_ns[r]
                                                      ? timing->local_ns[r]
                                                      : timing->exchange_ns[r]);
        timing->local_ns[r] = timing->exchange_ns[r] = 0;
        timing->has_work[r] = false;
    }
    /* Smaller groups have lower numbers. */
    qsort(timing->groups, timing->n_groups, sizeof(*timing->groups), compare_nodes);
    for (uint32_t i = 0; i < timing->n_groups; i++) {
        const uint32_t node = timing->groups[i];
        int64_t *members = &timing->clocks[joint_first_rank(problem, node)], clock_ns = 0;
        const uint32_t size = problem->levels[problem->node_levels[node]].size;

        for (uint32_t j = 0; j < size; j++) {
            clock_ns = members[j] > clock_ns ? members[j] : clock_ns;
        }
        for (uint32_t j = 0; j < size; j++) {
            members[j] = clock_ns + timing->work_ns[node];
        }
        timing->tokens[node] = 0;
        timing->work_ns[node] = 0;
    }
    timing->n_busy = timing->n_groups = 0;
}

int joint_time_placements(const struct joint_problem *problem, const struct placement *placements,
                          int64_t *ret_ns)
{
    const uint32_t n = problem->n_sequences;
    uint32_t *order = ARENA_ARRAY(problem->batch->scratch, uint32_t, n), n_mb;
    struct timing timing;
    int64_t last_ns = 0;

    if (!order || timing_init(&timing, problem)) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    n_mb = order_sequences(problem, placements, order);
    if (n_mb == 0) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct placement *at = &placements[order[i]];
        const struct joint_level *level = &problem->levels[joint_level_of(problem, at->group_size)];

        visit_sequence(&timing, order[i], level->first_node + at->group_first / level->size);
        if (i + 1 == n || placements[order[i + 1]].micro_batch != at->micro_batch) {
            end_micro_batch(&timing);
        }
    }
    for (uint32_t r = 0; r < problem->n_ranks; r++) {
        last_ns = timing.clocks[r] > last_ns ? timing.clocks[r] : last_ns;
    }
    *ret_ns = joint_total_ns(problem, last_ns, n_mb);
    return 0;
}

int joint_judge_placements(const struct joint_problem *problem, const struct placement *placements,
                           int64_t *ret_ns)
{
    const struct batch *batch = problem->batch;
    struct placement *ordered;
    int rc;

    if (batch->options.micro_batch_order == SKRULL_MICRO_BATCH_ORDER_AS_PLANNED) {
        return joint_time_placements(problem, placements, ret_ns);
    }
    ordered = ARENA_ARRAY(batch->scratch, struct placement, problem->n_sequences);
    if (!ordered) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    memcpy(ordered, placements, problem->n_sequences * sizeof(*ordered));
    rc = order_micro_batches(batch, ordered, NULL);
    return rc ? rc : joint_time_placements(problem, ordered, ret_ns);
}
