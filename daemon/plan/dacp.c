/*
 * DACP, distribution-aware context parallelism (Skrull, arXiv 2505.19609, section 4 and its
 * algorithms for one micro-batch): in ascending order each sequence stays whole on the least-loaded
 * rank, else on the rank with most room; where neither can take it, it is distributed over all
 * ranks; where no shard fits either, the fullest rank rolls a local sequence back into a
 * distributed one.
 *
 * Faults of the printed pseudo-code that are mended here:
 * - its RollBack credits the freed tokens with the wrong sign and charges the new shards to one
 * rank: roll_back() gives the slot back and charges every rank its shard. Another rank can then be
 * over its bucket, so make_room() goes on until none is;
 * - its loop tries again for ever: place_one() ends on success;
 * - its shards are S / N tokens: here every slot is padded and aligned, and every limit counts
 * padded tokens;
 * - a shard may be as large as the whole slot by padding: rolling that back gains nothing, DACP
 * fails.
 */
#include "plan/dacp.h"

#include "arena.h"

static int stack_init(struct dacp_stack *stack, const struct batch *batch)
{
    struct arena *arena = batch->scratch;

    stack->tops = ARENA_ARRAY(arena, uint32_t, batch->options.cp);
    stack->nexts = ARENA_ARRAY(arena, uint32_t, batch->n_sequences);
    stack->lasts = ARENA_ARRAY(arena, uint32_t, batch->n_sequences);
    stack->below = ARENA_ARRAY(arena, uint32_t, batch->n_sequences);
    return stack->tops && stack->nexts && stack->lasts && stack->below
               ? 0
               : SKRULL_ERR_RESOURCE_EXHAUSTED;
}

/* Puts sequence `k`, not shorter than any before, on a rank's stack. */
static void stack_push(struct dacp_stack *stack, const struct skrull_sequence *sequences,
                       uint32_t rank, uint32_t k)
{
    const uint32_t top = stack->tops[rank];

    stack->nexts[k] = DACP_NONE;
    if (top != DACP_NONE && sequences[top].length == sequences[k].length) {
        stack->nexts[stack->lasts[top]] = k;
        stack->lasts[top] = k;
        return;
    }
    stack->lasts[k] = k;
    stack->below[k] = top;
    stack->tops[rank] = k;
}

/* Takes the longest sequence off a rank's stack, the lowest sample of equals. */
static void stack_pop(struct dacp_stack *stack, uint32_t rank)
{
    const uint32_t top = stack->tops[rank], next = stack->nexts[top];

    if (next == DACP_NONE) {
        stack->tops[rank] = stack->below[top];
        return;
    }
    stack->lasts[next] = stack->lasts[top];
    stack->below[next] = stack->below[top];
    stack->tops[rank] = next;
}

int dacp_init(struct dacp *dacp, const struct batch *batch, enum dacp_rule rule)
{
    const uint32_t cp = batch->options.cp;
    int rc;

    *dacp = (struct dacp){.batch = batch, .rule = rule, .n_ranks = cp};
    rc = least_init(&dacp->load, cp, batch->scratch);
    rc = rc ? rc : least_init(&dacp->taken, cp, batch->scratch);
    rc = rc ? rc : least_init(&dacp->untaken, cp, batch->scratch);
    return rc ? rc : stack_init(&dacp->locals, batch);
}

/* Padded tokens that a rank has left; negative: it is over its bucket. */
static int64_t room_of(const struct dacp *dacp, uint32_t rank)
{
    return (int64_t)dacp->batch->options.bucket_tokens - dacp->shared_tokens -
           dacp->taken.keys[rank];
}

/* Adds a local sequence to a rank, or takes it off (sign -1). */
static void charge(struct dacp *dacp, uint32_t rank, const struct batch_item *item, int sign)
{
    const int64_t taken = dacp->taken.keys[rank] + sign * item->local_slot;

    least_set(&dacp->taken, rank, taken);
    least_set(&dacp->untaken, rank, -taken);
    least_set(&dacp->load, rank, dacp->load.keys[rank] + sign * item->local_ns);
}

static bool place_local(struct dacp *dacp, uint32_t k, struct placement *placement)
{
    const struct batch_item *item = &dacp->batch->items[k];
    uint32_t rank = least_first(dacp->rule == DACP_MOST_ROOM ? &dacp->taken : &dacp->load);

    if (item->local_slot > room_of(dacp, rank)) {
        rank = least_first(&dacp->taken);
        if (item->local_slot > room_of(dacp, rank)) {
            return false;
        }
    }
    charge(dacp, rank, item, 1);
    stack_push(&dacp->locals, dacp->batch->sequences, rank, k);
    placement->group_first = rank;
    placement->group_size = 1;
    return true;
}

/* Every rank holds a shard, so the one with least room must have it. */
static bool distribute(struct dacp *dacp, uint32_t k, struct placement *placement)
{
    const struct batch_item *item = &dacp->batch->items[k];

    if (item->shard_slot > room_of(dacp, least_first(&dacp->untaken))) {
        return false;
    }
    dacp->shared_tokens += item->shard_slot;
    placement->group_first = 0;
    placement->group_size = dacp->n_ranks;
    return true;
}

/* The fullest rank's longest local sequence becomes a distributed one. */
static bool roll_back(struct dacp *dacp, struct placement *placements)
{
    const uint32_t rank = least_first(&dacp->untaken), k = dacp->locals.tops[rank];
    const struct batch_item *item;

    if (k == DACP_NONE) {
        return false;
    }
    item = &dacp->batch->items[k];
    if (item->shard_slot >= item->local_slot) { /* also where nothing may be distributed */
        return false;
    }
    stack_pop(&dacp->locals, rank);
    charge(dacp, rank, item, -1);
    dacp->shared_tokens += item->shard_slot;
    placements[k].group_first = 0;
    placements[k].group_size = dacp->n_ranks;
    return true;
}

/* At least one roll-back, and on until no rank is over its bucket. */
static bool make_room(struct dacp *dacp, struct placement *placements)
{
    do {
        if (!roll_back(dacp, placements)) {
            return false;
        }
    } while (room_of(dacp, least_first(&dacp->untaken)) < 0);
    return true;
}

static bool place_one(struct dacp *dacp, uint32_t k, struct placement *placements)
{
    while (!place_local(dacp, k, &placements[k]) && !distribute(dacp, k, &placements[k])) {
        if (!make_room(dacp, placements)) {
            return false;
        }
    }
    return true;
}

bool dacp_place(struct dacp *dacp, const struct dacp_deal *deal, struct placement *placements)
{
    least_fill(&dacp->load, 0);
    least_fill(&dacp->taken, 0);
    least_fill(&dacp->untaken, 0);
    dacp->shared_tokens = 0;
    for (uint32_t r = 0; r < dacp->n_ranks; r++) {
        dacp->locals.tops[r] = DACP_NONE;
    }
    for (size_t i = deal->first; i < deal->end; i += deal->stride) {
        if (!place_one(dacp, deal->order[i], placements)) {
            return false;
        }
    }
    return true;
}
