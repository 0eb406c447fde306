/* Plain second implementations. */
#include "unit/plan/naive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cost/cost.h"
#include "unit/plan/fixture.h"

#define MAX_RANKS 64

struct micro_batch {
    const struct batch *batch;
    bool most_room;
    int64_t room[MAX_RANKS], load[MAX_RANKS];
    int32_t where[FIXTURE_MAX_SEQUENCES]; /* rank, -1: distributed, -2: not here */
};

static int64_t slot(const struct batch *batch, uint32_t k, uint32_t degree)
{
    return (int64_t)skrull_slot_tokens(batch->sequences[k].length, degree, batch->options.align,
                                       batch->options.shard);
}

/* Shorter, or as long and earlier. */
static bool is_before(const struct batch *batch, uint32_t a, uint32_t b)
{
    const uint32_t left = batch->sequences[a].length, right = batch->sequences[b].length;

    return left < right || (left == right && a < b);
}

static void distribute(struct micro_batch *mb, uint32_t k)
{
    const uint32_t cp = mb->batch->options.cp;

    mb->where[k] = -1;
    for (uint32_t r = 0; r < cp; r++) {
        mb->room[r] -= slot(mb->batch, k, cp);
        mb->load[r] += cost_comp_ns(mb->batch->cost, mb->batch->sequences[k].length, cp);
    }
}

static bool try_rank(struct micro_batch *mb, uint32_t k, uint32_t rank)
{
    if (slot(mb->batch, k, 1) > mb->room[rank]) {
        return false;
    }
    mb->where[k] = (int32_t)rank;
    mb->room[rank] -= slot(mb->batch, k, 1);
    mb->load[rank] += cost_comp_ns(mb->batch->cost, mb->batch->sequences[k].length, 1);
    return true;
}

static void find_ranks(const struct micro_batch *mb, uint32_t *least, uint32_t *roomiest,
                       uint32_t *fullest)
{
    *least = *roomiest = *fullest = 0;
    for (uint32_t r = 1; r < mb->batch->options.cp; r++) {
        *least = mb->load[r] < mb->load[*least] ? r : *least;
        *roomiest = mb->room[r] > mb->room[*roomiest] ? r : *roomiest;
        *fullest = mb->room[r] < mb->room[*fullest] ? r : *fullest;
    }
}

static bool roll_back(struct micro_batch *mb)
{
    const struct batch *batch = mb->batch;
    uint32_t least, roomiest, fullest;
    int64_t longest = -1;

    find_ranks(mb, &least, &roomiest, &fullest);
    for (uint32_t k = 0; k < batch->n_sequences; k++) {
        if (mb->where[k] == (int32_t)fullest &&
            (longest < 0 || batch->sequences[k].length > batch->sequences[longest].length)) {
            longest = k;
        }
    }
    if (longest < 0 || batch->options.cp == 1 ||
        slot(batch, (uint32_t)longest, batch->options.cp) >= slot(batch, (uint32_t)longest, 1)) {
        return false;
    }
    mb->room[fullest] += slot(batch, (uint32_t)longest, 1);
    mb->load[fullest] -= cost_comp_ns(batch->cost, batch->sequences[longest].length, 1);
    distribute(mb, (uint32_t)longest);
    find_ranks(mb, &least, &roomiest, &fullest);
    return mb->room[fullest] >= 0 || roll_back(mb);
}

static bool add(struct micro_batch *mb, uint32_t k)
{
    const uint32_t cp = mb->batch->options.cp;
    uint32_t least, roomiest, fullest;

    for (;;) {
        find_ranks(mb, &least, &roomiest, &fullest);
        if (!mb->most_room && try_rank(mb, k, least)) {
            return true;
        }
        if (try_rank(mb, k, roomiest)) {
            return true;
        }
        if (cp > 1 && slot(mb->batch, k, cp) <= mb->room[fullest]) {
            distribute(mb, k);
            return true;
        }
        if (!roll_back(mb)) {
            return false;
        }
    }
}

