/*
 * The stream's state table.
 *
 * Happy path: NEW -> (CHECKING) -> [BLOCKED] -> [MARKING] -> PLANNING -> SENDING -> ... -> ENDED,
 * the part from BLOCKED on once a step; states in brackets are passed where nothing is to be waited
 * for. Where a revision begins it ends, so that the worker looks at the job again: its rank, or all
 * of them, may be others from there. Failures: whatever fails gives the status at once; a client
 * that goes away ends it in any state; a drain lets the message in flight leave and then ends.
 *
 * While it waits for anything a heartbeat may go out, so that the client knows that it is waited
 * for and not forgotten. What comes meanwhile, a plan or the end, is held in WAITING until the
 * heartbeat has left.
 */
#include "job/stream.h"

#include <assert.h>
#include <stddef.h>

#define GIVE_OUT_BLOCK 64

void stream_init(struct stream *stream, uint64_t from_step, uint64_t end_step, uint32_t window,
                 bool must_check, uint64_t given_out_below)
{
    *stream = (struct stream){
        .state = STREAM_NEW,
        .step = from_step,
        .end_step = end_step,
        .window = window,
        .must_check = must_check,
        .window_from = from_step,
        .given_out_below = given_out_below,
    };
}

bool stream_revise(struct stream *stream, uint64_t first_step)
{
    /* A stream that goes to the job's end goes on where that moves. */
    if (first_step > stream->end_step || (first_step == stream->end_step && stream->is_counted)) {
        return false;
    }
    stream->end_step = first_step;
    stream->is_counted = false;
    stream->is_revised = true;
    return true;
}

enum stream_end stream_end_reason(const struct stream *stream)
{
    if (stream->step < stream->end_step) {
        return STREAM_END_DRAINING;
    }
    return stream->is_revised ? STREAM_END_REVISION : STREAM_END_DONE;
}

bool stream_report(struct stream *stream, uint64_t step)
{
    if (step < stream->window_from) {
        return false;
    }
    stream->window_from = step + 1;
    return true;
}

uint64_t stream_mark(uint64_t step, uint64_t steps)
{
    uint64_t mark;

    assert(step < steps);
    mark = step - step % GIVE_OUT_BLOCK;
    return steps - mark > GIVE_OUT_BLOCK ? mark + GIVE_OUT_BLOCK : steps;
}

/* The window is used up before `step`. */
static bool is_blocked(const struct stream *stream, uint64_t step)
{
    return stream->window > 0 && step >= stream->window_from &&
           step - stream->window_from >= stream->window;
}

bool stream_may_follow(const struct stream *stream)
{
    uint64_t next = stream->step + 1;

    return !stream->is_draining && next < stream->end_step && next < stream->given_out_below &&
           !is_blocked(stream, next);
}

/* A plan is sent or the stream ended, at once or after the heartbeat in flight. */
static unsigned int emit(struct stream *stream, unsigned int action)
{
    if (stream->is_beating) {
        stream->state = STREAM_WAITING;
        stream->held = action;
        return 0;
    }
    stream->state = action == STREAM_SEND ? STREAM_SENDING : STREAM_ENDED;
    return action;
}

/* The next thing to wait for, or the end. */
static unsigned int advance(struct stream *stream)
{
    if (stream->is_draining || stream->step >= stream->end_step) {
        return emit(stream, STREAM_END);
    }
    if (is_blocked(stream, stream->step)) {
        stream->state = STREAM_BLOCKED;
        return 0;
    }
    if (stream->step >= stream->given_out_below) {
        stream->state = STREAM_MARKING;
        return STREAM_MARK;
    }
    stream->state = STREAM_PLANNING;
    return STREAM_ASK;
}

static unsigned int on_open(struct stream *stream)
{
    if (stream->must_check) {
        stream->state = STREAM_CHECKING;
        return STREAM_CHECK;
    }
    return advance(stream);
}

static unsigned int on_planned(struct stream *stream)
{
    return emit(stream, STREAM_SEND);
}

static unsigned int on_beat(struct stream *stream)
{
    if (stream->is_beating) {
        return 0;
    }
    stream->is_beating = true;
    return STREAM_HEARTBEAT;
}

