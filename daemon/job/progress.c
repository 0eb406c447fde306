/*
 * Steps that the ranks of a job have reported. Each rank holds sorted ranges that do not touch; a
 * report extends one, joins two, or adds one. The smallest step that is missing anywhere is the
 * root of a tournament tree over the ranks' own smallest missing steps: a report climbs it only
 * while a minimum changes. Steps that a rank has no part in, because their revision has fewer
 * ranks, are never missing. Used by one thread at a time.
 */
#include "job/progress.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"

struct rank {
    struct store_range *ranges; /* owned */
    size_t n_ranges, n_allocated;
    uint64_t below; /* the smallest step missing */
    uint64_t n_reports, last_step;
    bool is_dirty;
};

struct progress {
    struct progress_span *spans; /* [n_spans]; owned */
    uint32_t n_spans;
    uint32_t n_ranks; /* the most that any span has */
    uint64_t steps;
    uint64_t end;       /* one past the largest step reported */
    struct rank *ranks; /* [n_ranks] */
    uint64_t *tree; /* [2 n_ranks]: leaf n_ranks + r is rank r, node i the smaller of 2i, 2i + 1 */
    uint32_t *dirty_ranks; /* [n_dirty], room for n_ranks */
    size_t n_dirty;
};

static void build_tree(struct progress *progress);

static bool allocate(struct progress *progress, const struct progress_span *spans, uint32_t n_spans)
{
    progress->spans = calloc(n_spans, sizeof(*progress->spans));
    progress->ranks = calloc(progress->n_ranks, sizeof(*progress->ranks));
    progress->tree = calloc((size_t)progress->n_ranks * 2, sizeof(*progress->tree));
    progress->dirty_ranks = calloc(progress->n_ranks, sizeof(*progress->dirty_ranks));
    if (!progress->spans || !progress->ranks || !progress->tree || !progress->dirty_ranks) {
        return false;
    }
    memcpy(progress->spans, spans, n_spans * sizeof(*spans));
    progress->n_spans = n_spans;
    return true;
}

int progress_new(const struct progress_span *spans, uint32_t n_spans, uint64_t steps,
                 struct progress **ret_progress, struct skrull_error *err)
{
    struct progress *progress = calloc(1, sizeof(*progress));
    uint32_t n_ranks = 1;

    for (uint32_t i = 0; i < n_spans; i++) {
        n_ranks = spans[i].n_ranks > n_ranks ? spans[i].n_ranks : n_ranks;
    }
    if (progress) {
        progress->n_ranks = n_ranks;
        progress->steps = steps;
    }
    if (!progress || !allocate(progress, spans, n_spans)) {
        progress_free(progress);
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "no memory for the progress of %" PRIu32 " data ranks", n_ranks);
    }
    build_tree(progress);
    *ret_progress = progress;
    return 0;
}

void progress_free(struct progress *progress)
{
    uint32_t i_rank;

    if (!progress) {
        return;
    }
    for (i_rank = 0; progress->ranks && i_rank < progress->n_ranks; i_rank++) {
        free(progress->ranks[i_rank].ranges);
    }
    free(progress->spans);
    free(progress->ranks);
    free(progress->tree);
    free(progress->dirty_ranks);
    free(progress);
}

