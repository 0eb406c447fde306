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
 * Copies `spec`. Of a revised job it is the newest revision: earlier steps have no plans then.
 */
int job_open(const struct skrull_job *spec, const struct job_roots *roots, struct job **ret_job,
             struct skrull_error *err);

/* The same with all its revisions ([n >= 1], from the first): every step has its plan. */
int job_open_all(const struct skrull_job *const *specs, uint32_t n, const struct job_roots *roots,
                 struct job **ret_job, struct skrull_error *err);

/*
 * The job with one revision more (of revise.h), beside the old one, which stays as it is; they
 * share the opened indexes. INVALID_ARGUMENT: settings that contradict each other, or that cannot
 * place the longest sequence of the job.
 */
int job_revise(const struct job *old, const struct skrull_job *spec, struct job **ret_job,
               struct skrull_error *err);

/* Reference counting: atomic; the last unref closes. */
struct job *job_ref(struct job *job);
void job_unref(struct job *job);

/* The completed spec of the newest revision, with uid, revision and info; borrowed. */
const struct skrull_job *job_spec(const struct job *job);

/* The revisions that the job knows, ascending; one that begins where the next one does is never in
 * force. */
uint32_t job_n_revisions(const struct job *job);
const struct skrull_job *job_revision_at(const struct job *job, uint32_t i,
                                         uint64_t *ret_first_step);

/* The spec in force at a step (NULL: of a revision before those it knows), and the step before
 * which that holds: the next revision's first, or the job's end. */
const struct skrull_job *job_spec_at(const struct job *job, uint64_t step);
uint64_t job_spec_end(const struct job *job, uint64_t step);

/* Data ranks of a step; 0: not known. */
uint32_t job_n_ranks(const struct job *job, uint64_t step);

/*
 * Plans a step: a pure function of (revision in force at it, step), on any thread. OUT_OF_RANGE:
 * step >= info.steps, both numbers named. FAILED_PRECONDITION: an index file changed since it was
 * opened (size, mtime or inode). `planning_ns` (nullable) gets the time from lengths to the
 * finished plan.
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

/* The same where the indexes cannot be read: neither lengths nor which rows the step has are
 * checked. */
int job_check_plan_unseen(const struct skrull_job *spec, const struct skrull_plan *plan,
                          void (*fault)(void *arg, const char *message), void *arg,
                          struct skrull_error *err);

/* Planner options of a spec; strings borrowed from it. For checks without the index. */
struct skrull_planner_options;
void job_planner_options(const struct skrull_job *spec, struct skrull_planner_options *ret_options);

/* What the job's cost model is made of; strings borrowed from the spec. */
struct skrull_cost_options;
void job_cost_options(const struct skrull_job *spec, struct skrull_cost_options *ret_options);
