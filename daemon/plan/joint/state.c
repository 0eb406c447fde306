/*
 * Bookkeeping of placements. A change touches the group's sums and those of its members, so it
 * costs the size of the group.
 */
#include "plan/joint/state.h"

#include <string.h>

#include "arena.h"

static int alloc_micro_batches(struct joint_state *state, struct arena *arena)
{
    const struct joint_problem *problem = state->problem;
    const size_t groups = problem->n_nodes - problem->first_group;
    const size_t n_slots = (size_t)state->max_mb * problem->n_ranks;

    state->cells = ARENA_ARRAY(arena, struct joint_cell, state->max_mb * groups);
    state->buckets = ARENA_ARRAY(arena, struct joint_bucket, n_slots);
    state->own_ns = ARENA_ARRAY(arena, int64_t, n_slots);
    state->level_counts = ARENA_ARRAY(arena, uint32_t, (size_t)state->max_mb * problem->n_levels);
    state->order = ARENA_ARRAY(arena, uint32_t, state->max_mb);
    state->numbers = ARENA_ARRAY(arena, uint32_t, state->max_mb);
    state->clocks = ARENA_ARRAY(arena, int64_t, n_slots + problem->n_ranks);
    state->trial_clocks = ARENA_ARRAY(arena, int64_t, n_slots + problem->n_ranks);
    return state->cells && state->buckets && state->own_ns && state->level_counts && state->order &&
                   state->numbers && state->clocks && state->trial_clocks
               ? 0
               : SKRULL_ERR_RESOURCE_EXHAUSTED;
}

int joint_state_init(struct joint_state *state, const struct joint_problem *problem,
                     uint32_t max_mb)
{
    struct arena *arena = problem->batch->scratch;

    *state = (struct joint_state){
        .problem = problem,
        .max_mb = max_mb,
        .load_ns = ARENA_ARRAY(arena, int64_t, problem->n_ranks),
        .busy_ns = ARENA_ARRAY(arena, int64_t, problem->n_ranks),
        .tops = ARENA_ARRAY(arena, uint32_t, problem->n_ranks),
        .users = ARENA_ARRAY(arena, uint32_t, problem->n_nodes),
        .heads = ARENA_ARRAY(arena, uint32_t, problem->n_nodes),
        .links = ARENA_ARRAY(arena, struct joint_link, problem->n_sequences),
    };
    if (!state->load_ns || !state->busy_ns || !state->tops || !state->users || !state->heads ||
        !state->links) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    if (alloc_micro_batches(state, arena)) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (uint32_t mb = 0; mb < max_mb; mb++) {
        state->order[mb] = mb;
    }
    for (uint32_t k = 0; k < problem->n_sequences; k++) {
        state->links[k].local_ns = problem->levels[0].comp_ns[k];
    }
    joint_state_clear(state);
    return 0;
}

void joint_state_clear(struct joint_state *state)
{
    const struct joint_problem *problem = state->problem;
    const size_t groups = problem->n_nodes - problem->first_group;
    const size_t n_slots = (size_t)state->n_mb * problem->n_ranks;
    const size_t ranks = problem->n_ranks, nodes = problem->n_nodes;

    memset(state->cells, 0, state->n_mb * groups * sizeof(*state->cells));
    memset(state->buckets, 0, n_slots * sizeof(*state->buckets));
    memset(state->own_ns, 0, n_slots * sizeof(*state->own_ns));
    memset(state->level_counts, 0,
           (size_t)state->n_mb * problem->n_levels * sizeof(*state->level_counts));
    memset(state->load_ns, 0, ranks * sizeof(*state->load_ns));
    memset(state->busy_ns, 0, ranks * sizeof(*state->busy_ns));
    memset(state->tops, 0, ranks * sizeof(*state->tops));
    memset(state->users, 0, nodes * sizeof(*state->users));
    memset(state->heads, 0xff, nodes * sizeof(*state->heads)); /* JOINT_NONE */
    for (uint32_t k = 0; k < problem->n_sequences; k++) {
        state->links[k].place.node = JOINT_NONE;
    }
    memset(state->clocks, 0, ranks * sizeof(*state->clocks));
    state->n_mb = 0;
}

