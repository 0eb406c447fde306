/* What data ranks tell each other before a step. */
#pragma once

#include <skrull/exec.h>

/*
 * All ranks gather what each of them was given: step, job, digests. `plan` NULL: this rank's stream
 * has ended. FAILED_PRECONDITION, the same on all ranks, names the first rank that differs: another
 * job, another step, another plan, or digests of ranks that do not make up the plan's.
 */
int greeting_exchange(struct skrull_comm *comm, const struct skrull_plan *plan,
                      struct skrull_error *err);
