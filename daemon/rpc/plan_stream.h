/* The open StreamPlans calls, and their fan-out in slices. Loop thread only. */
#pragma once

#include <stdint.h>

#include <skrull/error.h>

struct hub;
struct loop;
struct plan_streams;

/* The daemon's one set of streams; one that was sent nothing for `heartbeat_ms` gets a heartbeat.
 */
int plan_streams_new(struct loop *loop, uint64_t heartbeat_ms, struct plan_streams **ret_streams,
                     struct skrull_error *err);

/* None may be open. NULL is fine. */
void plan_streams_free(struct plan_streams *streams);

/* Events for all streams of a job. */
void plan_streams_fail(struct hub *hub, const struct skrull_error *err);
void plan_streams_drain(struct hub *hub);
void plan_streams_cut(struct hub *hub);    /* ends what the drain could not: nobody reads it */
void plan_streams_marked(struct hub *hub); /* given_out_below was raised */
void plan_streams_mark_failed(struct hub *hub, const struct skrull_error *err);
void plan_streams_revised(struct hub *hub, uint64_t first_step);
void plan_streams_reported(struct hub *hub, uint32_t data_rank, uint64_t step);
