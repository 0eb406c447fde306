/*
 * The job stage as a stream uses it: the same code that the daemon plans with, without its store
 * and its look-ahead. A plan is encoded and decoded again, so that what a worker gets cannot differ
 * from what comes over the wire. Threading: see local_planner.h.
 */
#include "local_planner.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <skrull/client.h>
#include <skrull/plan.h>

#include "codec_rpc.h"
#include "job/job.h"
#include "job_fields.h"

enum { NEWEST, BEFORE, N_KNOWN };

struct local_planner {
    char **roots; /* [n_roots]; owned */
    size_t n_roots;
    struct skrull_job *known[N_KNOWN]; /* owned; NULL: not known */
    struct job *opened;                /* owned; NULL: none */
    int i_opened;                      /* which of known it is */
    uint64_t expired_from;             /* the newest revision known holds below it */
};

static int no_memory(struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a planner");
}

int local_planner_new(const char *const *roots, size_t n_roots, struct local_planner **ret_planner,
                      struct skrull_error *err)
{
    struct local_planner *planner = calloc(1, sizeof(*planner));

    if (!planner) {
        return no_memory(err);
    }
    planner->expired_from = UINT64_MAX;
    planner->roots = calloc(n_roots ? n_roots : 1, sizeof(planner->roots[0]));
    for (size_t i = 0; planner->roots && i < n_roots; i++) {
        planner->roots[i] = strdup(roots[i]);
        if (!planner->roots[i]) {
            break;
        }
        planner->n_roots++;
    }
    if (!planner->roots || planner->n_roots < n_roots) {
        local_planner_free(planner);
        return no_memory(err);
    }
    *ret_planner = planner;
    return 0;
}

static void close_opened(struct local_planner *planner)
{
    job_unref(planner->opened);
    planner->opened = NULL;
}

void local_planner_free(struct local_planner *planner)
{
    if (!planner) {
        return;
    }
    close_opened(planner);
    for (int i = 0; i < N_KNOWN; i++) {
        skrull_job_free(planner->known[i]);
    }
    for (size_t i = 0; i < planner->n_roots; i++) {
        free(planner->roots[i]);
    }
    free(planner->roots);
    free(planner);
}

static const char *uid_of(const struct skrull_job *job)
{
    return job->uid ? job->uid : "";
}

void local_planner_learn(struct local_planner *planner, struct skrull_job *job)
{
    const struct skrull_job *newest = planner->known[NEWEST];
    bool is_same_job = newest && strcmp(uid_of(newest), uid_of(job)) == 0;

    if (is_same_job && newest->revision == job->revision) {
        skrull_job_free(job);
        return;
    }
    close_opened(planner);
    skrull_job_free(planner->known[BEFORE]);
    planner->known[BEFORE] = NULL;
    if (is_same_job) {
        planner->known[BEFORE] = planner->known[NEWEST];
    } else {
        skrull_job_free(planner->known[NEWEST]);
    }
    planner->known[NEWEST] = job;
    planner->expired_from = UINT64_MAX;
}

bool local_planner_knows(const struct local_planner *planner, const char *uid, uint32_t revision)
{
    const struct skrull_job *newest = planner->known[NEWEST];

    return newest && newest->revision >= revision && strcmp(uid_of(newest), uid) == 0;
}

void local_planner_expire(struct local_planner *planner, uint64_t step)
{
    planner->expired_from = step < planner->expired_from ? step : planner->expired_from;
}

uint64_t local_planner_steps(const struct local_planner *planner)
{
    return planner->known[NEWEST] ? planner->known[NEWEST]->info.steps : 0;
}

/* The step at which a revision begins. */
static uint64_t first_step_of(const struct skrull_job *job)
{
    const struct skrull_job_info *info = &job->info;

    return info->n_revisions ? info->revisions[info->n_revisions - 1].first_step : 0;
}

/* Which of the known revisions a step is of; -1: none. */
static int find(const struct local_planner *planner, uint64_t step)
{
    if (step >= planner->expired_from) {
        return -1;
    }
    for (int i = 0; i < N_KNOWN; i++) {
        if (planner->known[i] && first_step_of(planner->known[i]) <= step) {
            return i;
        }
    }
    return -1;
}

/* Opens the revision of a step, unless it is open. */
static int open_for(struct local_planner *planner, uint64_t step, struct skrull_error *err)
{
    const struct job_roots roots = {.paths = (const char *const *)planner->roots,
                                    .n_paths = planner->n_roots};
    int i_known = find(planner, step), r;

    if (i_known < 0) {
        return skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                                "step %" PRIu64 " is of a revision of the job that was not read "
                                "from the daemon",
                                step);
    }
    if (planner->opened && planner->i_opened == i_known) {
        return 0;
    }
    close_opened(planner);
    /* What a daemon sends is checked as what it is sent. */
    r = job_complete(planner->known[i_known], err);
    if (r == 0) {
        r = job_open(planner->known[i_known], &roots, &planner->opened, err);
    }
    planner->i_opened = i_known;
    return r;
}

/* The step before is what the daemon gave it out as: neither the job nor the planner is another
 * one. */
static int check_step(struct local_planner *planner, uint64_t step, const char *expected,
                      struct skrull_error *err)
{
    char digest[SKRULL_DIGEST_HEX_SIZE];
    struct skrull_plan *plan;
    int r = open_for(planner, step, err);

    if (r == 0) {
        r = job_plan(planner->opened, step, &plan, NULL, err);
    }
    if (r < 0) {
        return r;
    }
    skrull_digest_to_hex(plan->digest, digest);
    skrull_plan_free(plan);
    if (strcmp(digest, expected) != 0) {
        return skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                                "step %" PRIu64 " has digest %s here and %s from the daemon, which "
                                "is of another version",
                                step, digest, expected);
    }
    return 0;
}

int local_planner_prepare(struct local_planner *planner, const char *uid, uint64_t step,
                          const char *digest_before, struct skrull_error *err)
{
    const struct skrull_job *newest = planner->known[NEWEST];

    if (!newest) {
        return skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                                "the job was not read from the daemon before it went");
    }
    if (uid[0] && strcmp(uid, uid_of(newest)) != 0) {
        return skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                                "the daemon's job of this name has uid %.32s, the stream's has %s",
                                uid_of(newest), uid);
    }
    if (step > 0 && digest_before[0] && find(planner, step - 1) >= 0) {
        int r = check_step(planner, step - 1, digest_before, err);

        if (r < 0) {
            return r;
        }
    }
    return step < newest->info.steps ? open_for(planner, step, err) : 0;
}

int local_planner_plan(struct local_planner *planner, uint64_t step, uint32_t data_rank,
                       uint8_t **ret_bytes, size_t *ret_len, struct skrull_error *err)
{
    struct skrull_plan *plan;
    int r = open_for(planner, step, err);

    if (r == 0) {
        r = job_plan(planner->opened, step, &plan, NULL, err);
    }
    if (r < 0) {
        return r;
    }
    if (data_rank < plan->n_ranks) {
        r = codec_stream_plan_pack(plan, data_rank, ret_bytes, ret_len, err);
    } else {
        r = skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                             "data_rank: %" PRIu32 ", step %" PRIu64 " has %zu ranks", data_rank,
                             step, plan->n_ranks);
    }
    skrull_plan_free(plan);
    return r;
}
