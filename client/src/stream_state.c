/* The table of stream_state.h. Pure; the caller holds the stream's lock. */
#include "stream_state.h"

#include <skrull/error.h>

struct edge {
    enum stream_state next;
    enum stream_action action;
};

#define NO_EDGE                                                                                    \
    {                                                                                              \
        STREAM_IDLE, STREAM_ILLEGAL                                                                \
    }

/* A call's own last words may follow its stream's end (a cancelled call still ends): they change
 * nothing. An event that a state cannot see is an illegal edge, stated as such, so that each was
 * thought of. */
/* clang-format off */
static const struct edge table[N_STREAM_STATES][N_STREAM_EVENTS] = {
    [STREAM_IDLE] = {
        [STREAM_START]        = { STREAM_OPENING, STREAM_OPEN },
        [STREAM_CONNECTED]    = NO_EDGE,
        [STREAM_PLAN]         = NO_EDGE,
        [STREAM_CORRUPT]      = NO_EDGE,
        [STREAM_CALL_END]     = NO_EDGE,
        [STREAM_CALL_LOST]    = NO_EDGE,
        [STREAM_CALL_REFUSED] = NO_EDGE,
        [STREAM_RETRY]        = NO_EDGE,
        [STREAM_TAKE_OVER]    = NO_EDGE,
        [STREAM_RETURN]       = NO_EDGE,
        [STREAM_LOCAL_LOST]   = NO_EDGE,
        [STREAM_GIVE_UP]      = NO_EDGE,
        [STREAM_CLOSE]        = { STREAM_FAILED, STREAM_FAIL },
    },
    [STREAM_OPENING] = {
        [STREAM_START]        = NO_EDGE,
        [STREAM_CONNECTED]    = { STREAM_ACTIVE, STREAM_NOTHING },
        [STREAM_PLAN]         = { STREAM_ACTIVE, STREAM_DELIVER },
        [STREAM_CORRUPT]      = { STREAM_FAILED, STREAM_FAIL },
        [STREAM_CALL_END]     = { STREAM_DONE, STREAM_FINISH },
        [STREAM_CALL_LOST]    = { STREAM_BACKOFF, STREAM_WAIT },
        [STREAM_CALL_REFUSED] = { STREAM_FAILED, STREAM_FAIL },
        [STREAM_RETRY]        = NO_EDGE,
        [STREAM_TAKE_OVER]    = { STREAM_LOCAL, STREAM_CANCEL },
        [STREAM_RETURN]       = NO_EDGE,
        [STREAM_LOCAL_LOST]   = NO_EDGE,
        [STREAM_GIVE_UP]      = { STREAM_FAILED, STREAM_FAIL },
        [STREAM_CLOSE]        = { STREAM_FAILED, STREAM_FAIL },
    },
    [STREAM_ACTIVE] = {
        [STREAM_START]        = NO_EDGE,
        [STREAM_CONNECTED]    = { STREAM_ACTIVE, STREAM_NOTHING },
        [STREAM_PLAN]         = { STREAM_ACTIVE, STREAM_DELIVER },
        [STREAM_CORRUPT]      = { STREAM_FAILED, STREAM_FAIL },
        [STREAM_CALL_END]     = { STREAM_DONE, STREAM_FINISH },
        [STREAM_CALL_LOST]    = { STREAM_BACKOFF, STREAM_WAIT },
        [STREAM_CALL_REFUSED] = { STREAM_FAILED, STREAM_FAIL },
        [STREAM_RETRY]        = NO_EDGE,
        [STREAM_TAKE_OVER]    = NO_EDGE,
        [STREAM_RETURN]       = NO_EDGE,
        [STREAM_LOCAL_LOST]   = NO_EDGE,
        [STREAM_GIVE_UP]      = NO_EDGE,
        [STREAM_CLOSE]        = { STREAM_FAILED, STREAM_FAIL },
    },
    [STREAM_BACKOFF] = {
        [STREAM_START]        = NO_EDGE,
        [STREAM_CONNECTED]    = NO_EDGE,
        [STREAM_PLAN]         = NO_EDGE,
        [STREAM_CORRUPT]      = NO_EDGE,
        [STREAM_CALL_END]     = NO_EDGE,
        [STREAM_CALL_LOST]    = { STREAM_BACKOFF, STREAM_NOTHING }, /* one that was cancelled for the fallback, as in the next ones */
        [STREAM_CALL_REFUSED] = NO_EDGE,
        [STREAM_RETRY]        = { STREAM_OPENING, STREAM_OPEN },
        [STREAM_TAKE_OVER]    = { STREAM_LOCAL, STREAM_NOTHING },
        [STREAM_RETURN]       = NO_EDGE,
        [STREAM_LOCAL_LOST]   = NO_EDGE,
        [STREAM_GIVE_UP]      = { STREAM_FAILED, STREAM_FAIL },
        [STREAM_CLOSE]        = { STREAM_FAILED, STREAM_FAIL },
    },
    [STREAM_LOCAL] = {
        [STREAM_START]        = NO_EDGE,
        [STREAM_CONNECTED]    = NO_EDGE,
        [STREAM_PLAN]         = { STREAM_LOCAL, STREAM_DELIVER },
        [STREAM_CORRUPT]      = { STREAM_FAILED, STREAM_FAIL },
        [STREAM_CALL_END]     = { STREAM_DONE, STREAM_FINISH },
        [STREAM_CALL_LOST]    = { STREAM_LOCAL, STREAM_NOTHING },
        [STREAM_CALL_REFUSED] = NO_EDGE,
        [STREAM_RETRY]        = NO_EDGE,
        [STREAM_TAKE_OVER]    = NO_EDGE,
        [STREAM_RETURN]       = { STREAM_OPENING, STREAM_OPEN },
        [STREAM_LOCAL_LOST]   = { STREAM_BACKOFF, STREAM_WAIT },
        [STREAM_GIVE_UP]      = NO_EDGE,
        [STREAM_CLOSE]        = { STREAM_FAILED, STREAM_FAIL },
    },
    [STREAM_DONE] = {
        [STREAM_START]        = NO_EDGE,
        [STREAM_CONNECTED]    = NO_EDGE,
        [STREAM_PLAN]         = NO_EDGE,
        [STREAM_CORRUPT]      = NO_EDGE,
        [STREAM_CALL_END]     = NO_EDGE,
        [STREAM_CALL_LOST]    = { STREAM_DONE, STREAM_NOTHING },
        [STREAM_CALL_REFUSED] = NO_EDGE,
        [STREAM_RETRY]        = NO_EDGE,
        [STREAM_TAKE_OVER]    = NO_EDGE,
        [STREAM_RETURN]       = NO_EDGE,
        [STREAM_LOCAL_LOST]   = NO_EDGE,
        [STREAM_GIVE_UP]      = NO_EDGE,
        [STREAM_CLOSE]        = { STREAM_DONE, STREAM_NOTHING },
    },
    [STREAM_FAILED] = {
        [STREAM_START]        = { STREAM_FAILED, STREAM_NOTHING }, /* closed before the reader ran */
        [STREAM_CONNECTED]    = { STREAM_FAILED, STREAM_NOTHING },
        [STREAM_PLAN]         = { STREAM_FAILED, STREAM_NOTHING },
        [STREAM_CORRUPT]      = { STREAM_FAILED, STREAM_NOTHING },
        [STREAM_CALL_END]     = { STREAM_FAILED, STREAM_NOTHING },
        [STREAM_CALL_LOST]    = { STREAM_FAILED, STREAM_NOTHING },
        [STREAM_CALL_REFUSED] = { STREAM_FAILED, STREAM_NOTHING },
        [STREAM_RETRY]        = NO_EDGE,
        [STREAM_TAKE_OVER]    = NO_EDGE,
        [STREAM_RETURN]       = NO_EDGE,
        [STREAM_LOCAL_LOST]   = NO_EDGE,
        [STREAM_GIVE_UP]      = { STREAM_FAILED, STREAM_NOTHING },
        [STREAM_CLOSE]        = { STREAM_FAILED, STREAM_NOTHING },
    },
};
/* clang-format on */

enum stream_action stream_state_move(enum stream_state *state, enum stream_event event)
{
    const struct edge *edge = &table[*state][event];

    if (edge->action != STREAM_ILLEGAL) {
        *state = edge->next;
    }
    return edge->action;
}

const char *stream_state_name(enum stream_state state)
{
    static const char *const names[N_STREAM_STATES] = {
        "idle", "opening", "active", "backoff", "local", "done", "failed",
    };

    return names[state];
}

bool stream_is_transient(int code)
{
    /* The daemon itself answers UNAVAILABLE only while it drains. UNKNOWN and CANCELLED it never
     * says: they are what gRPC makes of a connection that broke at an odd moment. */
    return code == SKRULL_ERR_UNAVAILABLE || code == SKRULL_ERR_UNKNOWN ||
           code == SKRULL_ERR_CANCELLED;
}

enum stream_event stream_call_outcome(int code, bool is_end, bool is_reopen, bool is_complete)
{
    if (is_complete || is_end) {
        return STREAM_CALL_END;
    }
    if (code == 0 || is_reopen || stream_is_transient(code)) {
        return STREAM_CALL_LOST; /* also OK without an end: something between us cut the stream */
    }
    return STREAM_CALL_REFUSED;
}
