/*
 * Sums for the bounds. Sequences stand by ascending length, so that those of any range of lengths
 * are summed by one subtraction. A sum that would overflow stays at 2^62: then a difference is too
 * small, which a lower bound may be.
 */
#include "plan/bound_sums.h"

#include "arena.h"
#include "plan/counts.h"
#include "plan/options.h"

static int64_t add_capped(int64_t sum, wide value)
{
    return value > PLANNER_MAX_NS - sum ? PLANNER_MAX_NS : sum + (int64_t)value;
}

static uint64_t slot_of(const struct bound_input *input, uint32_t k, uint32_t size)
{
    return skrull_slot_tokens(input->lengths[k], size, input->options->align,
                              input->options->shard);
}

/* How many of the shortest fit: slots grow with length. */
static uint32_t count_fitting(const struct bound_input *input, uint32_t size)
{
    uint32_t low = 0, high = input->n;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (slot_of(input, middle, size) <= input->options->bucket_tokens) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/*
 * From the largest size down: the work of a size is the least of its own and of the larger ones',
 * since a sequence that is not allowed at smaller sizes runs at one of these. Times of longer
 * sequences are folded in, so that least_ns ascends whatever the cost model.
 */
static void fill_level(struct bound_sums *sums, const struct bound_input *input, size_t i,
                       wide *least_work)
{
    struct bound_level *level = &sums->levels[i];

    for (uint32_t k = 0; k < sums->n; k++) {
        const int64_t comp_ns = cost_comp_ns(input->cost, sums->lengths[k], level->size);
        const wide work_ns = (wide)comp_ns * level->size;

        least_work[k] =
            i + 1 == sums->n_levels || work_ns < least_work[k] ? work_ns : least_work[k];
        level->least_ns[k] = comp_ns;
        level->work_ns[k + 1] = add_capped(level->work_ns[k], least_work[k]);
    }
    for (uint32_t k = sums->n; k > 1; k--) {
        if (level->least_ns[k - 2] > level->least_ns[k - 1]) {
            level->least_ns[k - 2] = level->least_ns[k - 1];
        }
    }
}

/* What one sequence adds to the simple bound, and its padded tokens over all members. */
static uint64_t add_sequence(struct bound_sums *sums, const struct bound_input *input, uint32_t k)
{
    const int64_t exchange_ns[] = {
        [COST_INSIDE] = cost_exchange_ns(input->cost, COST_INSIDE, sums->lengths[k]),
        [COST_ACROSS] = cost_exchange_ns(input->cost, COST_ACROSS, sums->lengths[k])};
    wide alone_ns = -1, work_ns = -1;
    uint64_t padded = UINT64_MAX;

    for (size_t i = 0; i < sums->n_levels; i++) {
        const struct bound_level *level = &sums->levels[i];
        const wide comp_ns = cost_comp_ns(input->cost, sums->lengths[k], level->size);
        const wide time_ns = comp_ns + (level->size > 1 ? exchange_ns[level->links.least] : 0);

        if (k < level->n_fit) {
            const uint64_t slots = slot_of(input, k, level->size) * level->size;

            alone_ns = alone_ns < 0 || time_ns < alone_ns ? time_ns : alone_ns;
            work_ns =
                work_ns < 0 || comp_ns * level->size < work_ns ? comp_ns * level->size : work_ns;
            padded = slots < padded ? slots : padded;
        }
    }
    sums->least_work_ns += work_ns;
    sums->alone_ns = alone_ns > sums->alone_ns ? alone_ns : sums->alone_ns;
    return padded;
}

/*
 * What sequence k, if it is local, can hide of its rank's exchange (bound B3): besides it the
 * bucket holds bucket - slot padded tokens of shards; a group of d ranks with s of them on a rank
 * exchanges at most d x s tokens; a rank has at most one group of each size, of the dearest link
 * that the size has. That is steepest at the largest size, as the groups around one that crosses
 * nodes cross them too. Where all sequences of a rank's micro-batch are of one size, local work
 * hides nothing.
 */
static wide most_hidden(const struct bound_sums *sums, const struct bound_input *input, uint32_t k)
{
    const wide comp_ns = cost_comp_ns(input->cost, sums->lengths[k], 1);
    const wide room = (wide)sums->bucket - (wide)slot_of(input, k, 1);
    wide hidden_ns = 0;

    if (room > 0) {
        hidden_ns = sums->hidden_base_ns + (sums->hidden_slope_q20 * room >> 20) + 1;
    }
    if (input->options->mix == SKRULL_MIX_UNIFORM) {
        return 0;
    }
    return hidden_ns < comp_ns ? hidden_ns : comp_ns;
}

static int alloc_arrays(struct bound_sums *sums, struct arena *arena)
{
    const size_t n = (size_t)sums->n + 1;

    sums->tokens = ARENA_ARRAY(arena, int64_t, n);
    sums->hidden_ns = ARENA_ARRAY(arena, int64_t, n);
    for (size_t i = 0; i < sums->n_levels; i++) {
        sums->levels[i].least_ns = ARENA_ARRAY(arena, int64_t, n);
        sums->levels[i].work_ns = ARENA_ARRAY(arena, int64_t, n);
        if (!sums->levels[i].least_ns || !sums->levels[i].work_ns) {
            return SKRULL_ERR_RESOURCE_EXHAUSTED;
        }
    }
    return sums->tokens && sums->hidden_ns ? 0 : SKRULL_ERR_RESOURCE_EXHAUSTED;
}

static void fill_sums(struct bound_sums *sums, const struct bound_input *input, wide *least_work)
{
    uint64_t padded = 0;

    for (size_t i = sums->n_levels; i > 0; i--) {
        fill_level(sums, input, i - 1, least_work);
    }
    for (uint32_t k = 0; k < sums->n; k++) {
        padded += add_sequence(sums, input, k);
        sums->tokens[k + 1] = sums->tokens[k] + sums->lengths[k];
        sums->hidden_ns[k + 1] = add_capped(sums->hidden_ns[k], most_hidden(sums, input, k));
    }
    /* A rank with work runs one micro-batch at least: bound_refutes() says why this may be counted
     * for every rank. Equal counts: every rank runs the largest count. */
    sums->micro_batches_ns = (wide)sums->fixed_ns * (wide)padded / sums->bucket;
    if (input->options->equal_micro_batches) {
        const uint64_t capacity = (uint64_t)sums->bucket * sums->n_ranks;
        const uint64_t least = padded / capacity + (padded % capacity != 0);

        sums->micro_batches_ns =
            (wide)sums->fixed_ns * sums->n_ranks *
            counts_equal(input->options, least < UINT32_MAX / 2 ? (uint32_t)least : 1);
    }
    if (sums->micro_batches_ns < (wide)sums->fixed_ns * sums->n_ranks) {
        sums->micro_batches_ns = (wide)sums->fixed_ns * sums->n_ranks;
    }
}

/* Sizes come in ascending order: the last one's slope stays. */
static void fill_exchange(struct bound_sums *sums, struct bound_level *level,
                          const struct skrull_cost_model *cost)
{
    struct cost_line ceiling;

    level->links = cost_links_of_size(cost, sums->n_ranks, level->size);
    level->exchange = cost_exchange_floor(cost, level->links.least);
    ceiling = cost_exchange_ceiling(cost, level->links.most);
    sums->hidden_base_ns += ceiling.base_ns;
    sums->hidden_slope_q20 = (wide)ceiling.slope_q20 * level->size;
}

int bound_sums_init(struct bound_sums *sums, const struct bound_input *input, struct arena *scratch)
{
    const struct degrees *degrees = input->degrees;
    wide *least_work;

    *sums = (struct bound_sums){.n_ranks = input->options->dp * input->options->cp,
                                .bucket = input->options->bucket_tokens,
                                .n_levels = (uint32_t)degrees->n,
                                .lengths = input->lengths,
                                .fixed_ns = cost_fixed_ns(input->cost)};
    for (size_t i = 0; i < degrees->n; i++) {
        struct bound_level *level = &sums->levels[i];

        level->size = degrees->sizes[i];
        level->n_fit = count_fitting(input, level->size);
        fill_exchange(sums, level, input->cost);
        sums->n = level->n_fit > sums->n ? level->n_fit : sums->n;
    }
    least_work = ARENA_ARRAY(scratch, wide, sums->n);
    if (!least_work || alloc_arrays(sums, scratch)) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    fill_sums(sums, input, least_work);
    sums->is_saturated = cost_exchange_ns(input->cost, COST_ACROSS,
                                          (uint64_t)sums->tokens[sums->n]) == COST_MAX_NS ||
                         sums->hidden_ns[sums->n] == PLANNER_MAX_NS;
    return 0;
}
