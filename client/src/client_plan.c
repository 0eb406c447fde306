/*
 * GetPlan and PlanBatch. A plan above the daemon's limit for one message is asked for in halves,
 * and those in halves, until they pass; the parts are put together again. Any thread.
 */
#include <skrull/client.h>

#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "plan_parts.h"
#include "unary.h"

#define MAX_GRID ((uint64_t)1 << 20) /* ranks that a whole plan may have */

/* Parts so far; a growing list. */
struct parts {
    struct skrull_plan **plans;
    size_t n_plans, capacity;
};

/* What is asked for, but for the ranks. */
struct plan_request {
    struct skrull_client *client;
    const char *job; /* GetPlan */
    uint64_t step;
    const struct rpc_plan_batch *batch; /* PlanBatch; NULL: GetPlan */
};

static void parts_free(struct parts *parts)
{
    for (size_t i = 0; i < parts->n_plans; i++) {
        skrull_plan_free(parts->plans[i]);
    }
    free(parts->plans);
}

/* Takes the plan over, also where it fails. */
static int parts_add(struct parts *parts, struct skrull_plan *plan, struct skrull_error *err)
{
    if (parts->n_plans == parts->capacity) {
        size_t capacity = parts->capacity ? parts->capacity * 2 : 8;
        struct skrull_plan **plans = realloc(parts->plans, capacity * sizeof(plans[0]));

        if (!plans) {
            skrull_plan_free(plan);
            return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a plan");
        }
        parts->plans = plans;
        parts->capacity = capacity;
    }
    parts->plans[parts->n_plans++] = plan;
    return 0;
}

static bool holds_ranks(const struct skrull_plan *plan, const uint32_t *ranks, size_t n_ranks)
{
    if (n_ranks == 0) {
        return plan->n_ranks == (uint64_t)plan->dp * plan->cp;
    }
    if (plan->n_ranks != n_ranks) {
        return false;
    }
    for (size_t i = 0; i < n_ranks; i++) {
        if (plan->ranks[i].data_rank != ranks[i]) {
            return false;
        }
    }
    return true;
}

/* Packs the request for `ranks` ([n_ranks], 0: all) and calls. */
static int ask(const struct plan_request *want, uint32_t *ranks, size_t n_ranks,
               struct rpc_bytes *ret_reply, struct skrull_error *err)
{
    struct arena *arena = arena_new(UNARY_REQUEST_BUDGET);
    const char *method = want->batch ? UNARY_METHOD("PlanBatch") : UNARY_METHOD("GetPlan");
    struct rpc_bytes request;
    int r;

    if (!arena) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a call");
    }
    if (want->batch) {
        struct rpc_plan_batch batch = *want->batch;

        batch.data_ranks = ranks;
        batch.n_data_ranks = n_ranks;
        r = codec_plan_batch_request_pack(arena, &batch, &request, err);
    } else {
        const struct rpc_get_plan get = {
            .job = want->job, .step = want->step, .data_ranks = ranks, .n_data_ranks = n_ranks};

        r = codec_get_plan_request_pack(arena, &get, &request, err);
    }
    if (r == 0) {
        r = unary_call(want->client, method, request, ret_reply, err);
    }
    arena_free(arena);
    return r;
}

/* One message's worth: `ranks` ([n_ranks] ascending; 0: all). */
static int fetch(const struct plan_request *want, uint32_t *ranks, size_t n_ranks,
                 struct skrull_plan **ret_plan, struct skrull_error *err)
{
    struct rpc_bytes reply = {0};
    struct skrull_plan *plan = NULL;
    int r = ask(want, ranks, n_ranks, &reply, err);

    if (r == 0) {
        r = codec_plan_unpack(reply, &plan, err);
    }
    unary_reply_free(&reply);
    if (r < 0) {
        return r;
    }
    if (plan->step != want->step || !holds_ranks(plan, ranks, n_ranks)) {
        skrull_plan_free(plan);
        return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                                "step %llu: the daemon sent another step or other ranks",
                                (unsigned long long)want->step);
    }
    *ret_plan = plan;
    return 0;
}

/* Would less do? A daemon that is busy says so with the same code. */
static bool is_too_large(int result, const struct skrull_error *err)
{
    return result == SKRULL_ERR_RESOURCE_EXHAUSTED && (!err || err->reason != SKRULL_REASON_BUSY);
}

/* Fetches `ranks` ([n_ranks] ascending) in as few messages as pass. Depth: log2 of the ranks. */
static int fetch_halves(const struct plan_request *want, uint32_t *ranks, size_t n_ranks,
                        struct parts *parts, struct skrull_error *err)
{
    struct skrull_plan *plan;
    int r = fetch(want, ranks, n_ranks, &plan, err);

    if (r == 0) {
        return parts_add(parts, plan, err);
    }
    if (!is_too_large(r, err) || n_ranks < 2) {
        return r;
    }
    r = fetch_halves(want, ranks, n_ranks / 2, parts, err);
    if (r < 0) {
        return r;
    }
    return fetch_halves(want, ranks + n_ranks / 2, n_ranks - n_ranks / 2, parts, err);
}

