/*
 * Construction: longest first, each sequence to the group on which it ends first. `Ends` is an
 * estimate: the computation of the group's busiest member and what the sequence adds. A shard adds
 * its exchange, since nothing hides it yet; a local sequence adds only what the exchange of its
 * micro-batch does not cover. With few ranks every group is rated; with many only the least loaded
 * of each size, which a tournament names.
 */
#include "plan/joint/construct.h"

#define SHORT_SHARE 16

struct rating {
    int64_t end_ns;
    int64_t added_ns; /* on each member, opening apart */
    struct joint_place place;
    bool opens;
};

struct construction {
    struct joint_state *state;
    struct joint_loads *loads;
    const struct joint_construct *how;
};

static int64_t added_ns(const struct joint_state *state, uint32_t k, uint32_t node, uint32_t mb)
{
    const struct joint_problem *problem = state->problem;
    const struct joint_level *level = &problem->levels[problem->node_levels[node]];
    const int64_t comp_ns = level->comp_ns[k];
    int64_t unhidden_ns;

    if (level->size > 1) {
        const struct joint_cell *cell = joint_cell_at(state, mb, node);

        return comp_ns - cell->exchange_ns +
               joint_exchange_ns(problem, node, cell->tokens + problem->lengths[k]);
    }
    unhidden_ns =
        joint_bucket_at(state, mb, node)->exchange_ns - joint_bucket_at(state, mb, node)->local_ns;
    if (unhidden_ns <= 0) {
        return comp_ns;
    }
    return comp_ns > unhidden_ns ? comp_ns - unhidden_ns : 0;
}

/* The least that k can add to a group, whatever the micro-batch. */
static inline int64_t least_added_ns(const struct joint_state *state,
                                     const struct joint_level *level, uint32_t k, uint32_t node)
{
    int64_t unhidden_ns;

    if (level->size > 1) {
        return level->comp_ns[k];
    }
    unhidden_ns = state->busy_ns[node] - state->load_ns[node];
    return level->comp_ns[k] > unhidden_ns ? level->comp_ns[k] - unhidden_ns : 0;
}

/* Rates one group; better than `best`: replaces it. */
static void rate(const struct construction *con, uint32_t k, uint32_t node, struct rating *best)
{
    const struct joint_problem *problem = con->state->problem;
    struct rating rating = {.place.node = node};
    struct joint_pick pick;

    if (!joint_pick_mb(con->state, k, node, &con->how->rule, &pick)) {
        return;
    }
    rating.place.mb = pick.mb;
    rating.opens = pick.opens;
    rating.added_ns = added_ns(con->state, k, node, pick.mb);
    rating.end_ns =
        con->loads->keys_ns[node] + rating.added_ns + (pick.opens ? problem->fixed_ns : 0);
    if (rating.end_ns < best->end_ns) {
        *best = rating;
    }
}

/* Rates the groups of a level: the most promising one first, for then few others need a look. */
static void rate_level(const struct construction *con, uint32_t k, uint32_t l, struct rating *best)
{
    const struct joint_level *level = &con->state->problem->levels[l];
    const int64_t *keys_ns = con->loads->keys_ns;
    uint32_t first = level->first_node;
    int64_t first_ns = INT64_MAX, second_ns = INT64_MAX;

    if (con->loads->winners) {
        rate(con, k, joint_loads_least(con->loads, l), best);
        return;
    }
    for (uint32_t i = 0; i < level->n_nodes; i++) {
        const uint32_t node = level->first_node + i;
        const int64_t end_ns = keys_ns[node] + least_added_ns(con->state, level, k, node);

        if (end_ns < first_ns) {
            second_ns = first_ns;
            first_ns = end_ns;
            first = node;
        } else if (end_ns < second_ns) {
            second_ns = end_ns;
        }
    }
    if (first_ns >= best->end_ns) {
        return;
    }
    rate(con, k, first, best);
    for (uint32_t i = 0; i < level->n_nodes && second_ns < best->end_ns; i++) {
        const uint32_t node = level->first_node + i;

        if (node != first &&
            keys_ns[node] + least_added_ns(con->state, level, k, node) < best->end_ns) {
            rate(con, k, node, best);
        }
    }
}

