/*
 * A plan's estimates stand beside its placements and no digest covers them: a wrong one trains the
 * same batch, but misleads whoever chooses a policy or a grid by it. The evaluator is pure, whole
 * nanoseconds on every machine, so they are compared exactly. A plan without any estimate, as
 * another program may write it, says nothing that could be wrong.
 */
#include "estimate_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "plan_check.h"

#define PLACE_SIZE 64

struct faults {
    void (*fault)(void *arg, const char *message);
    void *arg;
    size_t n;
};

static void say(struct faults *faults, const char *message)
{
    if (faults->n++ < PLAN_CHECK_MAX_FAULTS) {
        faults->fault(faults->arg, message);
    }
}

/* One figure of an estimate. */
static void compare(struct faults *faults, const char *place, const char *name, int64_t given_ns,
                    int64_t model_ns)
{
    char message[PLACE_SIZE + 160];

    if (given_ns != model_ns) {
        (void)snprintf(message, sizeof(message),
                       "%s: the estimate says %s %" PRId64 " ns, the model says %" PRId64 " ns",
                       place, name, given_ns, model_ns);
        say(faults, message);
    }
}

static void compare_all(struct faults *faults, const char *place,
                        const struct skrull_estimate *given, const struct skrull_estimate *model)
{
    compare(faults, place, "iteration", given->iteration_ns, model->iteration_ns);
    compare(faults, place, "bound", given->bound_ns, model->bound_ns);
    compare(faults, place, "comp", given->comp_ns, model->comp_ns);
    compare(faults, place, "comm", given->comm_ns, model->comm_ns);
    compare(faults, place, "idle", given->idle_ns, model->idle_ns);
}

/* The plan's own estimate, its ranks', its micro-batches', in one array. */
static size_t n_estimates(const struct skrull_plan *plan)
{
    return 1 + plan->n_ranks + plan->n_micro_batches;
}

static void take_estimates(const struct skrull_plan *plan, struct skrull_estimate *ret)
{
    *ret++ = plan->estimate;
    for (size_t i = 0; i < plan->n_ranks; i++) {
        *ret++ = plan->ranks[i].estimate;
    }
    for (size_t i = 0; i < plan->n_micro_batches; i++) {
        *ret++ = plan->micro_batches[i].estimate;
    }
}

static bool says_anything(const struct skrull_estimate *given, size_t n)
{
    static const struct skrull_estimate none = {0};

    for (size_t i = 0; i < n; i++) {
        if (memcmp(&given[i], &none, sizeof(none)) != 0) {
            return true;
        }
    }
    return false;
}

static void compare_plan(struct faults *faults, const struct skrull_plan *plan,
                         const struct skrull_estimate *given)
{
    const struct skrull_estimate *micro_batches = given + 1 + plan->n_ranks;
    char place[PLACE_SIZE];

    compare_all(faults, "the plan", &given[0], &plan->estimate);
    for (size_t i = 0; i < plan->n_ranks; i++) {
        const struct skrull_rank *rank = &plan->ranks[i];

        (void)snprintf(place, sizeof(place), "rank %" PRIu32, rank->data_rank);
        compare_all(faults, place, &given[1 + i], &rank->estimate);
        for (uint32_t k = 0; k < rank->n_micro_batches; k++) {
            const size_t at = rank->first_micro_batch + k;

            (void)snprintf(place, sizeof(place), "rank %" PRIu32 ", micro-batch %" PRIu32,
                           rank->data_rank, k);
            compare_all(faults, place, &micro_batches[at], &plan->micro_batches[at].estimate);
        }
    }
}

int estimate_check(const struct skrull_planner_options *options,
                   const struct skrull_cost_model *cost, struct skrull_plan *plan,
                   void (*fault)(void *arg, const char *message), void *arg,
                   struct skrull_error *err)
{
    struct faults faults = {.fault = fault, .arg = arg};
    const size_t n = n_estimates(plan);
    _cleanup_(cleanup_free) struct skrull_estimate *given = calloc(n, sizeof(*given));
    int r;

    if (!given) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "out of memory for the estimates of %zu micro-batches",
                                plan->n_micro_batches);
    }
    take_estimates(plan, given);
    r = skrull_planner_evaluate(options, cost, false, plan, err);
    if (r < 0) {
        return r;
    }
    if (says_anything(given, n)) {
        compare_plan(&faults, plan, given);
    }
    return faults.n ? PLAN_CHECK_UNSOUND : 0;
}
