/*
 * GDS, global data scheduling (Skrull, arXiv 2505.19609, section 4). The sequences' computation is
 * bin-packed over DP ranks, longest first to the least loaded. Each DP rank sorts its own ascending
 * and deals them into n micro-batches by stride, so that each gets short and long ones; DACP places
 * each micro-batch; where one fails, n grows by one. One sequence a micro-batch always fits: n ends
 * there.
 *
 * Faults of the printed pseudo-code that are mended here:
 * - `Sum >= C x N` refuses a micro-batch that fits exactly: holds_too_much() says `>`;
 * - ceil(tokens / capacity) is only the least n (eight sequences of 7 under a cap of 8 need eight):
 * n grows until DACP has succeeded on all micro-batches, and the loop ends there.
 */
#include "plan/gds.h"

#include <string.h>

#include "arena.h"
#include "plan/least.h"
#include "plan/sort.h"

struct gds {
    const struct batch *batch;
    struct placement *placements;
    struct dacp dacp;
    uint32_t *sorted; /* [n_sequences] ascending length, ties by sample */
    uint32_t *bins;   /* [n_sequences] DP rank of each sequence */
    uint32_t *dealt;  /* [n_sequences] by DP rank, each ascending as `sorted` */
    size_t *ends;     /* [dp] where each DP rank's part of `dealt` ends */
    uint8_t *kinds; /* [n_sequences] what each micro-batch of a DP rank holds: mix: uniform only */
    uint32_t *numbers; /* [n_sequences] its number once others are cut in two */
};

enum { KIND_LOCAL = 1, KIND_DISTRIBUTED = 2, KIND_BOTH = 3 };

static int out_of_memory(const struct batch *batch, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                            "out of memory to schedule %u sequences", batch->n_sequences);
}

static int gds_init(struct gds *gds, enum dacp_rule rule)
{
    const struct batch *batch = gds->batch;
    struct arena *arena = batch->scratch;

    gds->sorted = sort_by_length(batch->sequences, batch->n_sequences, arena);
    gds->bins = ARENA_ARRAY(arena, uint32_t, batch->n_sequences);
    gds->dealt = ARENA_ARRAY(arena, uint32_t, batch->n_sequences);
    gds->ends = ARENA_ARRAY(arena, size_t, batch->options.dp);
    gds->kinds = ARENA_ARRAY(arena, uint8_t, batch->n_sequences);
    gds->numbers = ARENA_ARRAY(arena, uint32_t, batch->n_sequences);
    return gds->sorted && gds->bins && gds->dealt && gds->ends && gds->kinds && gds->numbers
               ? dacp_init(&gds->dacp, batch, rule)
               : SKRULL_ERR_RESOURCE_EXHAUSTED;
}

/* Longest first, of equals the lowest sample, each to the least-loaded DP rank. */
static int pack_bins(struct gds *gds)
{
    const struct skrull_sequence *sequences = gds->batch->sequences;
    struct least load;
    const int rc = least_init(&load, gds->batch->options.dp, gds->batch->scratch);
    size_t end = gds->batch->n_sequences, first;

    if (rc) {
        return rc;
    }
    for (; end > 0; end = first) {
        /* A run of equal lengths: it stands by ascending sample. */
        first = end - 1;
        while (first > 0 &&
               sequences[gds->sorted[first - 1]].length == sequences[gds->sorted[end - 1]].length) {
            first--;
        }
        for (size_t i = first; i < end; i++) {
            const uint32_t k = gds->sorted[i], bin = least_first(&load);

            gds->bins[k] = bin;
            least_set(&load, bin, load.keys[bin] + gds->batch->items[k].local_ns);
        }
    }
    return 0;
}

/* Sorts the sequences by DP rank, keeping their order. */
static void gather_bins(struct gds *gds)
{
    const uint32_t dp = gds->batch->options.dp, n = gds->batch->n_sequences;
    size_t before = 0;

    for (uint32_t k = 0; k < n; k++) {
        gds->ends[gds->bins[k]]++;
    }
    for (uint32_t i = 0; i < dp; i++) {
        const size_t count = gds->ends[i];

        gds->ends[i] = before; /* grows to the end as the bin is filled */
        before += count;
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t k = gds->sorted[i];

        gds->dealt[gds->ends[gds->bins[k]]++] = k;
    }
}

/* More real tokens than all CP ranks can hold: no need to try. */
static bool holds_too_much(const struct gds *gds, const struct dacp_deal *deal)
{
    const uint64_t capacity = (uint64_t)gds->batch->options.bucket_tokens * gds->batch->options.cp;
    uint64_t tokens = 0;

    for (size_t i = deal->first; i < deal->end; i += deal->stride) {
        tokens += gds->batch->sequences[deal->order[i]].length;
    }
    return tokens > capacity;
}

/*
 * Deals a DP rank's part of `dealt` into n micro-batches. They are tried from the one that holds
 * most: the last that gets the larger count, then downward, as that is where a small n fails.
 */
