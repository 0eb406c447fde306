/* Plans of lengths that are known only now: RL rollouts, streaming data. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/job.h>
#include <skrull/plan.h>

#define JOB_PLAN_BATCH_MAX (UINT32_C(1) << 20) /* sequences */

/* One batch, borrowed. */
struct job_lengths {
    const uint32_t *lengths;     /* [n] tokens of each sequence */
    const uint32_t *loss_tokens; /* [n_loss_tokens] */
    size_t n, n_loss_tokens;     /* n_loss_tokens is n, or 0: every token counts */
};

/*
 * Plans one batch as a step of the job `spec` would be planned: a pure function, no index, no
 * state, any thread. `spec` is as it came, and only read; it need not have data, seed, steps or
 * batch.global, and what it has of them does not matter, but for data[0].over_length (default:
 * reject). In the plan sample and index are the place in `lengths`, data set, step and epoch are 0;
 * dropped sequences leave their places out.
 *
 * INVALID_ARGUMENT names the key of the job, or the place in lengths or loss_tokens: among others
 * an empty batch, more than JOB_PLAN_BATCH_MAX sequences, a length of 0, more loss tokens than
 * tokens. RESOURCE_EXHAUSTED: memory, or a plan that is too large.
 */
int job_plan_batch(const struct skrull_job *spec, const struct job_lengths *batch,
                   struct skrull_plan **ret_plan, struct skrull_error *err);
