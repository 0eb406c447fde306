/* What the handlers share: all of the daemon that a call may touch. Wired by main. */
#pragma once

#include <stdbool.h>

#include "job/job.h"
#include "job/pipeline.h"

struct batch_op;
struct create_op;
struct health;
struct loop;
struct plan_streams;
struct registry;
struct serial;
struct store;

/* PlanBatch: what runs and what waits. */
struct plan_batches {
    struct batch_op *first, *last; /* waiting */
    uint32_t n_running;
    size_t n_bytes; /* of all requests, running or waiting */
};

struct rpc_ctx {
    struct loop *loop;
    struct registry *registry;
    struct store *store; /* on the store queue only */
    struct serial *store_queue;
    struct job_roots roots;
    struct pipeline_options pipeline; /* of every job's pipeline */
    struct health *health;
    struct plan_streams *streams;
    struct reflector *reflector; /* NULL: reflection is off */
    struct plan_batches batches;
    struct create_op *creates_waiting; /* for another creation of the same name to end */
};