static bool deal(struct gds *gds, size_t first, size_t end, size_t n)
{
    const size_t heaviest = (end - first - 1) % n;

    for (size_t tried = 0; tried < n; tried++) {
        const size_t m = (heaviest + n - tried) % n;
        const struct dacp_deal part = {
            .order = gds->dealt, .first = first + m, .end = end, .stride = n};

        if (holds_too_much(gds, &part) || !dacp_place(&gds->dacp, &part, gds->placements)) {
            return false;
        }
        for (size_t i = part.first; i < end; i += n) {
            gds->placements[gds->dealt[i]].micro_batch = (uint32_t)m;
        }
    }
    return true;
}

/* The least number of micro-batches that the real tokens allow, at least 1. */
static size_t least_count(const struct gds *gds, size_t first, size_t end)
{
    const uint64_t capacity = (uint64_t)gds->batch->options.bucket_tokens * gds->batch->options.cp;
    uint64_t tokens = 0;

    for (size_t i = first; i < end; i++) {
        tokens += gds->batch->sequences[gds->dealt[i]].length;
    }
    return tokens / capacity + (tokens % capacity != 0);
}

/* Micro-batches of a deal into `n`, those counted twice that mix: uniform cuts in two. */
static size_t count_kinds(struct gds *gds, size_t first, size_t end, size_t n)
{
    size_t count = 0;

    if (gds->batch->options.mix != SKRULL_MIX_UNIFORM) {
        return n;
    }
    memset(gds->kinds, 0, n);
    for (size_t i = first; i < end; i++) {
        const struct placement *at = &gds->placements[gds->dealt[i]];

        gds->kinds[at->micro_batch] |= at->group_size > 1 ? KIND_DISTRIBUTED : KIND_LOCAL;
    }
    for (size_t m = 0; m < n; m++) {
        count += gds->kinds[m] == KIND_BOTH ? 2 : 1;
    }
    return count;
}

/* A micro-batch with both kinds becomes two, the distributed first. */
static void split_kinds(struct gds *gds, size_t first, size_t end, size_t n)
{
    uint32_t number = 0;

    if (gds->batch->options.mix != SKRULL_MIX_UNIFORM) {
        return;
    }
    for (size_t m = 0; m < n; m++) {
        gds->numbers[m] = number;
        number += gds->kinds[m] == KIND_BOTH ? 2 : 1;
    }
    for (size_t i = first; i < end; i++) {
        struct placement *at = &gds->placements[gds->dealt[i]];
        const bool is_second = gds->kinds[at->micro_batch] == KIND_BOTH && at->group_size == 1;

        at->micro_batch = gds->numbers[at->micro_batch] + (is_second ? 1 : 0);
    }
}

/*
 * Deals a DP rank's sequences into the least number of micro-batches that works, and cuts those in
 * two that must be. Where that makes more than an exact count allows, larger numbers are tried, as
 * fewer of them mix then; if none helps, the one that comes to the fewest is kept, so that the
 * refusal can name it.
 */
static bool deal_bin(struct gds *gds, size_t first, size_t end)
{
    const size_t limit = gds->batch->options.micro_batches;
    size_t best = 0, fewest = SIZE_MAX, last = 0;

    for (size_t n = least_count(gds, first, end); n <= end - first && n < fewest; n++) {
        size_t count;

        last = n;
        if (!deal(gds, first, end, n)) {
            continue;
        }
        count = count_kinds(gds, first, end, n);
        if (count < fewest) {
            fewest = count;
            best = n;
        }
        if (limit == 0 || count <= limit) {
            break;
        }
    }
    if (best == 0 || (last != best && !deal(gds, first, end, best))) {
        return false;
    }
    (void)count_kinds(gds, first, end, best);
    split_kinds(gds, first, end, best);
    return true;
}

/* All micro-batches of one DP rank. */
static int schedule_bin(struct gds *gds, uint32_t dp_rank, struct skrull_error *err)
{
    const size_t first = dp_rank > 0 ? gds->ends[dp_rank - 1] : 0, end = gds->ends[dp_rank];

    if (first < end && !deal_bin(gds, first, end)) {
        return skrull_error_set(err, SKRULL_ERR_INTERNAL,
                                "a sequence alone in its micro-batch does not fit");
    }
    for (size_t i = first; i < end; i++) {
        gds->placements[gds->dealt[i]].group_first += dp_rank * gds->batch->options.cp;
    }
    return 0;
}

int gds_place(const struct batch *batch, enum dacp_rule rule, struct placement *placements,
              struct skrull_error *err)
{
    struct gds gds = {.batch = batch, .placements = placements};
    int rc = gds_init(&gds, rule);

    rc = rc ? rc : pack_bins(&gds);
    if (rc) {
        return out_of_memory(batch, err);
    }
    gather_bins(&gds);
    for (uint32_t i = 0; !rc && i < batch->options.dp; i++) {
        rc = schedule_bin(&gds, i, err);
    }
    return rc;
}
