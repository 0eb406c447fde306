/*
 * Policy `skrull`: the heuristics of the Skrull paper (arXiv 2505.19609, section 4), GDS over DACP,
 * with the faults of the printed pseudo-code mended (gds.c and dacp.c say which).
 */
#include "plan/gds.h"

int policy_skrull_place(const struct batch *batch, struct placement *placements,
                        struct skrull_error *err)
{
    return gds_place(batch, DACP_LEAST_LOADED_FIRST, placements, err);
}
