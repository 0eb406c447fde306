/*
 * 6 JOB, one job: where index, sampler, cost and planner meet. No gRPC, no libuv. An opened job is
 * immutable: any number of threads may plan its steps at once.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/job.h>
#include <skrull/plan.h>

struct job;

struct job_roots {
    const char *const *paths; /* [n_paths] absolute data roots; borrowed during the call */
    size_t n_paths;
};

/*
 * Opens a completed job: indexes (verified in full), over-length decided, sampler, cost model;
 * fills info. A job that already has info (from the store, or from a daemon) is held against it:
 * another count, tokens or payload hash is FAILED_PRECONDITION, naming the index and what differs.
 * Copies `spec`.
 */
int job_open(const struct skrull_job *spec, const struct job_roots *roots, struct job **ret_job,
             struct skrull_error *err);

/* Reference counting: atomic; the last unref closes. */
struct job *job_ref(struct job *job);
void job_unref(struct job *job);

/* The completed spec with uid, revision and info; borrowed. */
const struct skrull_job *job_spec(const struct job *job);

/*
 * Plans a step: a pure function of (job, step), on any thread. OUT_OF_RANGE: step >= info.steps,
 * both numbers named. FAILED_PRECONDITION: an index file changed since it was opened (size, mtime
 * or inode). `planning_ns` (nullable) gets the time from lengths to the finished plan.
 */
int job_plan(const struct job *job, uint64_t step, struct skrull_plan **ret_plan,
             int64_t *planning_ns, struct skrull_error *err);

/* The same batch by another policy of policies.def (for comparisons). */
int job_plan_by(const struct job *job, uint64_t step, const char *policy,
                struct skrull_plan **ret_plan, int64_t *planning_ns, struct skrull_error *err);

/* Holds a whole plan against the job and its indexes: each fault goes to `fault` (plan_check.h).
 * Returns 0, PLAN_CHECK_UNSOUND (1), or an error. */
int job_check_plan(const struct job *job, const struct skrull_plan *plan,
                   void (*fault)(void *arg, const char *message), void *arg,
                   struct skrull_error *err);

/* The same where the indexes cannot be read: neither lengths nor which rows the step has are checked. */
int job_check_plan_unseen(const struct skrull_job *spec, const struct skrull_plan *plan,
                          void (*fault)(void *arg, const char *message), void *arg,
                          struct skrull_error *err);

/* Planner options of a spec; strings borrowed from it. For checks without the index. */
struct skrull_planner_options;
void job_planner_options(const struct skrull_job *spec, struct skrull_planner_options *ret_options);
