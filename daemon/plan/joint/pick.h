/* In which micro-batch of a group a sequence goes. */
#pragma once

#include "plan/joint/state.h"

struct joint_pick {
    uint32_t mb;
    bool opens; /* some member has no work there yet */
};

/* What limits a choice. */
struct joint_pick_rule {
    uint32_t max_mb;      /* micro-batches below this one */
    uint32_t share_limit; /* tokens a rank up to which shards share a micro-batch: the rest of the
                             bucket is left to local sequences, which hide the exchange */
};

/*
 * The micro-batch for sequence k in group `node`: one that all members have work in before one that
 * must be opened; for shards the first with room, for a local sequence the one with most exchange
 * to hide, else the fullest with room. False: none. Looks at the last few that the group has used.
 */
bool joint_pick_mb(const struct joint_state *state, uint32_t k, uint32_t node,
                   const struct joint_pick_rule *rule, struct joint_pick *ret_pick);
