/*
 * A plan judged a second time, from the contract alone and as plainly as can be: no code of
 * plan_check, of the layout or of the slots is used. Slow.
 */
#pragma once

#include <stddef.h>

#include <skrull/plan.h>

#include "property/random_case.h"

#define AUDIT_MESSAGE_SIZE 256

/*
 * Holds a whole plan against the case that it was made from: exactly once, padding, capacity,
 * groups, order, dummies, counts, weights, totals, head. Returns 0, or 1 with the first fault in
 * `ret_message`.
 */
int audit_plan(const struct random_case *random, const struct skrull_plan *plan,
               char ret_message[AUDIT_MESSAGE_SIZE]);

/* Rank and plan digests from the layout that skrull/plan.h states; the same returns. */
int audit_digests(const struct skrull_plan *plan, char ret_message[AUDIT_MESSAGE_SIZE]);

/* Do micro-batches stand as micro_batch_order asks, by the times that they take alone? The same
 * returns. */
int audit_order(const struct random_case *random, const struct skrull_plan *plan,
                char ret_message[AUDIT_MESSAGE_SIZE]);

/* Is the plan's estimate what the model says, here and with the paper's barrier? The same returns.
 * The plan's estimates are left as they were. */
int audit_estimate(const struct random_case *random, struct skrull_plan *plan,
                   char ret_message[AUDIT_MESSAGE_SIZE]);
