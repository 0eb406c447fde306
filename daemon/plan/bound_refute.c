/*
 * Suppose that some plan ends by T. Then its parts obey what follows; if they cannot, T is refuted.
 * Notation: R ranks, bucket C, F the fixed cost of a micro-batch, comp_d(k) the computation of
 * sequence k on each member of a group of d, E(t) >= base + slope t the exchange of t tokens in any
 * group of d: base and slope are those inside a node if one of these groups lies in a node, else
 * those across. They do not fall as d grows: groups are nested, so where none of d lies in a node,
 * none of a larger size does; and across nodes neither is less.
 *
 * B1, degrees. In its micro-batch k alone keeps each of its ranks busy for F + comp_1(k), or for
 *   F + comp_d(k) + E(S_k) at d > 1. So only sizes that fit and keep this within T are allowed; a
 *   sequence without one refutes T.
 * Volume. Let X be the sum over ranks and micro-batches of max(local, exchange) + distributed time.
 *   A ranks with work run at least max(A, padded tokens / C) micro-batches, so
 *   X + F max(A, padded / C) <= A T. With T >= F this is weakest at A = R:
 *   X + F max(R, padded / C) > R T refutes T. X is at least a sum over sequences:
 * B2, a maximum is at least a mixture. max(L, E) >= t L + (1 - t) E for t in [0, 1].
 * B3, hiding needs room. max(L, E) = L + E - min(L, E), and min(sum of l_k, E) <= sum of
 *   min(l_k, E) <= sum of h_k, what each local sequence can hide at most (bound_sums.c).
 *   B2 and B3 with weights u and 1 - u: a local k adds (u t + 1 - u) comp_1 - (1 - u) h_k, one
 *   distributed over d adds d comp_d + w d slope S_k with w = u (1 - t) + 1 - u. A group's base is
 *   paid by d ranks in each micro-batch that it has, and these hold at most C padded tokens a rank:
 *   w d base slot_d / C >= w base S_k / C for k. What is not known (the size, local or not) is
 *   replaced by the least over the sizes still allowed.
 * B4, whole-machine sequences. If R is the only size that Q's sequences are allowed, they take at
 *   least n = ceil(Q's tokens / R C) micro-batches of all ranks. Every rank pays n F, Q's
 *   computation D and the exchange E0 >= n base + slope x tokens. Any other k then needs n F + D +
 *   max(comp_1, E0) locally: in a micro-batch of Q's, max(l, e_1) plus the other e_i is at least
 *   max(l, sum of e_i); elsewhere it pays a further F and both. At 1 < d < R it needs n F + D +
 *   comp_d + E0 + E(S_k), at R the same as Q with k in it. Sizes are filtered again; what is left
 *   with R alone joins Q; until nothing changes.
 */
#include "plan/bound_refute.h"

#include "plan/bound_sums.h"

#define MIX_QUARTERS 4 /* steps of u */
#define MIX_EIGHTHS 8  /* steps of t */
#define MIX_UNIT (MIX_QUARTERS * MIX_EIGHTHS)

struct refutation {
    const struct bound_sums *sums;
    int64_t cap_ns;             /* T less the fixed cost of a rank's first micro-batch */
    uint32_t cuts[DEGREES_MAX]; /* how many of the shortest, but Q's, are allowed at each size */
    uint32_t n_whole;           /* |Q|: the longest */
    int64_t whole_comp_ns, whole_tokens;
};

static wide exchange_floor(const struct bound_level *level, int64_t tokens)
{
    return tokens == 0
               ? 0
               : (wide)level->exchange.base_ns + ((wide)level->exchange.slope_q20 * tokens >> 20);
}

/* Micro-batches of all ranks that so many tokens of whole-machine sequences take. */
static int64_t count_whole(const struct bound_sums *sums, int64_t tokens)
{
    const wide capacity = (wide)sums->n_ranks * sums->bucket;

    return (int64_t)((tokens + capacity - 1) / capacity);
}

/* Their exchange on each rank, at least: that of the largest size. */
static wide whole_exchange(const struct bound_sums *sums, int64_t tokens)
{
    const struct cost_line *exchange = &sums->levels[sums->n_levels - 1].exchange;

    return (wide)exchange->base_ns * count_whole(sums, tokens) +
           ((wide)exchange->slope_q20 * tokens >> 20);
}

/* Fixed cost of these micro-batches beyond the first, which any rank with work pays. */
static wide whole_fixed(const struct bound_sums *sums, int64_t tokens)
{
    return tokens == 0 ? 0 : (wide)sums->fixed_ns * (count_whole(sums, tokens) - 1);
}

/* Least time of sequence k on a rank, beyond the fixed cost. */
static wide least_time(const struct refutation *ref, const struct bound_level *level, uint32_t k)
{
    const struct bound_sums *sums = ref->sums;
    const wide comp_ns = level->least_ns[k];
    const wide whole_ns = ref->whole_comp_ns + whole_fixed(sums, ref->whole_tokens);
    const wide exchange_ns = whole_exchange(sums, ref->whole_tokens);

    if (level->size == 1) {
        return whole_ns + (comp_ns > exchange_ns ? comp_ns : exchange_ns);
    }
    if (level->size == sums->n_ranks) {
        const int64_t tokens = ref->whole_tokens + sums->lengths[k];

        return ref->whole_comp_ns + comp_ns + whole_fixed(sums, tokens) +
               whole_exchange(sums, tokens);
    }
    return whole_ns + comp_ns + exchange_ns + exchange_floor(level, sums->lengths[k]);
}

