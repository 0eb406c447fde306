/*
 * The one evaluator. Each rank has a clock; micro-batches run in order. In a micro-batch a rank
 * with work advances by fixed + max(its local sequences, its groups' exchanges): the overlap of the
 * paper's equation 2. Then its groups run, smaller ones first (ties: lower first rank): each starts
 * when its last member is ready and takes its distributed time on all of them. Iteration time is
 * the largest clock. With `barrier` the CP ranks of a DP rank wait for each other after each
 * micro-batch (equation 8).
 *
 * Works on segments alone. In a micro-batch of a rank each group size belongs to one group, and
 * segments stand by descending group size: a group is a run, and its sequences are what its first
 * member holds.
 */
#include "plan/evaluate.h"

#include <stdlib.h>

#include "arena.h"
#include "cost/cost.h"
#include "plan/options.h"

struct group {
    uint32_t size, first;
    int64_t dist_ns;
};

struct evaluation {
    const struct skrull_cost_model *cost;
    struct skrull_plan *plan;
    int64_t *clocks, *starts; /* [n_ranks] now, and before the current micro-batch */
    struct group *groups;     /* [n_groups <= n_ranks] of the current micro-batch */
    size_t n_groups;
    int64_t fixed_ns;
    bool barrier, run_dummies;
};

/* Sums of times that cannot overflow: past the limit they stay there. */
static int64_t add_ns(int64_t a, int64_t b)
{
    return a > PLANNER_MAX_NS - b ? PLANNER_MAX_NS : a + b;
}

static struct skrull_micro_batch *micro_batch_at(const struct evaluation *eval, size_t rank,
                                                 uint32_t m)
{
    const struct skrull_rank *row = &eval->plan->ranks[rank];

    return m < row->n_micro_batches ? &eval->plan->micro_batches[row->first_micro_batch + m] : NULL;
}

/*
 * Walks the run of one group size that starts at segment `first` of [first, end). Fills the time
 * its sequences take one after another and their total length; a sequence's segments are adjacent
 * and count once. Returns the first segment after the run.
 */
static size_t walk_run(const struct evaluation *eval, size_t first, size_t end,
                       int64_t *ret_comp_ns, uint64_t *ret_tokens)
{
    const struct skrull_segment *segments = eval->plan->segments;
    const uint32_t size = segments[first].group_size;
    int64_t comp_ns = 0;
    uint64_t tokens = 0;
    size_t i;

    for (i = first; i < end && segments[i].group_size == size; i++) {
        if (i > first && segments[i].sample == segments[i - 1].sample) {
            continue;
        }
        comp_ns = add_ns(comp_ns, cost_comp_ns(eval->cost, segments[i].sequence_length, size));
        tokens += segments[i].sequence_length;
    }
    *ret_comp_ns = comp_ns;
    *ret_tokens = tokens;
    return i;
}

/* Total length of a run, where another rank answers for its computation. */
static size_t skip_run(const struct evaluation *eval, size_t first, size_t end,
                       uint64_t *ret_tokens)
{
    const struct skrull_segment *segments = eval->plan->segments;
    const uint32_t size = segments[first].group_size;
    uint64_t tokens = 0;
    size_t i;

    for (i = first; i < end && segments[i].group_size == size; i++) {
        if (i == first || segments[i].sample != segments[i - 1].sample) {
            tokens += segments[i].sequence_length;
        }
    }
    *ret_tokens = tokens;
    return i;
}

static bool add_group(struct evaluation *eval, uint32_t size, uint32_t first, int64_t dist_ns)
{
    if (eval->n_groups == eval->plan->n_ranks || size > eval->plan->n_ranks ||
        first > eval->plan->n_ranks - size) {
        return false;
    }
    eval->groups[eval->n_groups++] =
        (struct group){.size = size, .first = first, .dist_ns = dist_ns};
    return true;
}

/* Exchange of the group of a segment. */
static int64_t group_exchange_ns(const struct evaluation *eval,
                                 const struct skrull_segment *segment, uint64_t tokens)
{
    const enum cost_link link = cost_link_of(eval->cost, segment->group_first, segment->group_size);

    return cost_exchange_ns(eval->cost, link, tokens);
}

