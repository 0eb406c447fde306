/*
 * Policy `joint`, the solver of this project: joint/solve.c says how it goes about it.
 */
#include "plan/joint/solve.h"

int policy_joint_place(const struct batch *batch, struct placement *placements,
                       struct skrull_error *err)
{
    return joint_solve(batch, placements, err);
}
