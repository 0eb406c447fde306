/*
 * A distributed micro-batch lasts as long as its longest local sequence, and all ranks of the group
 * wait for it: long local sequences spread over all groups waste every other rank. So some groups
 * become hosts: their ranks take the local sequences, best fit, up to a cap; all else is
 * distributed over all groups, longest first to the one that ends first (hosts start at the cap).
 * Short left-overs then go where most exchange is to be hidden. Micro-batches: distributed ones
 * first, local ones between, the last distributed one at the end, so that hosts meet only once
 * after their local work.
 */
#include "plan/joint/concentrate.h"

#include <string.h>

#include "arena.h"
#include "cost/cost.h"

#define SHORT_SHARE 8 /* a left-over takes at most this part of a bucket */
#define SPARE_MB 6    /* micro-batches kept for local sequences */

struct concentration {
    struct joint_state *state;
    struct joint_hosts *hosts;
    const struct joint_concentrate *how;
    const struct joint_problem *problem;
    const struct joint_level *local, *shared;
    uint32_t n_shared_mb; /* distributed micro-batches are below this */
};

int joint_hosts_init(struct joint_hosts *hosts, const struct joint_problem *problem)
{
    struct arena *arena = problem->batch->scratch;

    *hosts = (struct joint_hosts){
        .rank_ns = ARENA_ARRAY(arena, int64_t, problem->n_ranks),
        .group_ns = ARENA_ARRAY(arena, int64_t, problem->n_ranks),
        .ranks = ARENA_ARRAY(arena, uint32_t, problem->n_sequences),
        .groups = ARENA_ARRAY(arena, uint32_t, problem->n_sequences),
    };
    return hosts->rank_ns && hosts->group_ns && hosts->ranks && hosts->groups
               ? 0
               : SKRULL_ERR_RESOURCE_EXHAUSTED;
}

bool joint_can_concentrate(const struct joint_problem *problem)
{
    return problem->n_levels == 2 && problem->has_local && !problem->is_uniform;
}

/* A host for a local sequence: the fullest rank below the cap, or the emptiest. */
static uint32_t find_host(const struct concentration *con, int64_t comp_ns, bool wants_fullest)
{
    const int64_t *rank_ns = con->hosts->rank_ns;
    const uint32_t n = con->how->n_hosts * con->shared->size;
    uint32_t best = JOINT_NONE;

    for (uint32_t r = 0; r < n; r++) {
        if (rank_ns[r] + comp_ns <= con->how->cap_ns &&
            (best == JOINT_NONE ||
             (wants_fullest ? rank_ns[r] > rank_ns[best] : rank_ns[r] < rank_ns[best]))) {
            best = r;
        }
    }
    return best;
}

/* False: a sequence that finds no host does not fit distributed either. */
static bool choose_hosts(struct concentration *con)
{
    const struct joint_problem *problem = con->problem;
    const uint32_t n_full =
        con->how->levels_short ? problem->n_sequences / 2 : problem->n_sequences;

    memset(con->hosts->rank_ns, 0, problem->n_ranks * sizeof(*con->hosts->rank_ns));
    for (uint32_t i = 0; i < problem->n_sequences; i++) {
        const uint32_t k = problem->order[i];
        uint32_t host = JOINT_NONE;

        if (con->local->slots[k] != JOINT_NONE) {
            host = find_host(con, con->local->comp_ns[k], i < n_full);
        }
        con->hosts->ranks[k] = host;
        if (host != JOINT_NONE) {
            con->hosts->rank_ns[host] += con->local->comp_ns[k];
        } else if (con->shared->slots[k] == JOINT_NONE) {
            return false;
        }
    }
    return true;
}

static bool is_left_over(const struct concentration *con, uint32_t i)
{
    const uint32_t slot = con->local->slots[con->problem->order[i]];

    return i > con->problem->n_sequences / 2 && slot < con->problem->bucket / SHORT_SHARE;
}

static void choose_groups(struct concentration *con)
{
    const struct joint_problem *problem = con->problem;
    int64_t *group_ns = con->hosts->group_ns;
    /* What a token adds to a group's exchange; the base is left out. */
    const int64_t slopes_q20[] = {
        [COST_INSIDE] = cost_exchange_floor(problem->batch->cost, COST_INSIDE).slope_q20,
        [COST_ACROSS] = cost_exchange_floor(problem->batch->cost, COST_ACROSS).slope_q20};

    for (uint32_t g = 0; g < con->shared->n_nodes; g++) {
        group_ns[g] = g < con->how->n_hosts ? con->how->cap_ns : 0;
    }
    for (uint32_t i = 0; i < problem->n_sequences; i++) {
        const uint32_t k = problem->order[i];
        uint32_t least = 0, link;

        con->hosts->groups[k] = JOINT_NONE;
        if (con->hosts->ranks[k] != JOINT_NONE || is_left_over(con, i)) {
            continue;
        }
        for (uint32_t g = 1; g < con->shared->n_nodes; g++) {
            least = group_ns[g] < group_ns[least] ? g : least;
        }
        con->hosts->groups[k] = least;
        link = problem->node_links[con->shared->first_node + least];
        group_ns[least] += con->shared->comp_ns[k] + (slopes_q20[link] * problem->lengths[k] >> 20);
    }
}