/* All ranks of a plan that is too large at once: the first rank's says how many there are. */
static int fetch_grid(const struct plan_request *want, struct parts *parts,
                      struct skrull_error *err)
{
    uint32_t first = 0;
    uint32_t *ranks;
    uint64_t n_grid;
    struct skrull_plan *plan;
    int r = fetch(want, &first, 1, &plan, err);

    if (r < 0) {
        return r;
    }
    n_grid = (uint64_t)plan->dp * plan->cp;
    skrull_plan_free(plan);
    if (n_grid < 2 || n_grid > MAX_GRID) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "step %llu: a plan of %llu ranks does not come in parts",
                                (unsigned long long)want->step, (unsigned long long)n_grid);
    }
    ranks = malloc(n_grid * sizeof(ranks[0]));
    if (!ranks) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for ranks");
    }
    for (uint32_t i = 0; i < n_grid; i++) {
        ranks[i] = i;
    }
    r = fetch_halves(want, ranks, n_grid / 2, parts, err);
    if (r == 0) {
        r = fetch_halves(want, ranks + n_grid / 2, n_grid - n_grid / 2, parts, err);
    }
    free(ranks);
    return r;
}

static int compare_ranks(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* The ranks that were asked for, ascending, each once. */
static int fetch_named(const struct plan_request *want, const uint32_t *ranks, size_t n_ranks,
                       struct parts *parts, struct skrull_error *err)
{
    uint32_t *sorted = calloc(n_ranks, sizeof(sorted[0]));
    size_t n_sorted = 0;
    int r;

    if (!sorted) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for ranks");
    }
    memcpy(sorted, ranks, n_ranks * sizeof(sorted[0]));
    qsort(sorted, n_ranks, sizeof(sorted[0]), compare_ranks);
    for (size_t i = 0; i < n_ranks; i++) {
        if (n_sorted == 0 || sorted[n_sorted - 1] != sorted[i]) {
            sorted[n_sorted++] = sorted[i];
        }
    }
    r = fetch_halves(want, sorted, n_sorted, parts, err);
    free(sorted);
    return r;
}

static int fetch_all(const struct plan_request *want, struct parts *parts, struct skrull_error *err)
{
    struct skrull_plan *plan;
    int r = fetch(want, NULL, 0, &plan, err);

    if (is_too_large(r, err)) {
        return fetch_grid(want, parts, err);
    }
    if (r < 0) {
        return r;
    }
    return parts_add(parts, plan, err);
}

/* The only part itself, or all put together. */
static int join(struct parts *parts, struct skrull_plan **ret_plan, struct skrull_error *err)
{
    if (parts->n_plans == 1) {
        parts->n_plans = 0;
        *ret_plan = parts->plans[0];
        return 0;
    }
    return plan_merge(parts->plans, parts->n_plans, ret_plan, err);
}

/* Puts the parts together and verifies the whole; frees them. `result`: of fetching them. */
static int finish(struct parts *parts, int result, struct skrull_plan **ret_plan,
                  struct skrull_error *err)
{
    struct skrull_plan *plan = NULL;
    int r = result;

    if (r == 0) {
        r = join(parts, &plan, err);
    }
    parts_free(parts);
    if (r == 0) {
        r = plan_verify_digests(plan, err);
    }
    if (r < 0) {
        skrull_plan_free(plan);
        return r;
    }
    *ret_plan = plan;
    return 0;
}

int skrull_client_get_plan(struct skrull_client *client, const char *job, uint64_t step,
                           const uint32_t *ranks, size_t n_ranks, struct skrull_plan **ret_plan,
                           struct skrull_error *err)
{
    const struct plan_request want = {.client = client, .job = job, .step = step};
    struct parts parts = {0};
    int r;

    if (n_ranks) {
        r = fetch_named(&want, ranks, n_ranks, &parts, err);
    } else {
        r = fetch_all(&want, &parts, err);
    }
    return finish(&parts, r, ret_plan, err);
}

int skrull_client_plan_batch(struct skrull_client *client, const struct skrull_job *job,
                             const struct skrull_batch *batch, struct skrull_plan **ret_plan,
                             struct skrull_error *err)
{
    /* The codec only reads them, but its struct is the one that decoding fills. */
    const struct rpc_plan_batch request = {
        .job = (struct skrull_job *)(uintptr_t)job,
        .lengths = (uint32_t *)(uintptr_t)batch->lengths,
        .loss_tokens = (uint32_t *)(uintptr_t)batch->loss_tokens,
        .n_lengths = batch->n,
        .n_loss_tokens = batch->loss_tokens ? batch->n : 0,
    };
    const struct plan_request want = {.client = client, .job = job->name, .batch = &request};
    struct parts parts = {0};
    int r = fetch_all(&want, &parts, err);

    return finish(&parts, r, ret_plan, err);
}
