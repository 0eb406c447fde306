/* Local search on the critical path. */
#pragma once

#include "plan/joint/change.h"
#include "plan/joint/rng.h"
#include "plan/joint/trace.h"

struct joint_descent {
    struct joint_state *state;
    struct joint_trace trace;
    struct joint_rng *rng;
    uint32_t *path;  /* [n_path] sequences on the critical path, longest first */
    uint32_t *ranks; /* [n_ranks tried] candidates, least loaded first */
    uint32_t n_path, n_ranks;
    struct joint_move *journal; /* [n_journal] places before each move since the last mark */
    uint32_t n_journal;
    bool journal_is_full; /* the mark cannot be gone back to */
};

/* `state`, `rng` borrowed. Returns 0, or RESOURCE_EXHAUSTED. */
int joint_descent_init(struct joint_descent *descent, struct joint_state *state,
                       struct joint_rng *rng);

/*
 * Changes the state while its largest clock falls; clocks must be up to date. Ends when nothing
 * tried helps, `*steps` trials are used up, or the clock is at most `stop_ns`. Returns the clock.
 */
int64_t joint_descend(struct joint_descent *descent, uint64_t *steps, int64_t stop_ns);

/* Swaps one to three random pairs, the first with a sequence of the critical path, where no clock
 * then passes `limit_ns`. Takes one step at least. */
void joint_kick(struct joint_descent *descent, uint64_t *steps, int64_t limit_ns);

/* Marks the state; goes back to the mark (false: too much has changed, load the state anew). */
void joint_descent_mark(struct joint_descent *descent);
bool joint_descent_rewind(struct joint_descent *descent);
