/*
 * Before ranks compute together they make sure that they run the same plan: each has recomputed the
 * digest of its own part, and the plan's digest is that of all of them, so equality proves the
 * whole plan, not that labels are alike. All ranks judge the same words, so all fail, or none does.
 */
#include "comm.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Fixed size, no padding: it travels. */
struct words {
    uint64_t step;
    uint32_t data_rank, n_ranks;
    uint8_t rank_digest[SKRULL_DIGEST_SIZE], digest[SKRULL_DIGEST_SIZE];
    char uid[SKRULL_UID_HEX_SIZE + 7];
    uint64_t is_end;
};

static void fill(struct words *words, const struct skrull_comm *comm,
                 const struct skrull_plan *plan)
{
    size_t len;

    memset(words, 0, sizeof(*words));
    words->data_rank = skrull_comm_rank(comm);
    words->is_end = !plan;
    if (!plan) {
        return;
    }
    len = strlen(plan->uid);
    memcpy(words->uid, plan->uid, len < sizeof(words->uid) ? len : sizeof(words->uid) - 1);
    words->step = plan->step;
    words->data_rank = plan->ranks[0].data_rank;
    words->n_ranks = plan->dp * plan->cp;
    memcpy(words->rank_digest, plan->ranks[0].digest, SKRULL_DIGEST_SIZE);
    memcpy(words->digest, plan->digest, SKRULL_DIGEST_SIZE);
}

/* Rank `r` against rank 0. */
static int compare(const struct words *first, const struct words *other, uint32_t r,
                   struct skrull_error *err)
{
    char digests[2][SKRULL_DIGEST_HEX_SIZE];

    if (first->is_end != other->is_end) {
        return skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                                "data rank %" PRIu32 " has %s plans than data rank 0: their jobs, "
                                "--from and --count must be the same",
                                r, other->is_end ? "fewer" : "more");
    }
    if (memcmp(first->uid, other->uid, sizeof(first->uid)) != 0) {
        return skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                                "data rank %" PRIu32
                                " was given a plan of another job (uid %s) than "
                                "data rank 0 (uid %s)",
                                r, other->uid, first->uid);
    }
    if (first->step != other->step) {
        return skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                                "data rank %" PRIu32 " is at step %" PRIu64
                                ", data rank 0 at %" PRIu64,
                                r, other->step, first->step);
    }
    if (memcmp(first->digest, other->digest, SKRULL_DIGEST_SIZE) != 0) {
        skrull_digest_to_hex(first->digest, digests[0]);
        skrull_digest_to_hex(other->digest, digests[1]);
        return skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                                "step %" PRIu64 ": data rank %" PRIu32
                                " was given another plan (digest %s) than data rank 0 (%s)",
                                first->step, r, digests[1], digests[0]);
    }
    return 0;
}

/* Do the ranks' digests make up the plan's? */
static int prove(const struct words *all, uint32_t n_ranks, struct skrull_error *err)
{
    uint8_t digest[SKRULL_DIGEST_SIZE], *digests = malloc((size_t)n_ranks * SKRULL_DIGEST_SIZE);
    int rc;

    if (!digests) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for digests");
    }
    for (uint32_t r = 0; r < n_ranks; r++) {
        memcpy(digests + (size_t)r * SKRULL_DIGEST_SIZE, all[r].rank_digest, SKRULL_DIGEST_SIZE);
    }
    rc = skrull_plan_digest(digests, n_ranks, digest);
    free(digests);
    if (rc < 0) {
        return skrull_error_set(err, rc, "the hash library failed");
    }
    return memcmp(digest, all[0].digest, SKRULL_DIGEST_SIZE) == 0
               ? 0
               : skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                                  "step %" PRIu64
                                  ": the data ranks' plans do not make up the plan whose digest "
                                  "they carry",
                                  all[0].step);
}

static int judge(const struct words *all, uint32_t n_ranks, struct skrull_error *err)
{
    int rc = 0;

    for (uint32_t r = 0; r < n_ranks && rc == 0; r++) {
        rc = compare(&all[0], &all[r], r, err);
        if (rc == 0 && all[r].data_rank != r) {
            rc = skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                                  "rank %" PRIu32 " was given the plan of data rank %" PRIu32, r,
                                  all[r].data_rank);
        }
        if (rc == 0 && !all[r].is_end && all[r].n_ranks != n_ranks) {
            rc = skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                                  "the plan is for %" PRIu32 " data ranks; here are %" PRIu32,
                                  all[r].n_ranks, n_ranks);
        }
    }
    return rc < 0 || all[0].is_end ? rc : prove(all, n_ranks, err);
}

int skrull_comm_check_plan(struct skrull_comm *comm, const struct skrull_plan *plan,
                           struct skrull_error *err)
{
    uint32_t n_ranks = skrull_comm_size(comm);
    struct words mine, *all = calloc(n_ranks, sizeof(*all));
    int rc;

    if (!all) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for greetings");
    }
    fill(&mine, comm, plan);
    rc = skrull_comm_gather(comm, &mine, sizeof(mine), all, err);
    if (rc == 0) {
        rc = judge(all, n_ranks, err);
    }
    free(all);
    return rc;
}
