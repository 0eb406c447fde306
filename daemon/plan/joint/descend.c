/*
 * Descent: the rank that ends last is traced back; a sequence on its path moves to another rank, or
 * is swapped with a shorter one there (nearest to half the difference in load), or with any other
 * sequence at random. A change is kept if the blocks it touches end earlier than the last rank did.
 * What the ablation showed to be of no use is not tried: other sizes or micro-batches for one
 * sequence alone.
 */
#include "plan/joint/descend.h"

#include "arena.h"
#include "plan/joint/pick.h"

#define PATH_MAX_SEQUENCES 256
#define SCAN_RANKS 64   /* up to so many ranks are all tried ... */
#define SAMPLE_RANKS 48 /* ... of more, only so many */
#define TRY_RANKS 8     /* of these, the least loaded take a sequence of the path */
#define JOURNAL_MAX 4096
#define PARTNERS_MAX 64 /* looked at on a rank */
#define CROSS_SWAPS 12  /* random partners of each sequence on the path */
#define RELOCATIONS 8   /* random places for each of them */
#define KICKS_MAX 3
#define KICK_ATTEMPTS 20

int joint_descent_init(struct joint_descent *descent, struct joint_state *state,
                       struct joint_rng *rng)
{
    const struct joint_problem *problem = state->problem;
    struct arena *arena = problem->batch->scratch;

    *descent = (struct joint_descent){
        .state = state,
        .rng = rng,
        .path = ARENA_ARRAY(arena, uint32_t, PATH_MAX_SEQUENCES),
        .ranks = ARENA_ARRAY(arena, uint32_t, SCAN_RANKS),
        .journal = ARENA_ARRAY(arena, struct joint_move, JOURNAL_MAX),
    };
    if (!descent->path || !descent->ranks || !descent->journal ||
        joint_trace_init(&descent->trace, problem)) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    descent->n_ranks = problem->n_ranks <= SCAN_RANKS ? problem->n_ranks : SAMPLE_RANKS;
    for (uint32_t i = 0; i < descent->n_ranks; i++) {
        descent->ranks[i] = i;
    }
    return 0;
}

void joint_descent_mark(struct joint_descent *descent)
{
    descent->n_journal = 0;
    descent->journal_is_full = false;
}

static void keep(struct joint_descent *descent, const struct joint_change *change)
{
    joint_change_keep(descent->state, change);
    for (uint32_t i = 0; i < change->n_moves; i++) {
        if (descent->n_journal == JOURNAL_MAX) {
            descent->journal_is_full = true;
            return;
        }
        descent->journal[descent->n_journal++] = change->undo[i];
    }
}

bool joint_descent_rewind(struct joint_descent *descent)
{
    if (descent->journal_is_full) {
        return false;
    }
    while (descent->n_journal > 0) {
        const struct joint_move *move = &descent->journal[--descent->n_journal];

        joint_state_remove(descent->state, move->k);
        joint_state_add(descent->state, move->k, move->place);
    }
    (void)joint_clock_all(descent->state);
    return true;
}

/* Tries a change and keeps it if its blocks end before `limit_ns`. */
static bool improve(struct joint_descent *descent, struct joint_change *change, int64_t limit_ns,
                    uint64_t *steps)
{
    const int64_t ns = joint_change_try(descent->state, change, limit_ns);

    --*steps;
    if (ns == JOINT_NO_TIME) {
        return false;
    }
    if (ns >= limit_ns) {
        joint_change_undo(descent->state, change);
        return false;
    }
    keep(descent, change);
    return true;
}

static bool try_move(struct joint_descent *descent, uint32_t k, uint32_t rank, int64_t limit_ns,
                     uint64_t *steps)
{
    struct joint_state *state = descent->state;
    const struct joint_problem *problem = state->problem;
    const int64_t ends_ns = state->load_ns[rank] + problem->levels[0].comp_ns[k];
    const uint32_t n_mb = state->n_mb + (problem->is_equal || state->n_mb == state->max_mb ? 0 : 1);
    const struct joint_pick_rule rule = {.max_mb = n_mb, .share_limit = problem->bucket};
    struct joint_change change = {.n_moves = 1};
    struct joint_pick pick;

    if (ends_ns >= limit_ns || !joint_pick_mb(state, k, rank, &rule, &pick) ||
        ends_ns + (pick.opens ? problem->fixed_ns : 0) >= limit_ns) {
        return false;
    }
    change.moves[0] = (struct joint_move){.k = k, .place = {.mb = pick.mb, .node = rank}};
    return improve(descent, &change, limit_ns, steps);
}

/* Is there room for local k in the micro-batch of local `other` without that one? */
static bool fits_instead(const struct joint_state *state, uint32_t k, uint32_t other, uint32_t rank)
{
    const struct joint_level *local = &state->problem->levels[0];
    const uint64_t padded = joint_bucket_at(state, state->links[other].place.mb, rank)->padded;

    return padded - local->slots[other] + local->slots[k] <= state->problem->bucket;
}

