/*
 * The life of one StreamPlans call as a table: state x event -> next state and actions. Pure:
 * whoever owns the stream turns what happens into events and carries out the actions.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum stream_state {
    STREAM_NEW,      /* nothing happened yet */
    STREAM_CHECKING, /* the plan before the first is in the making, to compare digests */
    STREAM_BLOCKED,  /* the window is used up: until the rank reports */
    STREAM_MARKING,  /* until the store knows how far plans were given out */
    STREAM_PLANNING, /* the next plan is in the making */
    STREAM_WAITING,  /* a plan or the end is there, but a heartbeat is still in flight */
    STREAM_SENDING,  /* a plan is in flight */
    STREAM_ENDED,    /* the status is given; nothing happens any more */
};

enum stream_event {
    STREAM_OPEN,    /* the request is sound */
    STREAM_CHECKED, /* the digest before the first step is the worker's */
    STREAM_PLANNED, /* the plan asked for is there */
    STREAM_SENT,    /* the message in flight has left */
    STREAM_BEAT,    /* nothing was sent for a while */
    STREAM_NEWS,    /* the rank reported, or given_out_below was raised */
    STREAM_DRAIN,   /* the daemon stops */
    STREAM_FAIL,    /* planning or the store failed, or the job was deleted */
    STREAM_CLOSE,   /* the client has gone */
};

/* What is to be done, in the order of this list; bits. */
enum stream_action {
    STREAM_CANCEL = 1,      /* forget about the plan asked for */
    STREAM_CHECK = 2,       /* ask for the plan of from_step - 1 and compare */
    STREAM_MARK = 4,        /* have given_out_below raised past `step` */
    STREAM_ASK = 8,         /* ask for the plan of `step` */
    STREAM_SEND = 16,       /* send the plan of `step` */
    STREAM_END = 32,        /* send an `end` (of stream_end_reason) and status OK */
    STREAM_ABORT = 64,      /* give the error's status */
    STREAM_RELEASE = 128,   /* the call is over: free what it holds */
    STREAM_HEARTBEAT = 256, /* send a heartbeat, at once */
};

struct stream {
    enum stream_state state;
    uint64_t step;     /* next to be sent, or in flight */
    uint64_t end_step; /* one past the last */
    uint32_t window;   /* 0: no limit */
    bool must_check;
    bool is_draining;
    bool is_beating;   /* a heartbeat is in flight; one message may be */
    unsigned int held; /* WAITING: the action that comes next */
    bool is_counted;   /* end_step is where all plans asked for were sent */
    bool is_revised;   /* end_step is where the next revision begins */
    /* Kept up to date by the owner; each change is a STREAM_NEWS. */
    uint64_t window_from;     /* the later of from_step and the step after the one reported last */
    uint64_t given_out_below; /* durable */
};

/*
 * A stream of the steps [from_step, end_step); `must_check`: the digest of step from_step - 1 is
 * compared first.
 */
void stream_init(struct stream *stream, uint64_t from_step, uint64_t end_step, uint32_t window,
                 bool must_check, uint64_t given_out_below);

/* A revision begins at `first_step`, none of whose plans was sent: the stream ends there at the
 * latest. True: that is news. */
bool stream_revise(struct stream *stream, uint64_t first_step);

/* Why a stream ends that was told to. */
enum stream_end { STREAM_END_DONE, STREAM_END_REVISION, STREAM_END_DRAINING };
enum stream_end stream_end_reason(const struct stream *stream);

/* The rank reported `step`; true: that is news. */
bool stream_report(struct stream *stream, uint64_t step);

/* May the step after `step` be sent as soon as `step` has left? Nothing that may still come, save
 * the end of the stream, makes a yes untrue. */
bool stream_may_follow(const struct stream *stream);

/* One event; returns the actions (enum stream_action, or'ed). Events that mean nothing in a state
 * return 0; those that cannot happen there are programmer errors. */
unsigned int stream_step(struct stream *stream, enum stream_event event);

/* Up to where given_out_below is raised for `step`: a block of 64 at a time, at most `steps`. */
uint64_t stream_mark(uint64_t step, uint64_t steps);