/* What a rank does before its groups meet. False: the plan does not hold together. */
static bool run_own(struct evaluation *eval, size_t rank, struct skrull_micro_batch *micro_batch)
{
    size_t i = micro_batch->first_segment;
    const size_t end = i + micro_batch->n_segments;
    int64_t local_ns = 0, exchange_ns = 0, run_ns;
    uint64_t tokens;

    if (end > eval->plan->n_segments) {
        return false;
    }
    while (i < end) {
        const struct skrull_segment *segment = &eval->plan->segments[i];

        if (segment->group_size > 1 && segment->group_first != rank) {
            i = skip_run(eval, i, end, &tokens);
            exchange_ns = add_ns(exchange_ns, group_exchange_ns(eval, segment, tokens));
            continue;
        }
        i = walk_run(eval, i, end, &run_ns, &tokens);
        if (segment->group_size > 1) {
            exchange_ns = add_ns(exchange_ns, group_exchange_ns(eval, segment, tokens));
            if (!add_group(eval, segment->group_size, segment->group_first, run_ns)) {
                return false;
            }
        } else {
            local_ns = add_ns(local_ns, run_ns);
        }
    }
    micro_batch->estimate.comp_ns = add_ns(eval->fixed_ns, local_ns);
    micro_batch->estimate.comm_ns = exchange_ns > local_ns ? exchange_ns - local_ns : 0;
    eval->clocks[rank] = add_ns(
        eval->clocks[rank], add_ns(micro_batch->estimate.comp_ns, micro_batch->estimate.comm_ns));
    return true;
}

static int compare_groups(const void *left, const void *right)
{
    const struct group *a = left, *b = right;

    if (a->size != b->size) {
        return a->size < b->size ? -1 : 1;
    }
    return a->first < b->first ? -1 : a->first > b->first;
}

/* They come by ascending first rank: where all are of one size, which is usual, in order. */
static void sort_groups(struct evaluation *eval)
{
    for (size_t i = 1; i < eval->n_groups; i++) {
        if (compare_groups(&eval->groups[i - 1], &eval->groups[i]) > 0) {
            qsort(eval->groups, eval->n_groups, sizeof(eval->groups[0]), compare_groups);
            return;
        }
    }
}

static bool run_group(struct evaluation *eval, const struct group *group, uint32_t m)
{
    const size_t end = (size_t)group->first + group->size;
    int64_t clock = 0;

    for (size_t r = group->first; r < end; r++) {
        clock = eval->clocks[r] > clock ? eval->clocks[r] : clock;
    }
    clock = add_ns(clock, group->dist_ns);
    for (size_t r = group->first; r < end; r++) {
        struct skrull_micro_batch *micro_batch = micro_batch_at(eval, r, m);

        if (!micro_batch) {
            return false;
        }
        eval->clocks[r] = clock;
        micro_batch->estimate.comp_ns = add_ns(micro_batch->estimate.comp_ns, group->dist_ns);
    }
    return true;
}

static void run_barrier(struct evaluation *eval)
{
    const uint32_t cp = eval->plan->cp;

    for (size_t first = 0; first < eval->plan->n_ranks; first += cp) {
        int64_t clock = 0;

        for (size_t r = first; r < first + cp; r++) {
            clock = eval->clocks[r] > clock ? eval->clocks[r] : clock;
        }
        for (size_t r = first; r < first + cp; r++) {
            eval->clocks[r] = clock;
        }
    }
}

/* Begins a micro-batch on all ranks: their own work, and the list of groups. */
static bool begin_micro_batch(struct evaluation *eval, uint32_t m)
{
    eval->n_groups = 0;
    for (size_t r = 0; r < eval->plan->n_ranks; r++) {
        struct skrull_micro_batch *micro_batch = micro_batch_at(eval, r, m);

        eval->starts[r] = eval->clocks[r];
        if (!micro_batch) {
            continue;
        }
        micro_batch->estimate = (struct skrull_estimate){0};
        if (micro_batch->n_segments > 0) {
            if (!run_own(eval, r, micro_batch)) {
                return false;
            }
        } else if (eval->run_dummies) {
            micro_batch->estimate.comp_ns = eval->fixed_ns;
            eval->clocks[r] = add_ns(eval->clocks[r], eval->fixed_ns);
        }
    }
    return true;
}

static bool run_micro_batch(struct evaluation *eval, uint32_t m)
{
    if (!begin_micro_batch(eval, m)) {
        return false;
    }
    sort_groups(eval);
    for (size_t i = 0; i < eval->n_groups; i++) {
        if (!run_group(eval, &eval->groups[i], m)) {
            return false;
        }
    }
    if (eval->barrier) {
        run_barrier(eval);
    }
    for (size_t r = 0; r < eval->plan->n_ranks; r++) {
        struct skrull_micro_batch *micro_batch = micro_batch_at(eval, r, m);

        if (micro_batch) {
            struct skrull_estimate *estimate = &micro_batch->estimate;

            estimate->iteration_ns = eval->clocks[r] - eval->starts[r];
            estimate->idle_ns = estimate->iteration_ns - estimate->comp_ns - estimate->comm_ns;
        }
    }
    return true;
}