static bool may_use(const struct construction *con, uint32_t k, uint32_t l)
{
    return (con->how->levels >> l & 1) && con->state->problem->levels[l].slots[k] != JOINT_NONE;
}

/* The smallest level at which k alone ends by degree_ns; else the one at which it ends first;
 * n_levels: none. */
static uint32_t first_level(const struct construction *con, uint32_t k)
{
    const struct joint_problem *problem = con->state->problem;
    const uint32_t length = problem->lengths[k];
    enum cost_link link = COST_INSIDE;
    int64_t exchange_ns = cost_exchange_ns(problem->batch->cost, link, length);
    uint32_t quickest = problem->n_levels;
    int64_t quickest_ns = INT64_MAX;

    for (uint32_t l = 0; l < problem->n_levels; l++) {
        const struct joint_level *level = &problem->levels[l];
        int64_t alone_ns;

        if (!may_use(con, k, l)) {
            continue;
        }
        if (level->link != link) {
            link = level->link;
            exchange_ns = cost_exchange_ns(problem->batch->cost, link, length);
        }
        alone_ns = problem->fixed_ns + level->comp_ns[k] + (level->size > 1 ? exchange_ns : 0);
        if (alone_ns <= con->how->degree_ns) {
            return l;
        }
        if (alone_ns < quickest_ns) {
            quickest_ns = alone_ns;
            quickest = l;
        }
    }
    return quickest;
}

/* So short a sequence that cutting it does not help a late group. */
static bool is_short(const struct construction *con, const struct rating *rating)
{
    return rating->end_ns < INT64_MAX && rating->added_ns < con->how->degree_ns / SHORT_SHARE;
}

static bool choose(const struct construction *con, uint32_t k, struct rating *ret)
{
    const struct joint_problem *problem = con->state->problem;
    uint32_t tried = 0;

    *ret = (struct rating){.end_ns = INT64_MAX};
    for (uint32_t l = first_level(con, k); l < problem->n_levels; l++) {
        if (!may_use(con, k, l)) {
            continue;
        }
        rate_level(con, k, l, ret);
        tried++;
        if (ret->end_ns <= con->how->end_ns || is_short(con, ret) ||
            (con->loads->winners && tried > 1 && ret->end_ns < INT64_MAX)) {
            break;
        }
    }
    return ret->end_ns < INT64_MAX;
}

static void place(struct construction *con, uint32_t k, const struct rating *rating)
{
    const struct joint_problem *problem = con->state->problem;
    const uint32_t node = rating->place.node;
    const uint32_t first = joint_first_rank(problem, node);
    const uint32_t size = problem->levels[problem->node_levels[node]].size;
    const struct joint_bucket *buckets = joint_bucket_at(con->state, rating->place.mb, 0);

    for (uint32_t r = first; r < first + size; r++) {
        joint_loads_add(con->loads, r,
                        rating->added_ns + (buckets[r].count == 0 ? problem->fixed_ns : 0));
    }
    joint_loads_update(con->loads, node);
    joint_state_add(con->state, k, rating->place);
}

bool joint_construct_run(struct joint_state *state, struct joint_loads *loads,
                         const struct joint_construct *how)
{
    struct construction con = {.state = state, .loads = loads, .how = how};
    const struct joint_problem *problem = state->problem;

    joint_state_clear(state);
    joint_loads_clear(loads);
    for (uint32_t i = 0; i < problem->n_sequences; i++) {
        struct rating best;

        if (!choose(&con, problem->order[i], &best)) {
            return false;
        }
        place(&con, problem->order[i], &best);
    }
    return true;
}
