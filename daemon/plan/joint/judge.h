/* Which of the placements that a search finds is best once their micro-batches are in the order
 * that the job asks for. */
#pragma once

#include "plan/joint/baselines.h"
#include "plan/joint/state.h"

struct joint_judge {
    const struct joint_problem *problem;
    struct joint_result best; /* gaps closed, order still to come; JOINT_NO_TIME: none yet */
    struct placement *trial;  /* [n_sequences] */
    bool is_reordered;        /* times depend on an order that searches do not see */
    int rc;                   /* 0, or RESOURCE_EXHAUSTED: out of memory on the way */
};

/* Returns 0, or RESOURCE_EXHAUSTED. */
int joint_judge_init(struct joint_judge *judge, const struct joint_problem *problem);

/* Times `places` ([n_sequences], micro-batches in the searched order) and keeps them if they are
 * the best. O(segments + sequences x log sequences). */
void joint_judge_take(struct joint_judge *judge, const struct joint_place *places);
