/*
 * The search over one set of group sizes: constructions, then descents from the best of them, in
 * rounds that grow. What is done does not depend on how many steps there are, only how far it goes:
 * more steps are never worse.
 */
#pragma once

#include "plan/joint/concentrate.h"
#include "plan/joint/construct.h"
#include "plan/joint/descend.h"
#include "plan/joint/judge.h"
#include "plan/joint/pool.h"

struct joint_search {
    const struct joint_problem *problem;
    struct joint_state state;
    struct joint_loads loads;
    struct joint_hosts hosts;
    struct joint_descent descent;
    struct joint_pool pool;
    struct joint_entry best;   /* in the searched order: it leads the search */
    struct joint_judge *judge; /* borrowed: it chooses the result */
    struct joint_rng rng;
    int64_t bound_ns; /* no plan is faster; without what is not known: 0 */
    uint64_t steps;   /* left */
    uint32_t max_mb;  /* with equal counts: of constructions */
    bool has_shards;  /* some sequence fits no single rank ... */
    bool is_tight;    /* ... and the batch needs several micro-batches */
};

/* Returns 0, or RESOURCE_EXHAUSTED. */
int joint_search_init(struct joint_search *search, const struct joint_problem *problem,
                      struct joint_judge *judge, int64_t bound_ns, uint64_t steps);

/* A further start; micro-batches of `places` must be below search->state.max_mb. */
void joint_search_offer(struct joint_search *search, const struct joint_place *places);

/* Uses up the steps, or ends at the bound. What it found is the judge's best. */
void joint_search_run(struct joint_search *search);
