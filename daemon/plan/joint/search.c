/*
 * The schedule. A construction is ruled by a target time: a sequence takes the smallest size that
 * keeps it alone within the target. Times are not monotone in the target, so a grid of targets is
 * tried instead of bisection, with different room left beside shards, and in different orders of
 * the micro-batches (groups nested in one micro-batch end together; with more of them each meeting
 * is a barrier, and what comes between can hide the wait).
 */
#include "plan/joint/search.h"

#include "arena.h"

#define CONSTRUCT_STEPS 25 /* what a construction counts */
#define CONCENTRATE_STEPS 5
#define STOP_SHARE 2000            /* at bound x (1 + 1 / this) the search ends */
#define CONCENTRATE_SHARE 25       /* concentrates where the gap is over 1 / this */
#define CONCENTRATE_RANKS 256      /* ... on at most so many ranks ... */
#define CONCENTRATE_SEQUENCES 1024 /* ... and of so many sequences */
#define LONGEST 8                  /* sequences that may take all the time */
#define SPARE_MB 14
#define SCAN_RANKS 64
#define SCAN_RANKS_LOOSE 512
#define FEW_SEQUENCES 1024 /* up to so many, a step takes little time */
#define FEW_A_RANK 5
#define MANY_SEQUENCES 16384 /* above this every other target is tried */
#define MAX_CELLS (UINT32_C(1) << 23)

/* How a round goes about it. */
struct round {
    uint32_t n_targets, n_grid; /* the first of a grid of targets */
    uint32_t n_done;            /* of them, plain and with all of the bucket: in an earlier round */
    uint32_t variants;          /* ways to use a target: bits of enum variant */
    uint32_t n_shares;          /* how many of the limits for shards */
    uint32_t n_caps;            /* of concentrations; 0: none */
    uint32_t n_starts;
    uint64_t start_steps;   /* of each descent */
    uint32_t max_sequences; /* in larger batches it is left out, steps and all; 0: in none */
};

enum variant {
    VARIANT_PLAIN = 1,    /* targets from the bound up */
    VARIANT_TWO = 2,      /* single ranks and CP only */
    VARIANT_SHORT = 4,    /* sizes by a part of the bound, and kept */
    VARIANT_SHORT_UP = 8, /* ... larger ones where it ends late */
};

static const struct round rounds[] = {
    {3, 6, 0, VARIANT_PLAIN, 1, 0, 1, 150, 0},
    {6, 6, 3, VARIANT_PLAIN, 3, 8, 3, 1800, 0},
    {0, 1, 0, 0, 0, 0, 1, 1600, FEW_SEQUENCES},
    {16, 16, 0, VARIANT_PLAIN | VARIANT_TWO | VARIANT_SHORT | VARIANT_SHORT_UP, 3, 16, 4, 12500, 0},
    {0, 1, 0, 0, 0, 0, 4, 40000, 0},
};

#define N_ROUNDS (sizeof(rounds) / sizeof(rounds[0]))

/* Tokens of a bucket that shards may take, in percent. */
static const uint32_t shares[] = {100, 75, 60};

/* Micro-batches for constructions to begin with: with equal counts as few as may do. */
static uint32_t first_max_mb(const struct joint_search *search)
{
    const struct joint_problem *problem = search->problem;
    const uint32_t least = problem->least_micro_batches;

    if (!problem->is_equal || least >= search->state.max_mb) {
        return search->state.max_mb;
    }
    return least > 0 ? least : 1;
}

/* Memory for twice the micro-batches that are needed at least, and some; within reason. */
static uint32_t choose_max_mb(const struct joint_problem *problem)
{
    const uint64_t wanted = (uint64_t)problem->least_micro_batches * 2 + SPARE_MB;
    const uint64_t most = MAX_CELLS / problem->n_nodes;
    const uint32_t exact = problem->batch->options.micro_batches;
    const uint64_t chosen = wanted < most ? wanted : most;

    if (exact > 0 && exact < chosen) {
        return exact;
    }
    return chosen > 1 ? (uint32_t)chosen : 1;
}

/* The content of the batch and the grid: the same lengths give the same search. */
static uint64_t seed_of(const struct joint_problem *problem)
{
    struct joint_rng rng = {.state = problem->n_ranks};

    for (uint32_t l = 0; l < problem->n_levels; l++) {
        rng.state ^= joint_rng_next(&rng) + problem->levels[l].size;
    }
    for (uint32_t i = 0; i < problem->n_sequences; i++) {
        rng.state ^= joint_rng_next(&rng) + problem->lengths[problem->order[i]];
    }
    return joint_rng_next(&rng);
}

