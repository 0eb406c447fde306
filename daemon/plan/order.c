/*
 * Order of micro-batches. Running the largest first keeps an allocator from growing in small steps
 * and splits; a heavy middle hides under the ramps of a pipeline. Groups never reach over the ranks
 * that are renumbered together, so that members still meet in the same micro-batch.
 */
#include "plan/order.h"

#include <stdlib.h>

#include "arena.h"
#include "cost/cost.h"
#include "plan/counts.h"

/* A sequence with all that it is sorted by: the micro-batches of one set of ranks follow one
 * another, in each the groups by ascending size. */
struct entry {
    uint32_t domain, micro_batch, group_size, group_first, place;
};

/* A micro-batch to be ordered. */
struct ranked {
    int64_t time_ns;
    uint32_t number;
};

struct ordering {
    const struct batch *batch;
    uint32_t domain_ranks; /* ranks that are renumbered together */
    struct entry *entries; /* [n_sequences] */
    int64_t *local_ns;     /* [domain_ranks] 0 between micro-batches */
    int64_t *exchange_ns;  /* [domain_ranks] likewise */
    int64_t *clocks;       /* [domain_ranks] */
    struct ranked *ranked; /* [n_numbers] */
    uint32_t *new_numbers; /* [n_numbers] */
    uint32_t n_numbers;    /* micro-batches of any domain, dummies that fill up included */
};

static int compare_u32(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int order = compare_u32(a->domain, b->domain);

    order = order ? order : compare_u32(a->micro_batch, b->micro_batch);
    order = order ? order : compare_u32(a->group_size, b->group_size);
    order = order ? order : compare_u32(a->group_first, b->group_first);
    return order ? order : compare_u32(a->place, b->place);
}

/* Longest first; ties by number. */
static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;

    if (a->time_ns != b->time_ns) {
        return a->time_ns > b->time_ns ? -1 : 1;
    }
    return compare_u32(a->number, b->number);
}

static int ordering_init(struct ordering *ordering, const struct placement *placements)
{
    const struct batch *batch = ordering->batch;
    struct arena *arena = batch->scratch;
    const uint32_t n = batch->n_sequences, most = counts_most(placements, n);

    ordering->n_numbers =
        batch->options.equal_micro_batches ? counts_equal(&batch->options, most) : most;
    ordering->entries = ARENA_ARRAY(arena, struct entry, n);
    ordering->local_ns = ARENA_ARRAY(arena, int64_t, ordering->domain_ranks);
    ordering->exchange_ns = ARENA_ARRAY(arena, int64_t, ordering->domain_ranks);
    ordering->clocks = ARENA_ARRAY(arena, int64_t, ordering->domain_ranks);
    ordering->ranked = ARENA_ARRAY(arena, struct ranked, ordering->n_numbers);
    ordering->new_numbers = ARENA_ARRAY(arena, uint32_t, ordering->n_numbers);
    if (!ordering->entries || !ordering->local_ns || !ordering->exchange_ns || !ordering->clocks ||
        !ordering->ranked || !ordering->new_numbers) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (uint32_t k = 0; k < n; k++) {
        ordering->entries[k] =
            (struct entry){.domain = placements[k].group_first / ordering->domain_ranks,
                           .micro_batch = placements[k].micro_batch,
                           .group_size = placements[k].group_size,
                           .group_first = placements[k].group_first % ordering->domain_ranks,
                           .place = k};
    }
    qsort(ordering->entries, n, sizeof(ordering->entries[0]), compare_entries);
    return 0;
}

/* A run of entries: of a domain, a micro-batch or a group. */
struct run {
    const struct entry *entries;
    uint32_t n;
};

/* The run of one group at the start of entries. */
static struct run next_group(const struct run *rest)
{
    const struct entry *first = &rest->entries[0];
    struct run group = {.entries = first, .n = 1};

    while (group.n < rest->n && first[group.n].group_size == first->group_size &&
           first[group.n].group_first == first->group_first) {
        group.n++;
    }
    return group;
}

static void skip(struct run *rest, const struct run *part)
{
    rest->entries += part->n;
    rest->n -= part->n;
}

static int64_t run_comp_ns(const struct ordering *ordering, const struct run *group)
{
    const struct batch *batch = ordering->batch;
    int64_t comp_ns = 0; /* all work on one rank stays below PLANNER_MAX_NS: batch_init */

    for (uint32_t i = 0; i < group->n; i++) {
        comp_ns += cost_comp_ns(batch->cost, batch->sequences[group->entries[i].place].length,
                                group->entries[0].group_size);
    }
    return comp_ns;
}

static int64_t run_exchange_ns(const struct ordering *ordering, const struct run *group)
{
    const struct batch *batch = ordering->batch;
    const struct entry *entry = &group->entries[0];
    const enum cost_link link =
        cost_link_of(batch->cost, entry->domain * ordering->domain_ranks + entry->group_first,
                     entry->group_size);
    uint64_t tokens = 0;

    for (uint32_t i = 0; i < group->n; i++) {
        tokens += batch->sequences[group->entries[i].place].length;
    }
    return cost_exchange_ns(batch->cost, link, tokens);
}

