/* Plans that were received and not yet asked for: a ring with a fixed number of places, which it
 * owns. The stream's lock guards it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <skrull/plan.h>

struct plan_queue {
    struct skrull_plan **plans; /* [capacity] */
    size_t capacity, first, n_plans;
};

/* RESOURCE_EXHAUSTED: out of memory. `capacity` is at least 1. */
int plan_queue_init(struct plan_queue *queue, size_t capacity, struct skrull_error *err);
void plan_queue_deinit(struct plan_queue *queue);

bool plan_queue_is_full(const struct plan_queue *queue);

/* Takes a plan over; the queue must not be full. */
void plan_queue_push(struct plan_queue *queue, struct skrull_plan *plan);

/* The oldest plan, the caller's from now on; NULL: empty. */
struct skrull_plan *plan_queue_pop(struct plan_queue *queue);