/* DACP over micro-batch j of n of a DP rank's sequences, ascending in `own`. */
static bool dacp(const struct batch *batch, bool most_room, const uint32_t *own, uint32_t n_own,
                 uint32_t j, uint32_t n, uint32_t dp_rank, struct placement *placements)
{
    struct micro_batch mb = {.batch = batch, .most_room = most_room};

    for (uint32_t r = 0; r < batch->options.cp; r++) {
        mb.room[r] = batch->options.bucket_tokens;
    }
    for (uint32_t k = 0; k < batch->n_sequences; k++) {
        mb.where[k] = -2;
    }
    for (uint32_t i = j; i < n_own; i += n) {
        if (!add(&mb, own[i])) {
            return false;
        }
    }
    for (uint32_t i = j; i < n_own; i += n) {
        const int32_t where = mb.where[own[i]];
        const uint32_t first = dp_rank * batch->options.cp;

        placements[own[i]] =
            (struct placement){.micro_batch = j,
                               .group_first = first + (where < 0 ? 0 : (uint32_t)where),
                               .group_size = where < 0 ? batch->options.cp : 1};
    }
    return true;
}

static void schedule_rank(const struct batch *batch, bool most_room, const uint32_t *own,
                          uint32_t n_own, uint32_t dp_rank, struct placement *placements)
{
    uint64_t tokens = 0, capacity = (uint64_t)batch->options.bucket_tokens * batch->options.cp;
    uint32_t n, j;

    for (uint32_t i = 0; i < n_own; i++) {
        tokens += batch->sequences[own[i]].length;
    }
    for (n = (uint32_t)((tokens + capacity - 1) / capacity); n_own > 0; n++) {
        assert_true(n <= n_own);
        for (j = 0; j < n; j++) {
            if (!dacp(batch, most_room, own, n_own, j, n, dp_rank, placements)) {
                break;
            }
        }
        if (j == n) {
            return;
        }
    }
}

/* Longest first, of equals the earlier, each to the least-loaded DP rank. */
static void pack(const struct batch *batch, uint32_t *bins)
{
    bool is_packed[FIXTURE_MAX_SEQUENCES] = {false};
    int64_t loads[MAX_RANKS] = {0};

    for (uint32_t done = 0; done < batch->n_sequences; done++) {
        int64_t next = -1;
        uint32_t bin = 0;

        for (uint32_t k = 0; k < batch->n_sequences; k++) {
            if (!is_packed[k] &&
                (next < 0 || batch->sequences[k].length > batch->sequences[next].length)) {
                next = k;
            }
        }
        for (uint32_t i = 1; i < batch->options.dp; i++) {
            bin = loads[i] < loads[bin] ? i : bin;
        }
        is_packed[next] = true;
        bins[next] = bin;
        loads[bin] += cost_comp_ns(batch->cost, batch->sequences[next].length, 1);
    }
}

void naive_schedule(const struct batch *batch, bool most_room, struct placement *placements)
{
    const uint32_t n = batch->n_sequences, dp = batch->options.dp;
    uint32_t *sorted = ARENA_ARRAY(batch->scratch, uint32_t, n);
    uint32_t *own = ARENA_ARRAY(batch->scratch, uint32_t, n);
    uint32_t *bins = ARENA_ARRAY(batch->scratch, uint32_t, n);

    assert_true(sorted && own && bins);

    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i;

        for (; at > 0 && is_before(batch, i, sorted[at - 1]); at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = i;
    }
    pack(batch, bins);
    for (uint32_t dp_rank = 0; dp_rank < dp; dp_rank++) {
        uint32_t n_own = 0;

        for (uint32_t i = 0; i < n; i++) {
            if (bins[sorted[i]] == dp_rank) {
                own[n_own++] = sorted[i];
            }
        }
        schedule_rank(batch, most_room, own, n_own, dp_rank, placements);
    }
}