/* What the ranks have to do before their groups meet. */
static void add_own(struct ordering *ordering, struct run rest)
{
    while (rest.n > 0) {
        const struct run group = next_group(&rest);
        const uint32_t first = group.entries->group_first, size = group.entries->group_size;
        const int64_t exchange_ns = size > 1 ? run_exchange_ns(ordering, &group) : 0;

        if (size == 1) {
            ordering->local_ns[first] = run_comp_ns(ordering, &group);
        }
        for (uint32_t r = first; r < first + size; r++) {
            ordering->exchange_ns[r] += exchange_ns;
        }
        skip(&rest, &group);
    }
}

/* Starts the clock of every rank with work: fixed and the longer of local work and exchange. */
static void start_clocks(struct ordering *ordering, struct run rest)
{
    const int64_t fixed_ns = cost_fixed_ns(ordering->batch->cost);

    while (rest.n > 0) {
        const struct run group = next_group(&rest);
        const uint32_t first = group.entries->group_first;

        for (uint32_t r = first; r < first + group.entries->group_size; r++) {
            const int64_t local_ns = ordering->local_ns[r], exchange_ns = ordering->exchange_ns[r];

            ordering->clocks[r] = fixed_ns + (local_ns > exchange_ns ? local_ns : exchange_ns);
        }
        skip(&rest, &group);
    }
}

/* Groups by ascending size, as the evaluator runs them, and clears what add_own filled. Returns the
 * largest clock. */
static int64_t run_groups(struct ordering *ordering, struct run rest)
{
    int64_t latest = 0;

    while (rest.n > 0) {
        const struct run group = next_group(&rest);
        const uint32_t first = group.entries->group_first, size = group.entries->group_size;
        int64_t clock = 0;

        for (uint32_t r = first; r < first + size; r++) {
            clock = ordering->clocks[r] > clock ? ordering->clocks[r] : clock;
        }
        clock += size > 1 ? run_comp_ns(ordering, &group) : 0;
        for (uint32_t r = first; r < first + size; r++) {
            ordering->clocks[r] = clock;
            ordering->local_ns[r] = ordering->exchange_ns[r] = 0;
        }
        latest = clock > latest ? clock : latest;
        skip(&rest, &group);
    }
    return latest;
}

/* Time of one micro-batch by itself, 0 where it is a dummy on all ranks. */
static int64_t time_alone(struct ordering *ordering, struct run part)
{
    add_own(ordering, part);
    start_clocks(ordering, part);
    return run_groups(ordering, part);
}

/* The micro-batches of one domain by descending time. Returns how many are to be ordered: with
 * equal counts all, else those that hold a sequence. */
static uint32_t rank_micro_batches(struct ordering *ordering, struct run rest)
{
    const bool has_dummies = ordering->batch->options.equal_micro_batches;
    uint32_t n = 0, number = 0;

    while (rest.n > 0 || (has_dummies && number < ordering->n_numbers)) {
        struct run part = {.entries = rest.entries};

        number = has_dummies ? number : rest.entries[0].micro_batch;
        while (part.n < rest.n && rest.entries[part.n].micro_batch == number) {
            part.n++;
        }
        ordering->ranked[n++] =
            (struct ranked){.time_ns = time_alone(ordering, part), .number = number};
        skip(&rest, &part);
        number++;
    }
    qsort(ordering->ranked, n, sizeof(ordering->ranked[0]), compare_ranked);
    return n;
}

/* Where the i-th heaviest of n stands: in the middle, then alternately right and left of it. */
static uint32_t place_of(const struct ordering *ordering, uint32_t i, uint32_t n)
{
    const uint32_t distance = i / 2 + i % 2;

    if (ordering->batch->options.micro_batch_order == SKRULL_MICRO_BATCH_ORDER_LARGEST_FIRST) {
        return i;
    }
    return i % 2 ? (n - 1) / 2 + distance : (n - 1) / 2 - distance;
}

static void renumber(struct ordering *ordering, const struct run *domain,
                     struct placement *placements)
{
    const uint32_t n = rank_micro_batches(ordering, *domain);

    for (uint32_t i = 0; i < n; i++) {
        ordering->new_numbers[ordering->ranked[i].number] = place_of(ordering, i, n);
    }
    for (uint32_t i = 0; i < domain->n; i++) {
        struct placement *at = &placements[domain->entries[i].place];

        at->micro_batch = ordering->new_numbers[at->micro_batch];
    }
}

int order_micro_batches(const struct batch *batch, struct placement *placements,
                        struct skrull_error *err)
{
    const bool is_elastic = batch->options.cp_mode == SKRULL_CP_MODE_ELASTIC;
    struct ordering ordering = {
        .batch = batch, .domain_ranks = batch->options.cp * (is_elastic ? batch->options.dp : 1)};
    struct run rest;

    if (batch->options.micro_batch_order == SKRULL_MICRO_BATCH_ORDER_AS_PLANNED) {
        return 0;
    }
    if (ordering_init(&ordering, placements)) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "out of memory to order the micro-batches of %u sequences",
                                batch->n_sequences);
    }
    rest = (struct run){.entries = ordering.entries, .n = batch->n_sequences};
    while (rest.n > 0) {
        struct run domain = {.entries = rest.entries};

        while (domain.n < rest.n && rest.entries[domain.n].domain == rest.entries->domain) {
            domain.n++;
        }
        renumber(&ordering, &domain, placements);
        skip(&rest, &domain);
    }
    return 0;
}