/* A heartbeat has left. */
static unsigned int on_beaten(struct stream *stream)
{
    stream->is_beating = false;
    return 0;
}

static unsigned int on_beaten_waiting(struct stream *stream)
{
    stream->is_beating = false;
    return emit(stream, stream->held);
}

static unsigned int on_sent(struct stream *stream)
{
    stream->step++;
    return advance(stream);
}

/* Other ranks' news reach a stream that waits for its own: it asks again only when its own came. */
static unsigned int on_marked(struct stream *stream)
{
    return stream->step < stream->given_out_below || stream->step >= stream->end_step
               ? advance(stream)
               : 0;
}

static unsigned int on_drain(struct stream *stream)
{
    stream->is_draining = true;
    return STREAM_CANCEL | emit(stream, STREAM_END);
}

static unsigned int on_drain_sending(struct stream *stream)
{
    stream->is_draining = true;
    return 0;
}

static unsigned int on_fail(struct stream *stream)
{
    stream->state = STREAM_ENDED;
    return STREAM_CANCEL | STREAM_ABORT;
}

static unsigned int on_close(struct stream *stream)
{
    stream->state = STREAM_ENDED;
    return STREAM_CANCEL | STREAM_RELEASE;
}

static unsigned int ignore(struct stream *stream)
{
    (void)stream;
    return 0;
}

typedef unsigned int (*handler)(struct stream *stream);

#define N_STATES (STREAM_ENDED + 1)
#define N_EVENTS (STREAM_CLOSE + 1)

/* NULL: cannot happen. */
static const handler table[N_STATES][N_EVENTS] = {
    [STREAM_NEW] = {[STREAM_OPEN] = on_open},
    [STREAM_CHECKING] = {[STREAM_CHECKED] = advance,
                         [STREAM_SENT] = on_beaten,
                         [STREAM_BEAT] = on_beat,
                         [STREAM_NEWS] = ignore,
                         [STREAM_DRAIN] = on_drain,
                         [STREAM_FAIL] = on_fail,
                         [STREAM_CLOSE] = on_close},
    [STREAM_BLOCKED] = {[STREAM_SENT] = on_beaten,
                        [STREAM_BEAT] = on_beat,
                        [STREAM_NEWS] = advance,
                        [STREAM_DRAIN] = on_drain,
                        [STREAM_FAIL] = on_fail,
                        [STREAM_CLOSE] = on_close},
    [STREAM_MARKING] = {[STREAM_SENT] = on_beaten,
                        [STREAM_BEAT] = on_beat,
                        [STREAM_NEWS] = on_marked,
                        [STREAM_DRAIN] = on_drain,
                        [STREAM_FAIL] = on_fail,
                        [STREAM_CLOSE] = on_close},
    [STREAM_PLANNING] = {[STREAM_PLANNED] = on_planned,
                         [STREAM_SENT] = on_beaten,
                         [STREAM_BEAT] = on_beat,
                         [STREAM_NEWS] = ignore,
                         [STREAM_DRAIN] = on_drain,
                         [STREAM_FAIL] = on_fail,
                         [STREAM_CLOSE] = on_close},
    [STREAM_WAITING] = {[STREAM_SENT] = on_beaten_waiting,
                        [STREAM_BEAT] = ignore,
                        [STREAM_NEWS] = ignore,
                        [STREAM_DRAIN] = on_drain,
                        [STREAM_FAIL] = on_fail,
                        [STREAM_CLOSE] = on_close},
    [STREAM_SENDING] = {[STREAM_SENT] = on_sent,
                        [STREAM_BEAT] = ignore,
                        [STREAM_NEWS] = ignore,
                        [STREAM_DRAIN] = on_drain_sending,
                        [STREAM_FAIL] = on_fail,
                        [STREAM_CLOSE] = on_close},
    [STREAM_ENDED] = {NULL},
};

unsigned int stream_step(struct stream *stream, enum stream_event event)
{
    handler handle = table[stream->state][event];

    assert(handle);
    return handle(stream);
}
