/*
 * Policy `round_robin`: the baseline of the Skrull paper (arXiv 2505.19609, Algorithm 4): the same
 * as `skrull`, but a local sequence only tries the rank with most room. Mended likewise.
 *
 * On ascending sequences the rank with most room is the least-loaded one too, after a roll-back as
 * before, so this rule and that of `skrull` place alike: on all of thousands of batches tried.
 */
#include "plan/gds.h"

int policy_round_robin_place(const struct batch *batch, struct placement *placements,
                             struct skrull_error *err)
{
    return gds_place(batch, DACP_MOST_ROOM, placements, err);
}
