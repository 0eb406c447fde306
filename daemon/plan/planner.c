/*
 * The planner's public face: runs the parts in the order of the data. Everything of the plan lies
 * in one arena that the plan owns, everything else in a second one that is freed at the end. Any
 * thread.
 */
#include "plan/planner.h"

#include "arena.h"
#include "ckd.h"
#include "cost/cost.h"
#include "plan/batch.h"
#include "plan/bound.h"
#include "plan/counts.h"
#include "plan/evaluate.h"
#include "plan/layout.h"
#include "plan/options.h"
#include "plan/order.h"
#include "plan/policy.h"
#include "plan_digest.h"

#define SCRATCH_MAX_BYTES ((size_t)1 << 32)

static int out_of_memory(struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a plan");
}

int planner_check_load(const struct skrull_cost_model *cost, uint64_t n_sequences, uint32_t longest,
                       struct skrull_error *err)
{
    /* A shard never takes longer than 1.2 / 2 of the whole. */
    const int64_t most_ns = cost_comp_ns(cost, longest, 1) +
                            cost_exchange_ns(cost, COST_ACROSS, longest) + cost_fixed_ns(cost);
    uint64_t total_ns;

    if (ckd_mul(&total_ns, n_sequences, (uint64_t)most_ns) || total_ns > PLANNER_MAX_NS) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "a batch of %llu sequences of %u tokens could pass 2^62 ns of "
                                "modelled time: lower batch.global or the longest sequence",
                                (unsigned long long)n_sequences, longest);
    }
    return 0;
}

int planner_check_counts(const struct skrull_planner_options *options, uint64_t n_sequences,
                         struct skrull_error *err)
{
    const struct policy *policy = NULL;
    const int rc = policy_find(options->policy, &policy, err);
    uint64_t needed;

    if (rc || options->micro_batches == 0 || policy->place != policy_uniform_place) {
        return rc;
    }
    needed = n_sequences / options->dp + (n_sequences % options->dp != 0); /* one sequence each */
    if (needed <= options->micro_batches) {
        return 0;
    }
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "batch.micro_batches: %u are too few for policy uniform, which needs "
                            "%llu for %llu sequences on dp %u: raise it to %llu, or lower "
                            "batch.global",
                            options->micro_batches, (unsigned long long)needed,
                            (unsigned long long)n_sequences, options->dp,
                            (unsigned long long)needed);
}

/* Estimate and bound; `options` are completed. */
static int time_plan(const struct skrull_planner_options *options,
                     const struct skrull_cost_model *cost, bool barrier, struct skrull_plan *plan,
                     struct arena *scratch, struct skrull_error *err)
{
    struct degrees degrees;
    int rc;

    rc = degrees_of_job(options, &degrees, err);
    rc = rc ? rc : evaluate_plan(options, cost, barrier, plan, scratch, err);
    if (rc) {
        return rc;
    }
    return bound_of_plan(options, &degrees, cost, plan, scratch, &plan->estimate.bound_ns, err);
}

int skrull_planner_evaluate(const struct skrull_planner_options *options,
                            const struct skrull_cost_model *cost, bool barrier,
                            struct skrull_plan *plan, struct skrull_error *err)
{
    struct skrull_planner_options completed;
    struct arena *scratch;
    int rc;

    rc = options_complete(options, &completed, err);
    if (rc) {
        return rc;
    }
    scratch = arena_new(SCRATCH_MAX_BYTES);
    if (!scratch) {
        return out_of_memory(err);
    }
    rc = time_plan(&completed, cost, barrier, plan, scratch, err);
    arena_free(scratch);
    return rc;
}

/* Who the plan is for. */
static int fill_head(const struct skrull_planner_input *input, const struct policy *policy,
                     struct skrull_plan *plan, struct skrull_error *err)
{
    plan->job = arena_strdup(plan->arena, input->job ? input->job : "");
    plan->uid = arena_strdup(plan->arena, input->uid ? input->uid : "");
    plan->policy = arena_strdup(plan->arena, policy->name);
    if (!plan->job || !plan->uid || !plan->policy) {
        return out_of_memory(err);
    }
    plan->revision = input->revision;
    plan->planner_version = SKRULL_PLANNER_VERSION;
    plan->step = input->step;
    plan->epoch = input->epoch;
    return 0;
}

/* An exact count is a limit that a policy may not have been able to keep. */
static int check_count(const struct batch *batch, const struct policy *policy, uint64_t step,
                       const struct placement *placements, struct skrull_error *err)
{
    const uint32_t limit = batch->options.micro_batches;
    const uint32_t most = counts_most(placements, batch->n_sequences);

    if (limit == 0 || most <= limit) {
        return 0;
    }
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "batch.micro_batches: %u are too few for step %llu, which needs %u by "
                            "policy %s (bucket_tokens %u): raise it to %u, or raise "
                            "batch.bucket_tokens",
                            limit, (unsigned long long)step, most, policy->name,
                            batch->options.bucket_tokens, most);
}

/* Placements of the batch by the policy, within the count and in the order asked for; in scratch.
 */
static int place(const struct batch *batch, const struct policy *policy, uint64_t step,
                 struct placement **ret_placements, struct skrull_error *err)
{
    struct placement *placements =
        ARENA_ARRAY(batch->scratch, struct placement, batch->n_sequences);
    int rc;

    if (!placements) {
        return out_of_memory(err);
    }
    rc = policy->place(batch, placements, err);
    rc = rc ? rc : check_count(batch, policy, step, placements, err);
    rc = rc ? rc : order_micro_batches(batch, placements, err);
    if (!rc) {
        *ret_placements = placements;
    }
    return rc;
}

static int make_plan(const struct skrull_planner_input *input, struct arena *arena,
                     struct arena *scratch, struct skrull_plan **ret_plan, struct skrull_error *err)
{
    const struct policy *policy = NULL;
    struct placement *placements = NULL;
    struct skrull_plan *plan = NULL;
    struct batch batch;
    int rc;

    rc = policy_find(input->options.policy, &policy, err);
    rc = rc ? rc : batch_init(&batch, input, scratch, err);
    rc = rc ? rc : place(&batch, policy, input->step, &placements, err);
    rc = rc ? rc : layout_plan(&batch, placements, arena, &plan, err);
    rc = rc ? rc : fill_head(input, policy, plan, err);
    rc = rc ? rc : time_plan(&batch.options, input->cost, false, plan, scratch, err);
    if (rc) {
        return rc;
    }
    rc = plan_digest_all(plan);
    if (rc) {
        return skrull_error_set(err, rc, "SHA-256 failed in the hash library");
    }
    *ret_plan = plan;
    return 0;
}

int skrull_planner_run(const struct skrull_planner_input *input, struct skrull_plan **ret_plan,
                       struct skrull_error *err)
{
    struct arena *arena = arena_new(PLANNER_MAX_BYTES);
    struct arena *scratch = arena_new(SCRATCH_MAX_BYTES);
    int rc;

    rc = arena && scratch ? make_plan(input, arena, scratch, ret_plan, err) : out_of_memory(err);
    arena_free(scratch);
    if (rc) {
        arena_free(arena);
    }
    return rc;
}