void joint_state_load(struct joint_state *state, const struct joint_place *places)
{
    joint_state_clear(state);
    for (uint32_t k = 0; k < state->problem->n_sequences; k++) {
        joint_state_add(state, k, places[k]);
    }
}

void joint_state_reset_order(struct joint_state *state)
{
    for (uint32_t mb = 0; mb < state->n_mb; mb++) {
        state->order[mb] = mb;
    }
}

static bool is_empty(const struct joint_state *state, uint32_t mb)
{
    const uint32_t n_levels = state->problem->n_levels;
    uint32_t count = 0;

    for (uint32_t l = 0; l < n_levels; l++) {
        count += state->level_counts[(size_t)mb * n_levels + l];
    }
    return count == 0;
}

uint32_t joint_state_save(const struct joint_state *state, struct joint_place *ret_places)
{
    uint32_t n_mb = 0;

    for (uint32_t i = 0; i < state->n_mb; i++) {
        state->numbers[state->order[i]] = n_mb;
        n_mb += !is_empty(state, state->order[i]);
    }
    for (uint32_t k = 0; k < state->problem->n_sequences; k++) {
        ret_places[k] = (struct joint_place){.mb = state->numbers[state->links[k].place.mb],
                                             .node = state->links[k].place.node};
    }
    return n_mb;
}

bool joint_state_has_room(const struct joint_state *state, uint32_t k, struct joint_place place)
{
    const struct joint_problem *problem = state->problem;
    const uint32_t l = problem->node_levels[place.node];
    const struct joint_level *level = &problem->levels[l];
    const struct joint_bucket *bucket =
        joint_bucket_at(state, place.mb, joint_first_rank(problem, place.node));
    const uint32_t slot = level->slots[k];

    if (slot == JOINT_NONE) {
        return false;
    }
    for (uint32_t i = 0; i < level->size; i++, bucket++) {
        if (bucket->padded > problem->bucket - slot ||
            (problem->is_uniform && bucket->kind != 0 && bucket->kind != l + 1)) {
            return false;
        }
    }
    return true;
}

static void link_sequence(struct joint_state *state, uint32_t k, uint32_t node)
{
    const uint32_t head = state->heads[node];

    state->links[k].previous = JOINT_NONE;
    state->links[k].next = head;
    if (head != JOINT_NONE) {
        state->links[head].previous = k;
    }
    state->heads[node] = k;
    state->users[node]++;
}

static void unlink_sequence(struct joint_state *state, uint32_t k, uint32_t node)
{
    const uint32_t next = state->links[k].next, before = state->links[k].previous;

    if (before != JOINT_NONE) {
        state->links[before].next = next;
    } else {
        state->heads[node] = next;
    }
    if (next != JOINT_NONE) {
        state->links[next].previous = before;
    }
    state->users[node]--;
}

/* A rank's own time in a micro-batch, after its bucket has changed; `shared_ns`: by how much its
 * computation in groups did. */
static void update_own(struct joint_state *state, uint32_t mb, uint32_t rank, int64_t shared_ns)
{
    const struct joint_bucket *bucket = joint_bucket_at(state, mb, rank);
    int64_t *own_ns = &state->own_ns[(size_t)mb * state->problem->n_ranks + rank];
    const int64_t most_ns =
        bucket->local_ns > bucket->exchange_ns ? bucket->local_ns : bucket->exchange_ns;
    const int64_t new_ns = bucket->count > 0 ? state->problem->fixed_ns + most_ns : 0;

    state->busy_ns[rank] += new_ns - *own_ns + shared_ns;
    *own_ns = new_ns;
}