/* The local sequence of `rank` whose swap with k would level the two ranks best. */
static uint32_t find_partner(const struct joint_state *state, uint32_t k, uint32_t rank,
                             int64_t limit_ns)
{
    const int64_t load_ns = state->load_ns[rank], wanted_ns = (limit_ns - load_ns) / 2;
    const int64_t comp_ns = state->links[k].local_ns;
    int64_t best_ns = INT64_MAX;
    uint32_t best = JOINT_NONE, left = PARTNERS_MAX;

    for (uint32_t other = state->heads[rank]; other != JOINT_NONE && left > 0;
         other = state->links[other].next, left--) {
        const int64_t more_ns = comp_ns - state->links[other].local_ns;
        const int64_t off_ns = more_ns > wanted_ns ? more_ns - wanted_ns : wanted_ns - more_ns;

        if (more_ns > 0 && load_ns + more_ns < limit_ns && off_ns < best_ns &&
            fits_instead(state, k, other, rank)) {
            best_ns = off_ns;
            best = other;
        }
    }
    return best;
}

static struct joint_change swap_of(const struct joint_state *state, uint32_t a, uint32_t b)
{
    return (struct joint_change){.moves = {{.k = a, .place = state->links[b].place},
                                           {.k = b, .place = state->links[a].place}},
                                 .n_moves = 2};
}

static bool try_swap(struct joint_descent *descent, uint32_t k, uint32_t rank, int64_t limit_ns,
                     uint64_t *steps)
{
    const uint32_t other = find_partner(descent->state, k, rank, limit_ns);
    struct joint_change change;

    if (other == JOINT_NONE) {
        return false;
    }
    change = swap_of(descent->state, k, other);
    return improve(descent, &change, limit_ns, steps);
}

/* May a and b change places, as far as the two alone tell? */
static bool can_swap(const struct joint_state *state, uint32_t a, uint32_t b)
{
    const struct joint_problem *problem = state->problem;
    const struct joint_place *at = &state->links[a].place, *to = &state->links[b].place;

    return a != b && (at->node != to->node || at->mb != to->mb) &&
           problem->levels[problem->node_levels[to->node]].slots[a] != JOINT_NONE &&
           problem->levels[problem->node_levels[at->node]].slots[b] != JOINT_NONE;
}

/* Swaps k with random sequences of any group. */
static bool try_cross_swaps(struct joint_descent *descent, uint32_t k, int64_t limit_ns,
                            uint64_t *steps)
{
    struct joint_state *state = descent->state;
    const struct joint_problem *problem = state->problem;

    for (uint32_t i = 0; i<CROSS_SWAPS && * steps> 0; i++) {
        const uint32_t other = joint_rng_below(descent->rng, problem->n_sequences);
        const uint32_t l = problem->node_levels[state->links[k].place.node];
        struct joint_change change;

        if (!can_swap(state, k, other) ||
            (problem->node_levels[state->links[other].place.node] == l &&
             problem->levels[l].comp_ns[other] >= problem->levels[l].comp_ns[k])) {
            continue;
        }
        change = swap_of(state, k, other);
        if (improve(descent, &change, limit_ns, steps)) {
            return true;
        }
    }
    return false;
}

/* Would group `node` end in time with k in it, waits and exchange left out? */
static bool may_hold(const struct joint_state *state, uint32_t k, uint32_t node, int64_t limit_ns)
{
    const struct joint_problem *problem = state->problem;
    const struct joint_level *to = &problem->levels[problem->node_levels[node]];
    const uint32_t old = state->links[k].place.node;
    const struct joint_level *from = &problem->levels[problem->node_levels[old]];
    const uint32_t first = joint_first_rank(problem, node);
    const uint32_t old_first = joint_first_rank(problem, old);

    if (to->slots[k] == JOINT_NONE) {
        return false;
    }
    for (uint32_t r = first; r < first + to->size; r++) {
        const bool is_old = r >= old_first && r - old_first < from->size;

        if (state->load_ns[r] - (is_old ? from->comp_ns[k] : 0) + to->comp_ns[k] >= limit_ns) {
            return false;
        }
    }
    return true;
}

/* Moves k to random groups, of any size, and micro-batches. */
static bool try_relocations(struct joint_descent *descent, uint32_t k, int64_t limit_ns,
                            uint64_t *steps)
{
    struct joint_state *state = descent->state;
    const struct joint_problem *problem = state->problem;

    for (uint32_t i = 0; i<RELOCATIONS && * steps> 0; i++) {
        const struct joint_level *level =
            &problem->levels[joint_rng_below(descent->rng, problem->n_levels)];
        const uint32_t rank = descent->ranks[joint_rng_below(descent->rng, descent->n_ranks)];
        const struct joint_place place = {.mb = joint_rng_below(descent->rng, state->n_mb),
                                          .node = level->first_node + rank / level->size};
        struct joint_change change = {.moves = {{.k = k, .place = place}}, .n_moves = 1};

        if ((place.node != state->links[k].place.node || place.mb != state->links[k].place.mb) &&
            may_hold(state, k, place.node, limit_ns) &&
            improve(descent, &change, limit_ns, steps)) {
            return true;
        }
    }
    return false;
}

/* Candidates by load: all ranks, or the least loaded one and a sample. They stand nearly in order
 * since the last time. */