/* The last span that begins at the step or before. */
static uint32_t span_at(const struct progress *progress, uint64_t step)
{
    uint32_t low = 0, high = progress->n_spans;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (progress->spans[middle].first_step <= step) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The first range that begins after `step`; n_ranges where none does. */
static size_t range_after(const struct rank *rank, uint64_t step)
{
    size_t low = 0, high = rank->n_ranges, middle;

    while (low < high) {
        middle = low + (high - low) / 2;
        if (rank->ranges[middle].begin > step) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* The smallest step from `step` on that is missing of a rank: one with it, not reported. */
static uint64_t missing_from(const struct progress *progress, uint32_t data_rank, uint64_t step)
{
    const struct rank *rank = &progress->ranks[data_rank];

    while (step < progress->steps) {
        uint32_t span = span_at(progress, step);
        size_t i = range_after(rank, step);

        if (data_rank >= progress->spans[span].n_ranks) {
            step = span + 1 < progress->n_spans ? progress->spans[span + 1].first_step
                                                : progress->steps;
        } else if (i && step < rank->ranges[i - 1].end) {
            step = rank->ranges[i - 1].end;
        } else {
            return step;
        }
    }
    return progress->steps;
}

/* Sets a node to the smaller of its two; false: it was that. */
static bool settle(uint64_t *tree, size_t node)
{
    uint64_t smaller = tree[2 * node] < tree[2 * node + 1] ? tree[2 * node] : tree[2 * node + 1];
    bool has_changed = tree[node] != smaller;

    tree[node] = smaller;
    return has_changed;
}

/* Finds the smallest missing step of every rank anew. */
static void build_tree(struct progress *progress)
{
    for (uint32_t i = 0; i < progress->n_ranks; i++) {
        progress->ranks[i].below = missing_from(progress, i, 0);
        progress->tree[(size_t)progress->n_ranks + i] = progress->ranks[i].below;
    }
    for (size_t node = progress->n_ranks; node-- > 1;) {
        (void)settle(progress->tree, node);
    }
}

/* Carries a rank's smallest missing step up the tree. */
static void climb(struct progress *progress, uint32_t data_rank)
{
    struct rank *rank = &progress->ranks[data_rank];
    size_t node = (size_t)progress->n_ranks + data_rank;

    rank->below = missing_from(progress, data_rank, rank->below);
    progress->tree[node] = rank->below;
    for (node /= 2; node && settle(progress->tree, node); node /= 2) {
    }
}

static void mark_dirty(struct progress *progress, uint32_t data_rank)
{
    if (!progress->ranks[data_rank].is_dirty) {
        progress->ranks[data_rank].is_dirty = true;
        progress->dirty_ranks[progress->n_dirty++] = data_rank;
    }
}

/* Makes room for one more range at `at`. */
static int insert_range(struct rank *rank, size_t at, struct store_range range)
{
    size_t n_wanted = rank->n_allocated ? rank->n_allocated * 2 : 1;
    struct store_range *ranges;

    if (rank->n_ranges == rank->n_allocated) {
        ranges = realloc(rank->ranges, n_wanted * sizeof(*ranges));
        if (!ranges) {
            return SKRULL_ERR_RESOURCE_EXHAUSTED;
        }
        rank->ranges = ranges;
        rank->n_allocated = n_wanted;
    }
    memmove(&rank->ranges[at + 1], &rank->ranges[at],
            (rank->n_ranges - at) * sizeof(*rank->ranges));
    rank->ranges[at] = range;
    rank->n_ranges++;
    return 0;
}

/* Adds one step. Returns 0, PROGRESS_REPEATED or an error. */
static int add_step(struct rank *rank, uint32_t data_rank, uint64_t step, struct skrull_error *err)
{
    struct store_range *ranges = rank->ranges;
    size_t i = range_after(rank, step);
    bool joins_before = i && ranges[i - 1].end == step;
    bool joins_after = i < rank->n_ranges && ranges[i].begin == step + 1;

    if (i && step < ranges[i - 1].end) {
        return PROGRESS_REPEATED;
    }
    if (joins_before && joins_after) {
        ranges[i - 1].end = ranges[i].end;
        memmove(&ranges[i], &ranges[i + 1], (rank->n_ranges - i - 1) * sizeof(*ranges));
        rank->n_ranges--;
    } else if (joins_before) {
        ranges[i - 1].end = step + 1;
    } else if (joins_after) {
        ranges[i].begin = step;
    } else if (rank->n_ranges >= PROGRESS_MAX_RANGES) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "data rank %" PRIu32 " reports step %" PRIu64
                                ", but its reports have %d holes already (the first: step %" PRIu64
                                "): report the missing steps first",
                                data_rank, step, PROGRESS_MAX_RANGES, rank->below);
    } else if (insert_range(rank, i, (struct store_range){step, step + 1})) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "no memory for the report of step %" PRIu64, step);
    }
    return 0;
}

int progress_report(struct progress *progress, uint32_t data_rank, uint64_t step,
                    struct skrull_error *err)
{
    struct rank *rank;
    uint32_t n_ranks;
    int result;

    if (step >= progress->steps) {
        return skrull_error_because(
            err, SKRULL_ERR_OUT_OF_RANGE, SKRULL_REASON_STEP_OUT_OF_RANGE, progress->steps,
            "step %" PRIu64 " is out of range, the job has %" PRIu64 " steps", step,
            progress->steps);
    }
    n_ranks = progress->spans[span_at(progress, step)].n_ranks;
    if (data_rank >= n_ranks) {
        return skrull_error_because(
            err, SKRULL_ERR_INVALID_ARGUMENT, SKRULL_REASON_DATA_RANK_OUT_OF_RANGE, n_ranks,
            "data_rank: %" PRIu32 " is out of range, step %" PRIu64 " has data ranks 0 to %" PRIu32,
            data_rank, step, n_ranks - 1);
    }
    rank = &progress->ranks[data_rank];
    result = add_step(rank, data_rank, step, err);
    if (result < 0) {
        return result;
    }
    rank->n_reports++;
    rank->last_step = step;
    if (result == 0) {
        progress->end = step + 1 > progress->end ? step + 1 : progress->end;
        mark_dirty(progress, data_rank);
        climb(progress, data_rank);
    }
    return result;
}

uint64_t progress_next_step(const struct progress *progress)
{
    return progress->tree[1];
}

uint64_t progress_end(const struct progress *progress)
{
    return progress->end;
}

uint64_t progress_rank_below(const struct progress *progress, uint32_t data_rank)
{
    return data_rank < progress->n_ranks ? progress->ranks[data_rank].below : progress->steps;
}

