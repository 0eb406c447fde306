/*
 * The states of a client's stream as a table: state x event -> next state and what to do. No
 * sockets, no threads, no time: the reader (stream_reader.c) turns I/O into events and carries
 * actions out.
 *
 * The happy path: IDLE -start-> OPENING -connected-> ACTIVE (-plan-> ACTIVE)* -end-> DONE.
 * A lost call leads through BACKOFF to OPENING; an answer that no retry mends, a corrupt plan,
 * patience that ran out and close() lead to FAILED. Nothing leaves DONE and FAILED.
 *
 * With a fallback, OPENING and BACKOFF lead to LOCAL where no daemon comes in time: plans are made
 * in this process until RETURN opens a call again. A call that was cancelled for it may end later,
 * in any state: it is then lost, which changes nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum stream_state {
    STREAM_IDLE,    /* not begun */
    STREAM_OPENING, /* a call is open, the daemon has not answered */
    STREAM_ACTIVE,  /* the daemon answers */
    STREAM_BACKOFF, /* no call; the next attempt waits */
    STREAM_LOCAL,   /* no call; plans are made here */
    STREAM_DONE,    /* all plans were received */
    STREAM_FAILED,  /* the error is kept */
    N_STREAM_STATES,
};

enum stream_event {
    STREAM_START,        /* the reader runs */
    STREAM_CONNECTED,    /* the daemon's first sign */
    STREAM_PLAN,         /* the next step's plan, verified */
    STREAM_CORRUPT,      /* a message that is not the next step's plan */
    STREAM_CALL_END,     /* the call is over: nothing more is to come */
    STREAM_CALL_LOST,    /* the call is over: try again */
    STREAM_CALL_REFUSED, /* the call is over: trying again would not help */
    STREAM_RETRY,        /* the wait is over */
    STREAM_TAKE_OVER,    /* too long without the daemon, and plans can be made here */
    STREAM_RETURN,       /* the daemon is there again */
    STREAM_LOCAL_LOST,   /* no plan can be made here any more */
    STREAM_GIVE_UP,      /* too long without a connection */
    STREAM_CLOSE,        /* the user closes */
    N_STREAM_EVENTS,
};

enum stream_action {
    STREAM_NOTHING,
    STREAM_OPEN,    /* start a call at the next step */
    STREAM_CANCEL,  /* the open call: what it still brings is for nobody */
    STREAM_DELIVER, /* hand the plan to the user */
    STREAM_WAIT,    /* set the timer for the next attempt */
    STREAM_FINISH,  /* wake the user: no more plans */
    STREAM_FAIL,    /* keep the error, cancel the call, wake the user */
    STREAM_ILLEGAL, /* no such edge: a bug */
};

/* Moves to the next state and returns what to do; an illegal event moves nothing. */
enum stream_action stream_state_move(enum stream_state *state, enum stream_event event);

/* "opening"; static. */
const char *stream_state_name(enum stream_state state);

/* Which event a finished call is. `code` is its status (0, or an enum skrull_err), `is_end` whether
 * an end message came that says done, `is_reopen` one that says come again, `is_complete` whether
 * all plans that were asked for have been received. */
enum stream_event stream_call_outcome(int code, bool is_end, bool is_reopen, bool is_complete);

/* Whether a call with this code is worth another attempt: the connection, not the daemon, said it.
 */
bool stream_is_transient(int code);
