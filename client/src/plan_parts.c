/*
 * A plan too large for one message comes as several, each with some ranks and the same head. Here
 * they become one again, and whatever came is held against its digests. Pure; any thread.
 */
#include "plan_parts.h"

#include <string.h>

#include "arena.h"
#include "ckd.h"

static int verify_rank(const struct skrull_plan *plan, size_t i_rank, struct skrull_error *err)
{
    uint8_t digest[SKRULL_DIGEST_SIZE];
    const struct skrull_rank *rank = &plan->ranks[i_rank];
    int r = skrull_rank_digest(plan, i_rank, digest);

    if (r < 0) {
        return skrull_error_set(err, r, "step %llu, rank %u: its digest cannot be computed",
                                (unsigned long long)plan->step, rank->data_rank);
    }
    if (memcmp(digest, rank->digest, sizeof(digest)) != 0) {
        return skrull_error_set(
            err, SKRULL_ERR_DATA_LOSS,
            "step %llu, rank %u: the plan does not match its own digest; it was "
            "altered on the way, or the daemon is of another version",
            (unsigned long long)plan->step, rank->data_rank);
    }
    return 0;
}

static int verify_whole(const struct skrull_plan *plan, struct skrull_error *err)
{
    struct arena *arena = arena_new(plan->n_ranks * SKRULL_DIGEST_SIZE + 4096);
    uint8_t digest[SKRULL_DIGEST_SIZE];
    uint8_t *digests = arena ? arena_alloc(arena, plan->n_ranks, SKRULL_DIGEST_SIZE) : NULL;
    int r;

    if (!digests) {
        arena_free(arena);
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for digests");
    }
    for (size_t i = 0; i < plan->n_ranks; i++) {
        memcpy(digests + i * SKRULL_DIGEST_SIZE, plan->ranks[i].digest, SKRULL_DIGEST_SIZE);
    }
    r = skrull_plan_digest(digests, plan->n_ranks, digest);
    arena_free(arena);
    if (r < 0) {
        return skrull_error_set(err, r, "step %llu: the digest cannot be computed",
                                (unsigned long long)plan->step);
    }
    if (memcmp(digest, plan->digest, sizeof(digest)) != 0) {
        return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                                "step %llu: the plan's digest is not that of its ranks",
                                (unsigned long long)plan->step);
    }
    return 0;
}

int plan_verify_digests(const struct skrull_plan *plan, struct skrull_error *err)
{
    uint64_t n_grid = (uint64_t)plan->dp * plan->cp;

    for (size_t i = 0; i < plan->n_ranks; i++) {
        int r = verify_rank(plan, i, err);

        if (r < 0) {
            return r;
        }
    }
    if (plan->n_ranks != n_grid || n_grid == 0) {
        return 0;
    }
    return verify_whole(plan, err);
}

static bool is_same_head(const struct skrull_plan *a, const struct skrull_plan *b)
{
    return memcmp(a->digest, b->digest, sizeof(a->digest)) == 0 && a->step == b->step &&
           a->epoch == b->epoch && a->revision == b->revision && a->dp == b->dp && a->cp == b->cp &&
           strcmp(a->uid, b->uid) == 0;
}

/* Adds up what the parts hold; false: too much, or not one plan. */
static bool count_parts(struct skrull_plan *const *parts, size_t n_parts, struct skrull_plan *sum)
{
    int64_t last_rank = -1;

    for (size_t i = 0; i < n_parts; i++) {
        const struct skrull_plan *part = parts[i];

        if (!is_same_head(parts[0], part) || ckd_add(&sum->n_ranks, sum->n_ranks, part->n_ranks) ||
            ckd_add(&sum->n_micro_batches, sum->n_micro_batches, part->n_micro_batches) ||
            ckd_add(&sum->n_segments, sum->n_segments, part->n_segments)) {
            return false;
        }
        for (size_t k = 0; k < part->n_ranks; k++) {
            if (part->ranks[k].data_rank <= last_rank) {
                return false;
            }
            last_rank = part->ranks[k].data_rank;
        }
    }
    return true;
}

/* Appends a part's arrays; the counts of `plan` are where they go. */
static void append(struct skrull_plan *plan, const struct skrull_plan *part)
{
    memcpy(plan->segments + plan->n_segments, part->segments,
           part->n_segments * sizeof(part->segments[0]));
    for (size_t i = 0; i < part->n_micro_batches; i++) {
        struct skrull_micro_batch *micro_batch = &plan->micro_batches[plan->n_micro_batches + i];

        *micro_batch = part->micro_batches[i];
        micro_batch->first_segment += plan->n_segments;
    }
    for (size_t i = 0; i < part->n_ranks; i++) {
        struct skrull_rank *rank = &plan->ranks[plan->n_ranks + i];

        *rank = part->ranks[i];
        rank->first_micro_batch += plan->n_micro_batches;
    }
    plan->n_segments += part->n_segments;
    plan->n_micro_batches += part->n_micro_batches;
    plan->n_ranks += part->n_ranks;
}

/* The head and empty arrays for all of `sum`; NULL: out of memory. */
static struct skrull_plan *plan_new(const struct skrull_plan *head, const struct skrull_plan *sum)
{
    struct arena *arena = arena_new(SIZE_MAX / 2);
    struct skrull_plan *plan = arena ? ARENA_NEW(arena, struct skrull_plan) : NULL;

    if (!plan) {
        arena_free(arena);
        return NULL;
    }
    *plan = *head;
    plan->arena = arena;
    plan->job = arena_strdup(arena, head->job);
    plan->uid = arena_strdup(arena, head->uid);
    plan->policy = arena_strdup(arena, head->policy);
    plan->ranks = ARENA_ARRAY(arena, struct skrull_rank, sum->n_ranks);
    plan->micro_batches = ARENA_ARRAY(arena, struct skrull_micro_batch, sum->n_micro_batches);
    plan->segments = ARENA_ARRAY(arena, struct skrull_segment, sum->n_segments);
    plan->n_ranks = plan->n_micro_batches = plan->n_segments = 0;
    if (!plan->job || !plan->uid || !plan->policy || !plan->ranks || !plan->micro_batches ||
        !plan->segments) {
        arena_free(arena);
        return NULL;
    }
    return plan;
}

int plan_merge(struct skrull_plan *const *parts, size_t n_parts, struct skrull_plan **ret_plan,
               struct skrull_error *err)
{
    struct skrull_plan sum = {0};
    struct skrull_plan *plan;

    if (!count_parts(parts, n_parts, &sum)) {
        return skrull_error_set(err, SKRULL_ERR_ABORTED,
                                "step %llu: its plan changed while it was read in parts; try again",
                                (unsigned long long)parts[0]->step);
    }
    plan = plan_new(parts[0], &sum);
    if (!plan) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a plan");
    }
    for (size_t i = 0; i < n_parts; i++) {
        append(plan, parts[i]);
    }
    *ret_plan = plan;
    return 0;
}