static void order_ranks(struct joint_descent *descent)
{
    const struct joint_state *state = descent->state;
    const int64_t *load_ns = state->load_ns;
    const uint32_t n_ranks = state->problem->n_ranks;
    uint32_t *ranks = descent->ranks;

    if (descent->n_ranks < n_ranks) {
        ranks[0] = 0;
        for (uint32_t r = 1; r < n_ranks; r++) {
            ranks[0] = load_ns[r] < load_ns[ranks[0]] ? r : ranks[0];
        }
        for (uint32_t i = 1; i < descent->n_ranks; i++) {
            ranks[i] = joint_rng_below(descent->rng, n_ranks);
        }
    }
    for (uint32_t i = 1; i < descent->n_ranks; i++) {
        const uint32_t rank = ranks[i];
        uint32_t j = i;

        for (; j > 0 && (load_ns[ranks[j - 1]] > load_ns[rank] ||
                         (load_ns[ranks[j - 1]] == load_ns[rank] && ranks[j - 1] > rank));
             j--) {
            ranks[j] = ranks[j - 1];
        }
        ranks[j] = rank;
    }
}

/* The sequences on the path to the last rank's end, longest first. */
static void trace_path(struct joint_descent *descent)
{
    const uint32_t *lengths = descent->state->problem->lengths;
    uint32_t *path = descent->path;

    descent->n_path = joint_trace_run(&descent->trace, descent->state,
                                      joint_clock_last(descent->state), path, PATH_MAX_SEQUENCES);
    for (uint32_t i = 1; i < descent->n_path; i++) {
        const uint32_t k = path[i];
        uint32_t j = i;

        for (; j > 0 && lengths[path[j - 1]] < lengths[k]; j--) {
            path[j] = path[j - 1];
        }
        path[j] = k;
    }
}

static bool is_local(const struct joint_state *state, uint32_t k)
{
    return state->problem->has_local &&
           state->problem->node_levels[state->links[k].place.node] == 0;
}

/* One change that helps, from the path's local sequences, then from all of it at random. */
static bool find_change(struct joint_descent *descent, int64_t limit_ns, uint64_t *steps)
{
    const struct joint_state *state = descent->state;
    const uint32_t n_tried = descent->n_ranks < TRY_RANKS ? descent->n_ranks : TRY_RANKS;

    for (uint32_t i = 0; i < descent->n_path; i++) {
        const uint32_t k = descent->path[i];

        for (uint32_t j = 0; j < n_tried && is_local(state, k) && *steps > 0; j++) {
            const uint32_t rank = descent->ranks[j];

            if (rank != state->links[k].place.node && state->load_ns[rank] < limit_ns &&
                (try_move(descent, k, rank, limit_ns, steps) ||
                 (*steps > 0 && try_swap(descent, k, rank, limit_ns, steps)))) {
                return true;
            }
        }
    }
    for (uint32_t i = 0; i < descent->n_path; i++) {
        if (try_relocations(descent, descent->path[i], limit_ns, steps) ||
            try_cross_swaps(descent, descent->path[i], limit_ns, steps)) {
            return true;
        }
    }
    return false;
}

int64_t joint_descend(struct joint_descent *descent, uint64_t *steps, int64_t stop_ns)
{
    const struct joint_state *state = descent->state;

    for (;;) {
        const int64_t last_ns = joint_clock_of(state, joint_clock_last(state));

        if (*steps == 0 || last_ns <= stop_ns) {
            return last_ns;
        }
        trace_path(descent);
        order_ranks(descent);
        if (!find_change(descent, last_ns, steps)) {
            return last_ns;
        }
    }
}

/* One swap of a pair that is not much worse; true: done. */
static bool kick_once(struct joint_descent *descent, uint32_t k, int64_t limit_ns)
{
    const uint32_t other = joint_rng_below(descent->rng, descent->state->problem->n_sequences);
    struct joint_change change;
    int64_t ns;

    if (!can_swap(descent->state, k, other)) {
        return false;
    }
    change = swap_of(descent->state, k, other);
    ns = joint_change_try(descent->state, &change, limit_ns);
    if (ns == JOINT_NO_TIME) {
        return false;
    }
    if (ns > limit_ns) {
        joint_change_undo(descent->state, &change);
        return false;
    }
    keep(descent, &change);
    return true;
}

void joint_kick(struct joint_descent *descent, uint64_t *steps, int64_t limit_ns)
{
    const uint32_t n_kicks = 1 + joint_rng_below(descent->rng, KICKS_MAX);
    const uint32_t n = descent->state->problem->n_sequences;

    trace_path(descent);
    for (uint32_t i = 0; i < n_kicks; i++) {
        bool is_done = false;

        for (uint32_t j = 0; j < KICK_ATTEMPTS && !is_done && *steps > 0; j++) {
            const bool is_first = i == 0 && descent->n_path > 0;
            const uint32_t k = is_first
                                   ? descent->path[joint_rng_below(descent->rng, descent->n_path)]
                                   : joint_rng_below(descent->rng, n);

            is_done = kick_once(descent, k, limit_ns);
            --*steps;
        }
    }
}