/* Times ascend with length outside Q, whose own test is another: the search leaves Q out. */
static uint32_t count_allowed(const struct refutation *ref, const struct bound_level *level)
{
    const uint32_t n = ref->sums->n - ref->n_whole;
    uint32_t low = 0, high = level->n_fit < n ? level->n_fit : n;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (least_time(ref, level, middle) <= ref->cap_ns) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* B1 and B4: cuts and Q. True: refuted. */
static bool filter_sizes(struct refutation *ref)
{
    const struct bound_sums *sums = ref->sums;
    const struct bound_level *top = &sums->levels[sums->n_levels - 1];
    const bool has_whole = top->size == sums->n_ranks && top->size > 1;

    for (;;) {
        const uint32_t n = sums->n - ref->n_whole;
        uint32_t below_top = 0;

        for (size_t i = 0; i < sums->n_levels; i++) {
            ref->cuts[i] = count_allowed(ref, &sums->levels[i]);
            if (&sums->levels[i] != top || !has_whole) {
                below_top = ref->cuts[i] > below_top ? ref->cuts[i] : below_top;
            }
        }
        if (below_top < n && ref->cuts[sums->n_levels - 1] < n) {
            return true;
        }
        if (below_top == n || !has_whole) {
            return false;
        }
        ref->n_whole = sums->n - below_top;
        ref->whole_tokens = sums->tokens[sums->n] - sums->tokens[below_top];
        ref->whole_comp_ns = 0;
        for (uint32_t k = below_top; k < sums->n; k++) {
            ref->whole_comp_ns += top->least_ns[k];
            if (ref->whole_comp_ns > ref->cap_ns) {
                return true;
            }
        }
        if (ref->whole_comp_ns + whole_fixed(sums, ref->whole_tokens) +
                whole_exchange(sums, ref->whole_tokens) >
            ref->cap_ns) {
            return true;
        }
    }
}

/* X in parts: what B2 and B3 weigh. */
struct volume {
    wide local_ns, hidden_ns, shared_ns, exchange_ns;
};

static struct volume sum_volume(const struct refutation *ref)
{
    const struct bound_sums *sums = ref->sums;
    const struct bound_level *top = &sums->levels[sums->n_levels - 1];
    struct volume volume = {0};
    uint32_t from = 0;
    wide base_tokens = 0; /* base x tokens */

    for (size_t i = 0; i < sums->n_levels; i++) {
        const struct bound_level *level = &sums->levels[i];
        const bool is_last = i + 1 == sums->n_levels;
        const uint32_t to = is_last && ref->n_whole > 0 ? sums->n : ref->cuts[i];

        if (to <= from) {
            continue;
        }
        if (level->size == 1) {
            volume.local_ns = level->work_ns[to] - level->work_ns[from];
            volume.hidden_ns = sums->hidden_ns[to] - sums->hidden_ns[from];
        } else {
            const wide range = sums->tokens[to] - sums->tokens[from];

            volume.shared_ns += level->work_ns[to] - level->work_ns[from];
            volume.exchange_ns += (level->exchange.slope_q20 * range >> 20) * level->size;
            base_tokens += level->exchange.base_ns * range;
        }
        from = to;
    }
    /* Q's groups may hold others too: then Q's own bases are all that is sure. */
    volume.exchange_ns += ref->n_whole > 0 ? (wide)top->exchange.base_ns * sums->n_ranks *
                                                 count_whole(sums, ref->whole_tokens)
                                           : base_tokens / sums->bucket;
    return volume;
}

bool bound_refutes(const struct bound_sums *sums, int64_t target_ns)
{
    struct refutation ref = {.sums = sums, .cap_ns = target_ns - sums->fixed_ns};
    struct volume volume;
    wide fixed_ns, rest_ns;

    if (ref.cap_ns < 0 || filter_sizes(&ref)) {
        return true;
    }
    volume = sum_volume(&ref);
    fixed_ns = (wide)sums->fixed_ns * sums->n_ranks * count_whole(sums, ref.whole_tokens);
    fixed_ns = fixed_ns > sums->micro_batches_ns ? fixed_ns : sums->micro_batches_ns;
    rest_ns = (wide)target_ns * sums->n_ranks - fixed_ns - volume.shared_ns;
    for (int u = MIX_QUARTERS; u >= 0; u--) {
        const int v = MIX_QUARTERS - u;

        for (int t = MIX_EIGHTHS; t >= 0; t--) {
            const wide local =
                volume.local_ns * (u * t + v * MIX_EIGHTHS) - volume.hidden_ns * (v * MIX_EIGHTHS);
            const wide exchange = volume.exchange_ns * (u * (MIX_EIGHTHS - t) + v * MIX_EIGHTHS);

            if (local + exchange > rest_ns * MIX_UNIT) {
                return true;
            }
        }
    }
    return false;
}
