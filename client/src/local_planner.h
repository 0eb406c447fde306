/*
 * Plans of a job made in this process, as the daemon would send them: for a stream whose daemon is
 * away. It knows the newest revision of the job that it was told of and the one before, and opens
 * the indexes when a plan is first asked for. Used by one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>
#include <skrull/job.h>

struct local_planner;

/* A planner that knows no job; `roots` ([n_roots] absolute folders) are copied. */
int local_planner_new(const char *const *roots, size_t n_roots, struct local_planner **ret_planner,
                      struct skrull_error *err);

/* NULL is fine. */
void local_planner_free(struct local_planner *planner);

/* Takes a job over as GetJob has it (skrull_job_free). A job with another uid replaces all. */
void local_planner_learn(struct local_planner *planner, struct skrull_job *job);

/* Is this revision of the job with this uid known, or a newer one? */
bool local_planner_knows(const struct local_planner *planner, const char *uid, uint32_t revision);

/* There is a newer revision, of `step` at the latest, that is not known: no plans from there on
 * before it is learnt. */
void local_planner_expire(struct local_planner *planner, uint64_t step);

/* Steps of the newest revision, 0: no job is known. */
uint64_t local_planner_steps(const struct local_planner *planner);

/*
 * Makes sure that the steps from `step` on are the job's own: opens its indexes, and plans step - 1
 * anew where its digest (32 hex digits) is known; uid and digest may be "". FAILED_PRECONDITION: no
 * job is known, or another one; other indexes than it was created with; another digest. Errors of
 * opening name the index. Reads the indexes in full: seconds where they hold billions of rows.
 */
int local_planner_prepare(struct local_planner *planner, const char *uid, uint64_t step,
                          const char *digest_before, struct skrull_error *err);

/* The StreamPlansResponse with the plan of one rank, malloc'd. FAILED_PRECONDITION: an index
 * changed, or the step is of a revision that is not known. */
int local_planner_plan(struct local_planner *planner, uint64_t step, uint32_t data_rank,
                       uint8_t **ret_bytes, size_t *ret_len, struct skrull_error *err);