/* Facts that decide what is worth trying. */
static void look_at_batch(struct joint_search *search)
{
    const struct joint_problem *problem = search->problem;
    uint64_t tokens = 0;

    for (uint32_t k = 0; k < problem->n_sequences; k++) {
        search->has_shards |= problem->lengths[k] > problem->bucket;
        tokens += problem->lengths[k];
    }
    search->is_tight = tokens / 3 > (uint64_t)problem->bucket * problem->n_ranks / 5;
}

/* Rating every group costs ranks x sequences. It pays longest where sequences differ in size and
 * all fit in one micro-batch. */
static bool may_scan(const struct joint_search *search)
{
    const bool is_loose = search->problem->n_levels > 2 && !search->is_tight;

    return search->problem->n_ranks <= (is_loose ? SCAN_RANKS_LOOSE : SCAN_RANKS);
}

int joint_search_init(struct joint_search *search, const struct joint_problem *problem,
                      struct joint_judge *judge, int64_t bound_ns, uint64_t steps)
{
    int rc;

    *search = (struct joint_search){
        .problem = problem,
        .judge = judge,
        .best = {.places =
                     ARENA_ARRAY(problem->batch->scratch, struct joint_place, problem->n_sequences),
                 .total_ns = JOINT_NO_TIME},
        .rng = {.state = seed_of(problem)},
        .bound_ns = bound_ns,
        .steps = steps};
    if (!search->best.places) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    look_at_batch(search);
    rc = joint_state_init(&search->state, problem, choose_max_mb(problem));
    rc = rc ? rc : joint_loads_init(&search->loads, problem, !may_scan(search));
    rc = rc ? rc : joint_hosts_init(&search->hosts, problem);
    rc = rc ? rc : joint_descent_init(&search->descent, &search->state, &search->rng);
    rc = rc ? rc : joint_pool_init(&search->pool, problem);
    search->max_mb = first_max_mb(search);
    return rc;
}

static int64_t stop_ns(const struct joint_search *search)
{
    return search->bound_ns + search->bound_ns / STOP_SHARE;
}

static bool is_done(const struct joint_search *search)
{
    return search->best.total_ns <= stop_ns(search);
}

/* Is it the best yet? Then it is kept. */
static void take_best(struct joint_search *search, int64_t clock_ns)
{
    const struct joint_state *state = &search->state;
    struct joint_entry *best = &search->best;

    if (joint_total_ns(search->problem, clock_ns, state->n_mb) < best->total_ns) {
        best->total_ns =
            joint_total_ns(search->problem, clock_ns, joint_state_save(state, best->places));
        if (search->judge->is_reordered) {
            joint_judge_take(search->judge, best->places);
        }
    }
}

/* Does one long sequence, alone at its size, take all the time? Then a descent, which shortens the
 * path to the end, leads nowhere: the room for starts is for others. Where a rank has few sequences
 * it does lead on at times, by the kicks; where there are very many, descents are short anyway. */
static bool is_dead_end(const struct joint_search *search, int64_t clock_ns)
{
    const struct joint_problem *problem = search->problem;

    if (problem->n_levels <= 2 || problem->n_sequences > FEW_SEQUENCES ||
        problem->n_sequences / FEW_A_RANK < problem->n_ranks) {
        return false;
    }
    for (uint32_t i = 0; i < LONGEST && i < problem->n_sequences; i++) {
        const uint32_t k = problem->order[i], node = search->state.links[k].place.node;
        const struct joint_level *level = &problem->levels[problem->node_levels[node]];
        const int64_t busy_ns = problem->fixed_ns + level->comp_ns[k];

        if (level->size > 1 &&
            busy_ns + joint_exchange_ns(problem, node, problem->lengths[k]) >= clock_ns) {
            return true;
        }
    }
    return false;
}

/* What the state holds becomes a start too. */
static void take(struct joint_search *search, int64_t clock_ns)
{
    if (!is_dead_end(search, clock_ns)) {
        joint_pool_offer(&search->pool, &search->state, clock_ns);
    }
    take_best(search, clock_ns);
}

void joint_search_offer(struct joint_search *search, const struct joint_place *places)
{
    joint_state_load(&search->state, places);
    take(search, joint_clock_all(&search->state));
}

enum order {
    ORDER_AS_IS,
    ORDER_REVERSED,
    ORDER_ENDS_SWAPPED,
    ORDER_FIRST_LAST, /* the first becomes the last */
    ORDER_LAST_FIRST,
    N_ORDERS,
};

