/*
 * Every cost once. Groups of all levels are numbered level by level, so that one array indexed by
 * node holds what concerns a group of any size.
 */
#include "plan/joint/problem.h"

#include "arena.h"
#include "cost/cost.h"
#include "plan/counts.h"
#include "plan/sort.h"

static int fill_costs(const struct joint_problem *problem, struct joint_level *level)
{
    const struct skrull_planner_options *options = &problem->batch->options;
    const uint32_t n = problem->n_sequences;
    int64_t *comp_ns = ARENA_ARRAY(problem->batch->scratch, int64_t, n);
    uint32_t *slots = ARENA_ARRAY(problem->batch->scratch, uint32_t, n);

    if (!comp_ns || !slots) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (uint32_t k = 0; k < n; k++) {
        const uint64_t slot =
            skrull_slot_tokens(problem->lengths[k], level->size, options->align, options->shard);

        comp_ns[k] = cost_comp_ns(problem->batch->cost, problem->lengths[k], level->size);
        slots[k] = slot > problem->bucket ? JOINT_NONE : (uint32_t)slot;
    }
    level->comp_ns = comp_ns;
    level->slots = slots;
    return 0;
}

/* What the exchange of each group runs over. */
static void link_nodes(struct joint_problem *problem)
{
    problem->is_even = true;
    for (uint32_t l = 0; l < problem->n_levels; l++) {
        struct joint_level *level = &problem->levels[l];
        enum cost_link most = COST_INSIDE;

        level->link = COST_ACROSS;
        for (uint32_t i = 0; i < level->n_nodes; i++) {
            const enum cost_link link =
                cost_link_of(problem->batch->cost, i * level->size, level->size);

            problem->node_links[level->first_node + i] = (uint8_t)link;
            level->link = link < level->link ? link : level->link;
            most = link > most ? link : most;
        }
        problem->is_even &= level->link == most;
    }
}

/* Numbers the groups of the levels and links each to the one around it. */
static int number_nodes(struct joint_problem *problem)
{
    struct arena *arena = problem->batch->scratch;

    problem->n_nodes = 0;
    for (uint32_t l = 0; l < problem->n_levels; l++) {
        struct joint_level *level = &problem->levels[l];

        level->n_nodes = problem->n_ranks / level->size;
        level->fanout = l > 0 ? level->size / problem->levels[l - 1].size : 1;
        level->first_node = problem->n_nodes;
        problem->n_nodes += level->n_nodes;
    }
    problem->parents = ARENA_ARRAY(arena, uint32_t, problem->n_nodes);
    problem->node_levels = ARENA_ARRAY(arena, uint8_t, problem->n_nodes);
    problem->node_links = ARENA_ARRAY(arena, uint8_t, problem->n_nodes);
    if (!problem->parents || !problem->node_levels || !problem->node_links) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    link_nodes(problem);
    for (uint32_t l = 0; l < problem->n_levels; l++) {
        const struct joint_level *level = &problem->levels[l];
        const struct joint_level *above = l + 1 < problem->n_levels ? level + 1 : NULL;

        for (uint32_t i = 0; i < level->n_nodes; i++) {
            const uint32_t node = level->first_node + i;

            problem->node_levels[node] = (uint8_t)l;
            problem->parents[node] = above ? above->first_node + i / above->fanout : JOINT_NONE;
        }
    }
    problem->has_local = problem->levels[0].size == 1;
    problem->first_group = problem->has_local ? problem->n_ranks : 0;
    return 0;
}

/* Micro-batches that any plan has, from the padded tokens at each sequence's best size. */
static void count_least(struct joint_problem *problem)
{
    const uint64_t capacity = (uint64_t)problem->bucket * problem->n_ranks;
    uint64_t padded = 0, least;

    for (uint32_t k = 0; k < problem->n_sequences; k++) {
        uint64_t fewest = 0;

        for (uint32_t l = 0; l < problem->n_levels; l++) {
            const uint64_t tokens = (uint64_t)problem->levels[l].slots[k] * problem->levels[l].size;

            if (problem->levels[l].slots[k] != JOINT_NONE && (fewest == 0 || tokens < fewest)) {
                fewest = tokens;
            }
        }
        padded += fewest;
    }
    least = padded / capacity + (padded % capacity != 0);
    problem->least_micro_batches =
        least < problem->n_sequences ? (uint32_t)least : problem->n_sequences;
}