/* Puts a slot in a rank's bucket. */
static void fill_bucket(struct joint_state *state, struct joint_place place, uint32_t rank,
                        uint32_t slot, int64_t comp_ns)
{
    struct joint_bucket *bucket = joint_bucket_at(state, place.mb, rank);

    state->load_ns[rank] += comp_ns + (bucket->count == 0 ? state->problem->fixed_ns : 0);
    bucket->count++;
    bucket->padded += slot;
    bucket->kind = state->problem->node_levels[place.node] + 1U;
    if (state->tops[rank] <= place.mb) {
        state->tops[rank] = place.mb + 1;
    }
}

static void empty_bucket(struct joint_state *state, struct joint_place place, uint32_t rank,
                         uint32_t slot, int64_t comp_ns)
{
    struct joint_bucket *bucket = joint_bucket_at(state, place.mb, rank);

    bucket->count--;
    bucket->padded -= slot;
    bucket->kind = bucket->count > 0 ? bucket->kind : 0;
    state->load_ns[rank] -= comp_ns + (bucket->count == 0 ? state->problem->fixed_ns : 0);
}

/* Adds to a group, or takes from it; returns by how much its exchange grows. */
static int64_t change_cell(struct joint_state *state, struct joint_place place, int64_t comp_ns,
                           uint64_t tokens)
{
    struct joint_cell *cell = joint_cell_at(state, place.mb, place.node);
    const int64_t before_ns = cell->exchange_ns;

    cell->work_ns += comp_ns;
    cell->tokens = tokens;
    cell->exchange_ns = joint_exchange_ns(state->problem, place.node, tokens);
    return cell->exchange_ns - before_ns;
}

void joint_state_add(struct joint_state *state, uint32_t k, struct joint_place place)
{
    const struct joint_problem *problem = state->problem;
    const uint32_t l = problem->node_levels[place.node];
    const struct joint_level *level = &problem->levels[l];
    const uint32_t first = (place.node - level->first_node) * level->size;
    const int64_t comp_ns = level->comp_ns[k];

    if (level->size == 1) {
        fill_bucket(state, place, first, level->slots[k], comp_ns);
        joint_bucket_at(state, place.mb, first)->local_ns += comp_ns;
        update_own(state, place.mb, first, 0);
    } else {
        const uint64_t before = joint_cell_at(state, place.mb, place.node)->tokens;
        const int64_t exchange_ns =
            change_cell(state, place, comp_ns, before + problem->lengths[k]);

        for (uint32_t r = first; r < first + level->size; r++) {
            fill_bucket(state, place, r, level->slots[k], comp_ns);
            joint_bucket_at(state, place.mb, r)->exchange_ns += exchange_ns;
            update_own(state, place.mb, r, comp_ns);
        }
    }
    state->level_counts[(size_t)place.mb * problem->n_levels + l]++;
    link_sequence(state, k, place.node);
    state->links[k].place = place;
    state->n_mb = state->n_mb > place.mb ? state->n_mb : place.mb + 1;
}

void joint_state_remove(struct joint_state *state, uint32_t k)
{
    const struct joint_problem *problem = state->problem;
    const struct joint_place place = state->links[k].place;
    const uint32_t l = problem->node_levels[place.node];
    const struct joint_level *level = &problem->levels[l];
    const uint32_t first = (place.node - level->first_node) * level->size;
    const int64_t comp_ns = level->comp_ns[k];

    if (level->size == 1) {
        empty_bucket(state, place, first, level->slots[k], comp_ns);
        joint_bucket_at(state, place.mb, first)->local_ns -= comp_ns;
        update_own(state, place.mb, first, 0);
    } else {
        const uint64_t before = joint_cell_at(state, place.mb, place.node)->tokens;
        const int64_t exchange_ns =
            change_cell(state, place, -comp_ns, before - problem->lengths[k]);

        for (uint32_t r = first; r < first + level->size; r++) {
            empty_bucket(state, place, r, level->slots[k], comp_ns);
            joint_bucket_at(state, place.mb, r)->exchange_ns += exchange_ns;
            update_own(state, place.mb, r, -comp_ns);
        }
    }
    state->level_counts[(size_t)place.mb * problem->n_levels + l]--;
    unlink_sequence(state, k, place.node);
    state->links[k].place.node = JOINT_NONE;
}