bool progress_is_reported(const struct progress *progress, uint32_t data_rank, uint64_t step)
{
    const struct rank *rank;
    size_t i;

    if (data_rank >= progress->n_ranks) {
        return false;
    }
    rank = &progress->ranks[data_rank];
    i = range_after(rank, step);
    return i && step < rank->ranges[i - 1].end;
}

uint64_t progress_n_reports(const struct progress *progress, uint32_t data_rank)
{
    return data_rank < progress->n_ranks ? progress->ranks[data_rank].n_reports : 0;
}

uint64_t progress_last_step(const struct progress *progress, uint32_t data_rank)
{
    return data_rank < progress->n_ranks ? progress->ranks[data_rank].last_step : 0;
}

bool progress_is_dirty(const struct progress *progress)
{
    return progress->n_dirty > 0;
}

/* A copy of a rank's ranges; NULL: out of memory. */
static const struct store_range *copy_ranges(struct arena *arena, const struct rank *rank)
{
    struct store_range *ranges = ARENA_ARRAY(arena, struct store_range, rank->n_ranges);

    if (ranges && rank->n_ranges) {
        memcpy(ranges, rank->ranges, rank->n_ranges * sizeof(*ranges));
    }
    return ranges;
}

int progress_take_dirty(struct progress *progress, struct arena *arena,
                        struct store_progress **ret_saved, size_t *ret_n, struct skrull_error *err)
{
    struct store_progress *saved = ARENA_ARRAY(arena, struct store_progress, progress->n_dirty);
    const struct rank *rank;
    bool is_complete = saved != NULL;
    size_t i;

    for (i = 0; is_complete && i < progress->n_dirty; i++) {
        rank = &progress->ranks[progress->dirty_ranks[i]];
        saved[i].data_rank = progress->dirty_ranks[i];
        saved[i].n_ranges = rank->n_ranges;
        saved[i].ranges = copy_ranges(arena, rank);
        is_complete = saved[i].ranges != NULL;
    }
    if (!is_complete) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "no memory to save the progress of %zu data ranks",
                                progress->n_dirty);
    }
    for (i = 0; i < progress->n_dirty; i++) {
        progress->ranks[progress->dirty_ranks[i]].is_dirty = false;
    }
    *ret_saved = saved;
    *ret_n = progress->n_dirty;
    progress->n_dirty = 0;
    return 0;
}

void progress_mark_dirty(struct progress *progress, const struct store_progress *saved, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if (saved[i].data_rank < progress->n_ranks) {
            mark_dirty(progress, saved[i].data_rank);
        }
    }
}

/* Are these what progress_take_dirty can have given for a job of `steps`? */
static bool is_sound(const struct store_progress *saved, uint64_t steps)
{
    uint64_t end = 0;
    size_t i;

    for (i = 0; i < saved->n_ranges; i++) {
        if (saved->ranges[i].begin >= saved->ranges[i].end || saved->ranges[i].end > steps ||
            (i && saved->ranges[i].begin <= end)) {
            return false;
        }
        end = saved->ranges[i].end;
    }
    return saved->n_ranges <= PROGRESS_MAX_RANGES;
}

int progress_restore(struct progress *progress, const struct store_progress *saved,
                     struct skrull_error *err)
{
    struct store_range *ranges;
    struct rank *rank;

    if (saved->data_rank >= progress->n_ranks || !is_sound(saved, progress->steps)) {
        return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                                "the saved progress of data rank %" PRIu32
                                " does not fit the job's %" PRIu32 " ranks and %" PRIu64 " steps",
                                saved->data_rank, progress->n_ranks, progress->steps);
    }
    if (saved->n_ranges == 0) {
        return 0;
    }
    ranges = calloc(saved->n_ranges, sizeof(*ranges));
    if (!ranges) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "no memory for the saved progress of data rank %" PRIu32,
                                saved->data_rank);
    }
    memcpy(ranges, saved->ranges, saved->n_ranges * sizeof(*ranges));
    rank = &progress->ranks[saved->data_rank];
    free(rank->ranges);
    rank->ranges = ranges;
    rank->n_ranges = rank->n_allocated = saved->n_ranges;
    if (ranges[saved->n_ranges - 1].end > progress->end) {
        progress->end = ranges[saved->n_ranges - 1].end;
    }
    rank->below = 0;
    climb(progress, saved->data_rank);
    return 0;
}

void progress_take(struct progress *progress, struct progress *old)
{
    assert(progress->n_ranks >= old->n_ranks && progress->steps >= old->end);
    for (uint32_t i = 0; i < old->n_ranks; i++) {
        progress->ranks[i] = old->ranks[i];
        old->ranks[i] = (struct rank){0};
    }
    memcpy(progress->dirty_ranks, old->dirty_ranks, old->n_dirty * sizeof(*old->dirty_ranks));
    progress->n_dirty = old->n_dirty;
    progress->end = old->end;
    old->n_dirty = 0;
    build_tree(progress);
}