static void set_order(struct joint_state *state, enum order kind)
{
    const uint32_t n_mb = state->n_mb;

    joint_state_reset_order(state);
    for (uint32_t i = 0; i < n_mb && kind == ORDER_REVERSED; i++) {
        state->order[i] = n_mb - 1 - i;
    }
    for (uint32_t i = 0; i < n_mb && kind == ORDER_FIRST_LAST; i++) {
        state->order[i] = (i + 1) % n_mb;
    }
    for (uint32_t i = 0; i < n_mb && kind == ORDER_LAST_FIRST; i++) {
        state->order[i] = (i + n_mb - 1) % n_mb;
    }
    if (kind == ORDER_ENDS_SWAPPED) {
        state->order[0] = n_mb - 1;
        state->order[n_mb - 1] = 0;
    }
}

/* Takes the state, its micro-batches in different orders. */
static void take_orders(struct joint_search *search)
{
    struct joint_state *state = &search->state;
    const enum order n_orders = state->n_mb < 2   ? ORDER_REVERSED
                                : state->n_mb < 3 ? ORDER_ENDS_SWAPPED
                                                  : N_ORDERS;

    for (enum order kind = ORDER_AS_IS; kind < n_orders; kind++) {
        set_order(state, kind);
        take(search, joint_clock_ordered(state));
    }
    joint_state_reset_order(state);
}

/* With equal counts every micro-batch costs all ranks: as few as will do. */
static bool construct(struct joint_search *search, struct joint_construct *how)
{
    for (;;) {
        how->rule.max_mb = search->max_mb;
        if (joint_construct_run(&search->state, &search->loads, how)) {
            return true;
        }
        if (search->max_mb == search->state.max_mb) {
            return false;
        }
        search->max_mb++;
    }
}

/* A construction is worth its steps only where there are enough of them. */
static bool spend(struct joint_search *search, uint64_t steps)
{
    if (search->steps < steps) {
        search->steps = 0;
        return false;
    }
    search->steps -= steps;
    return true;
}

static uint64_t two_levels(const struct joint_problem *problem)
{
    uint64_t levels = 0;

    for (uint32_t l = 0; l < problem->n_levels; l++) {
        if (problem->levels[l].size == 1 || problem->levels[l].size == problem->batch->options.cp) {
            levels |= UINT64_C(1) << l;
        }
    }
    return levels;
}

/* Sets the target of a construction; false: this variant has none of that number. */
static bool set_target(const struct joint_search *search, const struct round *round,
                       enum variant variant, uint32_t i, struct joint_construct *how)
{
    const int64_t bound_ns = search->bound_ns > 0 ? search->bound_ns : INT64_MAX / 4;
    const int64_t n = round->n_grid, step = i;

    how->levels = UINT64_MAX;
    if (variant == VARIANT_PLAIN || variant == VARIANT_TWO) {
        how->degree_ns = bound_ns + bound_ns / 10 * 5 / (n * n) * (step * step);
        how->end_ns = how->degree_ns;
        if (variant == VARIANT_TWO) {
            how->levels = two_levels(search->problem);
            return search->problem->n_levels > 2 && step < 4;
        }
        return true;
    }
    how->degree_ns = bound_ns / 5 * 2 + bound_ns / 5 * 3 / n * step;
    how->end_ns = variant == VARIANT_SHORT ? INT64_MAX : bound_ns + bound_ns / 50;
    return true;
}

static void run_variants(struct joint_search *search, const struct round *round, uint32_t i,
                         uint32_t share_limit)
{
    const bool is_done_before = i < round->n_done && share_limit == search->problem->bucket;

    for (uint32_t variant = is_done_before ? VARIANT_TWO : VARIANT_PLAIN;
         variant <= VARIANT_SHORT_UP; variant *= 2) {
        struct joint_construct how = {.rule.share_limit = share_limit};

        if (is_done(search) || !(round->variants & variant) ||
            !set_target(search, round, (enum variant)variant, i, &how)) {
            continue;
        }
        if (!spend(search, CONSTRUCT_STEPS)) {
            return;
        }
        if (construct(search, &how)) {
            take_orders(search);
        }
    }
}

static void run_constructions(struct joint_search *search, const struct round *round)
{
    const bool has_shares =
        search->has_shards && search->is_tight && search->problem->n_levels == 2;
    const uint32_t stride = search->problem->n_sequences > MANY_SEQUENCES ? 2 : 1;
    const uint32_t n_shares = has_shares || round->n_shares < 1 ? round->n_shares : 1;

    for (uint32_t s = 0; s < n_shares; s++) {
        const uint32_t share_limit =
            (uint32_t)((uint64_t)search->problem->bucket * shares[s] / 100);

        for (uint32_t i = 0; i < round->n_targets; i += stride) {
            run_variants(search, round, i, share_limit);
        }
    }
}

