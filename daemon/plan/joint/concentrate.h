/* Fixed groups: local sequences concentrated on few of them. */
#pragma once

#include "plan/joint/state.h"

struct joint_concentrate {
    uint32_t n_hosts;     /* groups that take local sequences */
    int64_t cap_ns;       /* of local work on one of their ranks */
    uint32_t share_limit; /* as joint_pick_rule's */
    bool levels_short;    /* shorter half: to the emptiest rank, not the fullest with room */
};

struct joint_hosts {
    int64_t *rank_ns;  /* [n_ranks] local work */
    int64_t *group_ns; /* [groups] */
    uint32_t *ranks;   /* [n_sequences] host of each; JOINT_NONE: none */
    uint32_t *groups;  /* [n_sequences] group of a distributed one; JOINT_NONE: left over */
};

int joint_hosts_init(struct joint_hosts *hosts, const struct joint_problem *problem);

/* Can this problem be concentrated: single ranks and one size of groups? */
bool joint_can_concentrate(const struct joint_problem *problem);

/* Clears `state` and places every sequence. False: some found no room. Clocks are not
 * run; state->order says in which order micro-batches should. */
bool joint_concentrate_run(struct joint_state *state, struct joint_hosts *hosts,
                           const struct joint_concentrate *how);
