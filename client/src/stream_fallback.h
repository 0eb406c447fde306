/*
 * A stream's fallback: plans made in this process while no daemon answers. The job is read from the
 * daemon (GetJob) whenever a connection stands and a revision is not known yet. Where the daemon is
 * away for too long, the stream takes over (STREAM_LOCAL), plans a step whenever the queue has
 * room, and looks whether the daemon is there again; then it returns to it at the next step. All of
 * it is the reader thread's; what the lock guards says so.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <skrull/client.h>

#include "backoff.h"
#include "call.h"

struct local_planner;

struct fallback {
    struct local_planner *planner; /* owned; NULL: the stream has no fallback */
    int64_t after_ns;              /* without the daemon, before it is taken over */
    int64_t again_at_ns;           /* it could not be: not tried before */
    int64_t probe_at_ns;           /* in STREAM_LOCAL: when to look for the daemon */
    struct backoff backoff;        /* of these looks */
    bool has_taken_over;           /* and has not yet heard of the daemon since */
    struct call call;              /* GetJob; under the lock */
    bool is_fetching;              /* it is on its way; under the lock */
};

/* Without fallback in `options` it does nothing ever after. INVALID_ARGUMENT, RESOURCE_EXHAUSTED.
 */
int fallback_init(struct fallback *fallback, const struct skrull_stream_options *options,
                  uint64_t seed, struct skrull_error *err);
void fallback_deinit(struct fallback *fallback);

/* There is a connection: reads the job unless it is known. Under the lock. */
void stream_fallback_connected(struct skrull_stream *stream);

/* A plan came from the daemon. Under the lock. */
void stream_fallback_saw(struct skrull_stream *stream, const struct skrull_plan *plan);

/* The daemon said that a new revision begins at the next step. Under the lock. */
void stream_fallback_revised(struct skrull_stream *stream);

/* GetJob came back. Under the lock. */
void stream_fallback_answered(struct skrull_stream *stream);

/* When something is to be done without an event; INT64_MAX: never. Under the lock. */
int64_t stream_fallback_timer_ns(const struct skrull_stream *stream);

/* Does it. Called without the lock. */
void stream_fallback_run(struct skrull_stream *stream);