/* Sum of a rank's local sequences in a micro-batch; false: it has no sequence there. */
static bool own_work(const struct batch *batch, const struct placement *placements, uint32_t m,
                     uint32_t rank, int64_t *ret_local_ns, int64_t *ret_exchange_ns)
{
    bool has_work = false;

    *ret_local_ns = *ret_exchange_ns = 0;
    for (uint32_t k = 0; k < batch->n_sequences; k++) {
        const struct placement *at = &placements[k];
        uint64_t tokens = 0;

        if (at->micro_batch != m || rank < at->group_first ||
            rank >= at->group_first + at->group_size) {
            continue;
        }
        has_work = true;
        if (at->group_size == 1) {
            *ret_local_ns += cost_comp_ns(batch->cost, batch->sequences[k].length, 1);
            continue;
        }
        /* The group's exchange, counted at its first sequence. */
        for (uint32_t i = 0; i < batch->n_sequences; i++) {
            if (placements[i].micro_batch == m && placements[i].group_size == at->group_size &&
                placements[i].group_first == at->group_first) {
                tokens = i < k ? UINT64_MAX : tokens;
                if (tokens == UINT64_MAX) {
                    break;
                }
                tokens += batch->sequences[i].length;
            }
        }
        *ret_exchange_ns +=
            tokens == UINT64_MAX
                ? 0
                : cost_exchange_ns(batch->cost,
                                   cost_link_of(batch->cost, at->group_first, at->group_size),
                                   tokens);
    }
    return has_work;
}

/* Runs the groups of one size: each member waits for the last. */
static void run_groups(const struct batch *batch, const struct placement *placements, uint32_t m,
                       uint32_t size, int64_t *clocks)
{
    for (uint32_t first = 0; first < batch->options.dp * batch->options.cp; first += size) {
        int64_t dist_ns = 0, start = 0;
        bool is_used = false;

        for (uint32_t k = 0; k < batch->n_sequences; k++) {
            if (placements[k].micro_batch == m && placements[k].group_size == size &&
                placements[k].group_first == first) {
                is_used = true;
                dist_ns += cost_comp_ns(batch->cost, batch->sequences[k].length, size);
            }
        }
        for (uint32_t r = first; is_used && r < first + size; r++) {
            start = clocks[r] > start ? clocks[r] : start;
        }
        for (uint32_t r = first; is_used && r < first + size; r++) {
            clocks[r] = start + dist_ns;
        }
    }
}

static void wait_for_all(int64_t *clocks, uint32_t n)
{
    int64_t latest = 0;

    for (uint32_t r = 0; r < n; r++) {
        latest = clocks[r] > latest ? clocks[r] : latest;
    }
    for (uint32_t r = 0; r < n; r++) {
        clocks[r] = latest;
    }
}

int64_t naive_evaluate(const struct batch *batch, const struct placement *placements, bool barrier)
{
    const uint32_t dp = batch->options.dp, cp = batch->options.cp;
    int64_t clocks[MAX_RANKS] = {0};
    uint32_t n = 0;

    for (uint32_t k = 0; k < batch->n_sequences; k++) {
        n = placements[k].micro_batch + 1 > n ? placements[k].micro_batch + 1 : n;
    }
    for (uint32_t m = 0; m < n; m++) {
        for (uint32_t r = 0; r < dp * cp; r++) {
            int64_t local_ns, exchange_ns;

            if (own_work(batch, placements, m, r, &local_ns, &exchange_ns)) {
                clocks[r] += local_ns > exchange_ns ? local_ns : exchange_ns;
                clocks[r] += cost_fixed_ns(batch->cost);
            } else if (batch->options.equal_micro_batches) {
                clocks[r] += cost_fixed_ns(batch->cost);
            }
        }
        for (uint32_t size = 2; size <= dp * cp; size++) {
            if (dp * cp % size == 0) {
                run_groups(batch, placements, m, size, clocks);
            }
        }
        for (uint32_t first = 0; barrier && first < dp * cp; first += cp) {
            wait_for_all(&clocks[first], cp);
        }
    }
    wait_for_all(clocks, dp * cp);
    return clocks[0];
}