/* A mean rounded down, kept as whole part and remainder: the sum itself may not fit. */
struct mean {
    int64_t whole, rest;
};

static void mean_add(struct mean *mean, int64_t value, int64_t n)
{
    mean->whole += value / n;
    mean->rest += value % n;
    if (mean->rest >= n) {
        mean->whole++;
        mean->rest -= n;
    }
}

static void sum_up(struct evaluation *eval)
{
    struct skrull_plan *plan = eval->plan;
    const int64_t n_ranks = (int64_t)plan->n_ranks;
    struct mean comp = {0}, comm = {0}, idle = {0};
    int64_t iteration_ns = 0;

    for (size_t r = 0; r < plan->n_ranks; r++) {
        iteration_ns = eval->clocks[r] > iteration_ns ? eval->clocks[r] : iteration_ns;
    }
    for (size_t r = 0; r < plan->n_ranks; r++) {
        struct skrull_estimate sum = {.iteration_ns = iteration_ns};

        for (uint32_t m = 0; m < plan->ranks[r].n_micro_batches; m++) {
            const struct skrull_estimate *one = &micro_batch_at(eval, r, m)->estimate;

            sum.comp_ns = add_ns(sum.comp_ns, one->comp_ns);
            sum.comm_ns = add_ns(sum.comm_ns, one->comm_ns);
        }
        sum.idle_ns = iteration_ns - sum.comp_ns - sum.comm_ns;
        plan->ranks[r].estimate = sum;
        mean_add(&comp, sum.comp_ns, n_ranks);
        mean_add(&comm, sum.comm_ns, n_ranks);
        mean_add(&idle, sum.idle_ns, n_ranks);
    }
    plan->estimate = (struct skrull_estimate){.iteration_ns = iteration_ns,
                                              .bound_ns = plan->estimate.bound_ns,
                                              .comp_ns = comp.whole,
                                              .comm_ns = comm.whole,
                                              .idle_ns = idle.whole};
}

/* Number of micro-batches of the longest rank, after a look at what the arrays hold. */
static bool count_micro_batches(const struct skrull_plan *plan, uint32_t *ret_count)
{
    uint32_t most = 0;

    if (plan->n_ranks == 0 || plan->n_ranks != (uint64_t)plan->dp * plan->cp) {
        return false;
    }
    for (size_t r = 0; r < plan->n_ranks; r++) {
        const struct skrull_rank *rank = &plan->ranks[r];

        if (rank->first_micro_batch > plan->n_micro_batches ||
            rank->n_micro_batches > plan->n_micro_batches - rank->first_micro_batch) {
            return false;
        }
        most = rank->n_micro_batches > most ? rank->n_micro_batches : most;
    }
    *ret_count = most;
    return true;
}

int evaluate_plan(const struct skrull_planner_options *options,
                  const struct skrull_cost_model *cost, bool barrier, struct skrull_plan *plan,
                  struct arena *scratch, struct skrull_error *err)
{
    struct evaluation eval = {.cost = cost,
                              .plan = plan,
                              .clocks = ARENA_ARRAY(scratch, int64_t, plan->n_ranks),
                              .starts = ARENA_ARRAY(scratch, int64_t, plan->n_ranks),
                              .groups = ARENA_ARRAY(scratch, struct group, plan->n_ranks),
                              .fixed_ns = cost_fixed_ns(cost),
                              .barrier = barrier,
                              .run_dummies = options->equal_micro_batches};
    uint32_t n_micro_batches = 0;
    bool is_sound;

    if (!eval.clocks || !eval.starts || !eval.groups) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "out of memory to time a plan of %zu ranks", plan->n_ranks);
    }
    is_sound = count_micro_batches(plan, &n_micro_batches);
    for (uint32_t m = 0; is_sound && m < n_micro_batches; m++) {
        is_sound = run_micro_batch(&eval, m);
    }
    if (!is_sound) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "the plan's ranks, micro-batches and groups do not hold together: "
                                "a plan check names the fault");
    }
    sum_up(&eval);
    if (plan->estimate.iteration_ns == PLANNER_MAX_NS) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "the plan's modelled time passes 2^62 ns");
    }
    return 0;
}
