/* All digests of a plan in one go: the hash is looked up once, not once a rank. */
#pragma once

#include <skrull/plan.h>

/* Fills the digest of every rank and, from them, the plan's own. The plan must hold all ranks.
 * Returns 0, or INTERNAL where the hash library fails; digests are then partly written. */
int plan_digest_all(struct skrull_plan *plan);
