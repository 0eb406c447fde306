/*
 * The plans of one job on their way out: made ahead on other threads, encoded once a data rank,
 * kept for a while, shared by all who ask. One thread (the loop's) calls everything here; no gRPC,
 * no libuv.
 *
 * Bounds: so many plans are made at once, so many are kept (steps and bytes, of a job and of all
 * jobs together). A step asked for again after it was dropped is made again: plans are pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skrull/plan.h>

#include "job/planned.h"

struct pipeline;
struct pipeline_entry;

/* What the plans kept by all pipelines may take together; the largest share gives way first, so
 * that a job with large plans does not drive out the others'. */
struct pipeline_memory {
    size_t max_bytes;
    size_t n_bytes, n_holders; /* the pipelines', as is the list */
    struct pipeline *first;    /* those that keep something */
};

struct pipeline_options {
    /* Runs work(task) on some other thread and then, after `run` returned, done(task) on this one.
     * Negative: neither is called. */
    int (*run)(void *run_arg, void (*work)(void *task), void (*done)(void *task), void *task);
    void *run_arg;
    uint32_t max_running;           /* plans in the making, at least 1 */
    uint32_t ahead;                 /* steps made past the one that a stream asked for last */
    size_t max_steps;               /* plans kept that nobody waits for */
    size_t max_bytes;               /* of these plans and their messages */
    struct pipeline_memory *memory; /* shared, borrowed; NULL: no limit over all */
};

/* Where plans come from. */
struct pipeline_source {
    uint64_t steps; /* of the whole job */
    int (*plan)(void *arg, uint64_t step, struct skrull_plan **ret_plan, struct skrull_error *err);
    void (*release)(void *arg); /* once no plan is in the making any more */
    void *arg;
};

/* A new pipeline; takes over the source. RESOURCE_EXHAUSTED: out of memory, and `source` stays the
 * caller's. */
int pipeline_new(const struct pipeline_source *source, const struct pipeline_options *options,
                 struct pipeline **ret_pipeline, struct skrull_error *err);

/*
 * Plans from `from_step` on come from another source, those before are what they were. First
 * pipeline_prepare, which takes the source over and may fail (RESOURCE_EXHAUSTED: `source` stays
 * the caller's); then pipeline_revise, or pipeline_drop, which gives it up. What was made of later
 * steps is forgotten; who waits for one gets the new plan.
 */
int pipeline_prepare(struct pipeline *pipeline, const struct pipeline_source *source,
                     struct skrull_error *err);
void pipeline_revise(struct pipeline *pipeline, uint64_t from_step);
void pipeline_drop(struct pipeline *pipeline);

/* Ends the pipeline: who still waits hears `err`; it frees itself once nothing is in the making.
 * NULL is fine. */
void pipeline_close(struct pipeline *pipeline, const struct skrull_error *err);

/* Someone who waits for a plan; embedded in its owner, zeroed at first. Set done and arg. */
struct pipeline_wait {
    /* Exactly one is given: the plan (borrowed: take a reference to keep it), or the error. */
    void (*done)(void *arg, struct planned *planned, const struct skrull_error *err);
    void *arg;
    struct pipeline_wait *prev, *next; /* the pipeline's, as is the entry */
    struct pipeline_entry *entry;      /* NULL: not waiting */
};

/*
 * Asks for the plan of a step; wait->done is called once, perhaps before this returns. `is_stream`:
 * the steps that follow will be asked for soon, so they are made ahead.
 */
void pipeline_ask(struct pipeline *pipeline, uint64_t step, bool is_stream,
                  struct pipeline_wait *wait);

/* Forgets about a wait; fine where it does not wait. */
void pipeline_cancel(struct pipeline_wait *wait);

/* The plan of a step is there: who asks now gets it before pipeline_ask returns. */
bool pipeline_has(const struct pipeline *pipeline, uint64_t step);

/* The digest of a step, where it is remembered (longer than the plan): true. */
bool pipeline_digest(const struct pipeline *pipeline, uint64_t step,
                     uint8_t ret_digest[SKRULL_DIGEST_SIZE]);