/* One number of hosts: all caps, limits and fits. */
static void run_hosts(struct joint_search *search, uint32_t n_hosts, uint32_t n_caps,
                      int64_t longest_ns)
{
    for (uint32_t i = 0; i < n_caps * 6; i++) {
        const uint32_t cap = i / 6 + 1;
        const struct joint_concentrate how = {
            .n_hosts = n_hosts,
            .cap_ns = longest_ns / n_caps * 3 / 2 * cap,
            .share_limit = (uint32_t)((uint64_t)search->problem->bucket * shares[i / 2 % 3] / 100),
            .levels_short = i % 2 == 0,
        };

        if (!spend(search, CONCENTRATE_STEPS)) {
            return;
        }
        if (joint_concentrate_run(&search->state, &search->hosts, &how)) {
            take(search, joint_clock_ordered(&search->state));
            joint_state_reset_order(&search->state);
        }
    }
}

static void run_concentrations(struct joint_search *search, uint32_t n_caps)
{
    const struct joint_problem *problem = search->problem;
    uint32_t n_groups, step;
    int64_t longest_ns = 0;

    if (!joint_can_concentrate(problem) || !search->has_shards || !search->is_tight ||
        problem->n_ranks > CONCENTRATE_RANKS || problem->n_sequences > CONCENTRATE_SEQUENCES ||
        search->best.total_ns <= search->bound_ns + search->bound_ns / CONCENTRATE_SHARE) {
        return;
    }
    for (uint32_t k = 0; k < problem->n_sequences; k++) {
        if (problem->levels[0].slots[k] != JOINT_NONE &&
            problem->levels[0].comp_ns[k] > longest_ns) {
            longest_ns = problem->levels[0].comp_ns[k];
        }
    }
    n_groups = problem->levels[1].n_nodes;
    step = n_groups > 8 ? n_groups / 4 : 1;
    for (uint32_t n = n_groups > 8 ? n_groups / 2 : 1; n <= n_groups; n += step) {
        run_hosts(search, n, n_caps, longest_ns);
    }
}

/* Descends; the state's time is that of its clocks and of what all ranks share. */
static int64_t descend(struct joint_search *search, uint64_t *steps)
{
    const int64_t shared_ns = joint_total_ns(search->problem, 0, search->state.n_mb);

    return joint_descend(&search->descent, steps, stop_ns(search) - shared_ns);
}

/* Descends from a start, kicks and descends again until its steps are used up. */
static void run_start(struct joint_search *search, uint32_t i, uint64_t budget)
{
    struct joint_descent *descent = &search->descent;
    struct joint_state *state = &search->state;
    uint64_t steps = budget < search->steps ? budget : search->steps;
    const uint64_t given = steps;
    int64_t at_ns, now_ns;

    joint_state_load(state, search->pool.entries[i].places);
    (void)joint_clock_all(state);
    at_ns = descend(search, &steps);
    take_best(search, at_ns);
    joint_descent_mark(descent);
    while (steps > 0 && !is_done(search)) {
        joint_kick(descent, &steps, at_ns + at_ns / 10);
        now_ns = descend(search, &steps);
        take_best(search, now_ns);
        if (now_ns < at_ns + at_ns / STOP_SHARE) {
            at_ns = now_ns;
            joint_descent_mark(descent);
        } else if (!joint_descent_rewind(descent)) {
            joint_state_load(state, search->pool.entries[i].places);
            at_ns = joint_clock_all(state);
            joint_descent_mark(descent);
        }
    }
    joint_pool_set(&search->pool, i, state, at_ns);
    search->steps -= given - steps;
}

static void run_descents(struct joint_search *search, const struct round *round)
{
    for (uint32_t i = 0; i < round->n_starts && i < search->pool.n; i++) {
        if (search->steps > 0 && !is_done(search)) {
            run_start(search, i, round->start_steps);
        }
    }
    joint_pool_sort(&search->pool);
}

void joint_search_run(struct joint_search *search)
{
    for (size_t i = 0; search->steps > 0 && !is_done(search); i++) {
        const struct round *round = &rounds[i < N_ROUNDS ? i : N_ROUNDS - 1];

        if (round->max_sequences > 0 && search->problem->n_sequences > round->max_sequences) {
            (void)spend(search, round->n_starts * round->start_steps);
            continue;
        }
        run_constructions(search, round);
        if (round->n_caps > 0) {
            run_concentrations(search, round->n_caps);
        }
        if (search->best.total_ns == JOINT_NO_TIME) {
            break;
        }
        if (search->pool.n > 0) {
            run_descents(search, round);
        } else {
            (void)spend(search, round->n_starts * round->start_steps);
        }
    }
    if (!search->judge->is_reordered && search->best.total_ns < JOINT_NO_TIME) {
        joint_judge_take(search->judge, search->best.places);
    }
}