static int copy_batch(struct joint_problem *problem)
{
    const struct batch *batch = problem->batch;
    const uint32_t n = problem->n_sequences;
    uint32_t *lengths = ARENA_ARRAY(batch->scratch, uint32_t, n);
    uint32_t *order = ARENA_ARRAY(batch->scratch, uint32_t, n);
    const uint32_t *ascending = sort_by_length(batch->sequences, n, batch->scratch);

    if (!lengths || !order || !ascending) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (uint32_t k = 0; k < n; k++) {
        lengths[k] = batch->sequences[k].length;
    }
    for (uint32_t end = n, first, done = 0; end > 0; end = first) {
        /* A run of equal lengths keeps its order. */
        for (first = end - 1;
             first > 0 && lengths[ascending[first - 1]] == lengths[ascending[end - 1]];) {
            first--;
        }
        for (uint32_t i = first; i < end; i++) {
            order[done++] = ascending[i];
        }
    }
    problem->lengths = lengths;
    problem->order = order;
    return 0;
}

int joint_problem_init(struct joint_problem *problem, const struct batch *batch,
                       const struct degrees *degrees)
{
    int rc;

    *problem = (struct joint_problem){.batch = batch,
                                      .n_sequences = batch->n_sequences,
                                      .n_ranks = batch->options.dp * batch->options.cp,
                                      .bucket = batch->options.bucket_tokens,
                                      .n_levels = (uint32_t)degrees->n,
                                      .is_equal = batch->options.equal_micro_batches,
                                      .is_uniform = batch->options.mix == SKRULL_MIX_UNIFORM};
    problem->fixed_ns = problem->is_equal ? 0 : cost_fixed_ns(batch->cost);
    problem->shared_ns = problem->is_equal ? cost_fixed_ns(batch->cost) : 0;
    rc = copy_batch(problem);
    for (uint32_t l = 0; !rc && l < problem->n_levels; l++) {
        problem->levels[l].size = degrees->sizes[l];
        rc = fill_costs(problem, &problem->levels[l]);
    }
    rc = rc ? rc : number_nodes(problem);
    if (!rc) {
        count_least(problem);
    }
    return rc;
}

int joint_problem_narrow(struct joint_problem *problem, const struct joint_problem *whole,
                         const struct degrees *degrees)
{
    int rc;

    *problem = *whole;
    problem->n_levels = 0;
    for (uint32_t l = 0; l < whole->n_levels; l++) {
        for (size_t i = 0; i < degrees->n; i++) {
            if (whole->levels[l].size == degrees->sizes[i]) {
                problem->levels[problem->n_levels++] = whole->levels[l];
            }
        }
    }
    rc = number_nodes(problem);
    if (!rc) {
        count_least(problem);
    }
    return rc;
}

bool joint_problem_is_open(const struct joint_problem *problem)
{
    for (uint32_t k = 0; k < problem->n_sequences; k++) {
        bool fits = false;

        for (uint32_t l = problem->n_levels; l > 0 && !fits; l--) {
            fits = problem->levels[l - 1].slots[k] != JOINT_NONE;
        }
        if (!fits) {
            return false;
        }
    }
    return true;
}

int64_t joint_total_ns(const struct joint_problem *problem, int64_t clock_ns, uint32_t n_mb)
{
    const struct skrull_planner_options *options = &problem->batch->options;

    if (options->micro_batches > 0 && n_mb > options->micro_batches) {
        return JOINT_NO_TIME;
    }
    return problem->is_equal ? clock_ns + problem->shared_ns * counts_equal(options, n_mb)
                             : clock_ns;
}

int64_t joint_exchange_ns(const struct joint_problem *problem, uint32_t node, uint64_t tokens)
{
    const enum cost_link link = (enum cost_link)problem->node_links[node];

    return cost_exchange_ns(problem->batch->cost, link, tokens);
}
