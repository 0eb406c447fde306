/*
 * Choice of micro-batches. Few are looked at, so that a batch of thousands of micro-batches is
 * planned in linear time; the earlier ones are as good as full by then.
 */
#include "plan/joint/pick.h"

#define WINDOW 24
#define HIDES (INT64_C(1) << 62) /* a micro-batch with exchange to hide comes before any other */

struct candidate {
    int64_t key; /* larger is better */
    bool opens;
};

static bool is_better(const struct candidate *a, const struct candidate *b)
{
    return a->opens != b->opens ? !a->opens : a->key > b->key;
}

/* False: no room. */
static bool rate_local(const struct joint_problem *problem, const struct joint_bucket *bucket,
                       uint32_t slot, struct candidate *ret)
{
    const int64_t unhidden_ns = bucket->exchange_ns - bucket->local_ns;

    if (bucket->padded > problem->bucket - slot || (problem->is_uniform && bucket->kind > 1)) {
        return false;
    }
    ret->opens = bucket->count == 0;
    ret->key = unhidden_ns > 0 ? HIDES + unhidden_ns : (int64_t)bucket->padded;
    return true;
}

static bool rate_shared(const struct joint_problem *problem, const struct joint_bucket *buckets,
                        uint32_t l, uint32_t slot, uint32_t share_limit, struct candidate *ret)
{
    const struct joint_bucket *const end = buckets + problem->levels[l].size;
    uint32_t most = 0;
    bool opens = false;

    for (const struct joint_bucket *bucket = buckets; bucket < end; bucket++) {
        most = bucket->padded > most ? bucket->padded : most;
        opens |= bucket->count == 0;
        if (problem->is_uniform && bucket->kind != 0 && bucket->kind != l + 1) {
            return false;
        }
    }
    if (most > problem->bucket - slot || (most > 0 && (uint64_t)most + slot > share_limit)) {
        return false;
    }
    ret->opens = opens;
    return true;
}

/* Above the last micro-batch that a member has used. */
static uint32_t top_of(const struct joint_state *state, uint32_t first, uint32_t size)
{
    uint32_t top = 0;

    for (uint32_t r = first; r < first + size; r++) {
        top = state->tops[r] > top ? state->tops[r] : top;
    }
    return top;
}

bool joint_pick_mb(const struct joint_state *state, uint32_t k, uint32_t node,
                   const struct joint_pick_rule *rule, struct joint_pick *ret_pick)
{
    const struct joint_problem *problem = state->problem;
    const uint32_t l = problem->node_levels[node];
    const struct joint_level *level = &problem->levels[l];
    const uint32_t first = (node - level->first_node) * level->size, slot = level->slots[k];
    const uint32_t top = top_of(state, first, level->size);
    const uint32_t end = top < rule->max_mb ? top + 1 : rule->max_mb;
    struct candidate best = {0};
    bool found = false;

    for (uint32_t mb = top > WINDOW ? top - WINDOW : 0; slot != JOINT_NONE && mb < end; mb++) {
        const struct joint_bucket *buckets = joint_bucket_at(state, mb, first);
        struct candidate candidate = {.key = -(int64_t)mb};
        const bool fits = level->size == 1 ? rate_local(problem, buckets, slot, &candidate)
                                           : rate_shared(problem, buckets, l, slot,
                                                         rule->share_limit, &candidate);

        if (fits && (!found || is_better(&candidate, &best))) {
            best = candidate;
            found = true;
            *ret_pick = (struct joint_pick){.mb = mb, .opens = candidate.opens};
            if (level->size > 1 && !candidate.opens) {
                break; /* the first */
            }
        }
    }
    return found;
}
