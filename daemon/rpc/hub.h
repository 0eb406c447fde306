/*
 * What a job that can be planned has beside its entry: its pipeline, its open streams, and what is
 * on its way to the store. Loop thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>

#include "loop/serial.h"

struct arena;
struct job;
struct pipeline;
struct plan_stream;
struct registry_entry;
struct rpc_ctx;
struct store_progress;

/* Someone who waits until the reports so far are durable; embedded, zeroed at first. */
struct hub_wait {
    /* err NULL: they are, and the job's next step was `next_step` then. */
    void (*done)(void *arg, uint64_t next_step, const struct skrull_error *err);
    void *arg;
    struct hub_wait *next; /* the hub's */
};

struct hub {
    struct rpc_ctx *ctx;
    struct registry_entry *entry; /* owned reference */
    struct pipeline *pipeline;
    struct plan_stream *streams; /* list */
    bool is_closed;

    /* Raising given_out_below. */
    struct serial_item mark;
    uint64_t mark_wanted, mark_running;
    uint64_t mark_limit; /* not to be passed: a revision is under way */
    bool is_marking;
    struct skrull_error mark_err; /* the queue's while marking */

    /* Saving progress: all that changed goes in one transaction, and who comes meanwhile goes with
     * the next. */
    struct serial_item save;
    bool is_saving;
    struct arena *save_arena;
    struct store_progress *saved; /* [n_saved] in save_arena */
    size_t n_saved;
    uint64_t saving_next_step, saved_next_step;
    struct skrull_error save_err; /* the queue's while saving */
    struct hub_wait *waits_running, *waits_next;
};

/* A hub of an entry that has a job, also set as entry->hub. */
int hub_new(struct rpc_ctx *ctx, struct registry_entry *entry, struct skrull_error *err);

/* Ends the job's streams and whoever waits for a plan or a report with `err`; frees itself once the
 * store queue is through with it. NULL is fine. */
void hub_close(struct hub *hub, const struct skrull_error *err);

/* Has given_out_below raised; each stream hears about it, or of the failure. */
void hub_mark(struct hub *hub, uint64_t below);

/*
 * A revision of the job, in this order. hub_floor: no plan of that step or a later one was given
 * out or reported. hub_hold: nor will be one from `from_step` (at least the floor) on. hub_prepare:
 * the revised job's plans; RESOURCE_EXHAUSTED. Then hub_revise (the entry has the revised job:
 * streams end where it begins), or hub_drop at any point, which ends the hold.
 */
uint64_t hub_floor(const struct hub *hub);
void hub_hold(struct hub *hub, uint64_t from_step);
int hub_prepare(struct hub *hub, struct job *job, struct skrull_error *err);
void hub_revise(struct hub *hub, uint64_t from_step);
void hub_drop(struct hub *hub);

/* Calls wait->done once all that progress knows now is durable; perhaps before this returns. */
void hub_save(struct hub *hub, struct hub_wait *wait);