/* Shards into micro-batches, first fit. */
static bool place_shards(struct concentration *con)
{
    const struct joint_problem *problem = con->problem;
    struct joint_state *state = con->state;
    const uint32_t end = state->max_mb > SPARE_MB ? state->max_mb - SPARE_MB : 0;

    for (uint32_t i = 0; i < problem->n_sequences; i++) {
        const uint32_t k = problem->order[i], group = con->hosts->groups[k];
        uint32_t mb = 0;

        if (group == JOINT_NONE) {
            continue;
        }
        for (; mb < end; mb++) {
            const uint32_t taken = joint_bucket_at(state, mb, group * con->shared->size)->padded;

            if (taken == 0 || taken + con->shared->slots[k] <= con->how->share_limit) {
                break;
            }
        }
        if (mb == end) {
            return false;
        }
        joint_state_add(state, k,
                        (struct joint_place){.mb = mb, .node = con->shared->first_node + group});
    }
    con->n_shared_mb = state->n_mb > 0 ? state->n_mb : 1;
    return true;
}

/* Local sequences of hosts: with the group's last shards if there is room, else after all shards.
 */
static bool place_hosted(struct concentration *con)
{
    const struct joint_problem *problem = con->problem;
    struct joint_state *state = con->state;

    for (uint32_t i = 0; i < problem->n_sequences; i++) {
        const uint32_t k = problem->order[i], host = con->hosts->ranks[k];
        const uint32_t node =
            con->shared->first_node + (host == JOINT_NONE ? 0 : host / con->shared->size);
        struct joint_place place = {.mb = 0, .node = host};

        if (host == JOINT_NONE) {
            continue;
        }
        for (uint32_t mb = 0; mb < con->n_shared_mb; mb++) {
            place.mb = joint_cell_at(state, mb, node)->tokens > 0 ? mb : place.mb;
        }
        if (!joint_state_has_room(state, k, place)) {
            place.mb = con->n_shared_mb;
            while (place.mb < state->max_mb && !joint_state_has_room(state, k, place)) {
                place.mb++;
            }
        }
        if (place.mb == state->max_mb) {
            return false;
        }
        joint_state_add(state, k, place);
    }
    return true;
}

/* Left-overs: where most exchange is to be hidden. */
static bool place_left_overs(struct concentration *con)
{
    const struct joint_problem *problem = con->problem;
    struct joint_state *state = con->state;

    for (uint32_t i = 0; i < problem->n_sequences; i++) {
        const uint32_t k = problem->order[i];
        struct joint_place best = {.node = JOINT_NONE};
        int64_t best_ns = INT64_MIN;

        if (con->hosts->ranks[k] != JOINT_NONE || con->hosts->groups[k] != JOINT_NONE) {
            continue;
        }
        for (uint32_t mb = 0; mb < con->n_shared_mb; mb++) {
            for (uint32_t r = 0; r < problem->n_ranks; r++) {
                const struct joint_bucket *bucket = joint_bucket_at(state, mb, r);
                const int64_t unhidden_ns = bucket->exchange_ns - bucket->local_ns -
                                            (bucket->count == 0 ? problem->fixed_ns : 0);

                if (unhidden_ns > best_ns &&
                    bucket->padded <= problem->bucket - con->local->slots[k]) {
                    best_ns = unhidden_ns;
                    best = (struct joint_place){.mb = mb, .node = r};
                }
            }
        }
        if (best.node == JOINT_NONE) {
            return false;
        }
        joint_state_add(state, k, best);
    }
    return true;
}

/* Moves the last distributed micro-batch behind the local ones. */
static void order_micro_batches(struct concentration *con)
{
    struct joint_state *state = con->state;
    const uint32_t last = con->n_shared_mb - 1;

    for (uint32_t i = 0; i < state->n_mb; i++) {
        state->order[i] = i < last ? i : i + 1 < state->n_mb ? i + 1 : last;
    }
}

bool joint_concentrate_run(struct joint_state *state, struct joint_hosts *hosts,
                           const struct joint_concentrate *how)
{
    struct concentration con = {.state = state,
                                .hosts = hosts,
                                .how = how,
                                .problem = state->problem,
                                .local = &state->problem->levels[0],
                                .shared = &state->problem->levels[1]};

    joint_state_clear(state);
    if (!choose_hosts(&con)) {
        return false;
    }
    choose_groups(&con);
    if (!place_shards(&con) || !place_hosted(&con) || !place_left_overs(&con)) {
        return false;
    }
    order_micro_batches(&con);
    return true;
}
